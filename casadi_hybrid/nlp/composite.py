r"""The composite step of :mod:`casadi_hybrid.iterations.lookahead` on the standard form.

For equations alone, in variables without bounds, there is nothing for a barrier to do, and what is
left of the barrier method is a line search along Newton steps. Where singular values of A are
affordable the step is better taken apart: the part in range(Aᵀ) under a trust region, so that
dependent or nearly dependent rows need no regularization, and that in ker A with the reduced
Hessian made positive definite there and nowhere else. The multipliers are those of least squares at
each point, which no failed or shortened step can spoil.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from casadi_hybrid.arrays import anywhere
from casadi_hybrid.functions import Evaluation
from casadi_hybrid.inputs import Vector
from casadi_hybrid.iterations.base import Start
from casadi_hybrid.iterations.composite import radius_of_newton
from casadi_hybrid.iterations.lookahead import LookAhead
from casadi_hybrid.iterations.safeguards import Safeguards
from casadi_hybrid.law import State
from casadi_hybrid.nlp.barrier import Barrier
from casadi_hybrid.nlp.filter import Filter
from casadi_hybrid.nlp.iterate import Iterate
from casadi_hybrid.nlp.program import Program
from casadi_hybrid.nlp.standard import DENSE_LIMIT, Bounds, Point, StandardForm
from casadi_hybrid.oracle import Oracle
from casadi_hybrid.rules.spectra import LocalModel

_LONGEST = 10.0  # first radius in units of that which the size of the start suggests


@dataclass(frozen=True)
class Guarded(Iterate):
    """An iterate with what the composite step carries."""

    guards: Safeguards | None = None


@dataclass(frozen=True, slots=True)
class _Evaluated(Evaluation):
    """The functions at one point, and the point of the standard form they come from."""

    point: Point


class _Equations:
    """The standard form as the composite step asks for it."""

    def __init__(self, form: StandardForm) -> None:
        self._form = form
        self._last: Point | None = None

    def first(self, w: Vector) -> _Evaluated:
        """f, ∇f, c and A at w."""
        return evaluated(self._form.point(w), None)

    def second(self, w: Vector, y: Vector) -> _Evaluated:
        """These with ∇²(f + yᵀc)."""
        if self._last is None or self._last.w is not w:
            self._last = self._form.point(w)
        return evaluated(self._last, self._form.hessian(self._last, y))


def evaluated(at: Point, hessian: Any) -> _Evaluated:
    """A point in the terms of the composite step."""
    return _Evaluated(at.w, at.f, at.gradient, at.c, at.A, hessian, at.c, at)


def is_composite(program: Program, bounds: Bounds) -> bool:
    """Whether there are equations alone in free variables, an objective, and few of all."""
    if program.feasibility or program.n + program.m > DENSE_LIMIT or not program.m:
        return False
    _, lbx, ubx = bounds.open_x
    _, lbg, ubg = bounds.open_g
    bounded = any(anywhere(np.isfinite(side)) for side in (lbx, ubx, lbg, ubg))
    return not bounded and anywhere(np.isfinite(bounds.lbg)) and anywhere(bounds.lbx < bounds.ubx)


class Composite(Barrier):
    """The composite step on a standard form of equations alone (one solve)."""

    label = "hybrid (composite step)"
    _step = LookAhead()

    def init(self, oracle: Oracle, start: Start) -> State:
        """Begin at the start with the multipliers of least squares.

        A first radius knows nothing of the problem. Where the Newton step needs no lift it is
        tried whole, so that a quadratic problem takes one step, unless it is so long that only a
        nearly singular model can have made it.
        """
        self._equations: Any = _Equations(self.form)
        at = self.form.point(self.form.start)
        guards = self._step.begin(evaluated(at, None))
        state = self._guarded(at, guards, 0)
        whole = evaluated(at, self._hessian(state.carry))
        radius = radius_of_newton(LocalModel(whole.hessian, guards.jacobian), whole)
        if guards.radius < radius <= _LONGEST * guards.radius:
            state = self._guarded(at, replace(guards, radius=radius), 0)
        return state

    def settled(self, state: State, at: Point) -> bool:
        """Also not at a saddle point, which the next step leaves."""
        return super().settled(state, at) and self._step.at_rest(
            evaluated(at, self._hessian(state.carry)), state.carry.guards
        )

    def step(self, oracle: Oracle, state: State, at: Point) -> tuple[State, None]:
        """Take one accepted composite step.

        Raises:
            StallError: at a stationary violation, or when nothing moves any more.
        """
        it: Guarded = state.carry
        assert it.guards is not None
        self._equations._last = at
        new, guards = self._step.advance(
            self._equations, evaluated(at, self._hessian(it)), it.guards
        )
        return self._guarded(new.point, guards, state.t + 1), None  # type: ignore[attr-defined]

    def _guarded(self, at: Point, guards: Safeguards, t: int) -> State:
        none = np.zeros(self.form.n)
        y = self._step.multipliers(evaluated(at, None), guards)
        it = Guarded(at, y, none, none, 0.0, Filter.start(at.theta), guards=guards)
        return self._state(it, t)
