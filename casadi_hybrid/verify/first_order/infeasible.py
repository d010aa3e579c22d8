"""Infeasible stationary points: no small step reduces the violation.

With the violated rows' gradients A_V and weights w, x is stationary for the violation if

    A_Vᵀ w + A_Sᵀ ν = 0,   ν with the signs of multipliers,

with S the satisfied rows at their bounds. Solvers minimize different violations, so three are
tried: least squares w = v, least squares of scaled rows, and the sum w = sign(v).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.verify.first_order.fit import fit_signed
from casadi_hybrid.verify.first_order.rows import Measure, Rows, Sides, nearby_sides

STATIONARY = 1e-5


@dataclass(frozen=True, eq=False)
class ViolationSlope:
    """Distance of an infeasible point from being stationary for its violation."""

    kind: str  # "least squares", "scaled least squares" or "sum"
    # ‖A_Vᵀw + A_Sᵀν‖_∞ relative to Σ|w|; scaled: the predicted relative decrease of the violation
    # for a step of relative size one.
    slope: Measure
    # w and ν, one per row: the certificate Aᵀ·weights ≈ 0.
    weights: Vector

    @property
    def stationary(self) -> bool:
        """True if no small step reduces the violation."""
        return self.slope.scaled <= STATIONARY


def violation_slope(rows: Rows, tol: float) -> ViolationSlope:
    """Return the violation closest to stationary; rows violated by more than ``tol`` count."""
    v = np.where(np.abs(rows.violation) > tol, rows.violation, 0.0)
    choices = {
        # Gradients of ½Σv², ½Σ(v/size)² and Σ|v| by v.
        "least squares": v,
        "scaled least squares": v / np.maximum(rows.sizes, 1e-100) ** 2,
        "sum": np.sign(v),
    }
    slopes = [_slope(rows, kind, w, v, tol) for kind, w in choices.items()]
    # Solvers minimize one of the three: the most stationary one counts.
    return min(slopes, key=lambda violation: violation.slope.scaled)


def _slope(rows: Rows, kind: str, weights: Vector, v: Vector, tol: float) -> ViolationSlope:
    sides = nearby_sides(rows, tol)
    held = v[sides.row] == 0.0
    # Violated rows have their weights already; only others get multipliers.
    satisfied = Sides(sides.row[held], sides.sign[held], sides.distance[held])
    # The tolerances of the fit are for weights of size one.
    weights = weights / np.abs(weights).max()
    slope = rows.jacobian.T @ weights
    distances, signed = np.zeros(satisfied.row.size), satisfied.sign != 0
    nu = fit_signed(slope, satisfied.columns(rows), distances, signed)
    weights = weights + satisfied.multipliers(nu, v.size)
    unit = np.maximum(1.0, np.abs(rows.x))
    residual = np.abs(rows.jacobian.T @ weights)
    scale = max(float((unit * rows.pulls(weights)).max()), float(weights @ v))
    worst = int(np.argmax(residual))
    value = float(residual[worst]) / float(np.abs(weights[v != 0]).sum())
    scaled = float((unit * residual).max()) / scale
    return ViolationSlope(kind, Measure(value, scaled, rows.names[worst]), weights)
