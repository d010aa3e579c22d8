"""Steps that reduce the constraint violation ½‖h‖² alone, whatever the objective says.

Used where the look-ahead step makes no progress towards feasibility: near a point where ‖h‖ is
(almost) stationary, Gauss–Newton is slow or stuck and the curvature of h decides. The Newton step
on ½‖h‖² uses it in full,

    G = BᵀB + Σ_i h_i ∇²h_i,   d = argmin ½dᵀGd + (Bᵀh)ᵀd  with ‖Dd‖ ≤ Δ,

solved globally and in units D of the variables that follow the problem's own scale, so that it
also leaves saddle points of the violation. A point where it cannot move is a local minimizer of
the violation: the certificate of local infeasibility.
"""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.arrays import norm
from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.iterations.rules.spectra import Jacobian, symmetric_eigen
from casadi_hybrid.iterations.trust_region import (
    ACCEPT,
    next_radius,
    oriented,
    trust_region_step,
)
from casadi_hybrid.point.residuals import violation_is_stationary
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle

_SCAN_DIRECTIONS = 3
_RESCUE_STEPS = 20
_OFF, _BACK = 1e-3, 10.0  # of max(1, ‖x‖): how far an undamped step leads at least, and at most
_SCAN_DISTANCES = tuple(np.geomspace(1e-4, 3.0, 10).tolist())
_EPS = float(np.finfo(float).eps)
# A predicted relative decrease of ‖h‖² below this is none.
_NEGLIGIBLE = 1e-12
# Beyond this a step is at most as long as x, so that a run to infinity ends by its slope.
_FAR = 1e5
# A relative slope of ‖h‖ below this is rounding.
_FLAT = 1e-12
# Steps with a worse ratio are bent, if the bend is at most this part of the step.
_MEDIOCRE, _BEND = 0.9, 0.75


def reduce_violation(
    oracle: Oracle, at: Evaluation, reach: float | None
) -> tuple[Evaluation, float] | None:
    """Return (the functions at a point with smaller ‖h‖, new reach), or None where there is none.

    One accepted trust-region Newton step on ½‖h‖². The region is ‖Dd‖ ≤ Δ with
    D_i² = ‖∂h/∂x_i‖² + |Σ_j h_j ∂²h_j/∂x_i²|, so Δ has the units of h and scaling a variable
    changes nothing.

    A rejected or mediocre step d is tried once more with the correction
    −(G + σD²)⁻¹Bᵀ(h(x + d) − h − Bd), which bends it along a curved valley of ‖h‖ (the geodesic
    acceleration of Transtrum and Sethna, 2012, with its second derivative from the step itself).

    Args:
        oracle: the problem's functions.
        at: the functions at the current point.
        reach: Δ of the last step, None for ‖h‖.
    """
    # H(λ) is affine in λ, so two calls of the one generated function give Σ h_i ∇²h_i.
    with_h = oracle.second(at.x, at.h).hessian
    without = oracle.second(at.x, np.zeros_like(at.h)).hessian
    assert with_h is not None
    assert without is not None
    curvature = with_h - without
    D = _units(at.B, curvature)
    values, W = symmetric_eigen((at.B.T @ at.B + curvature) / np.outer(D, D))
    W = W / D[:, None]
    if values[0] < 0.0:
        W = oriented(W, values)
    slope = W.T @ (at.B.T @ at.h)
    half = 0.5 * float(at.h @ at.h)
    radius = norm(at.h) if reach is None else reach
    longest = max(_FAR, norm(at.x))
    smallest = _EPS * norm(D * at.x)
    while radius > smallest:
        t, sigma = trust_region_step(values, slope, radius)
        predicted = -float(slope @ t + 0.5 * values @ t**2)
        size = norm(t)
        step = W @ t
        length = norm(step)
        if length > longest:
            radius = 0.5 * size * longest / length
            continue
        if predicted <= _NEGLIGIBLE * half:
            polished = _polished(oracle, at, step) if sigma == 0.0 else None
            return None if polished is None else (polished, radius)
        new, ratio = _measure(oracle, at, step, predicted)
        if new is not None and ratio < _MEDIOCRE and values[0] + sigma > 0:
            c = (W.T @ (at.B.T @ (new.h - at.h - at.B @ step))) / (values + sigma)
            if norm(c) <= _BEND * size:
                bent, better = _measure(oracle, at, step - W @ c, predicted)
                if better > ratio:
                    new, ratio = bent, better
        radius = next_radius(radius, size, ratio)
        if new is not None and ratio >= ACCEPT:
            return new, radius
    return None


