"""One table, the ratios with their wins and losses, and one performance profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from casadi_hybrid.utils.output.plotting import figure, legend_below, line_style, save

FURTHEST = 1000.0
"""Right end of a profile at most."""


def table(rows: Sequence[Sequence[str]], markdown: bool = False) -> str:
    """Rows of cells as columns; the first column to the left, the rest to the right."""
    if markdown:
        rule = ["---", *["--:"] * (len(rows[0]) - 1)]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (rows[0], rule, *rows[1:]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *rest = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join([f"{first.strip():<{widths[0]}}", *rest]).rstrip())
    return "\n".join(lines)


def geometric_mean(ratios: Sequence[float]) -> float:
    """exp of the mean logarithm; NaN of none."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else np.nan


def mean_ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """The geometric mean of the ratios of pairs, as a cell."""
    return f"{geometric_mean([a / b for a, b in pairs]):.2f}" if pairs else "–"


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """e of values ∝ sizesᵉ by least squares of the logarithms; NaN with less than two."""
    pairs = [(s, v) for s, v in zip(sizes, values, strict=True) if np.isfinite(v) and v > 0]
    if len(pairs) < 2:
        return np.nan
    across, up = np.log(np.array(pairs)).T
    return float(np.polyfit(across, up, 1)[0])


def spread(ratios: Mapping[str, float], most: int = 3) -> str:
    """A line of ratios by name: mean, wins (below one), losses, and the worst by name."""
    if not ratios:
        return "–"
    wins = sum(ratio < 1 for ratio in ratios.values())
    losses = sum(ratio > 1 for ratio in ratios.values())
    worst = sorted(ratios, key=ratios.__getitem__, reverse=True)[:most]
    named = ", ".join(f"{name} {ratios[name]:.2f}" for name in worst if ratios[name] > 1)
    mean = geometric_mean(list(ratios.values()))
    return f"{mean:.2f} (less in {wins}, more in {losses}; most: {named or 'none'})"


def profile(
    costs: Mapping[str, Mapping[str, float]],
    path: str | Path,
    *,
    across: str = r"within $\tau$ times the fastest solver",
    up: str = "share of problems solved",
) -> Path:
    """Draw the share of problems that each solver does within τ times the best, and write it.

    Shares are of the problems that at least one solver does.

    E. D. Dolan and J. J. Moré, Benchmarking optimization software with performance profiles,
    Mathematical Programming 91, 2002.

    Args:
        costs: of each solver and problem; infinite or missing where it is not solved.
        path: file to write, in a format of matplotlib.
        across, up: labels of the axes.
    """
    names = list(dict.fromkeys(name for own in costs.values() for name in own))
    least = {name: min(own.get(name, np.inf) for own in costs.values()) for name in names}
    names = [name for name in names if np.isfinite(least[name])]
    fig, axes = figure(1, 1, height=3.4)
    ax, furthest = axes[0, 0], 10.0
    for i, (solver, own) in enumerate(costs.items()):
        ratios = np.sort([own.get(name, np.inf) / least[name] for name in names])
        done = ratios[np.isfinite(ratios)]
        share = np.arange(1, done.size + 1) / max(1, len(names))
        steps = np.concatenate(([1.0], done, [FURTHEST]))
        heights = np.concatenate(([0.0], share, [share[-1] if done.size else 0.0]))
        ax.step(steps, heights, where="post", label=solver, **line_style(i, steps.size))
        furthest = max([furthest, *done[-1:]])
    end = min(FURTHEST, 1.1 * furthest)
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= end]
    ax.set(xscale="log", xlim=(1.0, end), ylim=(-0.02, 1.02), xlabel=across, ylabel=up)
    ax.set_xticks(ticks, [f"{tick}" for tick in ticks])
    ax.minorticks_off()
    legend_below(fig, ax, columns=4)
    return save(fig, path)
