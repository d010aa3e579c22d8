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

ENTRIES = [{"color": PALETTE[i], "linestyle": dash} for i, dash in ((0, "-"), (2, "--"), (3, ":"))]
"""How the entries of a quantity are drawn; the second colour is that of limits."""

CIRCLES = {
    "color": "#000000",
    "linestyle": "",
    "marker": "o",
    "markersize": 4,
    "fillstyle": "none",
}
"""How the answer that ours is compared with is drawn."""


def limits(ax: Axes, *values: float) -> None:
    """Draw limits of what the vertical axis shows; the first has a label for a legend."""
    for i, value in enumerate(values):
        ax.axhline(value, **LIMIT, label=None if i else "limit")


def beyond(ax: Axes, times: np.ndarray, values: np.ndarray, low: float, high: float) -> float:
    """Fill what a trajectory is outside of its limits; return the most of it."""
    kept = np.clip(values, low, high)
    ax.fill_between(times, kept, values, color=PALETTE[1], alpha=0.4, linewidth=0)
    return float(np.abs(values - kept).max())


@dataclass(frozen=True)
class Panel:
    """What one panel shows: a quantity by name, or a function of the answer.

    Attributes:
        source: name of the quantity, or a function that gives the values; one per time, or one
            per interval, drawn as steps.
        label: of the axis; the unit of a quantity is added.
        limits: numbers, or curves over the times; those of a quantity are drawn by default.
        target: a value to be reached, dotted.
        entries: of a quantity with several entries the name of each.
    """

    source: str | Callable[[Any], np.ndarray]
    label: str = ""
    limits: Sequence[Any] | None = None
    target: float | None = None
    entries: Sequence[str] = ()

    def read(self, answer: Any) -> np.ndarray:
        """Return the values in an answer or in a course."""
        return answer[self.source] if isinstance(self.source, str) else self.source(answer)

    def described(self, answer: Any) -> tuple[str, Iterable[Any]]:
        """Return the text of the axis and the limits."""
        if not isinstance(self.source, str):
            return self.label, self.limits or ()
        signal = answer.signal(self.source)
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
    first, *others = (bool(tuple(panel.described(ours)[1])) for panel in panels)
    if any(others) and not first:
        axes[0, 0].plot([], [], label="limit", **LIMIT)
    if any(panel.target is not None for panel in panels):
        axes[0, 0].plot([], [], label="set point", **TARGET)
    legend_below(fig, axes[0, 0], columns=4)
    return fig


def draw_panel(ax: Axes, panel: Panel, ours: Named, other: Named | None, time: str = "") -> None:
    """Draw one panel; each answer over its own times, entries with a legend of their own."""
    label, limits = panel.described(ours)
    for i, row in enumerate(np.atleast_2d(panel.read(ours))):
        style = LINE | {"label": ours.label}
        if panel.entries:
            style |= ENTRIES[i] | {"label": panel.entries[i]}
        if row.size < ours.times.size:
            ax.stairs(row, ours.times, baseline=None, **style)
        else:
            ax.plot(ours.times, row, **style)
    if panel.entries:
        ax.legend(fontsize=8, loc="upper right", bbox_to_anchor=(1.0, 0.92))
    if other is not None:
        at, circles = other.times, np.atleast_2d(panel.read(other))
        at = (at[:-1] + at[1:]) / 2 if circles.shape[1] < at.size else at
        ax.plot(at, circles.T, **CIRCLES)[0].set_label(other.label)
    for i, limit in enumerate(limits):
        curve = np.broadcast_to(limit, ours.times.shape)
        ax.plot(ours.times, curve, **LIMIT, label=None if i else "limit")
    if panel.target is not None:
        ax.axhline(panel.target, **TARGET)
    ax.set(xlabel=time, ylabel=label)


def draw_courses(courses: Sequence[Any], panels: Sequence[Panel], event=None) -> Figure:
    """Plot closed loops of several solvers, panel by panel, and the time of each solve below.

    Args:
        courses: of :mod:`closed_loop`, one a solver.
        panels: values at the instants as lines, one fewer as steps.
        event: what happened to the plant, as (seconds, a word).
    """
    fig, axes = figure(len(panels) + 1, 1, height=1.6, sharex=True)
    instants = courses[0].run.times
    for ax, panel in zip(axes[:, 0], panels, strict=False):
        for i, course in enumerate(courses):
            draw_course(ax, instants, panel.read(course), i, label=course.label)
        label, limits = panel.described(courses[0])
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
    """Mark what happened to the plant, if it has happened, and name it above the first panel."""
    if event[0] < instants[-1]:
        for ax in axes:
            ax.axvline(event[0], color=PALETTE[6], linewidth=0.9)
        top, across = (event[0], 1.0), axes[0].get_xaxis_transform()
        words = {"ha": "center", "va": "bottom", "textcoords": "offset points"}
        axes[0].annotate(event[1], top, (0, 1), across, **words)


def happening(time: float, word: str) -> Callable[[float], str]:
    """Return what an animation says beside its clock: the word for 0.3 s."""
    return lambda t: f"   {word}" if 0 <= t - time < 0.3 else ""


def draw_course(ax: Axes, instants: np.ndarray, values: np.ndarray, i: int, **style: Any) -> None:
    """Draw the values of the course number i: at the instants as a line, one fewer as steps."""
    if values.size < instants.size:
        ax.stairs(values, instants, baseline=None, **line_style(i), **style)
    else:
        ax.plot(instants, values, **line_style(i), **style)
