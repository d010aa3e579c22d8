"""Figure style of the package, and the plots of every study.

Figures are plain :class:`matplotlib.figure.Figure` objects without ``pyplot``: no window opens, no
backend is chosen and no figure must be closed. Curves differ in colour (the palette of Okabe and
Ito, suited to colour blindness), line style and marker, also in black and white.
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
from casadi_hybrid.utils.inputs import one_of, positive
from casadi_hybrid.utils.output.files import FIGURES

Array = NDArray[np.float64]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F", "#000000")
DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (3, 1)), ":", "-")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

# Width of a figure in inches, the text width of a page: fonts keep their size in print.
WIDTH = 7.0

# Any: older versions of matplotlib lack the Literal type of the names of settings.
_STYLE: Any = {
    "font.size": 10.0,
    "axes.labelsize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "mathtext.fontset": "dejavusans",
}


class StyledFigure(Figure):
    """A figure that a notebook displays without ``pyplot`` and a backend."""

    def _repr_png_(self) -> bytes:
        data = BytesIO()
        self.savefig(data, format="png", dpi=90)
        return data.getvalue()


def figure(
    rows: int = 1, columns: int = 1, *, height: float = 2.8, width: float = WIDTH, **grid: Any
) -> tuple[Figure, NDArray[Any]]:
    """Return an empty figure in the package's style and its axes, rows×columns.

    ``height`` is that of a row in inches; ``grid`` has arguments of ``Figure.subplots``.
    """
    # Axes store the settings of their creation, so callers need no context.
    with rc_context(_STYLE):
        fig = StyledFigure(figsize=(width, height * rows), dpi=100, layout="constrained")
        axes = fig.subplots(rows, columns, squeeze=False, **grid)
        for ax in axes.flat:
            ax.tick_params(labelsize=9)
    return fig, axes


def line_style(i: int, points: int = 0) -> dict[str, Any]:
    """Colour, dashes and marker of curve number ``i``, as arguments of ``Axes.plot``."""
    k = i % len(PALETTE)
    style: dict[str, Any] = {"color": PALETTE[k], "linestyle": DASHES[k], "linewidth": 1.6}
    if points:
        # About eight markers on a curve of so many points, shifted from curve to curve.
        spacing = max(1, points // 8)
        style |= {"marker": MARKERS[k], "markersize": 5.0}
        style["markevery"] = ((i * spacing) // len(PALETTE), spacing)
    return style


def legend(ax: Axes, **options: Any) -> None:
    """Put a legend into the axes, in the package's size on an opaque background."""
    ax.legend(**{"fontsize": 9, "framealpha": 0.9, "edgecolor": "#CCCCCC", **options})


