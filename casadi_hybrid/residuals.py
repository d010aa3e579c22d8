"""KKT residuals of an equality-constrained point, and the verdict they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.functions import Evaluation
from casadi_hybrid.inputs import Vector, positive
from casadi_hybrid.status import PointStatus

ROUNDING = 100.0 * float(np.finfo(float).eps)
"""What rounding may leave of a sum, relative to the sizes of the terms that cancel in it."""
HALF_DIGIT = 2.0 * float(np.finfo(float).eps)
"""The same of a distance between two given numbers, relative to their size."""


def beyond_rounding(entries: Vector, sizes: Vector, rounding: float = ROUNDING) -> Vector:
    """The entries of a residual, zero where rounding explains them: |r_i| ≤ ``rounding``·size_i.

    An absolute tolerance alone asks for the impossible where large terms cancel: of two numbers
    near 1e12 the difference is known to 1e-4. Solver and verifiers count residuals by this rule;
    it matters only where terms exceed 4e7 times the tolerance of 1e-6. What is not finite has no
    excuse, nor has a residual whose terms are not.

    Args:
        entries: of one residual.
        sizes: the sums of the absolute values of the terms of each.
        rounding: the part of the size that counts as nothing.
    """
    explained = (np.abs(entries) <= rounding * sizes) & np.isfinite(sizes)
    return np.where(explained, 0.0, entries)


@dataclass(frozen=True, slots=True)
class Residuals:
    """First-order residuals in the infinity norm, unscaled.

    Entries that the rounding of their terms explains count as zero (:func:`beyond_rounding`).

    Attributes:
        feasibility: ‖h(x)‖_∞, in the units of h.
        stationarity: ‖∇f(x) + J_h(x)ᵀλ‖_∞, in units of f per unit of x.
        complementarity: largest |λ_i|·(distance to its bound); zero without inequalities.
    """

    feasibility: float
    stationarity: float
    complementarity: float = 0.0


@dataclass(frozen=True, slots=True)
class Tolerances:
    """What counts as zero. Both are absolute and apply to the unscaled residuals."""

    feasibility: float = 1e-8
    stationarity: float = 1e-8
    complementarity: float = 1e-8

    def __post_init__(self) -> None:
        positive(self.feasibility, "tol_feasibility")
        positive(self.stationarity, "tol_stationarity")
        positive(self.complementarity, "tol_complementarity")

    def merit(self, residuals: Residuals) -> float:
        """The larger residual in units of its tolerance: ≤ 1 at a KKT point."""
        return max(
            residuals.feasibility / self.feasibility,
            residuals.stationarity / self.stationarity,
            residuals.complementarity / self.complementarity,
        )


def residuals_at(at: Evaluation, multipliers: Vector) -> Residuals:
    """Residuals of (x, λ) from the problem's functions at x."""
    h, slope = counted(at, multipliers)
    return Residuals(float(np.abs(h).max(initial=0.0)), float(np.abs(slope).max()))


def counted(at: Evaluation, multipliers: Vector) -> tuple[Vector, Vector]:
    """h and ∇f + J_hᵀλ without what rounding explains; the terms of h have sizes |J_h||x| + |h|."""
    sizes = np.abs(at.B)
    with np.errstate(over="ignore", invalid="ignore"):
        of_h = sizes @ np.abs(at.x) + np.abs(at.h)
        of_slope = np.abs(at.gradient) + sizes.T @ np.abs(multipliers)
    slope = at.gradient + at.B.T @ multipliers
    return beyond_rounding(at.h, of_h), beyond_rounding(slope, of_slope)


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
    largest = float(np.abs(at.B).max())
    if largest == 0.0:
        return True
    # Scaled to entries of size one: squares of large numbers overflow.
    B, h = at.B / largest, at.h / max(float(np.abs(at.h).max()), 1e-300)
    slope = max(tolerance * float(np.linalg.norm(B)), 1e-9 / largest)
    return float(np.linalg.norm(B.T @ h)) <= slope * float(np.linalg.norm(h))
