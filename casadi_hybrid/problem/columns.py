"""Conversion of problems with x or g as a row, or p as a matrix, to columns."""

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
    """Return the problem with x, p and g as columns (column-major), and the original shapes."""
    columns = {key: value for key, value in nlp.items() if not (key == "p" and is_nothing(value))}
    shapes: Shapes = {key: value.shape for key, value in columns.items() if _is_matrix(key, value)}
    # Only a row counts as a matrix here, so its transpose is the column.
    if "g" in shapes:
        columns["g"] = nlp["g"].T
    if not shapes.keys() & {"x", "p"}:
        return columns, shapes
    x, kind = nlp["x"], type(nlp["x"])
    p = columns.get("p", kind.sym("p", 0))
    f = check_expression(columns.get("f", 0), "f", kind, logic=True)
    g = check_expression(columns.get("g", kind(0, 1)), "g", kind, logic=True)
    for label, expression in (("f", f), ("g", g)):
        no_free_symbols(expression, label, x, p)
    # A reshaped symbol is an expression, which no Function takes as an input. So f and g are called
    # with expressions of fresh columns.
    column_x, column_p = kind.sym("x", x.numel()), kind.sym("p", p.numel())
    graph = ca.Function("graph", [x, p], [f, g])
    # The column has all entries of a sparse p; those at structural zeros are unused.
    matrix_p = ca.project(ca.reshape(column_p, p.shape), p.sparsity())
    f, g = graph.call([ca.reshape(column_x, x.shape), matrix_p], True, False)
    return {**columns, "x": column_x, "p": column_p, "f": f, "g": g}, shapes


def as_column(value: Any, shape: tuple[int, int] | None) -> Any:
    """Return a matrix of this shape as a vector (column-major); any other value unchanged."""
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
    """Return the outputs of a solver, with x, p, g and their multipliers in the given shapes."""
    if not shapes:
        return outputs
    shaped = dict(outputs)
    for name, value in outputs.items():
        shape = shapes.get(name.removeprefix("lam_"))
        if shape is not None:
            shaped[name] = ca.reshape(value, shape)
    return shaped


def _is_matrix(key: str, value: Any) -> bool:
    """True for a row of x or g and for a row or matrix of p; a sparse p counts as a matrix."""
    if not isinstance(value, ca.SX | ca.MX) or value.is_empty():
        return False
    if value.is_column():
        return bool(key == "p" and not value.is_dense() and value.is_valid_input())
    if key == "g":
        return bool(value.is_row())
    if not value.is_valid_input():
        return False
    return key == "p" or (key == "x" and bool(value.is_dense() and value.is_row()))
