"""A problem's functions as sparse matrices and arrays.

The dense record that methods for equations ask for is :mod:`.oracle`'s.
"""

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

_until: ContextVar[float] = ContextVar("until", default=float("inf"))


@contextmanager
def evaluating_until(moment: float) -> Iterator[None]:
    """Let no solve that begins inside begin an evaluation from this moment on.

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


class Evaluator:
    """The problem's functions at fixed parameters, with matrices of :mod:`scipy.sparse`.

    For what is done once a solve, in one thread.
    """

    def __init__(self, program: Problem, p: Vector) -> None:
        functions = program.functions
        self.program, self.p = program, p
        self._first = Fused(functions.first, functions)
        second = functions.curvature
        self._curvature = None if second is None else Fused(second, functions)
        self._of_J, self._of_H = functions.entries

    def first(self, x: Vector) -> tuple[float, Vector, Vector, Any]:
        """Return f, ∇f, g, J_g.

        Raises:
            EvaluationError: where a number is not finite.
        """
        fused = self._first
        data = fused(x, self.p)
        J = Sparse(self._of_J, fused.part(data, 3)).scipy()
        return float(data[0]), fused.vector(data, 1), fused.vector(data, 2), J

    def hessian(self, x: Vector, multipliers: Vector) -> Any:
        """Return ∇²ₓₓ(f + λᵀg).

        Raises:
            InputError: where there are no second derivatives.
            EvaluationError: as :meth:`first`.
        """
        if self._curvature is None:
            raise InputError("the problem has no second derivatives")
        return Sparse(self._of_H, self._curvature(x, multipliers, self.p)).scipy()
