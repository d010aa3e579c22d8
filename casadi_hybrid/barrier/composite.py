r"""The composite step of :mod:`casadi_hybrid.iterations.lookahead` on the standard form.

For equations alone, in variables without bounds, there is nothing for a barrier to do, and what is
left of the barrier method is a line search along Newton steps. Where singular values of A are
affordable the step is better taken apart: the part in range(Aᵀ) under a trust region, so that
dependent or nearly dependent rows need no regularization, and that in ker A with the reduced
Hessian made positive definite there and nowhere else. The multipliers are those of least squares at
each point, which no failed or shortened step can spoil.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.barrier.barrier import Barrier
from casadi_hybrid.barrier.filter import Filter
from casadi_hybrid.barrier.iterate import Iterate
from casadi_hybrid.basics.arrays import anywhere
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.iterations.base import Start
from casadi_hybrid.iterations.lookahead import LookAhead
from casadi_hybrid.iterations.safeguards import Safeguards
from casadi_hybrid.law import State
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import Operator
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.rules.spectra import Jacobian
from casadi_hybrid.standard_form.form import Point, StandardForm
from casadi_hybrid.standard_form.structure import may_be_composite


@dataclass(frozen=True, kw_only=True)
class Guarded(Iterate):
    """An iterate with what the composite step carries."""

    guards: Safeguards


@dataclass(frozen=True, slots=True)
class _Evaluated(Evaluation):
    """The functions at one point, and the point of the standard form they come from."""

    point: Point


class _Equations:
    """The standard form as the composite step at one point asks for it."""

    def __init__(self, form: StandardForm, at: Point) -> None:
        self._form, self._at = form, at

    def first(self, w: Vector) -> _Evaluated:
        """f, ∇f, c and A at w."""
        return _evaluated(self._form.point(w))

    def second(self, w: Vector, y: Vector) -> _Evaluated:
        """These with ∇²(f + yᵀc)."""
        at = self._at if w is self._at.w else self._form.point(w)
        return _evaluated(at, self._form.hessian(at, y))


def _evaluated(at: Point, hessian: Operator | None = None) -> _Evaluated:
    """A point in the terms of the composite step."""
    return _Evaluated(at.w, at.f, at.gradient, at.c, at.A, hessian, at.c, at)


def is_composite(program: Problem, bounds: Bounds) -> bool:
    """Whether there are equations alone in free variables, an objective, and few of all."""
    if not may_be_composite(program):
        return False
    _, lbx, ubx, _ = bounds.open_x
    _, lbg, ubg, _ = bounds.open_g
    bounded = any(anywhere(np.isfinite(side)) for side in (lbx, ubx, lbg, ubg))
    return not bounded and anywhere(np.isfinite(bounds.lbg)) and anywhere(bounds.lbx < bounds.ubx)


class Composite(Barrier):
    """The composite step on a standard form of equations alone (one solve)."""

    label = "hybrid (composite step)"
    _step = LookAhead()
    _curved: tuple[Guarded, _Evaluated] | None = None

    def init(self, oracle: Oracle, start: Start) -> State:
        """Begin at the start with the multipliers of least squares, or where it was begun."""
        if self.begun is not None:
            return self.state_of(self.begun.iterate, self.begun.t)
        at = self.form.point(self.form.start)
        return self._guarded(at, self._step.begin(_evaluated(at)), 0)

    def leaves(self, state: State, at: Point) -> bool:
        """A saddle point or maximizer, from which the next step leads away."""
        it: Guarded = state.carry
        return not self._step.at_rest(self._second(it), it.guards)

    def step(self, oracle: Oracle, state: State, at: Point) -> tuple[State, None]:
        """Take one accepted composite step.

        Raises:
            StallError: at a stationary violation, or when nothing moves any more.
        """
        it: Guarded = state.carry
        far = self._leap(at)
        if far is not None:
            return self._guarded(far, self._step.begin(_evaluated(far)), state.t + 1), None
        # The steps ask of an oracle only what the equations have.
        equations: Any = _Equations(self.form, at)
        new, guards = self._step.advance(equations, self._second(it), it.guards)
        assert isinstance(new, _Evaluated)
        return self._guarded(new.point, guards, state.t + 1), None

    def jacobian(self, at: Point) -> Jacobian:
        """A at a point with its singular values."""
        return Jacobian(at.A, self._step.rank_tolerance)

    def _second(self, it: Guarded) -> _Evaluated:
        """The functions with ∇²L at an iterate; its end asks more than once, and then its step."""
        if self._curved is None or self._curved[0] is not it:
            self._curved = it, _evaluated(it.at, self._hessian(it))
        return self._curved[1]

    def _guarded(self, at: Point, guards: Safeguards, t: int) -> State:
        none = np.zeros(self.form.n)
        y = self._step.multipliers(_evaluated(at), guards)
        it = Guarded(at, y, none, none, 0.0, Filter.start(at.theta), guards=guards)
        return self.state_of(it, t)
