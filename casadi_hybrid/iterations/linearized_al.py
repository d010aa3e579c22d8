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
    """x⁺ = x − η(g + Bᵀ(μ + c h)), μ⁺ = μ + σ h(x⁺).

    One gradient step on the augmented Lagrangian with penalty c, then a multiplier step. The
    method of multipliers (Hestenes, 1969; Powell, 1969), whose form this is with the inner
    minimization replaced, has σ = c.

    Args:
        eta: η.
        penalty: c.
        dual_step: σ; η where None.
    """

    eta: float = 0.05
    penalty: float = 1.0
    dual_step: float | None = None
    label: str = "Lin. AL"

    def __post_init__(self) -> None:
        positive(self.eta, "eta")
        positive(self.penalty, "penalty", allow_zero=True)
        if self.dual_step is not None:
            positive(self.dual_step, "dual_step")

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take one primal step, then one multiplier step at the new point."""
        force = at.gradient + at.B.T @ (state.mu + self.penalty * at.h)
        x = state.x - self.eta * force
        sigma = self.eta if self.dual_step is None else self.dual_step
        return moved(state, x, state.mu + sigma * oracle.residual(x)), None
