"""Counted, dense evaluation of a problem, as the methods for equations use it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from casadi_hybrid.problem.graph.derivatives import EXACT
from casadi_hybrid.problem.graph.functions import Evaluation, Functions, Fused
from casadi_hybrid.problem.hessian.quasi_newton import QuasiNewton
from casadi_hybrid.utils.inputs import Vector

# Steps of first-order methods span few directions. Nearly dependent pairs would give unbounded
# curvature there, which a correction then has to cancel.
_SKIPPED = 0.3


@dataclass
class Oracle:
    """Functions of one problem at fixed parameters, with counts of the calls of one solve."""

    functions: Functions  # whose rows are h
    p: Vector
    target: Vector | None = None  # right-hand side of h(x) = target; None: zero
    counts: dict[str, int] = field(default_factory=lambda: {"residual": 0, "first": 0, "second": 0})
    hessian: str = EXACT  # kind of the Hessians returned so far

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
        return self._pack(self._first, self._first(x, self.p), x, second=False)

    def second(self, x: Vector, multipliers: Vector) -> Evaluation:
        """Return f, ∇f, h, B and H = ∇²ₓₓL(x, λ) in one call."""
        self.counts["second"] += 1
        self.hessian = self.functions.hessian
        return self._pack(self._second, self._second(x, multipliers, self.p), x, second=True)

    @cached_property
    def _quasi_newton(self) -> QuasiNewton:
        functions = self.functions
        return QuasiNewton(functions.blocks, differenced=functions.differenced, skipped=_SKIPPED)

    def curved(self, x: Vector, multipliers: Vector) -> Evaluation:
        """Return :meth:`second`, with a quasi-Newton H without second derivatives."""
        if self.functions.second is not None:
            return self.second(x, multipliers)
        self.hessian = self.functions.hessian
        evaluation = self.first(x)
        # First the new pair, then H: it fits all points seen, for these multipliers.
        self._quasi_newton.see(x, evaluation.gradient, evaluation.B)
        hessian = np.asarray(self._quasi_newton.hessian(1.0, multipliers))
        return replace(evaluation, hessian=hessian)

    def _pack(self, fused: Fused, data: Vector, x: Vector, *, second: bool) -> Evaluation:
        """Outputs 0 to 4 of a function: f, ∇f, h, J_h and, for ``second``, the Hessian."""
        gradient, h, B = fused.vector(data, 1), self._h(fused.vector(data, 2)), fused.dense(data, 3)
        hessian = fused.dense(data, 4) if second else None
        return Evaluation(x, float(data[0]), gradient, h, B, hessian, measured=h)

    def _h(self, rows: Vector) -> Vector:
        return rows if self.target is None else rows - self.target
