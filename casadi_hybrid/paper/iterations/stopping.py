"""Stopping tests: small functions of the progress, asked in order before each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from casadi_hybrid.paper.law import Correction, State
from casadi_hybrid.problem.point.residuals import Residuals, Tolerances
from casadi_hybrid.solver.record.history import Progress
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.status import StopReason


@dataclass(frozen=True, eq=False)
class IterationProgress(Progress):
    """The progress before step t: the state, the functions there, the step that led there.

    Attributes:
        state: the iteration's state.
        at: the iteration's own record of the problem's functions at x.
        correction: what the last step used; None before the first and for plain baselines.
    """

    state: State
    at: Any
    correction: Correction | None

    @classmethod
    def of(
        cls,
        state: State,
        at: Any,
        residuals: Residuals,
        correction: Correction | None,
        elapsed: float,
    ) -> Self:
        """The progress at a state."""
        return cls(
            t=state.t,
            x=state.x,
            f=float(at.f),
            g=at.h,
            multipliers=state.multipliers,
            residuals=residuals,
            elapsed=elapsed,
            state=state,
            at=at,
            correction=correction,
        )


IterationTest = Callable[[IterationProgress], StopReason | None]


@dataclass(frozen=True, slots=True)
class KKTTest:
    """Stop when both KKT residuals are within tolerance."""

    tolerances: Tolerances

    def __call__(self, progress: IterationProgress) -> StopReason | None:
        """Return CONVERGED or None."""
        solved = self.tolerances.merit(progress.residuals) <= 1
        return StopReason.CONVERGED if solved else None


@dataclass(frozen=True, slots=True)
class DivergenceTest:
    """Stop when ‖x‖_∞ or ‖μ‖_∞/max(1, ‖∇f‖_∞) exceeds ``limit``.

    A large x with a very negative objective and small violation is an unbounded problem, and so
    is an objective below −1e10·limit at a feasible point; large multipliers at a bounded x mean
    that no multipliers exist where the iterates lead.
    """

    limit: float

    def __call__(self, progress: IterationProgress) -> StopReason | None:
        """Return DIVERGED, UNBOUNDED, NO_MULTIPLIERS or None."""
        state = progress.state
        if progress.at.f < -1e10 * self.limit and progress.residuals.feasibility <= 1e-6:
            return StopReason.UNBOUNDED
        if float(np.abs(state.x).max()) <= self.limit:
            slope = max(1.0, float(np.abs(progress.at.gradient).max()))
            bounded = float(np.abs(state.mu).max()) <= self.limit * slope
            settled = progress.residuals.feasibility <= 1e-6
            grown = StopReason.NO_MULTIPLIERS if settled else StopReason.DIVERGED
            return None if bounded else grown
        feasible = progress.residuals.feasibility <= 1e-6 * (1.0 + float(np.abs(state.x).max()))
        low = progress.at.f < -1e-3 * self.limit
        return StopReason.UNBOUNDED if feasible and low else StopReason.DIVERGED


@dataclass(frozen=True, slots=True)
class LimitTest:
    """Stop after ``max_iter`` steps or ``max_time`` seconds."""

    max_iter: int
    max_time: float

    def __call__(self, progress: IterationProgress) -> StopReason | None:
        """Return ITERATION_LIMIT, TIME_LIMIT or None."""
        if progress.state.t >= self.max_iter:
            return StopReason.ITERATION_LIMIT
        return StopReason.TIME_LIMIT if progress.elapsed >= self.max_time else None


@dataclass(frozen=True, slots=True)
class CallbackTest:
    """Stop when the user's function of the progress returns True."""

    callback: Callable[[IterationProgress], bool | None]

    def __call__(self, progress: IterationProgress) -> StopReason | None:
        """Return STOPPED_BY_USER or None."""
        return StopReason.STOPPED_BY_USER if self.callback(progress) else None


@dataclass(frozen=True, eq=False)
class DistanceTest:
    """Stop when ‖x − x*‖₂ ≤ ``radius``, for studies in which x* is known."""

    target: Vector
    radius: float

    def __call__(self, progress: Progress) -> StopReason | None:
        """Return TARGET_REACHED or None."""
        near = float(np.linalg.norm(progress.x - self.target)) <= self.radius
        return StopReason.TARGET_REACHED if near else None
