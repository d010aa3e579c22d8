"""What a method for equations may ask of a problem: function values at a point, counted.

The default engine, with sparse matrices, asks :mod:`.evaluator`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from casadi_hybrid.problem.graph.derivatives import EXACT
from casadi_hybrid.problem.graph.functions import Evaluation, Functions, Fused
from casadi_hybrid.problem.hessian.quasi_newton import QuasiNewton
from casadi_hybrid.utils.inputs import Vector

# Steps of first-order methods lie along few directions, where pairs that barely fit would teach
# curvature without bound; a correction must cancel it all.
_SKIPPED = 0.3


@dataclass
class Oracle:
    """The functions of one problem at fixed parameters, with counts of the calls.

    One oracle serves one solve in one thread; iterations use nothing else of a problem.

    Args:
        functions: the problem's; h is its rows.
        p: parameters.
        target: what the rows have to be, as h = 0 asks for; zero by default.

    Attributes:
        hessian: what the Hessians given so far were, as in ``Result.hessian``.
    """

    functions: Functions
    p: Vector
    target: Vector | None = None
    counts: dict[str, int] = field(default_factory=lambda: {"residual": 0, "first": 0, "second": 0})
    hessian: str = EXACT

    @cached_property
    def _residual(self) -> Fused:
        return Fused(self.functions.residual, self.functions)

    @cached_property
    def _first(self) -> Fused:
        return Fused(self.functions.first, self.functions)

    @cached_property
    def _second(self) -> Fused:
        return Fused(self.functions.with_hessian("second"), self.functions)

    def residual(self, x: Vector) -> Vector:
        """Return h(x)."""
        self.counts["residual"] += 1
        fused = self._residual
        return self._h(fused.vector(fused(x, self.p), 0))

    def first(self, x: Vector) -> Evaluation:
        """Return f, ∇f, h and B = J_h at x."""
        self.counts["first"] += 1
        return self._pack(self._first, self._first(x, self.p), x)

    def second(self, x: Vector, multipliers: Vector) -> Evaluation:
        """Return f, ∇f, h, B and H = ∇²ₓₓL(x, λ) in one call."""
        self.counts["second"] += 1
        self.hessian = self.functions.hessian
        return self._pack(self._second, self._second(x, multipliers, self.p), x)

    @cached_property
    def _learned(self) -> QuasiNewton:
        functions = self.functions
        return QuasiNewton(functions.blocks, differenced=functions.differenced, skipped=_SKIPPED)

    def curved(self, x: Vector, multipliers: Vector) -> Evaluation:
        """:meth:`second`, or first derivatives with what they have shown of H so far.

        The latter where the problem has no second derivatives, or asks to do without. H then fits
        the first derivatives at the points this was asked for, for these multipliers.
        """
        if self.functions.second is not None:
            return self.second(x, multipliers)
        self.hessian = self.functions.hessian
        at = self.first(x)
        self._learned.see(x, at.gradient, at.B)
        return replace(at, hessian=np.asarray(self._learned.hessian(1.0, multipliers)))

    def _pack(self, fused: Fused, data: Vector, x: Vector) -> Evaluation:
        h = self._h(fused.vector(data, 2))
        hessian = fused.dense(data, 4) if fused is self.__dict__.get("_second") else None
        return Evaluation(
            x, float(data[0]), fused.vector(data, 1), h, fused.dense(data, 3), hessian, h
        )

    def _h(self, rows: Vector) -> Vector:
        return rows if self.target is None else rows - self.target
