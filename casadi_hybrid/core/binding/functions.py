"""Functions of a problem that run Python, or may raise, as the core calls them.

Exceptions cannot pass through C: they are kept, and the solve ends with its best point.
"""

from __future__ import annotations

import ctypes as ct
import gc
import threading
import time
from collections.abc import Callable
from ctypes import c_double, c_int, c_void_p
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.problem.evaluator import evaluating_until, evaluating_until_when
from casadi_hybrid.problem.graph.functions import Functions, Fused
from casadi_hybrid.utils.errors import BrokenFunctionError, EvaluationError, OutOfTimeError
from casadi_hybrid.utils.inputs import Vector

_RAISES = 10  # consecutive evaluations that raise before all are suspected to

First = ct.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)
Second = ct.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)


class PythonFunctions:
    """Functions of one problem for one thread, as C calls them; ``keep`` gets an exception."""

    def __init__(self, functions: Functions, keep: Callable[[BaseException], None]) -> None:
        self._first, self._keep = Fused(functions.first, functions), keep
        self._functions, self._timed = functions, False
        self.begin(np.inf)
        n, p = map(functions.first.nnz_in, range(2))
        # A callback made of nothing is a null pointer: C sees that there is no function.
        first, second = First(partial(self._evaluate, self._first, (n, p))), Second()
        if functions.curvature is not None:
            curvature, m = Fused(functions.curvature, functions), functions.curvature.nnz_in(1)
            second = Second(partial(self._evaluate, curvature, (n, m, p)))
        values = First()
        if functions.values is not None:
            values = First(partial(self._evaluate, Fused(functions.values, functions), (n, p)))
        self.entries = first, second, values

    def begin(self, seconds: float) -> None:
        """Prepare for a solve that may take ``seconds``."""
        self.undefined: EvaluationError | None = None  # at the last such point
        self._defined: Vector | None = None
        self._raises, self._ended = 0, False
        self._until = min(evaluating_until_when(), time.perf_counter() + seconds)
        if self._until < np.inf and not self._timed:
            self._timed = True
            time_callbacks(self._functions)

    def _is_late(self) -> bool:
        return time.perf_counter() >= self._until

    def _evaluate(self, function: Fused, sizes: tuple[int, ...], _self: Any, *places: int) -> int:
        """Evaluate into the array at the last place; return 1 if it is not defined or too late."""
        if self._ended:
            return 1
        arguments, out = list(map(copied, places, sizes)), places[-1]
        try:
            if self._is_late():
                raise OutOfTimeError
            _callbacks.skipped = False
            with evaluating_until(self._until):
                data = function(*arguments)
            # NaN of a skipped callback would look like a point where the function is not defined.
            if _callbacks.skipped:
                raise OutOfTimeError
        except EvaluationError as error:
            if self._is_late():
                self._end(OutOfTimeError())
                return 1
            self.undefined = error
            if error.raised:
                self._ask_again(error, arguments)
            return 1
        except BaseException as error:  # noqa: BLE001 - the caller of the solve raises it
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
        """Evaluate again at the last defined point, after several exceptions in a row."""
        self._raises += 1
        if self._raises % _RAISES or self._defined is None:
            return
        try:
            # A model that raises outside its domain does not raise there, and a shorter step helps.
            # A broken one raises there too, which ends the solve.
            self._first(self._defined, arguments[-1])
        except EvaluationError as again:
            if again.raised and not self._is_late():
                place = error.function, error.entry, error.value, error.place, error.x, error.raised
                broken = BrokenFunctionError(*place)
                broken.__cause__ = error.__cause__
                self._end(broken)


# ``skipped``: True if one was not evaluated in this thread.
_callbacks = threading.local()


def time_callbacks(functions: Functions) -> None:
    """Let callbacks in Python return NaN, unevaluated, when the time of a solve is over."""
    # CasADi takes all differences of a gradient in one call: nothing else reads a clock meanwhile.
    nodes = set()
    for function in filter(None, (functions.first, functions.curvature)):
        called = function.find_functions()
        nodes |= {hash(f) for f in called if f.class_name() == "CallbackInternal"}
    # CasADi has no way from its node to the object in Python.
    for value in gc.get_objects() if nodes else ():
        # type(): isinstance would ask foreign objects, such as proxies, for their __class__.
        if not issubclass(type(value), ca.Callback) or "this" not in vars(value):
            continue
        if ca.Function.__hash__(value) in nodes:
            for name in ("eval", "eval_buffer"):
                # An attribute of the object comes before the method of its class.
                vars(value).setdefault(name, partial(_in_time, value, name))


def _in_time(callback: ca.Callback, name: str, *arguments: Any) -> Any:
    if time.perf_counter() < evaluating_until_when():
        return getattr(type(callback), name)(callback, *arguments)
    _callbacks.skipped = True
    # eval returns matrices; eval_buffer writes into memory views, and 0 is its success.
    if name == "eval":
        return [ca.DM(callback.sparsity_out(i), np.nan) for i in range(callback.n_out())]
    for view in arguments[1]:
        np.frombuffer(view)[:] = np.nan
    return 0


def copied(place: int | None, size: int) -> Vector:
    """Copy numbers of C; zeros for a null pointer."""
    if not (size and place):
        return np.zeros(size)
    return np.ctypeslib.as_array((c_double * size).from_address(place)).copy()