def legend_below(fig: Figure, *axes: Axes, columns: int = 3) -> None:
    """Put one legend of the panels below all panels; a repeated label appears once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    across = min(columns, max(1, len(entries)))
    place: Any = {"loc": "outside lower center", "ncols": across, "fontsize": 9, "frameon": False}
    fig.legend(list(entries.values()), list(entries), **place)


def save(fig: Figure, path: str | Path, *, dpi: int = 150) -> Path:
    """Write a figure, and make its folder.

    Args:
        fig: the figure.
        path: path with the suffix ``.png``, ``.svg``, ``.pdf``, or another format of matplotlib.
            Equal figures give equal files: no date is written.
        dpi: dots per inch of a PNG.

    Raises:
        InputError: for a suffix unknown to matplotlib, before drawing.
    """
    target = Path(path)
    suffix, formats = target.suffix[1:].lower(), fig.canvas.get_supported_filetypes()
    if suffix not in formats:
        raise InputError(
            f"{str(path)!r} does not end in a format of figures; use one of "
            f"{', '.join(FIGURES)} (matplotlib also knows "
            f"{', '.join(sorted(set(formats) - set(FIGURES)))})"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    fig.draw_without_rendering()  # labels are aligned only after a first layout
    dated = {"svg": "Date", "pdf": "CreationDate"}.get(suffix)
    with rc_context({"svg.hashsalt": "casadi_hybrid"}):  # else names of SVG elements are random
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
    """Plot labelled curves in panels side by side on common axes, with one legend below.

    Args:
        panels: curves by title and label. A curve is its values over 0, 1, …, a pair (across,
            values), or a triple with a dictionary of arguments of ``Axes.plot``.
        levels: values of the vertical axis, by label, marked in every panel.
        at: values of the horizontal axis, by label, marked in every panel.
        ticks: ticks of the axes ``"x"`` and ``"y"``, printed as plain numbers.
        height: height of the panels in inches.
        columns: number of columns of the legend.
        **settings: arguments of ``Axes.set``, such as ``xlabel`` and ``yscale``.
    """
    fig, axes = figure(1, len(panels), height=height, sharex=True, sharey=True)
    for ax, (title, curves) in zip(axes[0], panels.items(), strict=True):
        for i, (label, curve) in enumerate(curves.items()):
            parts = curve if isinstance(curve, tuple) else (np.arange(len(curve)), curve)
            style = line_style(i, len(parts[1])) | dict(*parts[2:])
            ax.plot(*parts[:2], label=label, **style)
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
        runs: by label, the :class:`~casadi_hybrid.solver.record.history.Course` of a solve, or a
            result with one.
        tol: tolerance, drawn as a line.
        against: horizontal axis, ``"iterations"`` or ``"seconds"``.
        log_across: use a logarithmic horizontal axis; iterations then count from one.
        title: title over both panels.

    Raises:
        InputError: without runs, for a run without history, or for another ``against``.
    """
    if not runs:
        raise InputError("runs is empty; give at least one history with its label")
    one_of(against, "against", ("iterations", "seconds"))
    if tol is not None:
        positive(tol, "tol")
    fig, axes = figure(1, 2, height=3.6, sharex=True)
    feasible, stationary = axes[0]
    counted = f"iteration $t{' + 1' if log_across else ''}$"
    for i, (label, solve) in enumerate(runs.items()):
        run = getattr(solve, "history", solve)
        if run is None:
            raise InputError(f"the run {label!r} has no history; solve with history=True")
        size = run.feasibility.size
        steps = getattr(run, "t", np.arange(size)) + (1 if log_across else 0)
        across = run.elapsed if against == "seconds" else steps
        # Earlier curves lie on top: an oscillating curve hides those below it.
        style = {**line_style(i, size), "linewidth": 1.3, "zorder": 3.0 - 0.1 * i}
        if log_across:
            style["markevery"] = _log_spaced(size, i)
        feasible.plot(across, _drawable(run.feasibility), label=label, **style)
        stationary.plot(across, _drawable(run.stationarity), label=label, **style)
    quantities = {
        "feasibility": "$\\|h(x_t)\\|_\\infty$ (units of $h$)",
        "stationarity": "$\\|\\nabla f + J_h^T\\lambda_t\\|_\\infty$ (units of $f/x$)",
    }
    for ax, (kind, quantity) in zip(axes[0], quantities.items(), strict=True):
        ax.set_title(kind, fontsize=10)
        ax.set(ylabel=quantity, yscale="log", xscale="log" if log_across else "linear")
        ax.set(xlabel="time (s)" if against == "seconds" else counted)
        if tol is not None:
            ax.axhline(tol, color="#000000", linewidth=0.9, linestyle=":", label="tolerance")
    legend_below(fig, feasible)
    if title:
        fig.suptitle(title, fontsize=10)
    return fig


def deviation(trajectory: Array, reference: Array) -> Array:
    """Return max_i |x_t,i − x_t,i^ref| for each common t of two (T+1)×n trajectories."""
    steps = min(len(trajectory), len(reference))
    return np.asarray(np.abs(trajectory[:steps] - reference[:steps]).max(axis=1))


def _log_spaced(size: int, i: int) -> list[int]:
    """Indices of two markers a decade on a logarithmic axis, shifted curve by curve."""
    exponents = np.arange((i % len(PALETTE)) / len(PALETTE), 2 * np.log10(size) + 1)
    indices = {round(10 ** (e / 2)) - 1 for e in exponents}
    return sorted(k for k in indices if k < size)


def _drawable(values: Array) -> Array:
    """Values, with NaN in place of those outside a logarithmic axis."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)
