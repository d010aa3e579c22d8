"""KKT residuals of a nonlinear program in the user's units."""

from __future__ import annotations

from typing import Any

import numpy as np

from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.problem.rounding import (
    counted_distance,
    counted_slope,
    counted_violation,
    violations,
)
from casadi_hybrid.utils.arrays import largest
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.late import LateModule

sp = LateModule("scipy.sparse")


def kkt_residuals(
    bounds: Bounds,
    x: Vector,
    gradient: Vector,
    g: Vector,
    J: Any,
    lam_x: Vector,
    lam_g: Vector,
    *,
    plain: bool = False,
    inner: float = 0.0,
) -> Residuals:
    """Unscaled residuals of L = f + λ_gᵀg + λ_xᵀx in ‖·‖_∞; ``plain`` excuses no rounding."""
    J = sp.csr_array(J)
    violation_x = violations(x, bounds.lbx, bounds.ubx)
    violation_g = violations(g, bounds.lbg, bounds.ubg)
    # ∇ₓL, with J a matrix of NumPy or SciPy.
    slope = gradient + J.T @ lam_g + lam_x
    # Assumed sizes of the terms of a row, whose rounding is excused.
    sizes = np.asarray(abs(J) @ np.abs(x) + np.abs(g))
    if not plain:
        violation_g = counted_violation(violation_g, sizes)
        slope = counted_slope(slope, gradient, abs(J).T @ np.abs(lam_g) + np.abs(lam_x), inner)
    steepest = abs(J).max(axis=1).toarray().ravel() if J.nnz else np.zeros(g.size)
    # The largest |λ_i|·(distance to the bound at which λ_i acts).
    slackness = 0.0
    for value, lower, upper, multipliers, size, steep in (
        (x, bounds.lbx, bounds.ubx, lam_x, np.abs(x), np.ones(x.size)),
        (g, bounds.lbg, bounds.ubg, lam_g, sizes, steepest),
    ):
        # λ > 0 acts at the upper bound, λ < 0 at the lower one; equations are left to feasibility.
        lam = np.where(lower < upper, multipliers, 0.0)
        distance = np.abs(np.where(lam > 0, upper, lower) - value)
        if not plain:
            distance = counted_distance(distance, size, np.abs(lam) * steep, gradient)
        distance = np.where(np.isinf(distance), 1.0, distance)  # no bound: the size of λ counts
        slackness = max(slackness, largest(lam * distance))
    feasibility = max(largest(violation_x), largest(violation_g))
    return Residuals(feasibility, largest(slope), slackness)
