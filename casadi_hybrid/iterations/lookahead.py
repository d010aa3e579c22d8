r"""The look-ahead iteration with a trust region: the default for any shape and rank.

**The step.** The law of :mod:`casadi_hybrid.law` with matrix steps P = A⁻¹,
A = H + BᵀMB + Z(H_zz₊ − H_zz)Zᵀ ≻ 0, D = (BPBᵀ)⁺, and the look-ahead drive

    w = P(g + Bᵀ(π + M h)),   v = D(h − B w):

optimism by prediction, h − Bw ≈ h(x − w), in place of memory. Its primal step does not depend on
M: in y = range(Bᵀ), z = ker B it is

    d_y = −B⁺h,   d_z = −H_zz₊⁻¹(g_z + H_zy d_y),   π⁺ = −B⁺ᵀ(g + H d),

which is the Newton–KKT step, that is sequential quadratic programming with the reduced Hessian
made positive definite. The paper's family contains SQP as this member, and ‖M‖ ~ cond(B)² is no
limit to it. :class:`~casadi_hybrid.rules.matrix.MatrixRule` runs the same step through the law
with an explicit M; a test holds the two against each other.

**The safeguards** act on split-invariant data only, so the trajectory stays that of M alone.
A trust region of radius Δ damps both parts as in the composite-step method of Byrd and Omojokun
(Nocedal and Wright, *Numerical Optimization*, 2nd ed., section 18.5):

    d_y = −(Σ² + λ)⁻¹ Σ Uᵀh  with ‖d_y‖ ≤ 0.8Δ,     H_zz₊ = H_zz + σI  with ‖d‖ ≤ Δ,

λ, σ ≥ 0 being the multipliers of the radius (both zero near a solution). λ is also what
regularizes a loss of rank. Steps are accepted by the exact penalty f + ν‖h‖₂ with one second-order
correction. π is refitted by least squares at each new point. Where ‖h‖ is stationary but not
zero, a scan along the weakest singular directions tries to leave (:func:`_escape`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from casadi_hybrid.errors import EvaluationError, StallError
from casadi_hybrid.functions import Evaluation
from casadi_hybrid.inputs import Vector, count, positive
from casadi_hybrid.iterations.base import Start
from casadi_hybrid.law import State
from casadi_hybrid.oracle import Oracle
from casadi_hybrid.rules.spectra import Jacobian, LocalModel
from casadi_hybrid.status import StopReason
from casadi_hybrid.subproblem import trust_region_step

_EPS = float(np.finfo(float).eps)
# Share of the radius the normal step may use, so that the tangential step keeps room.
_NORMAL_SHARE = 0.8
_ACCEPT = 1e-4
_SHRINK_BELOW, _GROW_ABOVE = 0.25, 0.75
# ‖Bᵀh‖ below this fraction of ‖B‖‖h‖ counts as a stationary violation.
_STATIONARY = 1e-8
_SCAN_DIRECTIONS = 3
_SCAN_DISTANCES = np.geomspace(1e-4, 3.0, 10)


@dataclass(frozen=True, slots=True)
class Safeguards:
    """What the iteration carries besides (x, π).

    Attributes:
        radius: Δ.
        penalty: ν of the exact penalty f + ν‖h‖₂.
        jacobian: B at x with its decomposition.
        escapes: how often a stationary violation was left.
    """

    radius: float
    penalty: float
    jacobian: Jacobian
    escapes: int = 0


@dataclass(frozen=True, slots=True)
class CompositeStep:
    """d = d_y + d_z with the multipliers λ, σ of the radius."""

    d: Vector
    normal_damping: float
    tangential_damping: float


@dataclass(frozen=True)
class LookAhead:
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
        radius = self.radius or max(1.0, 0.5 * float(np.linalg.norm(start.x0)))
        return self._state(at, Safeguards(radius, 1.0, Jacobian(at.B, self.rank_tolerance)), 0)

    def evaluate(self, oracle: Oracle, state: State) -> Evaluation:
        """Evaluate at x_t with H at π_t."""
        return oracle.second(state.x, state.multipliers)

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take the first acceptable step, shrinking the radius until there is one.

        Raises:
            StallError: at a stationary violation that no escape leaves, or when rounding leaves
                no decrease.
        """
        guards: Safeguards = state.carry
        jacobian = guards.jacobian
        if self._violation_is_stationary(at, jacobian):
            return self._leave(oracle, state, at), None
        assert at.hessian is not None
        model = LocalModel(at.hessian, jacobian)
        radius, penalty = guards.radius, guards.penalty
        h_norm = float(np.linalg.norm(at.h))
        while radius > 1e-15 * (1.0 + float(np.linalg.norm(at.x))):
            step = composite_step(model, at, radius)
            d = step.d
            q = float(at.gradient @ d + 0.5 * d @ model.H @ d)
            gain = h_norm - float(np.linalg.norm(at.h + at.B @ d))
            if gain > _EPS * h_norm and q > 0.7 * penalty * gain:
                penalty = 1.5 * q / (0.7 * gain)
            predicted = penalty * gain - q
            new, ratio = _try(oracle, at, d, penalty, predicted)
            if ratio < 0.1 and new is not None and step.normal_damping == 0.0:
                d, new, ratio = _second_order(oracle, at, jacobian, d, new, ratio, penalty,
                                              predicted, radius)  # fmt: skip
            size = float(np.linalg.norm(d))
            if ratio >= _GROW_ABOVE and size > 0.7 * radius:
                radius *= 3.0
            elif ratio < _SHRINK_BELOW:
                radius = (0.5 if ratio >= _ACCEPT else 0.25) * min(size, radius)
            if new is not None and ratio >= _ACCEPT:
                fresh = Jacobian(new.B, self.rank_tolerance)
                kept = replace(guards, radius=radius, penalty=penalty, jacobian=fresh)
                return self._state(new, kept, state.t + 1), None
        raise StallError(StopReason.STALLED, "no step decreases the penalty function any more")

    def remarks(self, state: State, at: Evaluation) -> tuple[str, ...]:
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
        if at.hessian is not None and r < n:
            values, directions = LocalModel(at.hessian, jacobian).kernel
            scale = max(1.0, float(np.abs(values).max()))
            if values[0] < -1e-8 * scale:
                largest = int(np.argmax(np.abs(directions[:, 0])))
                said.append(
                    f"not augmentable here: curvature {values[0]:.3g} along a feasible direction "
                    f"(largest in entry {largest} of x), so this is no strict minimizer"
                )
        if guards.escapes:
            said.append(f"a stationary violation of the constraints was left {guards.escapes}×")
        return tuple(said)

    def _state(self, at: Evaluation, guards: Safeguards, t: int) -> State:
        pi = guards.jacobian.least_squares_multipliers(at.gradient)
        return State(at.x, pi, np.zeros_like(pi), pi, t, guards)

    def _violation_is_stationary(self, at: Evaluation, jacobian: Jacobian) -> bool:
        if float(np.abs(at.h).max()) <= self.tol_feasibility:
            return False
        reach = jacobian.sigma * jacobian.coordinates(at.h)
        scale = jacobian.norm * float(np.linalg.norm(at.h))
        return float(np.linalg.norm(reach)) <= _STATIONARY * scale

    def _leave(self, oracle: Oracle, state: State, at: Evaluation) -> State:
        guards: Safeguards = state.carry
        if guards.escapes < self.max_escapes:
            new = _escape(oracle, at, guards.jacobian)
            if new is not None:
                fresh = Jacobian(new.B, self.rank_tolerance)
                radius = max(guards.radius, float(np.linalg.norm(new.x - at.x)))
                kept = Safeguards(radius, 1.0, fresh, guards.escapes + 1)
                return self._state(new, kept, state.t + 1)
        raise StallError(
            StopReason.LOCALLY_INFEASIBLE,
            f"‖h‖ = {np.linalg.norm(at.h):.3g} cannot be reduced to first order: "
            "the constraints are inconsistent, or this is a local minimum of their violation",
        )


