"""The figures of the feedback controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from feedback_plants import Plant
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from casadi_hybrid.plotting import DASHES, PALETTE, figure

LOOK: dict[str, dict[str, Any]] = {
    "all augmentation": {"color": PALETTE[0], "linestyle": "-", "linewidth": 2.6},
    "all memory": {"color": PALETTE[1], "linestyle": "-", "linewidth": 1.0},
    "designed split": {"color": PALETTE[7], "linestyle": DASHES[3], "linewidth": 1.6},
}
"""Of the splits; two lie on each other, so one is wide and the other is dotted."""
MARK = {"all augmentation": "o", "all memory": "s", "designed split": "x"}

Courses = Mapping[str, np.ndarray]


def _below(fig: Figure, ax: Axes) -> None:
    handles = ax.get_legend_handles_labels()[0]
    columns = 2 if len(handles) == 4 else 3
    fig.legend(
        handles=handles, loc="outside lower center", ncols=columns, fontsize=9, frameon=False
    )


def courses(plants: Sequence[Plant], clean: Sequence[Courses], noisy: Sequence[Courses]) -> Figure:
    """Plot one input of each plant for the three splits, without noise and with it."""
    fig, axes = figure(len(plants), 2, height=2.5, sharey="row")
    for row, plant, pair in zip(axes, plants, zip(clean, noisy, strict=True), strict=True):
        # Memory, which swings widest, goes below the others.
        for ax, runs, title in zip(row, pair, ("no noise", "noise, settled"), strict=True):
            for split in ("all memory", "all augmentation", "designed split"):
                ax.plot(runs[split][:, plant.shown[1]], label=split, **LOOK[split])
            ax.set_title(f"{plant.name}, {title}", fontsize=10)
            ax.set_xlabel("step")
        row[0].set_ylabel(plant.inputs)
    _below(fig, axes[0, 0])
    return fig


def variances(plants: Sequence[Plant], rows: Sequence[Sequence[Mapping[str, Any]]]) -> Figure:
    """Plot the predicted and the measured deviation of the noisy constraint, law by law."""
    fig, axes = figure(1, len(plants), height=3.0, sharey=True)
    for ax, plant, table in zip(axes[0], plants, rows, strict=True):
        y = np.arange(len(table))
        predicted, measured = ([row[key] for row in table] for key in ("predicted", "measured"))
        ax.barh(y, predicted, height=0.6, color=PALETTE[4], label="predicted (Lyapunov)")
        ax.plot(measured, y, "o", color=PALETTE[7], markersize=5, label="measured")
        ax.set_yticks(y, [row["method"] for row in table])
        ax.set(xlabel=f"std of the\n{plant.outputs}")
        ax.set_title(plant.name, fontsize=10)
        ax.grid(False, axis="y")
    axes[0, 0].invert_yaxis()
    _below(fig, axes[0, 0])
    return fig


def disturbance(plant: Plant, errors: Courses, shown: Sequence[tuple[int, str]]) -> Figure:
    """Plot how two constraints come back after a step of the disturbance, without noise."""
    fig, axes = figure(1, len(shown), height=2.8, sharey=True)
    for ax, (i, title) in zip(axes[0], shown, strict=True):
        for split, course in errors.items():
            ax.plot(course[:, i], label=split, **LOOK[split])
        ax.set(xlabel="step after the loads have risen")
        ax.set_title(title, fontsize=10)
    axes[0, 0].set_ylabel(plant.outputs)
    _below(fig, axes[0, 0])
    return fig


def drifts(
    plant: Plant,
    steps: np.ndarray,
    predicted: Mapping[str, np.ndarray],
    at: np.ndarray,
    measured: Mapping[str, np.ndarray],
    shown: Sequence[tuple[int, str]],
) -> Figure:
    """Plot the deviation of two constraints over the drift of the disturbance."""
    fig, axes = figure(1, len(shown), height=2.8, sharey=True)
    for ax, (i, title) in zip(axes[0], shown, strict=True):
        for split, values in predicted.items():
            ax.loglog(steps, values[:, i], label=f"{split}, predicted", **LOOK[split])
            ax.loglog(at, measured[split][:, i], linestyle="", marker=MARK[split],
                      color=LOOK[split]["color"], label=f"{split}, measured")  # fmt: skip
        ax.set(xlabel="drift (% of nominal a step)")
        ax.set_title(title, fontsize=10)
    axes[0, 0].set_ylabel(f"std of the\n{plant.outputs}")
    _below(fig, axes[0, 0])
    return fig


def rates(
    plants: Sequence[Plant],
    over: np.ndarray,
    predicted: Sequence[Mapping[str, np.ndarray]],
    at: np.ndarray,
    measured: Sequence[Mapping[str, np.ndarray]],
) -> Figure:
    """Plot the deviation of the noisy constraint over the rate, as a share of the sensor's."""
    fig, axes = figure(1, len(plants), height=2.8, sharey=True)
    for ax, plant, lines, points in zip(axes[0], plants, predicted, measured, strict=True):
        for split, values in lines.items():
            ax.plot(over, values, label=f"{split}, predicted", **LOOK[split])
            ax.plot(at, points[split], linestyle="", marker=MARK[split],
                    color=LOOK[split]["color"], label=f"{split}, measured")  # fmt: skip
        ax.set(xlabel="rate ρ designed for", ylim=(0, None))
        ax.set_title(plant.name, fontsize=10)
    axes[0, 0].set_ylabel("std of the noisy h\nover its sensor's")
    _below(fig, axes[0, 0])
    return fig
