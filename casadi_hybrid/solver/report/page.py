"""The page of a solve: the values of its template, and the file."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy

import casadi_hybrid
from casadi_hybrid.problem.graph.derivatives import MEANING
from casadi_hybrid.solver.record.answer import Answer
from casadi_hybrid.solver.record.history import History
from casadi_hybrid.solver.report import figures
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.output.files import optional
from casadi_hybrid.utils.status import PointStatus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Largest number of constraints, and of variables, in a table.
SHOWN = 30
_TEMPLATE = Path(__file__).with_name("page.html.jinja")


def write_page(
    answer: Answer | None,
    explain: Callable[[], str],
    path: str | os.PathLike[str],
    *,
    trajectories: Callable[[], Figure] | None = None,
    **shown: Any,
) -> Path:
    """Write the page of a solve, with ``shown`` in place of its values; return its path."""
    # Refused before anything is computed, as is a missing jinja2.
    target = _checked(path)
    jinja2 = optional("jinja2", "report", "report")
    options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, **options)
    environment.filters |= {"counted": _counted, "number": _number, "seconds": _seconds}
    environment.filters["printable"] = figures.printable
    if trajectories is not None:
        shown["trajectories"] = figures.svg(trajectories(), "trajectories over time")
    if answer is not None:
        shown |= _drawn(answer)
        undefined = answer.point is PointStatus.UNDEFINED and not answer.iterations
        shown |= {"undefined": undefined, "rows": _rows, "most": figures.ROWS}
        shown |= {"hessians": MEANING, "abs": abs, "float": float}
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    page = template.render(shown, answer=answer, explanation=explain(), versions=_versions())
    target.write_text(page, encoding="utf-8")
    return target


def _drawn(answer: Answer) -> dict[str, Any]:
    """Return the figures of a result and the numbers of their captions."""
    history, drawn = answer.history, dict[str, Any](course={}, matrix=None)
    if history is not None and history.t.size:
        curves = figures.course_figures(answer, history)
        drawn["course"] = {caption: figures.svg(fig, caption) for caption, fig in curves.items()}
    drawn["iterates"] = isinstance(history, History)
    if isinstance(history, History):
        names, sides = figures.active_bounds(answer, history)
        drawn |= {"bounds_active": len(names), "active": (sides != 0).sum(axis=0)}
        if names:
            fig = figures.active_set(names, sides, history.t)
            drawn["active_set"] = figures.svg(fig, "active bounds over the iterations")
    if answer.patterns is not None and sum(answer.patterns[0].shape):
        fig, entries, each = figures.structure(*answer.patterns)
        drawn |= {"entries": entries, "each": each}
        drawn["matrix"] = figures.svg(fig, "structure of the KKT matrix")
    return drawn


def _rows(lam: np.ndarray, violated: np.ndarray) -> list[int]:
    """Return the rows of a table: of many the violated ones, then the largest multipliers."""
    order = np.arange(lam.size)
    if lam.size > SHOWN:
        weight = np.where(np.isfinite(lam), np.abs(lam), np.inf)
        # The last key of lexsort comes first; then by multiplier, then by index.
        order = np.lexsort((order, -weight, ~violated))[:SHOWN]
    return [int(i) for i in order]


def _versions() -> dict[str, str]:
    rows = {module.__name__: module.__version__ for module in (casadi_hybrid, ca, np, scipy)}
    system = f"{platform.system()} {platform.machine()}"
    return {**rows, "python": platform.python_version(), "system": system}


def _checked(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputError(f"path must be the name of a file to write, got {type(path).__name__}")
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the report is an HTML page: path must end in .html, got {str(path)!r}")
    if target.is_dir():
        raise InputError(f"path {str(path)!r} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise InputError(f"the folder {str(target.parent)!r} is not there; make it first")
    return target


def _number(value: float, form: str = ".6g") -> str:
    """Return a number with a minus sign, and signs for infinite ones."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return format(value, form).replace("-", "−")


def _seconds(value: float) -> str:
    """Return a time in s or ms."""
    return f"{_number(value, '.3g')} s" if value >= 1.0 else f"{_number(1e3 * value, '.3g')} ms"


def _counted(count: int, noun: str) -> str:
    """Return ``3 rows``, ``1 row``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
