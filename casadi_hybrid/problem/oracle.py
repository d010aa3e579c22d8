"""What a method for equations may ask of a problem: function values at a point, counted.

The default engine, with sparse matrices, asks :mod:`.evaluator`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.problem.functions import Evaluation, Functions, Fused


@dataclass
class Oracle:
    """The functions of one problem at fixed parameters, with counts of the calls.

    One oracle serves one solve in one thread; iterations use nothing else of a problem.

    Args:
        functions: the problem's; h is its rows.
        p: parameters.
        target: what the rows have to be, as h = 0 asks for; zero by default.
    """

    functions: Functions
    p: Vector
    target: Vector | None = None
    counts: dict[str, int] = field(default_factory=lambda: {"residual": 0, "first": 0, "second": 0})

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
        return self._pack(self._second, self._second(x, multipliers, self.p), x)

    def _pack(self, fused: Fused, data: Vector, x: Vector) -> Evaluation:
        h = self._h(fused.vector(data, 2))
        hessian = fused.dense(data, 4) if fused is self.__dict__.get("_second") else None
        return Evaluation(
            x, float(data[0]), fused.vector(data, 1), h, fused.dense(data, 3), hessian, h
        )

    def _h(self, rows: Vector) -> Vector:
        return rows if self.target is None else rows - self.target
