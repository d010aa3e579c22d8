"""KKT residuals of a point, their tolerances, and what rounding excuses in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.basics.inputs import Vector, positive

ROUNDING = 100.0 * float(np.finfo(float).eps)
"""What rounding may leave of a sum, relative to the sizes of the terms that cancel in it."""
ROOM = 4.0 * float(np.finfo(float).eps)
"""The same of a distance between two numbers, relative to them: the core's HYBRID_FORM_ROOM."""
EXACT = 1e-11
"""What is rounding of a Newton step, relative to 1 + |x|: the core's HYBRID_EXACT."""
_NEGLIGIBLE = 1e-9
PULL = 1000.0
_CONSTANT = 1e-2


def beyond_rounding(entries: Vector, sizes: Vector, rounding: float = ROUNDING) -> Vector:
    """The entries of a residual, zero where rounding explains them: |r_i| ≤ ``rounding``·size_i.

    An absolute tolerance alone asks for the impossible where large terms cancel: of two numbers
    near 1e12 the difference is known to 1e-4. Solver and verifiers count residuals by this rule;
    it matters only where terms exceed 4e7 times the tolerance of 1e-6. A size is the sum of the
    absolute values of an entry's terms. What is not finite has no excuse.
    """
    explained = (np.abs(entries) <= rounding * sizes) & np.isfinite(sizes)
    return np.where(explained, 0.0, entries)


def counted(entries: Vector, sizes: Vector) -> Vector:
    """The same, but rounding below 1e-9 is no excuse.

    It is far below every tolerance, and whoever asks for less wants to see the numbers.
    """
    return beyond_rounding(entries, np.where(ROUNDING * sizes > _NEGLIGIBLE, sizes, 0.0))


def counted_violation(violation: Vector, sizes: Vector) -> Vector:
    """The violations of equations or rows that count: rounding excuses 1e-2 of them at most.

    Very far out it would excuse any constant.
    """
    return counted(violation, np.minimum(sizes, _CONSTANT / ROUNDING))


def counted_slope(slope: Vector, gradient: Vector, pulls: Vector, inner: float = 0.0) -> Vector:
    """The entries of ∇f + Aᵀλ that count; ``pulls`` are |A|ᵀ|λ|.

    Multipliers may excuse a residual only as far as ∇f asks for them, a thousand times its size:
    where constraints degenerate they grow without bound, and ∇f itself would drown in rounding.
    Beyond that an entry is no smaller than the rounding of its multiplier terms.

    Args:
        inner: the largest terms of ∇f itself, as |∇²L||x|. They excuse something only at a settled
            point: the Newton step on the active set is at most 1e-11·(1 + ‖x‖_∞), and in each entry
            the tolerance times 1 + |x_j|.
    """
    limit = PULL * float(np.abs(gradient).max(initial=0.0))
    found = counted(slope, np.minimum(np.abs(gradient) + pulls, limit) + inner)
    hidden = np.where(pulls <= limit, 0.0, ROOM * pulls)
    return np.where(np.abs(found) < hidden, hidden, found)


def counted_distance(distance: Vector, sizes: Vector, pulls: Vector, gradient: Vector) -> Vector:
    """The distances |bound − value| that count in complementarity.

    Args:
        sizes: of each variable, or of the terms of each row: whether a constant stands in a row or
            in its bounds makes no difference.
        pulls: |λ_i| times the largest entry of the row's gradient; see :func:`counted_slope`.
    """
    limit = PULL * float(np.abs(gradient).max(initial=0.0))
    return beyond_rounding(distance, np.where(pulls <= limit, sizes, 0.0), ROOM)


@dataclass(frozen=True, slots=True)
class Residuals:
    """First-order residuals in the infinity norm, unscaled.

    Entries that the rounding of their terms explains count as zero (:func:`counted`).

    Attributes:
        feasibility: ‖h(x)‖_∞, in the units of h.
        stationarity: ‖∇f(x) + J_h(x)ᵀλ‖_∞, in units of f per unit of x.
        complementarity: largest |λ_i|·(distance to its bound); zero without inequalities, but for
            multipliers of equations that exceed a thousand times ∇f: |λ_i h_i|.
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
