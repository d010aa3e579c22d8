"""CasADi's calling convention of a solver, also for many solves at once, and its callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.core.binding import core
from casadi_hybrid.problem.forms import expression_of
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError, suggest

INPUTS, OUTPUTS, STARTS = core.INPUTS, core.OUTPUTS, core.STARTS
# A solve in numbers: from the eight inputs to the six outputs, in columns.
Solve = Callable[[list[ca.DM]], list[ca.DM]]


def check_names(arguments: Iterable[str], others: tuple[str, ...] = ()) -> None:
    """Refuse an argument that is none of :data:`INPUTS` or of the others."""
    for word in arguments:
        if word not in INPUTS:
            raise InputError(f"unknown argument {word!r}{suggest(word, (*INPUTS, *others))}")


def symbols_of(value: Any) -> Any:
    """Expression of a structure or an array of symbols; other values as they are."""
    array = isinstance(value, np.ndarray) and value.dtype.kind == "O"
    convertible = array or hasattr(value, "__SX__") or hasattr(value, "__MX__")
    expression = expression_of(value) if convertible else value
    return expression if isinstance(expression, ca.SX | ca.MX) else value


def solves_in(value: Any, shape: tuple[int, int]) -> int:
    """Number of solves that an argument has values for: one, or the repetitions of its shape."""
    if type(value) is list and value and isinstance(value[0], list | tuple):
        with suppress(ValueError):  # rows of different lengths
            value = np.asarray(value)
    if type(value) not in (ca.DM, np.ndarray) or len(value.shape) != 2:
        return 1
    rows, columns = value.shape
    # A row for a column is one value; the checks of a solve refuse wrong shapes.
    fits = rows and rows == shape[0] and (columns, rows) != shape
    return max(1, columns // shape[1]) if fits and columns % shape[1] == 0 else 1


def columns_of(problem: Problem) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of rows of the inputs and outputs as columns; bounds of g are those of all rows."""
    n, m, n_p = problem.n, problem.m, problem.n_p
    return (n, n_p, n, n, m, m, n, m), (n, 1, m, n, m, n_p)


_dense = lru_cache(256)(ca.Sparsity.dense)


class Columns(ca.Callback):  # type: ignore[misc]
    """A callback from columns to columns with directional derivatives, which a subclass gives."""

    def __init__(
        self,
        name: str,
        rows_in: tuple[int, ...],
        rows_out: tuple[int, ...],
        seeds: tuple[int, ...] = (),
        directions: int = 1,
        **options: Any,
    ) -> None:
        ca.Callback.__init__(self)
        # Outputs have a column for each direction, and so have the seeds, which are further inputs.
        self._in = [(rows, 1) for rows in rows_in] + [(rows, directions) for rows in seeds]
        self._out = [(rows, directions) for rows in rows_out]
        self.construct(name, options)

    def get_n_in(self) -> int:
        """Number of inputs."""
        return len(self._in)

    def get_n_out(self) -> int:
        """Number of outputs."""
        return len(self._out)

    def get_name_in(self, i: int) -> str:
        """Name of CasADi's default, which takes longer."""
        return f"i{i}"

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """Dense pattern."""
        return _dense(*self._in[i])

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        """Dense pattern."""
        return _dense(*self._out[i])

    def has_forward(self, _directions: int) -> bool:
        """Return True."""
        return True

    has_reverse = has_forward
