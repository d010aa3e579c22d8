"""KKT residuals of an equality-constrained point from dense derivatives, and its verdict."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.point.residuals import Residuals, Tolerances
from casadi_hybrid.problem.rounding import counted_slope, counted_violation
from casadi_hybrid.utils.arrays import largest
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.status import PointStatus

_FLAT = 1e-9  # a slope of ‖h‖ that is none, whatever the size of its Jacobian


def residuals_at(at: Evaluation, multipliers: Vector) -> Residuals:
    """Residuals of (x, λ) from the problem's functions at x."""
    h, slope = first_order_terms(at, multipliers)
    return Residuals(float(np.abs(h).max(initial=0.0)), float(np.abs(slope).max()))


def first_order_terms(at: Evaluation, multipliers: Vector) -> tuple[Vector, Vector]:
    """h and ∇f + J_hᵀλ as far as they count; the terms of h are taken as |J_h||x| + |h|."""
    sizes = np.abs(at.B)
    with np.errstate(over="ignore", invalid="ignore"):
        of_h = sizes @ np.abs(at.x) + np.abs(at.h)
        pulls = sizes.T @ np.abs(multipliers)
    slope = at.gradient + at.B.T @ multipliers
    return counted_violation(at.h, of_h), counted_slope(slope, at.gradient, pulls)


def judge(
    at: Evaluation, residuals: Residuals, tolerances: Tolerances, multipliers: Vector
) -> PointStatus:
    """Say what the point is.

    An infeasible stationary point has ‖J_hᵀh‖ small against ‖J_h‖‖h‖ while h is not: no first
    order step reduces the violation. A Fritz John point has J_hᵀλ/‖λ‖ ≈ 0 for huge λ.
    """
    feasible = residuals.feasibility <= tolerances.feasibility
    stationary = residuals.stationarity <= tolerances.stationarity
    if feasible:
        if stationary:
            return PointStatus.KKT_POINT
        size = float(np.linalg.norm(multipliers))
        pull = float(np.linalg.norm(at.B.T @ multipliers))
        if size > 1e6 and pull <= 1e-5 * size:
            return PointStatus.FRITZ_JOHN_POINT
        return PointStatus.FEASIBLE_NOT_STATIONARY
    if violation_is_stationary(at, 1e-6):
        return PointStatus.INFEASIBLE_STATIONARY
    return PointStatus.STATIONARY_NOT_FEASIBLE if stationary else PointStatus.NOT_CONVERGED


def violation_is_stationary(at: Evaluation, tolerance: float) -> bool:
    """Whether ‖J_hᵀh‖ ≤ max(tolerance · ‖J_h‖, 1e-9) · ‖h‖.

    The absolute part covers a Jacobian that vanishes together with the slope of the violation,
    as that of ‖x‖² + 1 does at its least point.
    """
    steepest = largest(at.B.ravel(order="K"))
    if steepest == 0.0:
        return True
    # Scaled to entries of size one: squares of large numbers overflow.
    B, h = at.B / steepest, at.h / max(largest(at.h), 1e-300)
    slope = max(tolerance * float(np.linalg.norm(B)), _FLAT / steepest)
    return bool(np.linalg.norm(B.T @ h) <= slope * np.linalg.norm(h))
