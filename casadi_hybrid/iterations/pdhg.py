"""A nonlinear primal–dual hybrid gradient step (after Chambolle and Pock, 2011)."""

from __future__ import annotations

from dataclasses import dataclass

from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.iterations.base import FirstOrder, moved
from casadi_hybrid.law import State
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle


@dataclass(frozen=True)
class PrimalDualHybridGradient(FirstOrder):
    """x⁺ = x − τ(g + Bᵀμ), μ⁺ = μ + σ h(2x⁺ − x): primal first, with extrapolation.

    A first-order analogue for nonlinear h, not the exact convex method. For linear h the
    dual-first form, which extrapolates along x_t − x_{t−1}, is the hybrid law with C = σI, Ω = 0
    and η_d = σ.
    """

    tau: float = 0.05
    sigma: float = 20.0
    label: str = "PDHG"

    def __post_init__(self) -> None:
        positive(self.tau, "tau")
        positive(self.sigma, "sigma")

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take one primal step, then one extrapolated dual step."""
        x = state.x - self.tau * (at.gradient + at.B.T @ state.mu)
        mu = state.mu + self.sigma * oracle.residual(2 * x - state.x)
        return moved(state, x, mu), None
