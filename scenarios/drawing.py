"""Figures of the package with the answers or courses of other solvers over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from solving import Named

from casadi_hybrid.plotting import PALETTE, legend_below, line_style

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


def limits(ax: Axes, *values: float) -> None:
    """Draw limits of what the vertical axis shows; the first has a label for a legend."""
    for i, value in enumerate(values):
        ax.axhline(value, **LIMIT, label=None if i else "limit")


def compare(
    ours: Named,
    other: Named,
    names: Sequence[str],
    *,
    targets: Mapping[str, float] | None = None,
    label: str | None = None,
) -> Figure:
    """Plot our answer by :meth:`Solution.plot`, and the other one at its grid points as circles.

    Args:
        ours, other: two answers to the same problem.
        names: of quantities and path constraints, a panel each; only of quantities has the other
            circles.
        targets: by name, values to be reached, dotted.
        label: of the horizontal axis; by default the time with its unit.
    """
    fig = ours.solution.plot(names, label=label)
    axes = panels(fig)
    for name in names:
        if name in other.solution:
            at, rows = other.times, np.atleast_2d(other[name])
            at = (at[:-1] + at[1:]) / 2 if rows.shape[1] < at.size else at
            axes[name].plot(at, rows.T, **CIRCLES)
    for name, value in (targets or {}).items():
        axes[name].axhline(value, **TARGET)
    axes[names[0]].plot([], [], **CIRCLES, label=other.label)
    return relabelled(fig, axes[names[0]])


def draw_courses(courses: Sequence[Any], names: Sequence[str], event=None) -> Figure:
    """Plot our closed loop by :meth:`Run.plot`, and those of the other solvers over it.

    Args:
        courses: of :mod:`closed_loop`, one a solver.
        names: of quantities of the plant, a panel each.
        event: what happened to the plant, as (seconds, a word).
    """
    fig = courses[0].run.plot(names)
    axes, instants = panels(fig), courses[0].run.times
    for line in (line for ax in axes.values() for line in ax.lines):
        line.set_label(str(line.get_label()).replace("true", courses[0].label))
    for i, course in enumerate(courses[1:], 1):
        for name, ax in axes.items():
            for row in np.atleast_2d(course.run[name]):
                held = {"drawstyle": "steps-post"} if row.size < instants.size else {}
                values = np.append(row, row[-1:])[: instants.size]
                ax.plot(instants, values, **line_style(i) | held, label=course.label)
    if event is not None:
        mark([*axes.values()], event, instants)
    return relabelled(fig, *axes.values())


def panels(fig: Figure) -> dict[str, Axes]:
    """Return the axes of a figure of the package by the name of what they show."""
    return {ax.get_ylabel().split(" (")[0]: ax for ax in fig.axes if ax.get_ylabel()}


def relabelled(fig: Figure, *axes: Axes) -> Figure:
    """Put a legend of these axes in place of the one that the figure has."""
    for old in fig.legends:
        old.remove()
    legend_below(fig, *axes, columns=4)
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
