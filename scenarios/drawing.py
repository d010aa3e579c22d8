"""Trajectories of two answers over one axis, panel by panel, with their limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from solving import Answer

from casadi_hybrid.plotting import PALETTE, figure, legend_below

LIMIT = {"color": PALETTE[1], "linewidth": 1.0, "linestyle": "--"}
"""How a limit is drawn."""

TARGET = {"color": "#000000", "linewidth": 0.9, "linestyle": ":"}
"""How a set point is drawn."""

CIRCLES = {
    "color": "#000000",
    "linestyle": "",
    "marker": "o",
    "markersize": 4,
    "fillstyle": "none",
}
"""How the answer that ours is compared with is drawn."""


@dataclass(frozen=True)
class Panel:
    """What one panel shows: a row of a variable, or a function of the answer.

    Attributes:
        label: quantity and unit.
        source: name of the variable, or a function that gives the values; one per time, or one
            per interval, drawn as steps.
        row: of the variable.
        limits: numbers, or curves over the times.
        factor: from the unit of the variable to that of the label.
        target: a value to be reached, dotted.
    """

    label: str
    source: str | Callable[[Answer], np.ndarray]
    row: int = 0
    limits: Sequence[float | np.ndarray] = ()
    factor: float = 1.0
    target: float | None = None

    def read(self, answer: Answer) -> np.ndarray:
        """Return the values in the unit of the label."""
        if callable(self.source):
            return self.factor * self.source(answer)
        return self.factor * np.atleast_2d(answer.values[self.source])[self.row]


def compare(
    across: np.ndarray,
    panels: Sequence[Panel],
    ours: Answer,
    other: Answer,
    *,
    label: str = "time (s)",
    height: float = 1.6,
) -> Figure:
    """Plot our answer as lines, the other as circles and limits dashed, one panel below another.

    Args:
        across: times, or whatever is drawn along the shared horizontal axis.
        panels: from top to bottom.
        ours, other: two answers to the same program.
        label: of the horizontal axis.
        height: inches a panel.
    """
    fig, axes = figure(len(panels), 1, height=height, sharex=True)
    for ax, panel in zip(axes[:, 0], panels, strict=True):
        _draw(ax, across, panel, ours, other)
    axes[-1, 0].set_xlabel(label)
    fig.align_ylabels()
    # The first panel may have no limit, and the legend is read from one panel.
    axes[0, 0].plot([], [], label="limit", **LIMIT)
    if any(panel.target is not None for panel in panels):
        axes[0, 0].plot([], [], label="set point", **TARGET)
    legend_below(fig, axes[0, 0], columns=4)
    return fig


def _draw(ax: Axes, across: np.ndarray, panel: Panel, ours: Answer, other: Answer) -> None:
    values, circles = panel.read(ours), panel.read(other)
    line = {"color": PALETTE[0], "linewidth": 1.6, "label": ours.label}
    at = across
    if values.size < across.size:
        at = (across[:-1] + across[1:]) / 2
        ax.stairs(values, across, baseline=None, **line)
    else:
        ax.plot(across, values, **line)
    ax.plot(at, circles, label=other.label, **CIRCLES)
    for limit in panel.limits:
        ax.plot(across, np.broadcast_to(limit, across.shape), **LIMIT)
    if panel.target is not None:
        ax.axhline(panel.target, **TARGET)
    ax.set_ylabel(panel.label)