def escape(oracle: Oracle, at: Evaluation, jacobian: Jacobian) -> Evaluation | None:
    """Leave a stationary point of ‖h‖: look far along ±(weakest right singular vectors).

    The first trial is the undamped Gauss–Newton step, followed by a few steps of the reduction:
    from far out on an asymptote of ‖h‖ it leads all the way back. The others are followed by two
    damped Gauss–Newton corrections. The first that at least halves ‖h‖ is taken. Along the weak
    directions the quadratic part of h, which a linear model does not see, decides, so the
    distances are geometric.
    """
    goal = 0.5 * norm(at.h)
    scale = max(1.0, norm(at.x))
    far, _ = damped_gauss_newton(Jacobian(at.B, _EPS), at.h, np.inf)
    back = norm(far) > _OFF * scale and norm(at.x + far) <= _BACK * scale
    new = _reduced(oracle, at.x + far, goal) if back else None
    if new is not None:
        return new
    weakest = np.concatenate((np.zeros(at.x.size - jacobian.rank), jacobian.sigma[::-1]))
    directions = list(oriented(jacobian.right[::-1].T, weakest, _SCAN_DIRECTIONS).T)
    del directions[_SCAN_DIRECTIONS:]
    if len(directions) > 1:
        weak, next_weak = directions[0], directions[1]
        directions += [(weak + next_weak) / np.sqrt(2.0), (weak - next_weak) / np.sqrt(2.0)]
    for direction in directions:
        for distance in [scale * share for share in _SCAN_DISTANCES]:
            for sign in (1.0, -1.0):
                new = _corrected(oracle, at.x + sign * distance * direction, distance)
                if new is not None and norm(new.h) <= goal:
                    return new
    return None


def damped_gauss_newton(jacobian: Jacobian, h: Vector, radius: float) -> tuple[Vector, float]:
    """Return d = −V(Σ² + λ)⁻¹ΣUᵀh with ‖d‖ ≤ Δ, and the damping λ ≥ 0 (zero inside)."""
    sigma = jacobian.sigma
    c = jacobian.U.T @ h
    y = -c / sigma
    damping = 0.0
    if norm(y) > radius:
        # Ascending eigenvalues for the subproblem: singular values come in descending order.
        t, damping = trust_region_step((sigma**2)[::-1], (sigma * c)[::-1], radius)
        y = t[::-1]
    return jacobian.Y @ y, damping


def evaluate_or_none(oracle: Oracle, x: Vector) -> Evaluation | None:
    """Evaluate f, ∇f, h, B at a trial point; None outside the functions' domain."""
    try:
        return oracle.first(x)
    except EvaluationError:
        return None


def _corrected(oracle: Oracle, x: Vector, radius: float) -> Evaluation | None:
    at = evaluate_or_none(oracle, x)
    for _ in range(2):
        if at is None:
            return None
        d, _ = damped_gauss_newton(Jacobian(at.B), at.h, radius)
        at = evaluate_or_none(oracle, at.x + d)
    return at


def _reduced(oracle: Oracle, x: Vector, goal: float) -> Evaluation | None:
    """Reduce ‖h‖ from x to the goal in a few steps; None where that fails."""
    reach: float | None = None
    try:
        at = oracle.first(x)
        for _ in range(_RESCUE_STEPS):
            if norm(at.h) <= goal:
                return at
            moved = reduce_violation(oracle, at, reach)
            if moved is None:
                return None
            at, reach = moved
    except EvaluationError:
        pass
    return None


def _measure(
    oracle: Oracle, at: Evaluation, step: Vector, predicted: float
) -> tuple[Evaluation | None, float]:
    """Evaluate x + step; return it and actual/predicted decrease of ½‖h‖² (−1 where undefined)."""
    new = evaluate_or_none(oracle, at.x + step)
    if new is None:
        return None, -1.0
    return new, 0.5 * float(at.h @ at.h - new.h @ new.h) / predicted


def _polished(oracle: Oracle, at: Evaluation, step: Vector) -> Evaluation | None:
    """Take a Newton step whose gain in ‖h‖ drowns in rounding where it halves the slope Bᵀh."""
    if violation_is_stationary(at, _FLAT):
        return None
    new = evaluate_or_none(oracle, at.x + step)
    if new is None:
        return None
    slope, better = (norm(point.B.T @ point.h) for point in (at, new))
    return new if better <= 0.5 * slope else None


def _units(B: Matrix, curvature: Matrix) -> Vector:
    """D_i = (‖∂h/∂x_i‖² + |Σ_j h_j ∂²h_j/∂x_i²|)^½; 1 for a variable that h does not see."""
    D = np.sqrt(np.linalg.norm(B, axis=0) ** 2 + np.abs(np.diag(curvature)))
    return np.asarray(np.where(D > 0, D, 1.0))