def composite_step(model: LocalModel, at: Evaluation, radius: float) -> CompositeStep:
    """Return d = d_y + d_z within the radius (formulas in the module's docstring)."""
    jacobian = model.jacobian
    sigma = jacobian.sigma
    c = jacobian.coordinates(at.h)
    # Ascending eigenvalues for the subproblem: singular values come in descending order.
    y, damping = trust_region_step((sigma**2)[::-1], (sigma * c)[::-1], _NORMAL_SHARE * radius)
    if damping == 0.0:
        y = (-c / sigma)[::-1]  # σ²y = −σc loses half the digits of small σ
    d_y = jacobian.Y @ y[::-1]
    values, directions = model.kernel
    room = np.sqrt(max(radius**2 - float(d_y @ d_y), 0.0))
    slope = directions.T @ (at.gradient + model.H @ d_y)
    z, lift = trust_region_step(values, slope, float(room))
    return CompositeStep(d_y + directions @ z, damping, lift)


def _try(
    oracle: Oracle, at: Evaluation, d: Vector, penalty: float, predicted: float
) -> tuple[Evaluation | None, float]:
    """Evaluate x + d; return it and actual/predicted decrease (−∞ where undefined)."""
    try:
        new = oracle.first(at.x + d)
    except EvaluationError:
        return None, -np.inf
    h_old, h_new = float(np.linalg.norm(at.h)), float(np.linalg.norm(new.h))
    actual = at.f - new.f + penalty * (h_old - h_new)
    # Near a solution both decreases drown in rounding; equal noise on both sides means accept.
    noise = 10 * _EPS * (abs(at.f) + penalty * h_old)
    return new, (actual + noise) / (predicted + noise)


