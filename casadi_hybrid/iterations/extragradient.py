"""The extragradient method (Korpelevich, 1976)."""

from __future__ import annotations

from dataclasses import dataclass

from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.iterations.base import FirstOrder, moved
from casadi_hybrid.law import State
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle


@dataclass(frozen=True)
class Extragradient(FirstOrder):
    """z̃ = z − ηF(z), z⁺ = z − ηF(z̃) for the saddle operator F = (∇f + Bᵀμ, −h).

    Two evaluations of the problem's functions a step.
    """

    eta: float = 0.05
    label: str = "EG"

    def __post_init__(self) -> None:
        positive(self.eta, "eta")

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take one extragradient step."""
        x_mid = state.x - self.eta * (at.gradient + at.B.T @ state.mu)
        mu_mid = state.mu + self.eta * at.h
        mid = oracle.first(x_mid)
        x = state.x - self.eta * (mid.gradient + mid.B.T @ mu_mid)
        return moved(state, x, state.mu + self.eta * mid.h), None
