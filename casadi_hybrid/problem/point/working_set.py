"""The active bounds at a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.utils.inputs import Vector

Sides = NDArray[np.int8]
LOWER, UPPER, EQUAL = -1, 1, 2
_HUGE = 1e100


@dataclass(frozen=True, eq=False, slots=True)
class WorkingSet:
    """Active bounds by side: −1 lower, 1 upper, 2 equal bounds, 0 inactive or infinite."""

    x: Sides  # of the n variables
    g: Sides  # of the m constraints

    def __post_init__(self) -> None:
        for sides in (self.x, self.g):
            sides.setflags(write=False)

    def __str__(self) -> str:
        counts = [
            f"{label}: {np.sum(s == LOWER)} lower, {np.sum(s == UPPER)} upper, "
            f"{np.sum(s == EQUAL)} equal of {s.size}"
            for label, s in (("x", self.x), ("g", self.g))
        ]
        return "; ".join(counts)


def active_sides(
    value: Vector, lower: Vector, upper: Vector, lam: Vector, near: float = 0.0
) -> Sides:
    """Sides of the active bounds, by complementarity."""
    below, above = value - lower, upper - value
    # The cap keeps an infinite bound inactive: near·size must be neither infinite nor NaN.
    size_l = np.minimum(np.maximum(1.0, np.abs(lower)), _HUGE)
    size_u = np.minimum(np.maximum(1.0, np.abs(upper)), _HUGE)
    # Active: the multiplier exceeds the distance; at a solution one of them is zero up to the
    # tolerance. Or the distance is at most near, and the sign of λ not the opposite one.
    # λ > 0 acts at the upper bound, λ < 0 at the lower one.
    at_lower = (-lam > below) | ((below <= near * size_l) & (lam <= 0.0))
    at_upper = ((lam > above) | ((above <= near * size_u) & (lam >= 0.0))) & ~at_lower
    sides = at_upper.astype(np.int8) - at_lower.astype(np.int8)
    sides += (lower == upper) * (EQUAL - sides)
    return sides
