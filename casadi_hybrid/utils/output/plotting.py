"""One figure style for the package, and the plots that every study needs.

Figures are plain :class:`matplotlib.figure.Figure` objects, made without ``pyplot``: no window
opens, no backend is chosen and nothing has to be closed. Curves differ in colour (the palette of
Okabe and Ito, which people with colour blindness can tell apart), in line style and in marker, so
that a print in black and white can be read too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.output.formats import FIGURES
from casadi_hybrid.utils.inputs import one_of, positive

Array = NDArray[np.float64]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F", "#000000")
DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (3, 1)), ":", "-")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

WIDTH = 7.0
"""Width of a figure in inches: the text width of a page, so fonts keep their size in print."""

# Any: matplotlib names every setting in a Literal type that older versions do not have.
_STYLE: Any = {
    "font.size": 10.0, "axes.labelsize": 10.0, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "lines.linewidth": 1.6,
    "mathtext.fontset": "dejavusans",
}  # fmt: skip


class StyledFigure(Figure):
    """A figure that a notebook shows by itself, without ``pyplot`` and its choice of a backend."""

    def _repr_png_(self) -> bytes:
        data = BytesIO()
        self.savefig(data, format="png", dpi=90)
        return data.getvalue()


def figure(
    rows: int = 1, columns: int = 1, *, height: float = 2.8, width: float = WIDTH, **grid: Any
) -> tuple[Figure, NDArray[Any]]:
    """Return an empty figure in the package's style and its axes, rows×columns.

    Args:
        rows, columns: number of panels.
        height: inches a row.
        width: inches of the whole figure.
        **grid: further arguments of :meth:`matplotlib.figure.Figure.subplots`, such as ``sharex``.
    """
    # Axes remember the settings they were made under, so a caller needs no context of its own.
    with rc_context(_STYLE):
        fig = StyledFigure(figsize=(width, height * rows), dpi=100, layout="constrained")
        axes = fig.subplots(rows, columns, squeeze=False, **grid)
        for ax in axes.flat:
            ax.tick_params(labelsize=9)
    return fig, axes


def line_style(i: int, points: int = 0, *, marks: int = 8) -> dict[str, Any]:
    """Colour, dashes and marker of curve number ``i``, as arguments of ``Axes.plot``.

    Args:
        i: number of the curve; the styles repeat after eight.
        points: length of the curve; with it, about ``marks`` markers are spread over the curve,
            shifted from one curve to the next so that they do not hide each other.
        marks: number of markers.
    """
    k = i % len(PALETTE)
    chosen: dict[str, Any] = {"color": PALETTE[k], "linestyle": DASHES[k], "linewidth": 1.6}
    if points:
        every = max(1, points // marks)
        chosen |= {"marker": MARKERS[k], "markersize": 5.0}
        chosen["markevery"] = ((i * every) // len(PALETTE), every)
    return chosen


def legend(ax: Axes, **options: Any) -> None:
    """Put a legend into the axes, in the package's size and with an opaque ground."""
    ax.legend(**{"fontsize": 9, "framealpha": 0.9, "edgecolor": "#CCCCCC", **options})


def legend_below(fig: Figure, *axes: Axes, columns: int = 3) -> None:
    """Put the legend of these panels below all panels, where it hides no curve; a label once."""
    known: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        known |= dict(zip(labels, handles, strict=True)) | known
    across = min(columns, max(1, len(known)))
    place: Any = {"loc": "outside lower center", "ncols": across, "fontsize": 9, "frameon": False}
    fig.legend(list(known.values()), list(known), **place)


