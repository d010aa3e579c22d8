"""Plain gradient descent–ascent on the Lagrangian (Arrow, Hurwicz and Uzawa, 1958)."""

from __future__ import annotations

from dataclasses import dataclass

from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.iterations.base import FirstOrder, moved
from casadi_hybrid.law import State
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle


@dataclass(frozen=True)
class GradientDescentAscent(FirstOrder):
    """x⁺ = x − η_x(g + Bᵀμ), μ⁺ = μ + η_d h, both from the same (x_t, μ_t).

    It has no cure for rotation: near a saddle point with little primal curvature it spirals out.
    The alternating form, μ first, is the hybrid iteration with C = Ω = 0.
    """

    eta_x: float = 0.05
    eta_d: float = 0.05
    label: str = "GDA"

    def __post_init__(self) -> None:
        positive(self.eta_x, "eta_x")
        positive(self.eta_d, "eta_d")

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take one simultaneous step."""
        x = state.x - self.eta_x * (at.gradient + at.B.T @ state.mu)
        return moved(state, x, state.mu + self.eta_d * at.h), None
