"""The hybrid iteration: the law of :mod:`casadi_hybrid.paper.law` with a rule for M_t."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from casadi_hybrid.paper.iterations.base import Iteration, Start
from casadi_hybrid.paper.law import Correction, State, advance
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.utils.inputs import is_callable, one_of


class Rule(Protocol):
    """Choice of C_aug, C_opt and the steps at an iterate."""

    @property
    def needs_hessian(self) -> bool:
        """True if ``decide`` reads ``at.hessian``."""

    def decide(self, at: Evaluation, t: int) -> Correction:
        """Return the correction for iteration t."""


@dataclass(frozen=True)
class Hybrid(Iteration):
    """μ⁺ = μ + v_t + C_opt,t h_t − C_opt,t−1 h_{t−1};  x⁺ = x − P_t[g + Bᵀ(μ⁺ + C_aug,t h_t)].

    Args:
        rule: chooses C_aug,t, C_opt,t and the steps.
        label: name for tables.
        hessian_at: multipliers of H: ``"memory_free"``, π_t, which no split can change;
            ``"printed"``, μ_t, as Algorithm 1 is printed: the trajectory depends on the split.
        dual_start: meaning of the given λ_0. ``"memory_free"``: π_0, with an empty memory, so all
            splits start alike. ``"effective"``: ν_0 = μ_0 + C_aug h_{−1}, as in the paper's
            theorems. ``"multipliers"``: μ_0, as Algorithm 1 is printed, hence unmatched. The last
            two need h_{−1} and C_opt,−1, which the paper leaves open: h(x_{−1}), or h_0, and the
            rule's choice at (x_0, λ_0).
        memory: ``"telescoped"`` (the law), or, to show that it matters, ``"untelescoped"``,
            C_opt,t(h_t − h_{t−1}), which is the same for a constant C_opt only.
        disturb: noise, (t, evaluation) → evaluation, applied to the step's evaluation, never to
            the residuals of the stopping tests; t = −1 for the start's h_{−1}.
    """

    rule: Rule
    label: str = "hybrid"
    hessian_at: str = "memory_free"
    dual_start: str = "memory_free"
    memory: str = "telescoped"
    disturb: Callable[[int, Evaluation], Evaluation] | None = None

    def __post_init__(self) -> None:
        one_of(self.hessian_at, "hessian_at", ("memory_free", "printed"))
        one_of(self.dual_start, "dual_start", ("memory_free", "effective", "multipliers"))
        one_of(self.memory, "memory", ("telescoped", "untelescoped"))
        if self.disturb is not None:
            is_callable(self.disturb, "disturb")

    def init(self, oracle: Oracle, start: Start) -> State:
        """Return (x_0, μ_0) and the memory C_opt,−1 h_{−1} for the chosen reading of λ_0."""
        state = start.state
        if self.dual_start == "memory_free" and self.memory == "telescoped":
            return state
        at = self.evaluate(oracle, state)
        before = at if start.x_prev is None else oracle.first(start.x_prev)
        h_prev = self._seen(-1, before).measured
        # The paper leaves C_opt,−1 open: the rule's choice at the start.
        chosen = self.rule.decide(at, 0)
        augmented, memory = chosen.C_aug @ h_prev, chosen.C_opt @ h_prev
        # μ_0 from π_0 = μ_0 − C_opt h_{−1} or ν_0 = μ_0 + C_aug h_{−1}.
        mu = start.multipliers
        if self.dual_start == "memory_free":
            mu = mu + memory
        elif self.dual_start == "effective":
            mu = mu - augmented
        return State(start.x0, mu, memory, mu + augmented, 0, (h_prev,))

    def evaluate(self, oracle: Oracle, state: State) -> Evaluation:
        """Evaluate at x_t, with the H of the problem's ``Derivatives`` if the rule needs it."""
        if not self.rule.needs_hessian:
            return oracle.first(state.x)
        at_mu = self.hessian_at == "printed"
        return oracle.curved(state.x, state.mu if at_mu else state.multipliers)

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, Correction]:
        """Ask the rule and take one step of the law."""
        correction = self.rule.decide(at, state.t)
        memory = state.memory
        if self.memory == "untelescoped":  # C_opt,t h_{t−1} in place of C_opt,t−1 h_{t−1}
            memory = correction.C_opt @ state.carry[0]
        return advance(state, self._seen(state.t, at), correction, memory), correction

    def _seen(self, t: int, at: Evaluation) -> Evaluation:
        return at if self.disturb is None else self.disturb(t, at)
