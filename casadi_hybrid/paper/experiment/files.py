"""The files of a reproduction: runs.csv, residuals.csv, tables.txt and the figures.

Medians and quantiles count a run that broke off (norm budget, divergence) as +∞ from its end on.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from casadi_hybrid.paper.experiment import printed
from casadi_hybrid.paper.experiment.experiment import AT, BUDGET, LABELS, THRESHOLDS, Run
from casadi_hybrid.paper.experiment.fitted import SEEDS
from casadi_hybrid.paper.experiment.reproduce import Reproduction
from casadi_hybrid.paper.experiment.tables import Cell, Summary, grouped
from casadi_hybrid.utils.output.plotting import figure, legend_below, line_style, save

EVERY = 10  # steps between two rows of residuals.csv
SHOWN = ("closed-w", "grid-w", "opt-w", "aug-w", "pdhg")
# Range of the drawn errors; smaller ones are drawn at FLOOR.
FLOOR, TOP = 1e-9, 3.0
# Number of runs from which a band shows the middle half; fewer runs are thin lines.
ENOUGH = 20


def write(reproduction: Reproduction, folder: Path, form: str = "png") -> list[Path]:
    """Write runs.csv, residuals.csv, tables.txt and the figures; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in ("runs.csv", "residuals.csv", "tables.txt")]
    write_runs(reproduction.runs, paths[0])
    write_residuals(reproduction.runs, paths[1])
    paths[2].write_text(f"{reproduction}\n", encoding="utf-8")
    return [*paths, *draw(reproduction, folder, form)]


def write_runs(runs: Iterable[Run], path: Path) -> None:
    """Write a line for each run, with ‖h‖₂ and ‖∇f + J_hᵀμ‖₂ at the hit and at step 200."""
    ends = ["max_norm_M", "below_at_200", "never_left", "distance_200", "distance_1500"]
    residuals = [f"{name}_{at}" for name in ("feasibility", "stationarity") for at in ("hit", 200)]
    hits = [f"hit_{threshold:g}" for threshold in THRESHOLDS]
    heading = ["method", "condition", "seed", *hits, *ends, *residuals, "stop", "failure"]
    lines: list[list[Any]] = [heading]
    for r in sorted(runs, key=lambda r: (r.method, r.condition, r.seed)):
        both = r.feasibility, r.stationarity
        at = [None if t is None else series[t] for series in both for t in (r.hit, -1)]
        values = [*r.hits, r.norm_M, int(r.at_end), int(r.stays), r.errors[-1], r.longest, *at]
        lines.append([r.method, r.condition, r.seed, *values, r.stop, r.failure])
    _write(path, lines)


def write_residuals(runs: Iterable[Run], path: Path) -> None:
    """Write medians over the instances at every tenth step, by method and level."""
    names = ("distance", "feasibility", "stationarity_mu", "stationarity_nu")
    lines: list[list[Any]] = [["method", "condition", "instances", "t", *names]]
    for (method, condition), group in grouped(run for run in runs if not run.failure).items():
        series = ("errors", "feasibility", "stationarity", "effective")
        medians = [np.median(courses(group, name), axis=0) for name in series]
        for t in range(0, BUDGET + 1, EVERY):
            lines.append([method, condition, len(group), t, *(median[t] for median in medians)])
    _write(path, lines)


def courses(runs: Sequence[Run], name: str) -> NDArray[np.float64]:
    """Return one series of all runs, a row for each; +∞ after the end of a run that broke off."""
    series = np.array([getattr(run, name) for run in runs])
    for row, run in zip(series, runs, strict=True):
        # +∞ ranks behind every number in a median.
        if run.broke_off:
            row[run.steps + 1 :] = np.inf
    return series


