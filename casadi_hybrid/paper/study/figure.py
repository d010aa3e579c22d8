"""The study's figure: success and median iterations against the condition number."""

from __future__ import annotations

from itertools import chain

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from casadi_hybrid.paper.study.tables import Block, Rate, Summary, span
from casadi_hybrid.utils.output.plotting import WIDTH, figure, legend_below, line_style

# Number of blocks in one column of the page; more blocks take two columns.
_TALL = 4
# Lower end of the axes of iterations.
_LEAST = 0.8


def draw(summary: Summary) -> Figure:
    """Return the figure: a pair of panels (success, iterations) for each block."""
    columns = 1 if len(summary) <= _TALL else 2
    rows = -(-len(summary) // columns)
    width = WIDTH if columns == 1 else 1.7 * WIDTH
    fig, axes = figure(rows, 2 * columns, height=2.1, width=width, sharex=True)
    for pair, (block, levels) in zip(axes.reshape(-1, 2), summary.items(), strict=False):
        _panels(pair, block, levels)
    # One range of iterations for all panels, so that they can be compared by eye.
    rows_of_rates = chain.from_iterable(levels.values() for levels in summary.values())
    rates = [rate for row in rows_of_rates for rate in row.values()]
    largest = max((rate.median_iterations or 0.0 for rate in rates), default=0.0)
    for ax in axes[:, 1::2].flat:
        ax.set_ylim(_LEAST, 2.0 * max(largest, 10.0))
    used = 2 * len(summary)
    for ax in axes.flat[used:]:
        ax.set_visible(False)
    for ax in axes.flat[used - 2 * columns : used]:  # the lowest of each column
        ax.set_xlabel("condition number κ of $J_h(x^*)$")
        ax.tick_params(labelbottom=True)
    legend_below(fig, axes[0, 0], columns=5 if columns == 1 else 8)
    fig.suptitle(
        f"{span(rate.runs for rate in rates)} instances a point; medians are of the successes",
        fontsize=10,
    )
    return fig


def _panels(pair: NDArray[np.object_], block: Block, levels: dict[float, dict[str, Rate]]) -> None:
    success, iterations = pair
    conditions = sorted(levels)
    for i, rule in enumerate(next(iter(levels.values()))):
        rates = [levels[c][rule] for c in conditions]
        medians = [np.nan if r.median_iterations is None else r.median_iterations for r in rates]
        style = {**line_style(i, len(conditions)), "linewidth": 1.2, "markersize": 4.0}
        # Many curves lie on 100 %: hollow markers, and the first rule on top, separate them.
        style |= {"markevery": 1, "markerfacecolor": "none", "zorder": 10.0 - i}
        success.plot(conditions, [r.percent for r in rates], label=rule, **style)
        # A median of zero (starts at a solution) is drawn at the axis's lower end.
        iterations.plot(conditions, np.maximum(medians, _LEAST), label=rule, **style)
    success.set_title(f"n={block.n}, m={block.m}, radius {block.radius:g}", loc="left")
    success.set_ylabel("success (%)")
    success.set_ylim(-5, 105)
    iterations.set_ylabel("median iterations")
    iterations.set_yscale("log")
    for ax in pair:
        ax.set_xscale("log")
