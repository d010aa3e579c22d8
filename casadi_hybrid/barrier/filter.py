"""The filter of Wächter and Biegler: progress in θ = ‖c‖₁ or in the barrier function φ_ν."""

from __future__ import annotations

from dataclasses import dataclass

_MOST, _LEAST = 1e4, 1e-4  # of theta at the start, or of one


@dataclass(frozen=True, slots=True)
class Filter:
    """Pairs (θ, φ); a trial point must be better than each of them in one of the two."""

    theta_start: float
    entries: tuple[tuple[float, float], ...] = ()

    @classmethod
    def start(cls, theta: float) -> Filter:
        """An empty filter; θ of the first point sets its scale."""
        return cls(theta)

    @property
    def theta_max(self) -> float:
        """Violation no trial point may exceed."""
        return _MOST * max(1.0, self.theta_start)

    @property
    def theta_min(self) -> float:
        """Violation below which the barrier function has to decrease."""
        return _LEAST * max(1.0, self.theta_start)

    def blocks(self, theta: float, phi: float, reach: float = 1.0) -> bool:
        """Whether (θ, φ) is refused; far out θ_max grows by ``reach`` = ‖w‖_∞^½."""
        return theta > self.theta_max * max(1.0, reach) or any(
            theta >= a and phi >= b for a, b in self.entries
        )
