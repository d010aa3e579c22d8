"""The figures of the reproduction."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from casadi_hybrid.paper import printed
from casadi_hybrid.paper.cells import Summary
from casadi_hybrid.paper.experiment import AT, LABELS, THRESHOLDS, Run
from casadi_hybrid.paper.fitted import SEEDS
from casadi_hybrid.paper.reproduce import Reproduction
from casadi_hybrid.plotting import figure, legend_below, line_style, save

SHOWN = ("closed-w", "grid-w", "opt-w", "aug-w", "pdhg")
_FLOOR = 1e-9


def draw(reproduction: Reproduction, folder: Path, form: str = "png") -> list[Path]:
    """Write the figures in a format of matplotlib's and return their paths.

    One that fails is named on stderr.
    """
    summary = reproduction.population or reproduction.fitted
    runs = tuple(
        run
        for run in reproduction.runs
        if not run.failure and (reproduction.population is None or run.seed not in SEEDS)
    )
    conditions = sorted({run.condition for run in runs})
    instances = max((cell.runs for cell in summary["closed-w"].values()), default=0)
    is_paper = reproduction.is_paper
    figures: dict[str, Callable[[], Figure]] = {
        "trajectories": lambda: trajectories(runs, conditions, instances),
        "settling": lambda: settling(runs, conditions, instances),
        "residuals": lambda: residuals(runs, conditions, instances),
        "success_and_hits": lambda: success_and_hits(summary, conditions, instances),
        "norm_growth": lambda: norm_growth(summary, conditions, instances, is_paper),
    }
    written = []
    for name, make in figures.items():
        try:
            written.append(save(make(), folder / f"{name}.{form}"))
        except Exception as error:  # noqa: BLE001 - the tables and the other figures remain
            print(f"figure {name} FAILS: {type(error).__name__}: {error}", file=sys.stderr)
    return written


def trajectories(runs: tuple[Run, ...], conditions: list[float], instances: int) -> Figure:
    """‖x_t − x*‖ against t: median and the middle 80 % of the instances, a panel a level."""
    rows = -(-len(conditions) // 3)
    fig, axes = figure(rows, 3, height=2.4, sharex=True, sharey=True)
    for ax, condition in zip(axes.flat, conditions, strict=False):
        for i, key in enumerate(SHOWN):
            errors = [r.errors for r in runs if r.method == key and r.condition == condition]
            bands = np.maximum(np.quantile(np.array(errors), [0.1, 0.5, 0.9], axis=0), _FLOOR)
            style = line_style(i)
            ax.plot(bands[1], label=LABELS[key], **style)
            ax.fill_between(
                np.arange(bands.shape[1]),
                bands[0],
                bands[2],
                color=style["color"],
                alpha=0.12,
                linewidth=0,
            )
        ax.axhline(1e-3, color="#000000", linewidth=0.8, linestyle=":")
        ax.set_yscale("log")
        ax.set_ylim(1e-6, 3.0)
        ax.set_title(f"cond = {condition:g}")
    for ax in axes[-1]:
        ax.set_xlabel("iteration $t$")
    for ax in axes[:, 0]:
        ax.set_ylabel("$\\|x_t - x^*\\|_2$ (units of $x$)")
    legend_below(fig, axes[0, 0], columns=5)
    fig.suptitle(f"median and middle 80 %; {_level(instances)}; dotted: 1e-3", fontsize=10)
    return fig


def settling(runs: tuple[Run, ...], conditions: list[float], instances: int) -> Figure:
    """The share of runs that are below 1e-3 at step t: who crosses, leaves, and comes back."""
    keys = ("closed-w", "grid-w", "pdhg")
    fig, axes = figure(1, len(keys), height=3.0, sharex=True, sharey=True)
    for ax, key in zip(axes.flat, keys, strict=True):
        for i, condition in enumerate(conditions):
            errors = [r.errors for r in runs if r.method == key and r.condition == condition]
            share = 100.0 * np.mean(np.array(errors) <= THRESHOLDS[AT], axis=0)
            ax.plot(share, label=f"cond = {condition:g}", **line_style(i))
        ax.set_title(LABELS[key])
        ax.set_xlabel("iteration $t$")
        ax.set_ylim(-4, 104)
    axes[0, 0].set_ylabel("runs with\n$\\|x_t - x^*\\|_2 \\leq$ 1e-3 (%)")
    legend_below(fig, axes[0, 0], columns=3)
    fig.suptitle(_level(instances), fontsize=10)
    return fig


def residuals(runs: tuple[Run, ...], conditions: list[float], instances: int) -> Figure:
    """Medians of ‖h(x_t)‖₂ and ‖∇f + J_hᵀμ_t‖₂ against t, at the outer and the middle level."""
    shown = sorted({conditions[0], conditions[len(conditions) // 2], conditions[-1]})
    fig, axes = figure(2, len(shown), height=2.4, sharex=True, sharey="row")
    rows = (
        ("feasibility", "$\\|h(x_t)\\|_2$"),
        ("stationarity", "$\\|\\nabla f + J_h^T\\mu_t\\|_2$"),
    )
    for line, (name, label) in zip(axes, rows, strict=True):
        for ax, condition in zip(line, shown, strict=True):
            for i, key in enumerate(SHOWN):
                series = [
                    getattr(r, name) for r in runs if r.method == key and r.condition == condition
                ]
                middle = np.maximum(np.median(np.array(series), axis=0), _FLOOR)
                ax.plot(middle, label=LABELS[key], **line_style(i))
            ax.set_yscale("log")
        line[0].set_ylabel(label)
    for ax, condition in zip(axes[0], shown, strict=True):
        ax.set_title(f"cond = {condition:g}")
    for ax in axes[-1]:
        ax.set_xlabel("iteration $t$")
    legend_below(fig, axes[0, 0], columns=5)
    fig.suptitle(f"medians; {_level(instances)}; the paper's norms and dual", fontsize=10)
    return fig


def success_and_hits(summary: Summary, conditions: list[float], instances: int) -> Figure:
    """Success rate and median hitting time against the condition level."""
    fig, (left, right) = _pair(conditions)
    for i, key in enumerate(SHOWN):
        cells = [summary[key][c] for c in conditions]
        rates = [100.0 * cell.successes / cell.runs for cell in cells]
        hits = [np.nan if cell.median_hit is None else cell.median_hit for cell in cells]
        style = line_style(i, len(conditions))
        left.plot(conditions, rates, label=LABELS[key], **style)
        right.plot(conditions, hits, label=LABELS[key], **style)
    left.set_ylabel("runs that cross (%)")
    left.set_ylim(-4, 104)
    right.set_ylabel("median iterations to 1e-3\n(among successes)")
    right.set_ylim(0, 200)
    legend_below(fig, left, columns=5)
    fig.suptitle(
        f"{_level(instances)}, $\\|x_t - x^*\\|_2 \\leq$ 1e-3 within 200 iterations",
        fontsize=10,
    )
    return fig


def norm_growth(
    summary: Summary, conditions: list[float], instances: int, is_paper: bool
) -> Figure:
    """Median max‖M‖₂ against the condition level, with the slope of κ²."""
    fig, axes = figure(1, 1, height=3.4, width=6.4)
    ax = axes[0, 0]
    _condition_axis(ax, conditions)
    for i, key in enumerate(("closed-u", "grid-w")):
        values = [summary[key][c].median_norm_M for c in conditions]
        numbers = np.array([np.nan if v is None else v for v in values])
        ax.plot(conditions, numbers, label=LABELS[key], **line_style(i, len(conditions)))
        if is_paper:
            known: list[Any] = [printed.NORM_M[key].get(int(c)) for c in conditions]
            marks = np.array([np.nan if v is None else v for v in known], dtype=float)
            ax.plot(
                conditions,
                marks,
                linestyle="none",
                marker="x",
                markersize=8,
                color=line_style(i)["color"],
                label=f"{LABELS[key]}, printed",
            )
    start = summary["closed-u"][conditions[0]].median_norm_M or 1.0
    reference = start * (np.array(conditions) / conditions[0]) ** 2
    ax.plot(conditions, reference, color="#000000", linewidth=0.9, linestyle=":", label="∝ cond²")
    ax.axhline(300.0, color="#7F7F7F", linewidth=0.9, label="norm budget 300")
    ax.set_yscale("log")
    ax.set_ylabel("median $\\max_t \\|M_t\\|_2$")
    ax.set_title(_level(instances))
    legend_below(fig, ax, columns=3)
    return fig


def _level(instances: int) -> str:
    return f"{instances} instance{'s' if instances != 1 else ''} a level"


def _pair(conditions: list[float]) -> tuple[Figure, tuple[Axes, Axes]]:
    fig, axes = figure(1, 2, height=3.2)
    for ax in axes.flat:
        _condition_axis(ax, conditions)
    return fig, (axes[0, 0], axes[0, 1])


def _condition_axis(ax: Axes, conditions: list[float]) -> None:
    ax.set_xscale("log")
    ax.set_xticks(conditions, [f"{c:g}" for c in conditions])
    ax.minorticks_off()
    ax.set_xlabel("condition number of $J_h(x^*)$")