def _write(path: Path, lines: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([_cell(value) for value in line] for line in lines)


def _cell(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "" if np.isnan(value) else f"{value:.6g}"


def draw(reproduction: Reproduction, folder: Path, form: str = "png") -> list[Path]:
    """Write the figures and return their paths; a failing figure is named on stderr."""
    fitted = SEEDS if reproduction.population else ()
    runs = [run for run in reproduction.runs if not run.failure and run.seed not in fitted]
    figures: dict[str, Callable[[], Figure]] = {
        "trajectories": lambda: trajectories(runs),
        "levels": lambda: by_level(reproduction.summary, is_paper=reproduction.is_paper),
    }
    written = []
    for name, make in figures.items():
        try:
            written.append(save(make(), folder / f"{name}.{form}"))
        except Exception as error:  # noqa: BLE001 - the tables and the other figures remain
            print(f"figure {name} FAILS: {type(error).__name__}: {error}", file=sys.stderr)
    return written


def trajectories(runs: Sequence[Run]) -> Figure:
    """Draw ‖x_t − x*‖ against t, a panel for each level: median, spread, and ends of runs."""
    groups = grouped(runs)
    levels = sorted({condition for _, condition in groups})
    fig, axes = figure(-(-len(levels) // 3), 3, height=2.4, sharex=True, sharey=True)
    for ax, condition in zip(axes.flat, levels, strict=False):
        for i, key in enumerate(SHOWN):
            group, style = groups[key, condition], line_style(i)
            errors = np.maximum(courses(group, "errors"), FLOOR)
            ax.plot(np.median(errors, axis=0), label=LABELS[key], **style)
            if len(group) >= ENOUGH:
                # Without interpolation, which has no value between a number and ∞.
                band = np.quantile(errors, [0.25, 0.75], axis=0, method="inverted_cdf")
                low, high = np.minimum(band, TOP)
                t = np.arange(BUDGET + 1)
                ax.fill_between(t, low, high, alpha=0.12, linewidth=0, color=style["color"])
            else:
                ax.plot(errors.T, linewidth=0.5, alpha=0.5, color=style["color"])
            for run in group:
                if run.broke_off:
                    last = np.clip(run.errors[-1], FLOOR, TOP)
                    ax.plot(run.steps, last, "x", color=style["color"], clip_on=False)
        ax.axhline(THRESHOLDS[AT], color="#000000", linewidth=0.8, linestyle=":")
        ax.set_yscale("log")
        ax.set_ylim(FLOOR, TOP)
        ax.set_title(f"cond = {condition:g}")
    axes[0, 0].set_ylabel("$\\|x_t - x^*\\|_2$ (units of $x$)")
    spread = "band: the middle half" if len(group) >= ENOUGH else "thin: each run"
    title = (
        f"median of n = {len(group)} runs; {spread}; dotted: 1e-3; lowest: {FLOOR:g} and less\n"
        "×: a run broke off (norm budget, divergence) and counts as ∞ from there on"
    )
    return _finished(fig, axes, title, "iteration $t$")


def by_level(summary: Summary, *, is_paper: bool) -> Figure:
    """Draw runs that cross, median hit and max‖M‖₂ by level; small: runs behind a median."""
    panels: dict[str, Callable[[Cell], tuple[float | None, int]]] = {
        "runs that cross (%)": lambda cell: (100.0 * cell.successes / cell.runs, 0),
        "median step of the first crossing": lambda cell: (cell.printed_hit, cell.successes),
        "median $\\max_t \\|M_t\\|_2$": lambda cell: (cell.median_norm_M, len(cell.norms)),
    }
    fig, axes = figure(1, 3, height=3.6)
    keys = (*SHOWN, "closed-u")
    for ax, (label, shown) in zip(axes[0], panels.items(), strict=True):
        for i, key in enumerate(keys):
            values = {c: shown(cell) for c, cell in summary[key].items()}
            points = {c: (value, n) for c, (value, n) in values.items() if value is not None}
            style, levels = line_style(i, len(values)), [float(c) for c in values]
            ax.plot(list(points), [v for v, _ in points.values()], label=LABELS[key], **style)
            for c, (value, n) in points.items():
                if 0 < n < summary[key][c].runs:
                    ax.annotate(f"{n}", (c, value), (3, 3), textcoords="offset points", fontsize=6)
        ax.set_xscale("log")
        ax.set_xticks(levels, [f"{c:g}" for c in levels])
        ax.minorticks_off()
        ax.set_title(label, fontsize=9)
    growing = axes[0, 2]
    growing.set_yscale("log")
    growing.axhline(printed.M_MAX, color="#7F7F7F", linewidth=0.9, label="norm budget")
    for key in ("closed-u", "grid-w") if is_paper else ():
        known = {c: v for c, v in printed.NORM_M[key].items() if v is not None}
        color, label = line_style(keys.index(key))["color"], f"{LABELS[key]}, printed"
        growing.plot(list(known), list(known.values()), "x", color=color, label=label)
    n = max(cell.runs for cell in summary["closed-w"].values())
    title = f"n = {n} runs a point, fewer where a number says so; a median step needs half of them"
    return _finished(fig, axes, title, "cond $J_h(x^*)$")


def _finished(fig: Figure, axes: NDArray[np.object_], title: str, across: str) -> Figure:
    for ax in axes[-1]:
        ax.set_xlabel(across)
    legend_below(fig, axes[0, -1], columns=4)
    fig.suptitle(title, fontsize=9)
    return fig
