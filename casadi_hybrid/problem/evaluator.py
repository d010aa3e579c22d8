"""A problem's functions at fixed parameters for the default engine, as arrays, counted.

The dense record that methods for equations ask for is :mod:`.oracle`'s.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.sparse import Sparse
from casadi_hybrid.problem.functions import Fused
from casadi_hybrid.problem.patterns import patterns_of
from casadi_hybrid.problem.problem import Problem

Operator = Any  # numpy.ndarray or Sparse: both have @, .T, .shape and products with numbers


class _Ready(threading.local):
    """The functions of one thread behind their buffers, for as long as their problems live."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Problem, tuple[Fused, Fused]] = WeakKeyDictionary()

    def of(self, program: Problem) -> tuple[Fused, Fused]:
        """(first, curvature) of a problem."""
        known = self._known.get(program)
        if known is None:
            functions = program.functions
            first, curvature = (Fused(f, functions) for f in (functions.first, functions.curvature))
            known = self._known[program] = first, curvature
        return known


_ready = _Ready()


class Evaluator:
    """The problem's functions at fixed parameters, counted. One per solve and thread."""

    def __init__(self, program: Problem, p: Vector, *, dense: bool) -> None:
        self.program = program
        self.p = p
        self.dense = dense
        self._first, self._curvature = _ready.of(program)
        if not dense:
            self._of_J, self._of_H = patterns_of(program)
        self.counts = {"first": 0, "second": 0, "undefined": 0}

    def first(self, x: Vector) -> tuple[float, Vector, Vector, Operator]:
        """Return f, ∇f, g, J_g."""
        self.counts["first"] += 1
        fused = self._first
        data = fused(x, self.p)
        J = fused.dense(data, 3) if self.dense else Sparse(self._of_J, fused.part(data, 3))
        return float(data[0]), fused.vector(data, 1), fused.vector(data, 2), J

    def hessian(self, x: Vector, multipliers: Vector) -> Operator:
        """Return ∇²ₓₓ(f + λᵀg)."""
        self.counts["second"] += 1
        fused = self._curvature
        data = fused(x, multipliers, self.p)
        return fused.dense(data, 0) if self.dense else Sparse(self._of_H, data)


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