def _second_order(
    oracle: Oracle,
    at: Evaluation,
    jacobian: Jacobian,
    d: Vector,
    new: Evaluation,
    ratio: float,
    penalty: float,
    predicted: float,
    radius: float,
) -> tuple[Vector, Evaluation, float]:
    """Correct the step for the curvature of h, d − B⁺h(x + d), and keep it if it is accepted."""
    back = jacobian.Y @ (jacobian.coordinates(new.h) / jacobian.sigma)
    if np.linalg.norm(back) > radius:
        return d, new, ratio
    corrected, better = _try(oracle, at, d - back, penalty, predicted)
    if corrected is None or better < max(0.1, ratio):
        return d, new, ratio
    return d - back, corrected, better


def _escape(oracle: Oracle, at: Evaluation, jacobian: Jacobian) -> Evaluation | None:
    """Leave a stationary point of ‖h‖: look far along ±(weakest right singular vectors).

    Each trial is followed by two damped Gauss–Newton corrections; the first that at least halves
    ‖h‖ is taken. The quadratic part of h, which the stationary linear model does not see, decides
    along the weak directions, so the distances are geometric.
    """
    goal = 0.5 * float(np.linalg.norm(at.h))
    scale = max(1.0, float(np.linalg.norm(at.x)))
    directions = list(jacobian.right[::-1][:_SCAN_DIRECTIONS])
    if len(directions) > 1:
        weak, next_weak = directions[0], directions[1]
        directions += [(weak + next_weak) / np.sqrt(2.0), (weak - next_weak) / np.sqrt(2.0)]
    for direction in directions:
        for distance in scale * _SCAN_DISTANCES:
            for sign in (1.0, -1.0):
                new = _corrected(oracle, at.x + sign * distance * direction, distance)
                if new is not None and np.linalg.norm(new.h) <= goal:
                    return new
    return None


def _corrected(oracle: Oracle, x: Vector, radius: float) -> Evaluation | None:
    try:
        at = oracle.first(x)
        for _ in range(2):
            jacobian = Jacobian(at.B)
            sigma = jacobian.sigma
            c = jacobian.coordinates(at.h)
            y, _ = trust_region_step((sigma**2)[::-1], (sigma * c)[::-1], radius)
            at = oracle.first(at.x + jacobian.Y @ y[::-1])
    except EvaluationError:
        return None
    return at
