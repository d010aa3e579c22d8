"""Evaluation of a problem with sparse matrices; :mod:`.oracle` evaluates it with dense ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from casadi_hybrid.problem.graph.functions import Fused
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.sparse import Sparse

# Each thread and each task has its own moment.
_until: ContextVar[float] = ContextVar("until", default=float("inf"))


@contextmanager
def evaluating_until(moment: float) -> Iterator[None]:
    """Set the moment of ``time.perf_counter`` after which solves inside begin no evaluation."""
    token = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(token)


def evaluating_until_when() -> float:
    """Return the moment set by :func:`evaluating_until`; infinity without one."""
    return _until.get()


class Evaluator:
    """Sparse evaluation of a problem at fixed parameters; not shareable between threads."""

    def __init__(self, program: Problem, p: Vector) -> None:
        functions = program.functions
        self.program, self.p = program, p
        self._first = Fused(functions.first, functions)
        second = functions.curvature
        self._curvature = None if second is None else Fused(second, functions)
        self._of_J, self._of_H = functions.entries

    def first(self, x: Vector) -> tuple[float, Vector, Vector, Any]:
        """Return f, ∇f, g, J_g; raises an EvaluationError for an output that is not finite."""
        fused = self._first
        data = fused(x, self.p)  # outputs 0 to 3: f, ∇f, g, J_g
        J = Sparse(self._of_J, fused.part(data, 3)).scipy()
        return float(data[0]), fused.vector(data, 1), fused.vector(data, 2), J

    def hessian(self, x: Vector, multipliers: Vector) -> Any:
        """Return ∇²ₓₓ(f + λᵀg); raises an InputError without second derivatives."""
        if self._curvature is None:
            raise InputError("the problem has no second derivatives")
        return Sparse(self._of_H, self._curvature(x, multipliers, self.p)).scipy()
