"""The rule by which solver and verifier ignore residuals that rounding explains.

An absolute tolerance cannot be met where large terms cancel: the difference of two numbers near
1e12 is known to 1e-4. The rule matters only if terms exceed 4e7 times the tolerance of 1e-6.
"""

from __future__ import annotations

import numpy as np

from casadi_hybrid.utils.core_constants import CORE
from casadi_hybrid.utils.inputs import Vector

# Rounding error of a sum, relative to the sizes of its terms.
ROUNDING = CORE["HYBRID_RESIDUALS_ROUNDING"]
# Rounding of the distance between two numbers, relative to them.
ROOM = CORE["HYBRID_FORM_ROOM"]
# Largest size of a multiplier term, relative to ‖∇f‖_∞, that excuses a residual.
PULL = CORE["HYBRID_ROUNDING_LAM_MAX"]
# Rounding errors below this are not excused; the largest violation that is.
_NEGLIGIBLE = CORE["HYBRID_ROUNDING_TINY"]
_CONSTANT = CORE["HYBRID_ROUNDING_CAP"]


def violations(value: Vector, lower: Vector, upper: Vector) -> Vector:
    """Return the signed distances outside the bounds: negative below, positive above, else zero."""
    return np.maximum(value - upper, 0.0) - np.maximum(lower - value, 0.0)


def beyond_rounding(entries: Vector, sizes: Vector, rounding: float = ROUNDING) -> Vector:
    """Return the entries, with zeros where |entry| ≤ ``rounding``·size.

    A size is the sum of the absolute values of an entry's terms. Entries that are not finite, or
    have no finite size, are never zeroed.
    """
    explained = (np.abs(entries) <= rounding * sizes) & np.isfinite(sizes)
    return np.where(explained, 0.0, entries)


def counted(entries: Vector, sizes: Vector) -> Vector:
    """Return the entries beyond rounding; rounding errors below 1e-9 are not excused."""
    # They lie below every usual tolerance; a smaller tolerance asks for the true residuals.
    return beyond_rounding(entries, np.where(ROUNDING * sizes > _NEGLIGIBLE, sizes, 0.0))


def counted_violation(violation: Vector, sizes: Vector) -> Vector:
    """Return the violations of equations or rows beyond rounding."""
    # At most 1e-2 is excused: at very large x rounding would excuse any constant.
    return counted(violation, np.minimum(sizes, _CONSTANT / ROUNDING))


def counted_slope(slope: Vector, gradient: Vector, pulls: Vector, inner: float = 0.0) -> Vector:
    """Return the entries of ∇f + Aᵀλ beyond rounding; ``pulls`` are |A|ᵀ|λ|."""
    # At degenerate constraints multipliers grow without bound and would hide ∇f. So they excuse a
    # residual only up to a thousand times the size of ∇f.
    limit = PULL * float(np.abs(gradient).max(initial=0.0))
    # The terms of ∇f itself, inner = |∇²L||x|, count only at a settled point. There the Newton step
    # on the active set is at most 1e-11·(1 + ‖x‖_∞), and in each entry the tolerance times 1 +
    # |x_j|.
    entries = counted(slope, np.minimum(np.abs(gradient) + pulls, limit) + inner)
    # Beyond the limit an entry is no smaller than the rounding of its multiplier terms.
    hidden = np.where(pulls <= limit, 0.0, ROOM * pulls)
    return np.where(np.abs(entries) < hidden, hidden, entries)


def counted_distance(distance: Vector, sizes: Vector, pulls: Vector, gradient: Vector) -> Vector:
    """Return the distances |bound − value| beyond rounding, for complementarity."""
    # The pulls are |λ_i| times the largest entry of the gradient of row i, limited as in
    # counted_slope(). A constant added to a row and to its bounds has no effect on sizes.
    limit = PULL * float(np.abs(gradient).max(initial=0.0))
    return beyond_rounding(distance, np.where(pulls <= limit, sizes, 0.0), ROOM)
