"""Progress of an iteration, and the stopping tests before each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from casadi_hybrid.paper.law import Correction, State
from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.solver.record.history import Progress
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.status import StopReason


@dataclass(frozen=True, eq=False)
class IterationProgress(Progress):
    """The progress before step t: the state, the functions there, and the last correction.

    Attributes:
        state: the iteration's state.
        at: the iteration's own record of the problem's functions at x.
        correction: correction of the last step; None before the first and for plain baselines.
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
        correction: Correction | None = None,
        elapsed: float = 0.0,
    ) -> Self:
        """Return the progress at a state."""
        f, multipliers = float(at.f), state.multipliers
        where = (state.t, state.x, f, at.h, multipliers, residuals, elapsed)
        return cls(*where, state, at, correction)


IterationTest = Callable[[IterationProgress], StopReason | None]


def diverged(progress: IterationProgress, limit: float) -> StopReason | None:
    """Return a reason to stop if ‖x‖_∞ or ‖μ‖_∞/max(1, ‖∇f‖_∞) exceeds ``limit``, else None."""
    f, feasibility = progress.at.f, progress.residuals.feasibility
    # A very negative objective at a feasible point, whatever the size of x.
    if f < -1e10 * limit and feasibility <= 1e-6:
        return StopReason.UNBOUNDED
    size = float(np.abs(progress.x).max())
    if size > limit:
        # Along a ray to infinity the violation is judged relative to x.
        unbounded = feasibility <= 1e-6 * (1.0 + size) and f < -1e-3 * limit
        return StopReason.UNBOUNDED if unbounded else StopReason.DIVERGED
    # Multipliers have the units of ∇f over h: their size is judged by ‖∇f‖.
    slope = max(1.0, float(np.abs(progress.at.gradient).max()))
    if float(np.abs(progress.state.mu).max()) <= limit * slope:
        return None
    # Large multipliers at a bounded x: none exist at the limit point.
    return StopReason.NO_MULTIPLIERS if feasibility <= 1e-6 else StopReason.DIVERGED


@dataclass(frozen=True, eq=False)
class DistanceTest:
    """Stop when ‖x − x*‖₂ ≤ ``radius``, for studies in which x* is known."""

    target: Vector
    radius: float

    def __call__(self, progress: Progress) -> StopReason | None:
        """Return TARGET_REACHED or None."""
        near = float(np.linalg.norm(progress.x - self.target)) <= self.radius
        return StopReason.TARGET_REACHED if near else None
