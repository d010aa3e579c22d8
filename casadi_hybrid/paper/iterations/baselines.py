"""The baselines: first-order methods that need f, ∇f, h and B only, all from one start (x_0, μ_0).

F = (∇f + Bᵀμ, −h) is the saddle operator at z = (x, μ). The authors are cited for the form alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from casadi_hybrid.paper.iterations.base import Iteration, Start
from casadi_hybrid.paper.law import State
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.utils.inputs import Vector, positive


class _Baseline(Iteration):
    def __post_init__(self) -> None:
        for name in ("eta", "eta_x", "eta_d", "tau", "sigma"):
            if hasattr(self, name):
                positive(getattr(self, name), name)

    def init(self, oracle: Oracle, start: Start) -> State:
        """Start at (x_0, λ_0) with an empty memory."""
        return start.state

    def evaluate(self, oracle: Oracle, state: State) -> Evaluation:
        """Evaluate f, ∇f, h, B at x_t."""
        return oracle.first(state.x)

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, None]:
        """Take one step; there is no correction, so π = ν = μ."""
        # Without an optimistic memory π, μ and ν are one vector.
        x, mu, *carry = self._next(oracle, state, at)
        return State(x, mu, state.memory, mu, state.t + 1, tuple(carry)), None

    def _next(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[Vector, ...]:
        """Return x_{t+1}, μ_{t+1} and the method's memory."""
        raise NotImplementedError


def _force(at: Evaluation, mu: Vector) -> Vector:
    """∇ₓL = ∇f + Bᵀμ."""
    return at.gradient + at.B.T @ mu


@dataclass(frozen=True)
class GradientDescentAscent(_Baseline):
    """x⁺ = x − η_x(∇f + Bᵀμ), μ⁺ = μ + η_d h, both from (x_t, μ_t) (Arrow, Hurwicz, Uzawa, 1958).

    The alternating form, μ first, is the hybrid iteration with C_aug = C_opt = 0.
    """

    eta_x: float = 0.05
    eta_d: float = 0.05
    label: str = "GDA"

    def _next(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[Vector, ...]:
        return state.x - self.eta_x * _force(at, state.mu), state.mu + self.eta_d * at.h


@dataclass(frozen=True)
class OptimisticGradient(_Baseline):
    """z⁺ = z − η(2F(z_t) − F(z_{t−1})) (Popov, 1980; Daskalakis et al., 2018).

    Its dual half is the hybrid law's with C_opt = ηI and η_d = η; its primal half remembers the
    previous gradient too, which the law does not. F(z_{−1}) = F(z_0) at the start unless x_{−1}
    is given (μ_{−1} = μ_0).
    """

    eta: float = 0.05
    label: str = "OGDA"

    def init(self, oracle: Oracle, start: Start) -> State:
        """Start with F(z_{−1})."""
        before = oracle.first(start.x0 if start.x_prev is None else start.x_prev)
        return replace(start.state, carry=(_force(before, start.multipliers), before.h))

    def _next(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[Vector, ...]:
        # −F's dual part is h: the sign of descent in x and ascent in μ.
        force, (force_before, h_before) = _force(at, state.mu), state.carry
        x = state.x - self.eta * (2 * force - force_before)
        return x, state.mu + self.eta * (2 * at.h - h_before), force, at.h


@dataclass(frozen=True)
class Extragradient(_Baseline):
    """z̃ = z − ηF(z), z⁺ = z − ηF(z̃) (Korpelevich, 1976): two evaluations a step."""

    eta: float = 0.05
    label: str = "EG"

    def _next(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[Vector, ...]:
        # z̃ has its own gradient and Jacobian, hence the second evaluation.
        middle = oracle.first(state.x - self.eta * _force(at, state.mu))
        x = state.x - self.eta * _force(middle, state.mu + self.eta * at.h)
        return x, state.mu + self.eta * middle.h


@dataclass(frozen=True)
class PrimalDualHybridGradient(_Baseline):
    """x⁺ = x − τ(∇f + Bᵀμ), μ⁺ = μ + σ h(2x⁺ − x) (after Chambolle and Pock, 2011).

    An analogue for nonlinear h, not the exact convex method. For linear h the dual-first form,
    which extrapolates along x_t − x_{t−1}, is the hybrid law with C_aug = σI, C_opt = 0, η_d = σ.
    """

    tau: float = 0.05
    sigma: float = 20.0
    label: str = "PDHG"

    def _next(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[Vector, ...]:
        x = state.x - self.tau * _force(at, state.mu)
        return x, state.mu + self.sigma * oracle.residual(2 * x - state.x)


@dataclass(frozen=True)
class LinearizedAugmentedLagrangian(_Baseline):
    """x⁺ = x − η(∇f + Bᵀ(μ + c h)), μ⁺ = μ + s h(x⁺): one gradient step, then one of multipliers.

    The method of multipliers (Hestenes, 1969; Powell, 1969) minimizes over x instead. ``penalty``
    is c ≥ 0, ``dual_step`` s > 0; None is η. Hestenes and Powell take s = c.
    """

    eta: float = 0.05
    penalty: float = 1.0
    dual_step: float | None = None
    label: str = "Lin. AL"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.penalty, "penalty", allow_zero=True)
        if self.dual_step is not None:
            positive(self.dual_step, "dual_step")

    def _next(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[Vector, ...]:
        x = state.x - self.eta * _force(at, state.mu + self.penalty * at.h)
        return x, state.mu + (self.dual_step or self.eta) * oracle.residual(x)
