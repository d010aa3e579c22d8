"""A figure of a solution: a panel for each quantity, with its limits and where they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from casadi_hybrid.control.model.signals import Array, Signal, Values, known
from casadi_hybrid.control.solution.dense import Dense
from casadi_hybrid.problem.point.working_set import LOWER, UPPER, active_sides
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.output.plotting import DASHES, PALETTE, figure, legend, legend_below, save

_BETWEEN = 12
_ONE_COLUMN = 4
# Style of a limit; no curve has its colour.
LIMIT: dict[str, Any] = {"color": PALETTE[1], "linewidth": 1.0, "linestyle": "--"}
# Colour of lines and dots in a legend that stand for any colour.
GREY = "#444444"
_POINTS: dict[str, Any] = {"linestyle": "", "marker": ".", "markersize": 5}
_ACTIVE: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "fillstyle": "none"}
_ACTIVE |= {"color": PALETTE[1], "markeredgewidth": 1.0}
_COLOURS = (PALETTE[0], *PALETTE[2:7])


@dataclass(frozen=True)
class Panel:
    """Content of one panel."""

    limited: Any  # signal or constraint, with limits and unit
    # The curve between the grid points, or the edges of stairs and their values.
    times: Array
    rows: Array
    # The grid points, or for stairs the middles of the intervals.
    grid_times: Array
    grid: Array
    held: bool  # stairs
    joined: bool  # a curve between grid points
    # Times, values and activity of a limit, on the grid and between.
    marked: tuple[Array, Array, NDArray[np.bool_]]


def draw(
    parts: Values, names: Sequence[str] | None, label: str | None, tol: float, path: Any
) -> Figure:
    """Return the figure of parts by name, a colour each, or of one; see :meth:`Solution.plot`."""
    chosen: dict[str, Any] = {}  # by default all unknowns and path constraints
    for part in parts.values():
        paths = (c.name for c in part.ocp.constraints if c.place == "path")
        chosen |= dict.fromkeys((*part.ocp.model.unknowns, *paths))
    panels = [_panels(parts, name, tol) for name in listed(names) or chosen]
    several = len(parts) > 1
    unit = next(iter(parts.values())).ocp.model.time_unit
    fig, flat = stacked_axes(len(panels), label or labelled("time", unit))
    for ax, of_parts in zip(flat, panels, strict=True):
        for i, panel in of_parts.items():
            _draw(ax, panel, narrow=len(flat) > _ONE_COLUMN, colour=i if several else None)
    _explain(flat[0], [panel for of_parts in panels for panel in of_parts.values()])
    for i, part in enumerate(parts if several else ()):
        flat[0].plot([], [], color=_COLOURS[i % len(_COLOURS)], linewidth=1.6, label=part)
    legend_below(fig, flat[0], columns=4)
    if path is not None:
        save(fig, path)
    return fig


def listed(names: Sequence[str] | None) -> list[str]:
    """Return names to draw, an empty list for None; refuse a text."""
    if isinstance(names, str):
        raise InputError(f"names must be a list of names, got the text {names!r}")
    return list(names or ())


def labelled(name: str, unit: str) -> str:
    """Return the label of an axis."""
    return f"{name} ({unit})" if unit else name


def name_axis(ax: Any, name: str, unit: str) -> None:
    """Label the vertical axis, in lines that the height of the panel has room for."""
    room = int(13 * (ax.figure.get_figheight() / ax.get_gridspec().nrows - 0.3))
    ax.set_ylabel(fill(labelled(name, unit), room, break_long_words=False))


def entry_style(i: int, colour: int | None = None) -> dict[str, Any]:
    """Return the style of the curve of an entry, in a colour of its own or of a part."""
    color = _COLOURS[(i if colour is None else colour) % len(_COLOURS)]
    return {"color": color, "linestyle": DASHES[i % len(DASHES)], "linewidth": 1.6}


def number_entries(ax: Axes, curves: Sequence[Any]) -> None:
    """Put the numbers of the entries above the panel of a vector."""
    if len(curves) > 1:
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.97), "ncols": min(6, len(curves))}
        style = {"fontsize": 8, "frameon": False, "handlelength": 1.8, "borderpad": 0.0}
        labels = [f"[{i}]" for i in range(len(curves))]
        legend(ax, handles=curves, labels=labels, **place, **style)


def limit_style(has: NDArray[np.bool_], *, own: bool = True) -> dict[str, Any]:
    """Return the style of a limit of these entries; of one alone in the colour of the entry."""
    alone = own and has.size > 1 and has.sum() == 1
    return {**LIMIT, "color": entry_style(int(has.argmax()))["color"]} if alone else LIMIT


def stacked_axes(
    count: int, time_label: str, *, height: float | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels over time, in two columns if there are many."""
    columns = 1 if count <= _ONE_COLUMN else 2
    rows = -(-count // columns)
    height = height or max(1.25, min(2.4, 7.5 / rows))
    fig, axes = figure(rows, columns, height=height, sharex=True)
    flat = list(axes.T.flat)
    for ax in flat[count:]:
        ax.set_axis_off()
    for j in range(columns):
        last = axes[min(rows, count - j * rows) - 1, j]
        last.set_xlabel(time_label)
        last.tick_params(labelbottom=True)
    fig.align_ylabels()
    return fig, flat[:count]


def _panels(parts: Values, name: str, tol: float) -> dict[int, Panel]:
    """Return the panel of each part that has the quantity, by the part's number."""
    panels: dict[int, Panel] = {}
    for i, part in enumerate(parts.values()):
        try:
            panels[i] = _panel(part, name, tol)
        except InputError:
            if i + 1 == len(parts) and not panels:
                raise
    return panels


def _panel(solution: Any, name: str, tol: float) -> Panel:
    dense: Dense = solution.dense
    ocp, model, N = dense.ocp, dense.ocp.model, dense.N
    paths = {c.name: c for c in ocp.constraints if c.place == "path"}
    shown = {**model.signals["output"], **paths, **model.unknowns, **ocp.given}
    limited = known(name, shown, "quantity")
    of_signal = isinstance(limited, Signal)
    held = of_signal and (
        limited.varying or (name in model.signals["control"] and not limited.linear)
    )

    def read(k: Any, s: Array) -> tuple[Array, Array]:
        if of_signal:
            samples = dense.samples(k, s)
            return samples.times, samples.rows[name]
        at = dense.columns(k, s)
        return at.t, dense.expression(limited.expression, at)

    if held:
        grid_times, dots = read(*dense.each(np.array([0.5])))
        times, rows = dense.times, dots
    else:
        grid_times, dots = read(*dense.each(np.zeros(1), end=True))
        times, rows = read(*dense.each(np.linspace(0, 1, _BETWEEN + 1)))
        if name not in model.signals["state"]:  # a held control may let it jump: a gap there
            ends = np.arange(_BETWEEN + 1, times.size, _BETWEEN + 1)
            times, rows = np.insert(times, ends, np.nan), np.insert(rows, ends, np.nan, axis=1)
    scale, lower, upper = (part[:, None] for part in (limited.scale, limited.lower, limited.upper))
    program = solution.program
    in_g, in_x = program.constraints.get(name), program.variables.get(name)
    block, stacked = (in_g, solution.lam_g) if in_g else (in_x, solution.lam_x)
    lam = np.zeros((1, 1)) if block is None else block.read(stacked, dual=True) * scale
    if lam.shape != dots.shape:  # a limit at other points too: the distance alone decides
        lam = np.zeros(dots.shape)
    sides = active_sides(dots / scale, lower / scale, upper / scale, lam, 10 * tol)
    touched, algebraic = np.isin(sides, (LOWER, UPPER)), name in model.signals["algebraic"]
    if algebraic and name not in solution.program.variables:  # no limit holds at the grid points
        touched[:] = False
    active, marked = solution.active(tol), [(grid_times[None], dots, touched)]
    nodes, inner = ocp.method.nodes, ocp.method.inner_points
    inside = nodes if algebraic else np.append(nodes[nodes < 1.0], inner)
    blocks = {**program.variables, **program.constraints}
    places = {b.role.place: label for label, b in blocks.items() if b.role.quantity == name}
    for word, taus in (("inside", inside), ("between", inner)):
        label = places.get(word)
        if label in active:
            more = np.atleast_2d(active[label])
            moments, values = read(*dense.each(taus[: more.shape[1] // N]))
            marked.append((moments[None], values, more))
    when, values, touched = (np.hstack(parts) for parts in zip(*marked, strict=True))
    joined, points = not model.discrete, (when[0], values, touched)
    return Panel(limited, times, rows, grid_times, dots, held, joined, points)


def _draw(ax: Axes, panel: Panel, *, narrow: bool, colour: int | None = None) -> None:
    """Draw a panel, its entries in colours, or in the colour of a part with dashes of their own."""
    curves: list[Any] = []
    times, *marked = panel.marked
    for i, (row, dots, values, on) in enumerate(zip(panel.rows, panel.grid, *marked, strict=True)):
        style = entry_style(i, colour)
        if panel.held:
            curves.append(ax.stairs(row, panel.times, baseline=None, **style))
        else:
            if panel.joined:
                curves += ax.plot(panel.times, row, **style)
            curves += ax.plot(panel.grid_times, dots, **style | _POINTS)[: not panel.joined]
        ax.plot(times[on], values[on], **_ACTIVE)
    number_entries(ax, curves if colour is None else ())
    pairs = np.stack((panel.limited.lower, panel.limited.upper), axis=1)
    for limit in np.unique(pairs[np.isfinite(pairs)]):
        ax.axhline(limit, **limit_style((pairs == limit).any(axis=1), own=colour is None))
    ax.margins(x=0.01)
    ax.yaxis.set_major_locator(MaxNLocator(4 if narrow else 5))
    name_axis(ax, panel.limited.name, panel.limited.unit)


def _explain(ax: Axes, panels: Sequence[Panel]) -> None:
    if any(panel.joined and not panel.held for panel in panels):
        ax.plot([], [], linewidth=1.6, label="between grid points", color=GREY)
    if any(not panel.held for panel in panels):
        ax.plot([], [], label="grid points", color=GREY, **_POINTS)
    if any(np.isfinite((panel.limited.lower, panel.limited.upper)).any() for panel in panels):
        ax.plot([], [], label="limit", **LIMIT)
    if any(panel.marked[2].any() for panel in panels):
        ax.plot([], [], label="limit active", **_ACTIVE)
