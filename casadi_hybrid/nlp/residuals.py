"""KKT residuals of a nonlinear program in the user's units, and the verdict they give."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.inputs import Vector
from casadi_hybrid.nlp.evaluator import Operator
from casadi_hybrid.nlp.sparse import largest_entry
from casadi_hybrid.nlp.standard import Bounds
from casadi_hybrid.residuals import Residuals


def kkt_residuals(
    bounds: Bounds,
    x: Vector,
    gradient: Vector,
    g: Vector,
    J: Operator,
    lam_x: Vector,
    lam_g: Vector,
) -> Residuals:
    """Residuals in the infinity norm, unscaled.

    - feasibility: the largest violation of a bound on x or g;
    - stationarity: ‖∇f + J_gᵀλ_g + λ_x‖_∞;
    - complementarity: the largest |λ_i|·(distance to the bound its sign points to), where a
      multiplier whose sign points to an infinite bound counts with its own size.
    """
    slope = gradient + J.T @ lam_g + lam_x
    return Residuals(
        max(_violation(x, bounds.lbx, bounds.ubx), _violation(g, bounds.lbg, bounds.ubg)),
        float(np.abs(slope).max(initial=0.0)),
        max(
            _slackness(x, bounds.lbx, bounds.ubx, lam_x),
            _slackness(g, bounds.lbg, bounds.ubg, lam_g),
        ),
    )


def violations(value: Vector, lower: Vector, upper: Vector) -> Vector:
    """How far each entry lies outside its bounds: negative below, positive above, else zero."""
    return np.maximum(value - upper, 0.0) - np.maximum(lower - value, 0.0)


def met_far_out(violation: float, x: Vector, J: Operator) -> bool:
    """Whether a violation is at most 1e-6, or what rounding leaves where x is large (up to 1e-2).

    The terms of a row are taken to be of the size max|∇g|·‖x‖.
    """
    size = float(np.abs(x).max(initial=0.0))
    rounding = 100.0 * float(np.finfo(float).eps) * largest_entry(J) * size
    return violation <= max(1e-6, min(rounding, 1e-2))


def _violation(value: Vector, lower: Vector, upper: Vector) -> float:
    return float(np.abs(violations(value, lower, upper)).max(initial=0.0))


def _slackness(value: Vector, lower: Vector, upper: Vector, lam: Vector) -> float:
    bound = np.where(lam > 0, upper, lower)
    finite = np.isfinite(bound)
    distance = np.abs(np.where(finite, bound, value) - value)
    product = np.abs(lam) * np.where(finite, distance, 1.0)
    return float(product[lower < upper].max(initial=0.0))
