r"""The look-ahead iteration with a trust region: the default for any shape and rank.

**The step.** The law of :mod:`casadi_hybrid.iterations.law` with matrix steps P = A⁻¹,
A = H + BᵀMB + Z(H_zz₊ − H_zz)Zᵀ ≻ 0, D = (BPBᵀ)⁺, and the look-ahead drive

    w = P(g + Bᵀ(π + M h)),   v = D(h − B w):

optimism by prediction, h − Bw ≈ h(x − w), in place of memory. Its primal step does not depend on
M: in y = range(Bᵀ), z = ker B it is

    d_y = −B⁺h,   d_z = −H_zz₊⁻¹(g_z + H_zy d_y),

which is the Newton–KKT step, that is sequential quadratic programming with the reduced Hessian
made positive definite: with this drive, which the paper does not have, its law contains SQP, and
‖M‖ ~ cond(B)² is no limit to it. :class:`~casadi_hybrid.iterations.rules.others.MatrixRule` runs
the same step through the law with an explicit M; a test holds the two against each other.

**The safeguards** act on split-invariant data only, so the trajectory stays that of M alone.
A trust region of radius Δ damps both parts as in the composite-step method of Byrd and Omojokun
(Nocedal and Wright, *Numerical Optimization*, 2nd ed., section 18.5):

    d_y = −(Σ² + λ)⁻¹ Σ Uᵀh  with ‖d_y‖ ≤ 0.8Δ,     H_zz₊ = H_zz + σI  with ‖d‖ ≤ Δ,

λ, σ ≥ 0 being the multipliers of the radius (both zero near a strict minimizer). A Newton step that
is no longer than ten radii is tried all the same, and taken if its model was right. λ is also what
regularizes a loss of rank. Steps are accepted by the exact penalty f + ν‖h‖₂, with one
second-order correction where they are not good, or where a Newton step halves the least KKT error
so far; π is refitted by least squares at each new point. Where ‖h‖ stops falling, ν is raised once
and then the violation is reduced alone (:mod:`casadi_hybrid.iterations.violation`) until it is a
tenth or proves stationary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.basics.arrays import changed, largest, norm
from casadi_hybrid.basics.errors import StallError
from casadi_hybrid.basics.inputs import Vector, count, positive
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.iterations.base import Equalities, Start
from casadi_hybrid.iterations.composite import Merit, composite_step, kkt_error, newton_step
from casadi_hybrid.iterations.law import State
from casadi_hybrid.iterations.rules.spectra import Jacobian, LocalModel
from casadi_hybrid.iterations.safeguards import Safeguards
from casadi_hybrid.iterations.trust_region import ACCEPT, GROW_ABOVE, SHRINK_BELOW, next_radius
from casadi_hybrid.iterations.violation import damped_gauss_newton, escape, reduce_violation
from casadi_hybrid.point.residuals import violation_is_stationary
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle

_EPS = float(np.finfo(float).eps)
# How far beyond its radius a Newton step is tried, and the ratio that such a step has to reach.
_DARING, _DARED = 10.0, 0.5
# See residuals.violation_is_stationary: when the reduction of the violation takes over, and what
# is called stationary in the end.
_STATIONARY, _CERTIFIED = 1e-9, 1e-6
_MAX_SADDLES = 5
_LEAST_RADIUS = 1e-15  # of ‖x‖₂
_CORRECTED = 0.1  # the ratio that a correction has to reach
_RAISE = 1.5  # of ν over the least that serves
_LEVEL = 1e-12  # |∇fᵀd| that counts as zero at a saddle
# The part of the gain in the violation that f may use up, and curvature that counts as negative.
_SHARE, _CURVED = 0.7, 1e-8


@dataclass(frozen=True)
class LookAhead(Equalities):
    """Look-ahead steps under a trust region (formulas in the module's docstring).

    Args:
        rank_tolerance: singular values of B below this fraction of the largest count as zero.
        radius: first trust-region radius Δ_0; max(1, ½‖x_0‖) by default.
        max_escapes: how often a stationary violation of the constraints is left by a scan.
        tol_feasibility: ‖h‖_∞ below which the violation counts as zero in that decision.
    """

    rank_tolerance: float = 1e-10
    radius: float | None = None
    max_escapes: int = 2
    tol_feasibility: float = 1e-10
    label: str = "look-ahead"

    def __post_init__(self) -> None:
        positive(self.rank_tolerance, "rank_tolerance")
        positive(self.tol_feasibility, "tol_feasibility")
        if self.radius is not None:
            positive(self.radius, "radius")
        count(self.max_escapes, "max_escapes")

    def init(self, oracle: Oracle, start: Start) -> State:
        """Start at x_0 with least-squares multipliers; λ_0 is not needed."""
        at = oracle.first(start.x0)
        return self._state(at, self.begin(at), 0)

    def begin(self, at: Evaluation) -> Safeguards:
        """What the iteration carries at its first point."""
        radius = self.radius or max(1.0, 0.5 * norm(at.x))
        return Safeguards(radius, 1.0, self._jacobian(at))

    def evaluate(self, oracle: Oracle, state: State) -> Evaluation:
        """Evaluate at x_t with H at π_t."""
        return oracle.second(state.x, state.multipliers)

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take one accepted step of the mode that is due.

        Raises:
            StallError: see :meth:`advance`.
        """
        new, guards = self.advance(oracle, at, state.carry)
        return self._state(new, guards, state.t + 1), None

    def advance(
        self, oracle: Oracle, at: Evaluation, guards: Safeguards
    ) -> tuple[Evaluation, Safeguards]:
        """Take one accepted step of the mode that is due: the next point and what is carried.

        Raises:
            StallError: at a stationary violation that no escape leaves, or when rounding leaves
                no decrease.
        """
        h_norm = norm(at.h)
        violated = largest(at.h) > self.tol_feasibility
        if violated and violation_is_stationary(at, _STATIONARY):
            guards = guards.reducing(0.5 * h_norm)
        elif guards.goal is not None and (h_norm <= guards.goal or not violated):
            guards = changed(guards, goal=None, reach=None, mark=np.inf, raised=False)
        elif guards.goal is None:
            guards = guards.watched(h_norm, self.tol_feasibility)
        take = self._look_ahead if guards.goal is None else self._reduce
        new, guards = take(oracle, at, guards)
        return new, changed(guards, jacobian=self._jacobian(new))

    def settled(self, state: State, at: Evaluation) -> bool:
        """Small residuals are all that is asked."""
        return True

    def leaves(self, state: State, at: Evaluation) -> bool:
        """A saddle point or maximizer: the next step follows the negative curvature."""
        return not self.at_rest(at, state.carry)

    def at_rest(self, at: Evaluation, guards: Safeguards) -> bool:
        """Whether a KKT point is no saddle point or maximizer, as far as steps have shown."""
        return guards.saddles >= _MAX_SADDLES or _negative_curvature(at, guards.jacobian) is None

    def remarks(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[str, ...]:
        """Name the kind of step that was right for this Jacobian, and what is special about it."""
        guards: Safeguards = state.carry
        jacobian = guards.jacobian
        r, m, n = jacobian.rank, jacobian.m, jacobian.n
        said = []
        if r == n:
            said.append(
                f"J_h has full column rank {r} = n: the constraints fix the point locally and "
                "the objective has no say; the steps were damped Gauss-Newton steps on h"
            )
        else:
            said.append(
                f"J_h has rank {r} < n = {n}: the steps were Newton-KKT (SQP) steps under a "
                "trust region, with the Hessian made positive definite on ker J_h"
            )
        if r < m:
            said.append(
                f"J_h has rank {r} < m = {m}: constraints depend on each other here, so the "
                "multipliers are the least-norm ones of many"
            )
        curved = _negative_curvature(at, jacobian)
        if curved is not None:
            entry = int(np.argmax(np.abs(curved[1])))
            names = oracle.functions.variable_names
            said.append(
                f"not augmentable here: curvature {curved[0]:.3g} along a feasible direction "
                f"(largest in {names[entry]}), so this is no strict minimizer"
            )
        if guards.escapes:
            said.append(f"a stationary violation of the constraints was left {guards.escapes}×")
        return tuple(said)

    def _jacobian(self, at: Evaluation) -> Jacobian:
        return Jacobian(at.B, self.rank_tolerance)

    def _state(self, at: Evaluation, guards: Safeguards, t: int) -> State:
        pi = self.multipliers(at, guards)
        return State(at.x, pi, np.zeros_like(pi), pi, t, guards)

    def multipliers(self, at: Evaluation, guards: Safeguards) -> Vector:
        """π at a point: of least squares, or zero where the objective waits for feasibility."""
        pi = guards.jacobian.least_squares_multipliers(at.gradient)
        return pi if guards.goal is None else np.zeros_like(pi)

    def _look_ahead(
        self, oracle: Oracle, at: Evaluation, guards: Safeguards
    ) -> tuple[Evaluation, Safeguards]:
        """Take the first acceptable composite step, shrinking the radius until there is one."""
        assert at.hessian is not None
        model = LocalModel(at.hessian, guards.jacobian)
        h_norm = norm(at.h)
        radius, penalty = guards.radius, guards.penalty
        # The radius says where the last model held. Where this one has a minimizer not much
        # further away, trying it costs one evaluation.
        newton, whole = newton_step(model, at)
        daring = radius < whole <= _DARING * radius
        while radius > _LEAST_RADIUS * (1.0 + norm(at.x)):
            undamped = daring or 0.0 < whole <= radius
            step = newton if undamped else composite_step(model, at, radius)
            d = step.d
            q = float(at.gradient.dot(d) + (0.5 * d).dot(model.H).dot(d))
            gain = h_norm - norm(at.h + at.B.dot(d))
            if gain > _EPS * h_norm and q > _SHARE * penalty * gain:
                penalty = _RAISE * q / (_SHARE * gain)
            merit = Merit(at, penalty, penalty * gain - q)
            plain = taken = merit.measure(oracle, d)
            if plain.ratio < GROW_ABOVE and plain.new is not None and step.normal_damping == 0.0:
                # Second-order correction: the curvature of h spoilt a full step, or some of it.
                back, _ = damped_gauss_newton(guards.jacobian, plain.new.h, radius)
                corrected = merit.measure(oracle, d + back)
                if corrected.ratio >= max(_CORRECTED, plain.ratio):
                    taken = corrected
            if daring:
                daring = False
                if taken.ratio < _DARED:
                    penalty = guards.penalty
                    continue
                radius = whole
            if taken.ratio < SHRINK_BELOW and step.is_newton and plain.new is not None:
                # Where ν is large, only tiny steps please the merit function. A Newton step that
                # halves the least KKT error so far is as good: that can happen only finitely
                # often before the error is zero.
                error = kkt_error(plain.new, self._jacobian(plain.new))
                if error <= 0.5 * min(guards.error, kkt_error(at, guards.jacobian)):
                    return plain.new, changed(guards, penalty=penalty, error=error, promised=1.0)
            radius = next_radius(radius, min(norm(taken.d), radius), taken.ratio)
            if taken.new is not None and taken.ratio >= ACCEPT:
                flat = h_norm <= self.tol_feasibility and abs(float(at.gradient @ d)) <= _LEVEL
                saddles = guards.saddles + (flat and step.tangential_damping > 0.0)
                promised = gain / h_norm if h_norm else 0.0
                return taken.new, changed(
                    guards, radius=radius, penalty=penalty, saddles=saddles, promised=promised
                )
        if h_norm > self.tol_feasibility:
            return self._reduce(oracle, at, guards.reducing(0.5 * h_norm))
        raise StallError(StopReason.STALLED, "no step decreases the penalty function any more")

    def _reduce(
        self, oracle: Oracle, at: Evaluation, guards: Safeguards
    ) -> tuple[Evaluation, Safeguards]:
        """Reduce the violation alone; at a local minimizer of it, scan for a way out."""
        h_norm = norm(at.h)
        guards = guards.slowed(h_norm)
        stationary = violation_is_stationary(at, _CERTIFIED)
        # A valley of ‖h‖ that leads to infinity never ends: its slope vanishes in the limit only.
        ended = stationary and guards.patience < 0
        reduced = None if ended else reduce_violation(oracle, at, guards.reach)
        if reduced is not None:
            return reduced[0], changed(guards, reach=reduced[1])
        if guards.escapes < self.max_escapes:
            new = escape(oracle, at, guards.jacobian)
            if new is not None:
                radius = max(guards.radius, norm(new.x - at.x))
                return new, Safeguards(radius, 1.0, guards.jacobian, escapes=guards.escapes + 1)
        if not stationary:
            raise StallError(
                StopReason.STALLED,
                f"rounding hides any further decrease of ‖h‖ = {h_norm:.3g}, whose slope is not "
                "zero: the constraints are badly scaled or lose digits here",
            )
        raise StallError(
            StopReason.LOCALLY_INFEASIBLE,
            f"‖h‖ = {h_norm:.3g} cannot be reduced from here: "
            "the constraints are inconsistent, or this is a local minimum of their violation",
        )


def _negative_curvature(at: Evaluation, jacobian: Jacobian) -> tuple[float, Vector] | None:
    """Curvature and direction of the least eigenvalue of H on ker B where it is negative."""
    if at.hessian is None or jacobian.rank == jacobian.n:
        return None
    values, directions = LocalModel(at.hessian, jacobian).kernel
    scale = max(1.0, largest(values))
    return (float(values[0]), directions[:, 0]) if values[0] < -_CURVED * scale else None
