"""The abstract class of an iteration, which moves x and μ, and its residuals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.paper.law import Correction, State
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.problem.rounding import counted_slope, counted_violation
from casadi_hybrid.utils.inputs import Vector


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a solve: x_0, λ_0, and x_{−1} for methods with memory (None: x_{−1} = x_0)."""

    x0: Vector
    multipliers: Vector
    x_prev: Vector | None = None

    @property
    def state(self) -> State:
        """State at (x_0, λ_0) with an empty memory."""
        lam = self.multipliers
        return State(self.x0, lam, np.zeros_like(lam), lam)


def residuals_at(at: Evaluation, multipliers: Vector) -> Residuals:
    """Residuals ‖h‖_∞ and ‖∇f + J_hᵀλ‖_∞ beyond rounding, from the functions at x."""
    sizes = np.abs(at.B)
    with np.errstate(over="ignore", invalid="ignore"):
        # Sizes of the summands of h and of ∇ₓL: differences below their rounding count as zero.
        terms_of_h = sizes @ np.abs(at.x) + np.abs(at.h)
        pulls = sizes.T @ np.abs(multipliers)
    h = counted_violation(at.h, terms_of_h)
    slope = counted_slope(at.gradient + at.B.T @ multipliers, at.gradient, pulls)
    return Residuals(float(np.abs(h).max(initial=0.0)), float(np.abs(slope).max()))


class Iteration(ABC):
    """A method for min f s.t. h = 0: immutable configuration with pure functions of the state.

    A subclass is a method of :class:`~casadi_hybrid.Solver`. The loop, the stopping tests, the log
    and the result read nothing but these members, all of a
    :class:`~casadi_hybrid.paper.law.State` but ``memory`` and ``carry``, and of an evaluation
    ``x``, ``f``, ``gradient``, ``h`` and ``B``, unscaled.
    """

    label: str = "iteration"
    """Name for tables."""

    @abstractmethod
    def init(self, oracle: Oracle, start: Start) -> State:
        """Return the first state."""

    @abstractmethod
    def evaluate(self, oracle: Oracle, state: State) -> Evaluation:
        """Evaluate all functions that a step from this state needs."""

    @abstractmethod
    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, Correction | None]:
        """Return the next state and the correction of the step, None without one."""

    def residuals(self, state: State, at: Evaluation) -> Residuals:
        """KKT residuals in the user's units: ‖h‖_∞ and ‖∇f + J_hᵀπ‖_∞."""
        return residuals_at(at, state.multipliers)
