"""KKT residuals of a point, and their tolerances."""

from __future__ import annotations

from dataclasses import dataclass

from casadi_hybrid.utils.inputs import positive


@dataclass(frozen=True, slots=True)
class Residuals:
    """Unscaled first-order residuals in the infinity norm.

    Entries that the rounding of their terms explains count as zero
    (:func:`~casadi_hybrid.problem.rounding.counted`).

    Attributes:
        feasibility: ‖h(x)‖_∞, in the units of h.
        stationarity: ‖∇f(x) + J_h(x)ᵀλ‖_∞, in units of f per unit of x.
        complementarity: largest |λ_i|·(distance to its bound). An equation contributes |λ_i h_i| if
            its multiplier exceeds a thousand times ∇f, else zero.
    """

    feasibility: float
    stationarity: float
    complementarity: float = 0.0


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Absolute tolerances of the unscaled residuals."""

    feasibility: float = 1e-8
    stationarity: float = 1e-8
    complementarity: float = 1e-8

    def __post_init__(self) -> None:
        positive(self.feasibility, "tol_feasibility")
        positive(self.stationarity, "tol_stationarity")
        positive(self.complementarity, "tol_complementarity")

    def merit(self, residuals: Residuals) -> float:
        """Largest ratio of a residual to its tolerance: ≤ 1 at a KKT point."""
        return max(
            residuals.feasibility / self.feasibility,
            residuals.stationarity / self.stationarity,
            residuals.complementarity / self.complementarity,
        )