def save(fig: Figure, path: str | Path, *, dpi: int = 150) -> Path:
    """Write a figure; the folder is made where it is missing.

    Args:
        fig: the figure.
        path: its suffix chooses the format: ``.png``, ``.svg``, ``.pdf``, or another that
            matplotlib knows. The same figure makes the same file: no date is written into it.
        dpi: dots per inch of a PNG.

    Raises:
        InputError: for a suffix that matplotlib does not know, before anything is drawn.
    """
    target = Path(path)
    suffix, known = target.suffix[1:].lower(), fig.canvas.get_supported_filetypes()
    if suffix not in known:
        raise InputError(
            f"{str(path)!r} does not end in a format of figures; use one of "
            f"{', '.join(FIGURES)} (matplotlib also knows "
            f"{', '.join(sorted(set(known) - set(FIGURES)))})"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    fig.draw_without_rendering()  # aligned labels reach their places after the first layout
    dated = {"svg": "Date", "pdf": "CreationDate"}.get(suffix)
    with rc_context({"svg.hashsalt": "casadi_hybrid"}):  # names of its parts, drawn by lot else
        fig.savefig(target, dpi=dpi, metadata={dated: None} if dated else None)
    return target


def plot_curves(
    panels: Mapping[str, Mapping[str, Any]],
    *,
    levels: Mapping[str, float] | None = None,
    at: Mapping[str, float] | None = None,
    ticks: Mapping[str, Sequence[float]] | None = None,
    height: float = 3.0,
    columns: int = 3,
    **settings: Any,
) -> Figure:
    """Plot curves with labels in panels side by side on common axes, with one legend below them.

    Args:
        panels: by title the curves by label: values over 0, 1, …, or a pair (across, values), or a
            triple whose last is a dictionary of arguments of ``Axes.plot``.
        levels: by label a value of the vertical axis that every panel marks.
        at: by label a value of the horizontal axis that every panel marks.
        ticks: of the axes ``"x"`` and ``"y"``, written as plain numbers.
        height: inches of the panels.
        columns: of the legend.
        **settings: of ``Axes.set``, such as ``xlabel`` and ``yscale``.
    """
    fig, axes = figure(1, len(panels), height=height, sharex=True, sharey=True)
    for ax, (title, curves) in zip(axes[0], panels.items(), strict=True):
        for i, (label, curve) in enumerate(curves.items()):
            given = curve if isinstance(curve, tuple) else (np.arange(len(curve)), curve)
            style = line_style(i, len(given[1])) | dict(*given[2:])
            ax.plot(*given[:2], label=label, **style)
        for label, value in (levels or {}).items():
            ax.axhline(value, color="#000000", linewidth=0.9, linestyle=":", label=label)
        for label, value in (at or {}).items():
            ax.axvline(value, color="#000000", linewidth=0.9, linestyle="--", label=label)
        ax.set(**settings)
        ax.label_outer()
        ax.set_title(title, fontsize=10)
        for axis, values in (ticks or {}).items():
            getattr(ax, f"set_{axis}ticks")(values, [f"{value:g}" for value in values])
            getattr(ax, f"{axis}axis").minorticks_off()
    legend_below(fig, *axes[0], columns=columns)
    return fig


def plot_convergence(
    runs: Mapping[str, Any],
    *,
    tol: float | None = None,
    against: str = "iterations",
    log_across: bool = False,
    title: str = "",
) -> Figure:
    """Plot ‖h(x_t)‖_∞ and ‖∇f(x_t) + J_h(x_t)ᵀλ_t‖_∞ of several runs, on logarithmic axes.

    Args:
        runs: by label the :class:`~casadi_hybrid.solver.record.history.Course` of a solve, or the result
            that carries one.
        tol: tolerance, drawn as a line.
        against: ``"iterations"`` or ``"seconds"``, the horizontal axis.
        log_across: make the horizontal axis logarithmic too (iterations count from one then), for
            methods that differ by orders of magnitude.
        title: title over both panels.

    Raises:
        InputError: when there is no run, a run has no history, or ``against`` is another word.
    """
    if not runs:
        raise InputError("runs is empty; give at least one history with its label")
    one_of(against, "against", ("iterations", "seconds"))
    if tol is not None:
        positive(tol, "tol")
    fig, axes = figure(1, 2, height=3.6, sharex=True)
    feasible, stationary = axes[0]
    counted = f"iteration $t{' + 1' if log_across else ''}$"
    for i, (label, given) in enumerate(runs.items()):
        run = getattr(given, "history", given)
        if run is None:
            raise InputError(f"the run {label!r} has no history; solve with history=True")
        size = run.feasibility.size
        steps = getattr(run, "t", np.arange(size)) + (1 if log_across else 0)
        across = run.elapsed if against == "seconds" else steps
        # Earlier curves on top: an oscillating one would bury what lies below it.
        style = {**line_style(i, size), "linewidth": 1.3, "zorder": 3.0 - 0.1 * i}
        if log_across:
            style["markevery"] = _log_spaced(size, i)
        feasible.plot(across, _drawable(run.feasibility), label=label, **style)
        stationary.plot(across, _drawable(run.stationarity), label=label, **style)
    for ax, kind, what in (
        (feasible, "feasibility", "$\\|h(x_t)\\|_\\infty$ (units of $h$)"),
        (stationary, "stationarity",
         "$\\|\\nabla f + J_h^T\\lambda_t\\|_\\infty$ (units of $f/x$)"),
    ):  # fmt: skip
        ax.set_title(kind, fontsize=10)
        ax.set(ylabel=what, yscale="log", xscale="log" if log_across else "linear")
        ax.set(xlabel="time (s)" if against == "seconds" else counted)
        if tol is not None:
            ax.axhline(tol, color="#000000", linewidth=0.9, linestyle=":", label="tolerance")
    legend_below(fig, feasible)
    if title:
        fig.suptitle(title, fontsize=10)
    return fig


def deviation(trajectory: Array, reference: Array) -> Array:
    """max_i |x_t,i − x_t,i^ref| for each t that both (T+1)×n trajectories reach."""
    steps = min(len(trajectory), len(reference))
    return np.asarray(np.abs(trajectory[:steps] - reference[:steps]).max(axis=1))


def _log_spaced(size: int, i: int) -> list[int]:
    """Indices of two markers a decade on a logarithmic axis, shifted curve by curve."""
    exponents = np.arange((i % len(PALETTE)) / len(PALETTE), 2 * np.log10(size) + 1)
    found = {round(10 ** (e / 2)) - 1 for e in exponents}
    return sorted(k for k in found if k < size)


def _drawable(values: Array) -> Array:
    """The values with what a logarithmic axis cannot show left out."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)
