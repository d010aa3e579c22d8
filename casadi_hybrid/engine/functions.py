"""Functions of a problem that run Python, or may raise, as the core calls them.

What they raise does not pass through C: it is kept, and the solve ends with its best point.
"""

from __future__ import annotations

import ctypes as ct
import time
from collections.abc import Callable
from ctypes import c_double, c_int, c_void_p
from functools import partial
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import BrokenFunctionError, EvaluationError, OutOfTimeError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.problem.evaluator import evaluating_until_when
from casadi_hybrid.problem.functions import Functions, Fused

_RAISES = 10  # evaluations in a row that raise before it is asked whether all do

First = ct.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)
Second = ct.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)


class PythonFunctions:
    """The functions of one problem for one thread.

    Args:
        functions: of the problem.
        keep: called with what ends a solve; then nothing more is evaluated.

    Attributes:
        entries: those that C calls.
        undefined: where a function was not defined last, None where all were.
    """

    def __init__(self, functions: Functions, keep: Callable[[BaseException], None]) -> None:
        self._first, self._keep = Fused(functions.first, functions), keep
        self.begin()
        n, p = map(functions.first.nnz_in, range(2))
        first, second = First(partial(self._answer, self._first, (n, p))), Second()
        if functions.curvature is not None:
            curvature, m = Fused(functions.curvature, functions), functions.curvature.nnz_in(1)
            second = Second(partial(self._answer, curvature, (n, m, p)))
        values = First()
        if functions.values is not None:
            values = First(partial(self._answer, Fused(functions.values, functions), (n, p)))
        self.entries = first, second, values

    def begin(self) -> None:
        """Before a solve."""
        self.undefined: EvaluationError | None = None
        self._defined: Vector | None = None
        self._until, self._raises, self._ended = evaluating_until_when(), 0, False

    def _answer(self, function: Fused, sizes: tuple[int, ...], _self: Any, *places: int) -> int:
        """Evaluate into the last place; 0, or 1 where that is not defined or not to be."""
        if self._ended:
            return 1
        arguments, out = list(map(copied, places, sizes)), places[-1]
        try:
            if time.perf_counter() >= self._until:
                raise OutOfTimeError
            data = function(*arguments)
        except EvaluationError as error:
            self.undefined = error
            if error.raised:
                self._ask_again(error, arguments)
            return 1
        except BaseException as error:  # noqa: BLE001 - who called the solver gets it
            self._end(error)
            return 1
        if function is self._first:
            self._defined, self._raises = arguments[0].copy(), 0
        ct.memmove(out, data.ctypes.data, data.nbytes)
        return 0

    def _end(self, error: BaseException) -> None:
        self._ended = True
        self._keep(error)

    def _ask_again(self, error: EvaluationError, arguments: list[Vector]) -> None:
        """Where nothing but exceptions has come for some time: ask where a number has come before.

        A model that raises outside its domain does not raise there, and a shorter step is the
        answer. One that is broken raises anywhere, and every further try is in vain.
        """
        self._raises += 1
        if self._raises % _RAISES or self._defined is None:
            return
        try:
            self._first(self._defined, arguments[-1])
        except EvaluationError as again:
            if again.raised:
                which = error.function, error.entry, error.value, error.place, error.x, error.raised
                broken = BrokenFunctionError(*which)
                broken.__cause__ = error.__cause__
                self._end(broken)


def copied(place: int | None, size: int) -> Vector:
    """A copy of numbers of C's, which are zeros where there is no place."""
    if not (size and place):
        return np.zeros(size)
    return np.ctypeslib.as_array((c_double * size).from_address(place)).copy()
