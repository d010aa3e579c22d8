"""The figures of the feedback controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from feedback_plants import Plant
from matplotlib.figure import Figure

from casadi_hybrid.plotting import DASHES, PALETTE, figure, legend_below

LOOK: dict[str, dict[str, Any]] = {
    "all augmentation": {"color": PALETTE[0], "linestyle": "-", "linewidth": 2.6, "marker": ""},
    "all memory": {"color": PALETTE[1], "linestyle": "-", "linewidth": 1.0, "marker": ""},
    "designed split": {"color": PALETTE[7], "linestyle": DASHES[3], "linewidth": 1.6, "marker": ""},
}
"""Of the splits; two lie on each other, so one is wide and the other is dotted."""
MARK = {"all augmentation": "o", "all memory": "s", "designed split": "x"}

Courses = Mapping[str, np.ndarray]


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
    legend_below(fig, axes[0, 0])
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
    legend_below(fig, axes[0, 0])
    return fig


def deviations(
    over: np.ndarray, predicted: Courses, at: np.ndarray, measured: Courses
) -> dict[str, tuple[Any, ...]]:
    """Return the curves of a panel of ``plot_curves``: what is predicted, and measured as dots."""
    curves: dict[str, tuple[Any, ...]] = {}
    for split, values in predicted.items():
        dots = {"color": LOOK[split]["color"], "linestyle": "", "marker": MARK[split]}
        curves[f"{split}, predicted"] = over, values, LOOK[split]
        curves[f"{split}, measured"] = at, measured[split], dots
    return curves
