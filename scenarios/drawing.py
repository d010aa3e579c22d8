"""Figures of the package with the answers or courses of other solvers over them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from casadi_hybrid.control import Solution
from casadi_hybrid.control.solution.drawing import LIMIT
from casadi_hybrid.utils.output.plotting import PALETTE, legend_below, line_style

SOLVERS = (PALETTE[0], PALETTE[7], PALETTE[2], PALETTE[3])
"""Colours of the hybrid solver, of IPOPT, FATROP and SQP; limits have the one in between."""

SOFT = LIMIT | {"linewidth": 1.4, "linestyle": ":"}
"""How a limit is drawn that a controller may exceed at a price."""

CIRCLES = {"color": "#000000", "linestyle": "", "marker": "o", "markersize": 4, "fillstyle": "none"}
"""How the answer that ours is compared with is drawn."""


def compare(
    ours: Solution,
    ipopt: Solution,
    names: Sequence[str],
    *,
    targets: Mapping[str, float] | None = None,
    label: str | None = None,
) -> Figure:
    """Plot our solution by :meth:`Solution.plot`, and IPOPT's at its grid points as circles.

    A name is that of a quantity or of a path constraint, which has no circles, and has a panel;
    targets are values to be reached. The horizontal axis has the time where it has no label.
    """
    fig = ours.plot(names, label=label)
    axes = panels(fig)
    for name in names:
        if name in ipopt:
            at, rows = ipopt.times, np.atleast_2d(ipopt[name])
            at = (at[:-1] + at[1:]) / 2 if rows.shape[1] < at.size else at
            axes[name].plot(at, rows.T, **CIRCLES, label="IPOPT")
    for name, value in (targets or {}).items():
        axes[name].axhline(value, color="#000000", linewidth=0.9, linestyle=":", label="target")
    return relabelled(fig)


def solver_style(i: int, colours: Sequence[str] = SOLVERS) -> dict[str, Any]:
    """Return how a course is drawn, in the colour of the solver."""
    return line_style(i) | {"color": colours[i]}


def draw_courses(
    courses: Sequence[Any],
    names: Sequence[str],
    event: tuple[float, str] | None = None,
    *,
    soft: Sequence[str] = (),
    colours: Sequence[str] = SOLVERS,
) -> Figure:
    """Plot our closed loop by :meth:`Run.plot`, and those of the other solvers over it.

    A name is that of a number of the plant; the limits of those in ``soft`` are soft for the
    controller. The event, (seconds, a word), happened to the plant.
    """
    ours, *others = courses
    fig, instants = ours.run.plot(names), ours.run.times
    for name, ax in panels(fig).items():
        for line in ax.lines:
            kind = line.get_label().lstrip("_")
            if kind == "true":  # below the others, which often lie on it
                line.set(label=ours.label, color=colours[0], linewidth=2.6)
            if kind == "limit":  # one without points stands for all in the legend there was
                style = SOFT | {"label": "soft limit"} if name in soft else {"label": kind}
                line.set(**style if len(line.get_xdata()) else {"label": "_"})
        for i, other in enumerate(others, 1):
            row = other.run[name]
            held = {"drawstyle": "steps-post"} if row.size < instants.size else {}
            values = np.append(row, row[-1:])[: instants.size]
            ax.plot(instants, values, **solver_style(i, colours) | held, label=other.label)
        if event and event[0] < instants[-1]:
            ax.axvline(event[0], color=PALETTE[6], linewidth=0.9, label=event[1])
    return relabelled(fig)


def panels(fig: Figure) -> dict[str, Axes]:
    """Return the axes of a figure of the package by the name of what they show."""
    names = ((ax.get_ylabel().replace("\n", " ").split(" (")[0], ax) for ax in fig.axes)
    return {name: ax for name, ax in names if name}


def relabelled(fig: Figure) -> Figure:
    """Put a legend of all panels in place of the one that the figure has."""
    for old in fig.legends:
        old.remove()
    legend_below(fig, *fig.axes, columns=4)
    return fig
