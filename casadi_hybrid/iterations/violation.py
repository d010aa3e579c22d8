"""Steps that reduce the constraint violation ½‖h‖² alone, whatever the objective says.

Used where the look-ahead step makes no progress towards feasibility: near a point where ‖h‖ is
(almost) stationary, Gauss–Newton is slow or stuck and the curvature of h decides. The Newton step
on ½‖h‖² uses it in full,

    G = BᵀB + Σ_i h_i ∇²h_i,   d = argmin ½dᵀGd + (Bᵀh)ᵀd  with ‖d‖ ≤ Δ,

solved globally, so that it also leaves saddle points of the violation. A point where it cannot
move is a local minimizer of the violation: the certificate of local infeasibility.
"""

from __future__ import annotations

import numpy as np

from casadi_hybrid.errors import EvaluationError
from casadi_hybrid.functions import Evaluation
from casadi_hybrid.inputs import Vector
from casadi_hybrid.oracle import Oracle
from casadi_hybrid.rules.spectra import Jacobian, symmetric_eigen
from casadi_hybrid.subproblem import trust_region_step

_SCAN_DIRECTIONS = 3
_SCAN_DISTANCES = np.geomspace(1e-4, 3.0, 10)
_SMALLEST_RADIUS = 1e-13


def reduce_violation(
    oracle: Oracle, at: Evaluation, radius: float
) -> tuple[Evaluation, float] | None:
    """Return (the functions at a point with smaller ‖h‖, new radius), or None where there is none.

    One accepted trust-region Newton step on ½‖h‖².
    """
    # H(λ) is affine in λ, so two calls of the one generated function give Σ h_i ∇²h_i.
    with_h = oracle.second(at.x, at.h).hessian
    without = oracle.second(at.x, np.zeros_like(at.h)).hessian
    assert with_h is not None
    assert without is not None
    values, W = symmetric_eigen(at.B.T @ at.B + with_h - without)
    slope = W.T @ (at.B.T @ at.h)
    half = 0.5 * float(at.h @ at.h)
    smallest = _SMALLEST_RADIUS * (1.0 + float(np.linalg.norm(at.x)))
    while radius > smallest:
        t, _ = trust_region_step(values, slope, radius)
        predicted = -float(slope @ t + 0.5 * values @ t**2)
        if predicted <= 1e-14 * half:
            return None
        size = float(np.linalg.norm(t))
        new = evaluate_or_none(oracle, at.x + W @ t)
        ratio = -1.0 if new is None else (half - 0.5 * float(new.h @ new.h)) / predicted
        if ratio < 0.25:
            radius = 0.25 * size if ratio < 1e-4 else 0.5 * size
        elif ratio > 0.75 and size > 0.7 * radius:
            radius *= 3.0
        if new is not None and ratio >= 1e-4:
            return new, radius
    return None


def escape(oracle: Oracle, at: Evaluation, jacobian: Jacobian) -> Evaluation | None:
    """Leave a stationary point of ‖h‖: look far along ±(weakest right singular vectors).

    Each trial is followed by two damped Gauss–Newton corrections; the first that at least halves
    ‖h‖ is taken. Along the weak directions the quadratic part of h, which a linear model does not
    see, decides, so the distances are geometric.
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


def damped_gauss_newton(jacobian: Jacobian, h: Vector, radius: float) -> tuple[Vector, float]:
    """Return d = −V(Σ² + λ)⁻¹ΣUᵀh with ‖d‖ ≤ Δ, and the damping λ ≥ 0 (zero inside)."""
    sigma = jacobian.sigma
    c = jacobian.coordinates(h)
    y = -c / sigma
    damping = 0.0
    if np.linalg.norm(y) > radius:
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
