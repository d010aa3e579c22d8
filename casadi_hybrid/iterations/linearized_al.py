"""The linearized augmented Lagrangian: one gradient step, then a multiplier update."""

from __future__ import annotations

from dataclasses import dataclass

from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.iterations.base import FirstOrder, moved
from casadi_hybrid.law import State
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle


@dataclass(frozen=True)
class LinearizedAugmentedLagrangian(FirstOrder):
    """x⁺ = x − η(g + Bᵀ(μ + c h)), μ⁺ = μ + η h(x⁺).

    One gradient step on the augmented Lagrangian with penalty c, then a multiplier step of the
    same length (Hestenes, 1969; Powell, 1969, with the inner minimization replaced).
    """

    eta: float = 0.05
    penalty: float = 1.0
    label: str = "Lin. AL"

    def __post_init__(self) -> None:
        positive(self.eta, "eta")
        positive(self.penalty, "penalty", allow_zero=True)

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take one primal step, then one multiplier step at the new point."""
        force = at.gradient + at.B.T @ (state.mu + self.penalty * at.h)
        x = state.x - self.eta * force
        return moved(state, x, state.mu + self.eta * oracle.residual(x)), None
