"""What is kept of a run: distances and the paper's residuals at every step, and when a run ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.law import State
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.stopping import Progress

Array = NDArray[np.float64]

# Below this distance, for so many steps in a row, a run tells nothing new; it ends there. In a row:
# a run may pass by x* while its multipliers are still on their way.
SETTLED = 1e-9
IN_A_ROW = 10


@dataclass
class Course:
    """Watches a run; :meth:`watch` is a callback of the solver, :meth:`ends` a stopping test.

    Args:
        target: x*.
        threshold: the distance that counts as crossed.
        budget: steps of the experiment.
        longest: steps of a run that has crossed within the budget; others end there.

    Attributes:
        distances: ‖x_t − x*‖₂ for t = 0, 1, ….
        feasibility: ‖h(x_t)‖₂.
        stationarity: ‖∇f(x_t) + J_h(x_t)ᵀμ_t‖₂ with the paper's dual variable μ_t, which depends
            on the split.
        effective: the same with ν_t, the dual that the step to x_t used.
        norms: ‖M_t‖₂ of the steps so far, NaN for methods without a design.
    """

    target: Vector
    threshold: float
    budget: int
    longest: int
    distances: list[float] = field(default_factory=list)
    feasibility: list[float] = field(default_factory=list)
    stationarity: list[float] = field(default_factory=list)
    effective: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    crossed: bool = False
    near: int = 0

    def watch(self, progress: Progress) -> None:
        """Take down one iterate."""
        self.take(progress.state, progress.at)
        if progress.correction is not None and len(self.distances) <= self.budget + 1:
            self.norms.append(float(getattr(progress.correction, "norm_M", np.nan)))

    def take(self, state: State, at: Evaluation) -> None:
        """Take down a state and the functions there: the start, of a run that fails at once."""
        distance = float(np.linalg.norm(state.x - self.target))
        self.distances.append(distance)
        self.near = self.near + 1 if distance <= SETTLED else 0
        if len(self.distances) > self.budget + 1:
            return
        self.crossed |= distance <= self.threshold
        self.feasibility.append(float(np.linalg.norm(at.h)))
        for found, dual in ((self.stationarity, state.mu), (self.effective, state.effective)):
            found.append(float(np.linalg.norm(at.gradient + at.B.T @ dual)))

    def ends(self, progress: Progress) -> StopReason | None:
        """End a run that has settled, that was long enough, or has not crossed in the budget."""
        if self.near >= IN_A_ROW:
            return StopReason.TARGET_REACHED
        t = progress.t
        if t >= self.longest or (t == self.budget and not self.crossed):
            return StopReason.ITERATION_LIMIT
        return None


def padded(values: list[float], size: int) -> Array:
    """The first ``size`` values; after the end of a shorter run its last one, NaN without any."""
    found = np.full(size, values[-1] if values else np.nan)
    count = min(size, len(values))
    found[:count] = values[:count]
    return found


def first(reached: NDArray[np.bool_]) -> int | None:
    """The first index that is true."""
    where = np.flatnonzero(reached)
    return int(where[0]) if where.size else None
