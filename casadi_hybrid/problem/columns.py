"""Problems whose x or g is a row, or whose p is a matrix, as CasADi takes them, with columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.problem.forms import is_nothing
from casadi_hybrid.problem.graph.expressions import check_expression, no_free_symbols
from casadi_hybrid.utils.matrices import array_of

Shapes = dict[str, tuple[int, int]]


def as_columns(nlp: Mapping[str, Any]) -> tuple[Mapping[str, Any], Shapes]:
    """Return the problem in columns, column after column of what was a matrix, and the old shapes.

    What is no row or matrix is left as it is, for the checks of
    :class:`~casadi_hybrid.problem.problem.Problem`.

    Raises:
        InputError: where f or g depends on symbols that are neither in x nor in p.
    """
    changed = {key: value for key, value in nlp.items() if not (key == "p" and is_nothing(value))}
    shapes: Shapes = {key: value.shape for key, value in changed.items() if _is_other(key, value)}
    if "g" in shapes:
        changed["g"] = nlp["g"].T
    if not shapes.keys() & {"x", "p"}:
        return changed, shapes
    x, kind = nlp["x"], type(nlp["x"])
    p = changed.get("p", kind.sym("p", 0))
    f = check_expression(changed.get("f", 0), "f", kind, logic=True)
    g = check_expression(changed.get("g", kind(0, 1)), "g", kind, logic=True)
    for label, expression in (("f", f), ("g", g)):
        no_free_symbols(expression, label, x, p)
    column_x, column_p = kind.sym("x", x.numel()), kind.sym("p", p.numel())
    graph = ca.Function("graph", [x, p], [f, g])
    matrix_p = ca.project(ca.reshape(column_p, p.shape), p.sparsity())
    given = [ca.reshape(column_x, x.shape), matrix_p]
    f, g = graph.call(given, True, False)
    return {**changed, "x": column_x, "p": column_p, "f": f, "g": g}, shapes


def as_column(value: Any, shape: tuple[int, int] | None) -> Any:
    """Return a matrix of numbers of the shape column after column, anything else as it is."""
    if hasattr(value, "__DM__"):
        value = value.__DM__()
    if shape is None or not isinstance(value, ca.DM | np.ndarray | list | tuple):
        return value
    try:
        matrix = array_of(value) if isinstance(value, ca.DM) else np.asarray(value)
    except ValueError:  # rows of different lengths
        return value
    return matrix.ravel(order="F") if matrix.shape == shape else value


def in_shape(outputs: dict[str, ca.DM], shapes: Shapes) -> dict[str, ca.DM]:
    """Return the outputs of a solver, those that belong to x, p or g in their shapes."""
    if not shapes:
        return outputs
    return {
        name: ca.reshape(value, shapes[key])
        if (key := name.removeprefix("lam_")) in shapes
        else value
        for name, value in outputs.items()
    }


def _is_other(key: str, value: Any) -> bool:
    """Whether CasADi takes it and it is no column: a row of x or g, a row or matrix of p.

    A sparse p counts as a matrix; where it has no entry, a number given is not read.
    """
    if not isinstance(value, ca.SX | ca.MX) or value.is_empty():
        return False
    if value.is_column():
        return bool(key == "p" and not value.is_dense() and value.is_valid_input())
    if key == "g":
        return bool(value.is_row())
    if not value.is_valid_input():
        return False
    return key == "p" or (key == "x" and bool(value.is_dense() and value.is_row()))
