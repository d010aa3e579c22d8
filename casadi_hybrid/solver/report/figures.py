"""The figures of the page: curves over the iterations, active bounds, the KKT matrix."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any

import casadi as ca
import numpy as np
from matplotlib import rc_context
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from casadi_hybrid.problem.point.working_set import LOWER, UPPER, Sides, active_sides
from casadi_hybrid.solver.record.answer import Answer
from casadi_hybrid.solver.record.history import Course, History
from casadi_hybrid.utils.output.plotting import (
    PALETTE,
    figure,
    legend_below,
    line_style,
    plot_curves,
)

Array = NDArray[np.float64]

# Largest number of bounds in the figure of active ones.
ROWS = 40
# Largest number of cells a side in the figure of the KKT matrix.
CELLS = 90
_HIGHEST = 1e300
_FONT = ["DejaVu Sans"]
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def svg(fig: Figure, title: str) -> str:
    """Return a figure as an SVG element for a page: the same text for the same figure."""
    data = StringIO()
    settings: Any = {"svg.hashsalt": title, "svg.fonttype": "none", "font.sans-serif": _FONT}
    with rc_context(settings), warnings.catch_warnings():
        # The browser draws the letters of names, also those that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        fig.draw_without_rendering()  # aligned labels reach their places after the first layout
        fig.savefig(data, format="svg", dpi=200, metadata=_NO_METADATA)
    box, body = re.split(r"<svg ([^>]*)>", data.getvalue(), maxsplit=1)[1:]
    shape = " ".join(re.findall(r'(?:width|viewBox)="[^"]*"', box))
    # Matplotlib numbers the groups of every figure anew, but an id is unique in a page.
    body = re.sub(r'<g id="[\w.]+_\d+"', "<g", body)
    return f'<svg role="img" aria-label="{escape(title)}" {shape}>{body}'


def course_figures(answer: Answer, course: Course) -> dict[str, Figure]:
    """Return the curves over the iterations by caption, without those that have no point."""
    kinds = ("feasibility", "stationarity", "complementarity")
    residuals = {kind: getattr(course, kind) for kind in kinds}
    inner = residuals["complementarity"]
    if inner is None or not (inner != 0.0).any():
        residuals.pop("complementarity")
    limits = {kind: float(getattr(answer.tolerances, kind)) for kind in residuals}
    drawn = {"Residuals of the iterates, unscaled": _curves(course.t, residuals, limits)}
    if course.nu is not None and course.shift is not None:
        scaled = {"barrier parameter ν": course.nu, "shift σ of the Hessian": course.shift}
        drawn["Barrier parameter and shift, of the scaled problem"] = _curves(course.t, scaled, {})
    if further := course.further():
        drawn["Steps and correction that the rule chose"] = _curves(course.t[:-1], further, {})
    return {caption: fig for caption, fig in drawn.items() if fig is not None}


def _curves(
    t: NDArray[np.intp], curves: Mapping[str, Array], limits: Mapping[str, float]
) -> Figure | None:
    """Draw curves and their limits on a logarithmic axis; None if no point can be drawn."""
    drawn: dict[str, Any] = {}
    kinds: dict[float, list[str]] = {}
    for i, (label, values) in enumerate(curves.items()):
        shown = (values > 0) & (values < _HIGHEST)
        if shown.any():
            drawn[label] = (t, np.where(shown, values, np.nan), line_style(i, t.size))
            kinds.setdefault(limits.get(label, 0.0), []).append(label)
    if not drawn:
        return None
    for limit, labels in kinds.items():
        if 0 < limit < _HIGHEST:
            style = {"color": drawn[labels[0]][2]["color"], "linestyle": ":", "marker": ""}
            of = f" of {', '.join(labels)}" if len(kinds) > 1 else ""
            ends = ([t[0], max(t[-1], t[0] + 1)], [limit, limit])
            drawn[f"tolerance {limit:g}{of}"] = (*ends, style if of else {**style, "color": "k"})
    fig = plot_curves({"": drawn}, height=3.2, columns=4, yscale="log", xlabel="steps taken")
    fig.axes[0].minorticks_off()
    fig.axes[0].yaxis.set_major_formatter("{x:g}")
    fig.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    return fig


def active_bounds(answer: Answer, history: History) -> tuple[list[str], Sides]:
    """Return the names of bounds, no equations, that were active at some iterate, and sides."""
    b, near = answer.bounds, answer.tolerances.feasibility
    lam_x = np.zeros_like(history.x) if history.lam_x is None else history.lam_x
    lower, upper = np.append(b.lbg, b.lbx), np.append(b.ubg, b.ubx)
    values = np.hstack((history.h, history.x))
    lam = np.hstack((history.multipliers, lam_x))
    rows = zip(values, lam, strict=True)
    sides = np.array([active_sides(v, lower, upper, of_v, near) for v, of_v in rows])
    inner = np.flatnonzero(np.isin(sides, (LOWER, UPPER)).any(axis=0))
    # Sorted by the last change of the side, the latest first; −1: it never changed.
    changed = [np.flatnonzero(np.diff(sides[:, i])).max(initial=-1) for i in inner]
    order = inner[np.argsort(-np.array(changed, int), kind="stable")]
    names = (*answer.constraint_names, *answer.variable_names)
    return [names[i] for i in order], sides[:, order].T


def active_set(names: Sequence[str], sides: Sides, t: NDArray[np.intp]) -> Figure:
    """Return bars over the iterations, upper bounds above lower ones in the line of a name."""
    names, sides = names[:ROWS], sides[:ROWS]
    fig, ((ax,),) = figure(height=0.8 + 0.19 * len(names))
    lines = np.arange(len(names))
    for side, low, colour, label in (
        (UPPER, 0.1, PALETTE[1], "at the upper bound (upper half of a line)"),
        (LOWER, 0.5, PALETTE[0], "at the lower bound (lower half)"),
    ):
        cells = np.zeros((2 * len(names), t.size))  # every second row is the space between bars
        cells[::2] = sides == side
        edges = np.append((lines[:, None] + (low, low + 0.4)).ravel(), len(names) + low)
        cells = np.ma.masked_equal(cells, 0)
        colours = ListedColormap([colour])
        # An iterate lasts until the next one, and the last one for a step.
        ax.pcolormesh(np.append(t, t[-1] + 1), edges, cells, cmap=colours, rasterized=True)
        ax.plot([], [], color=colour, linewidth=5, label=label)
    ax.grid(visible=False)
    labels = [printable(name, 32) for name in names]
    ax.set_yticks(lines + 0.5, labels, parse_math=False)  # a name may have a dollar sign
    ax.set_ylim(len(names), 0)
    ax.set_xlabel("steps taken")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(fig, ax)
    return fig


def structure(J: ca.Sparsity, H: ca.Sparsity | None) -> tuple[Figure, int, int]:
    """Return the pattern of [H + D, Jᵀ; J, −E] by (x, λ_g), its entries, and rows a cell."""
    (m, n), size = J.shape, sum(J.shape)
    J_rows, J_cols = (np.array(part, int) for part in J.get_triplet())
    H = ca.Sparsity(n, n) if H is None else H
    H_rows, H_cols = (np.array(part, int) for part in H.get_triplet())
    entries = 2 * J_rows.size + H_rows.size + size - int(np.sum(H_rows == H_cols))
    # Rounded up, as −(−a // b) is.
    each = max(1, -(-size // CELLS))
    # The diagonal is nonzero by D and E, whatever H and J are.
    cells = np.eye(-(-size // each)) * 3
    for kind, rows, cols in ((1, H_rows, H_cols), (2, J_rows + n, J_cols), (2, J_cols, J_rows + n)):
        cells[rows // each, cols // each] = kind
    fig, ((ax,),) = figure(height=4.4, width=4.4)
    colours, end = ListedColormap(["#FFFFFF", *PALETTE[:3]]), len(cells) * each
    ax.imshow(cells, colours, vmin=0, vmax=3, interpolation="none", extent=(0, end, end, 0))
    ax.grid(visible=False)
    ax.spines[:].set_visible(True)
    if m and n:
        ax.axhline(n, color=PALETTE[6], linewidth=0.8)
        ax.axvline(n, color=PALETTE[6], linewidth=0.8)
    blocks = {"x": (n / 2, n), "λ": (n + m / 2, m)}
    middles = {label: middle for label, (middle, rows) in blocks.items() if rows}
    for set_ticks in (ax.set_xticks, ax.set_yticks):
        set_ticks([*middles.values()], [*middles])
    ax.tick_params(length=0, top=True, labeltop=True, labelbottom=False)
    return fig, entries, each


def printable(text: object, longest: int = 120) -> str:
    """Return the text with codes for unprintable characters, of a long one only the ends."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))
    # Long names differ at their ends.
    half = (longest - 1) // 2
    return plain if len(plain) <= longest else f"{plain[:half]}…{plain[-half:]}"
