"""Trajectories of two answers over one axis, panel by panel, with their limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from solving import Named

from casadi_hybrid.plotting import PALETTE, figure, legend_below, line_style

LINE = {"color": PALETTE[0], "linewidth": 1.6}
"""How our answer is drawn."""

LIMIT = {"color": PALETTE[1], "linewidth": 1.0, "linestyle": "--"}
"""How a limit is drawn."""

BLACK = LIMIT | {"color": "#000000"}
"""How a limit is drawn where the curves of several solvers have the colours."""

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


def limits(ax: Axes, *values: float) -> None:
    """Draw limits of what the vertical axis shows."""
    for value in values:
        ax.axhline(value, **LIMIT)


@dataclass(frozen=True)
class Panel:
    """What one panel shows: a quantity by name, or a function of the answer.

    Attributes:
        source: name of the quantity, or a function that gives the values; one per time, or one
            per interval, drawn as steps.
        label: of the axis; the unit of a quantity is added.
        limits: numbers, or curves over the times; those of a quantity are drawn by default.
        target: a value to be reached, dotted.
    """

    source: str | Callable[[Named], np.ndarray]
    label: str = ""
    limits: Sequence[Any] | None = None
    target: float | None = None

    def read(self, answer: Named) -> np.ndarray:
        """Return the values."""
        return answer[self.source] if isinstance(self.source, str) else self.source(answer)

    def described(self, answer: Named) -> tuple[str, Iterable[Any]]:
        """Return the text of the axis and the limits."""
        if not isinstance(self.source, str):
            return self.label, self.limits or ()
        signals = {k: v for kind in answer.solution.ocp.model.signals.values()
                   for k, v in kind.items()}  # fmt: skip
        signal = signals[self.source]
        label = (self.label or self.source) + (f" ({signal.unit})" if signal.unit else "")
        declared = [v for v in (*signal.lower, *signal.upper) if np.isfinite(v)]
        return label, declared if self.limits is None else self.limits


def compare(
    ours: Named,
    other: Named,
    panels: Sequence[Panel],
    *,
    label: str = "time (s)",
    height: float = 1.6,
) -> Figure:
    """Plot our answer as lines, the other as circles and limits dashed, one panel below another.

    Args:
        ours, other: two answers to the same problem.
        panels: from top to bottom.
        label: of the horizontal axis, along which the times are.
        height: inches a panel.
    """
    fig, axes = figure(len(panels), 1, height=height, sharex=True)
    for ax, panel in zip(axes[:, 0], panels, strict=True):
        draw_panel(ax, panel, ours, other)
    axes[-1, 0].set_xlabel(label)
    fig.align_ylabels()
    # The first panel may have no limit, and the legend is read from one panel.
    if any(tuple(panel.described(ours)[1]) for panel in panels):
        axes[0, 0].plot([], [], label="limit", **LIMIT)
    if any(panel.target is not None for panel in panels):
        axes[0, 0].plot([], [], label="set point", **TARGET)
    legend_below(fig, axes[0, 0], columns=4)
    return fig


def draw_panel(ax: Axes, panel: Panel, ours: Named, other: Named) -> None:
    """Draw one panel; each answer over its own times."""
    label, limits = panel.described(ours)
    values, circles = panel.read(ours), panel.read(other)
    if values.size < ours.times.size:
        ax.stairs(values, ours.times, baseline=None, label=ours.label, **LINE)
    else:
        ax.plot(ours.times, values, label=ours.label, **LINE)
    at = other.times
    at = (at[:-1] + at[1:]) / 2 if circles.size < at.size else at
    ax.plot(at, circles, label=other.label, **CIRCLES)
    for limit in limits:
        ax.plot(ours.times, np.broadcast_to(limit, ours.times.shape), **LIMIT)
    if panel.target is not None:
        ax.axhline(panel.target, **TARGET)
    ax.set_ylabel(label)


Curve = tuple[str, Callable[[Any], np.ndarray], Sequence[float]]
"""Of closed loops: the label of the axis, course → values, the limits."""


def draw_courses(courses: Sequence[Any], dt: float, curves: Sequence[Curve], event=None) -> Figure:
    """Plot closed loops of several solvers, panel by panel, and the time of each solve below.

    Args:
        courses: of :mod:`closed_loop`, one a solver.
        dt: sampling time in seconds.
        curves: values at the instants as lines, one fewer as steps.
        event: what happened to the plant, as (seconds, a word).
    """
    fig, axes = figure(len(curves) + 1, 1, height=1.6, sharex=True)
    instants = dt * np.arange(len(courses[0].states))
    for ax, (label, read, limits) in zip(axes[:, 0], curves, strict=False):
        for i, course in enumerate(courses):
            draw_course(ax, instants, read(course), i, label=course.label)
        for limit in limits:
            ax.axhline(limit, **BLACK)
        ax.set_ylabel(label)
    for i, course in enumerate(courses):
        axes[-1, 0].semilogy(instants[:-1], 1e3 * course.seconds, **line_style(i))
    axes[-1, 0].tick_params(axis="y", which="minor", labelleft=False)
    axes[-1, 0].set(xlabel="time (s)", ylabel="solve (ms)")
    if event is not None:
        mark(axes[:, 0], event, instants)
    axes[0, 0].plot([], [], label="limit", **BLACK)
    fig.align_ylabels()
    legend_below(fig, axes[0, 0])
    return fig


def mark(axes: Sequence[Axes], event: tuple[float, str], instants: np.ndarray) -> None:
    """Mark what happened to the plant, if it has happened, and name it in the first panel."""
    if event[0] < instants[-1]:
        for ax in axes:
            ax.axvline(event[0], color=PALETTE[6], linewidth=0.9)
        place, inside = (event[0], 0.08), axes[0].get_xaxis_transform()
        axes[0].annotate(event[1], place, (4, 0), inside, textcoords="offset points")


def happening(time: float, word: str) -> Callable[[float], str]:
    """Return what an animation says beside its clock: the word for 0.3 s."""
    return lambda t: f"   {word}" if 0 <= t - time < 0.3 else ""


def draw_course(ax: Axes, instants: np.ndarray, values: np.ndarray, i: int, **style: Any) -> None:
    """Draw the values of the course number i: at the instants as a line, one fewer as steps."""
    if values.size < instants.size:
        ax.stairs(values, instants, baseline=None, **line_style(i), **style)
    else:
        ax.plot(instants, values, **line_style(i), **style)
