"""What an iteration is: how x and μ move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.iterations.law import Correction, State
from casadi_hybrid.point.residuals import Residuals, residuals_at
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle


@dataclass(frozen=True, slots=True)
class Start:
    """Where a solve begins: x_0, λ_0, and x_{−1} for methods with memory (None: x_{−1} = x_0)."""

    x0: Vector
    multipliers: Vector
    x_prev: Vector | None = None


ITERATION = "label", "init", "evaluate", "step", "residuals"
"""The members of :class:`Iteration`."""


class Iteration(Protocol):
    """A method: immutable configuration with pure functions of the state.

    The loop, the stopping tests, the log and the result read nothing else of it, all of a
    :class:`~casadi_hybrid.iterations.law.State` but ``memory`` and ``carry``, and of an evaluation
    ``x``, ``f``, ``gradient``, ``h`` and ``B``, unscaled: a record with these will do.
    """

    @property
    def label(self) -> str:
        """Name for tables."""

    def init(self, oracle: Oracle, start: Start) -> State:
        """Return the first state."""

    def evaluate(self, oracle: Oracle, state: State) -> Evaluation:
        """Evaluate all that a step from this state needs."""

    def step(self, oracle: Oracle, state: State, at: Evaluation) -> tuple[State, Correction | None]:
        """Return the next state and, where there is one, the correction that was used."""

    def residuals(self, state: State, at: Evaluation) -> Residuals:
        """KKT residuals of the iterate, in the user's units."""


class Equalities:
    """Residuals of min f s.t. h = 0, shared by all methods for it."""

    def residuals(self, state: State, at: Evaluation) -> Residuals:
        """‖h‖_∞ and ‖∇f + J_hᵀπ‖_∞."""
        return residuals_at(at, state.multipliers)
