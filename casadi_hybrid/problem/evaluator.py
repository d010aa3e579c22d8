"""A problem's functions at fixed parameters for the default engine, as arrays, counted.

The dense record that methods for equations ask for is :mod:`.oracle`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.errors import InputError, OutOfTimeError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.sparse import Pattern, Sparse
from casadi_hybrid.problem.functions import Fused
from casadi_hybrid.problem.problem import Problem

Operator = Any  # numpy.ndarray or Sparse: both have @, .T, .shape and products with numbers

_lock = threading.Lock()
_patterns: WeakKeyDictionary[Problem, tuple[Pattern, Pattern]] = WeakKeyDictionary()


def patterns_of(program: Problem) -> tuple[Pattern, Pattern]:
    """The patterns of J_g and of the Hessian of the Lagrangian, made once for a problem."""
    with _lock:
        known = _patterns.get(program)
        if known is None:
            functions = program.functions
            known = Pattern.of(functions.jacobian_sparsity), Pattern.of(functions.hessian_sparsity)
            _patterns[program] = known
    return known


_used: WeakKeyDictionary[Problem, NDArray[np.bool_]] = WeakKeyDictionary()


def used_variables(program: Problem) -> NDArray[np.bool_]:
    """Which variables stand in a row or in the objective, made once for a problem."""
    J = patterns_of(program)[0]
    with _lock:
        known = _used.get(program)
    if known is None:
        used = np.zeros(program.n, dtype=bool)
        used[J.cols] = True
        if not used.all():
            used[program.functions.first.jac_sparsity(0, 0).T.row()] = True
        with _lock:
            known = _used.setdefault(program, used)
    return known


_until: ContextVar[float] = ContextVar("until", default=float("inf"))


@contextmanager
def evaluating_until(moment: float) -> Iterator[None]:
    """Let no evaluator that is made inside begin an evaluation from this moment on.

    Args:
        moment: of ``time.perf_counter``.
    """
    token = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(token)


def evaluating_until_when() -> float:
    """That moment; infinity where there is none."""
    return _until.get()


class _Ready(threading.local):
    """The functions of one thread behind their buffers, for as long as their problems live."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Problem, tuple[Fused, Fused | None]] = WeakKeyDictionary()

    def of(self, program: Problem) -> tuple[Fused, Fused | None]:
        """(first, curvature) of a problem, which may have no second derivatives."""
        known = self._known.get(program)
        if known is None:
            functions = program.functions
            second = functions.curvature
            curvature = None if second is None else Fused(second, functions)
            known = self._known[program] = Fused(functions.first, functions), curvature
        return known


_ready = _Ready()


class Evaluator:
    """The problem's functions at fixed parameters, counted and timed. One per solve and thread.

    Attributes:
        learns: whether there are no second derivatives: the Hessian has to be learned.
    """

    def __init__(self, program: Problem, p: Vector, *, dense: bool) -> None:
        self.program = program
        self.p = p
        self.dense = dense
        self._first, self._curvature = _ready.of(program)
        self.learns = self._curvature is None
        if not dense:
            self._of_J, self._of_H = patterns_of(program)
        self._until = _until.get()
        self.counts = {"first": 0, "second": 0, "undefined": 0}
        self.seconds = {"first": 0.0, "second": 0.0}

    def first(self, x: Vector) -> tuple[float, Vector, Vector, Operator]:
        """Return f, ∇f, g, J_g.

        Raises:
            EvaluationError: where a number is not finite.
            OutOfTimeError: at and after the moment of :func:`evaluating_until`.
        """
        self.in_time()
        self.counts["first"] += 1
        fused = self._first
        began = perf_counter()
        data = fused(x, self.p)
        self.seconds["first"] += perf_counter() - began
        J = fused.dense(data, 3) if self.dense else Sparse(self._of_J, fused.part(data, 3))
        return float(data[0]), fused.vector(data, 1), fused.vector(data, 2), J

    def hessian(self, x: Vector, multipliers: Vector) -> Operator:
        """Return ∇²ₓₓ(f + λᵀg).

        Raises:
            InputError: where there are no second derivatives.
            EvaluationError, OutOfTimeError: as :meth:`first`.
        """
        fused = self._curvature
        if fused is None:
            raise InputError("the problem has no second derivatives")
        self.in_time()
        self.counts["second"] += 1
        began = perf_counter()
        data = fused(x, multipliers, self.p)
        self.seconds["second"] += perf_counter() - began
        return fused.dense(data, 0) if self.dense else Sparse(self._of_H, data)

    def in_time(self) -> None:
        """Raise OutOfTimeError at and after the moment of :func:`evaluating_until`."""
        if time.perf_counter() >= self._until:
            raise OutOfTimeError


class GeneralEvaluator(Evaluator):
    """The same with matrices of :mod:`scipy.sparse`, for what is done once and not in a loop."""

    def __init__(self, program: Problem, p: Vector) -> None:
        super().__init__(program, p, dense=False)

    def first(self, x: Vector) -> tuple[float, Vector, Vector, Operator]:
        """Return f, ∇f, g, J_g."""
        f, gradient, g, J = super().first(x)
        return f, gradient, g, J.scipy()

    def hessian(self, x: Vector, multipliers: Vector) -> Operator:
        """Return ∇²ₓₓ(f + λᵀg)."""
        return super().hessian(x, multipliers).scipy()
