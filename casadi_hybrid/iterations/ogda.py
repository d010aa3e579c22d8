"""Optimistic gradient descent–ascent (Popov, 1980; Daskalakis et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.iterations.base import FirstOrder, Start, moved
from casadi_hybrid.law import State
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle


@dataclass(frozen=True)
class OptimisticGradient(FirstOrder):
    """z⁺ = z − η(2F(z_t) − F(z_{t−1})) for the saddle operator F = (∇f + Bᵀμ, −h).

    Its dual half is the hybrid law's with C_opt = ηI and η_d = η; its primal half remembers the
    previous gradient too, which the law does not. F(z_{−1}) = F(z_0) at the start unless x_{−1}
    is given (μ_{−1} = μ_0).
    """

    eta: float = 0.05
    label: str = "OGDA"

    def __post_init__(self) -> None:
        positive(self.eta, "eta")

    def init(self, oracle: Oracle, start: Start) -> State:
        """Start with F(z_{−1})."""
        at = oracle.first(start.x0 if start.x_prev is None else start.x_prev)
        state = super().init(oracle, start)
        carry = (at.gradient + at.B.T @ state.mu, at.h)
        return State(state.x, state.mu, state.memory, state.effective, 0, carry)

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take one optimistic step."""
        force = at.gradient + at.B.T @ state.mu
        force_before, h_before = state.carry
        x = state.x - self.eta * (2 * force - force_before)
        mu = state.mu + self.eta * (2 * at.h - h_before)
        return moved(state, x, mu, (force, at.h)), None
