"""The one loop that drives every method."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.errors import DesignError, EvaluationError, StallError
from casadi_hybrid.iterations.base import Iteration, Start
from casadi_hybrid.law import Correction, State
from casadi_hybrid.oracle import Oracle
from casadi_hybrid.residuals import Tolerances, residuals_at
from casadi_hybrid.status import StopReason
from casadi_hybrid.stopping import Progress, StoppingTest

# Here the last iterate is itself the evidence: the point that passed the test, the stationary
# violation, the end of the ray, the point where multipliers cease to exist, where steps end.
_LAST_POINT = (
    StopReason.CONVERGED,
    StopReason.STALLED,
    StopReason.LOCALLY_INFEASIBLE,
    StopReason.UNBOUNDED,
    StopReason.NO_MULTIPLIERS,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the loop hands back: why it stopped, the last and the best progress (None if the
    functions failed at the very start), the steps taken and the seconds they took.
    """

    reason: StopReason
    detail: str
    last: Progress | None
    best: Progress | None
    iterations: int
    elapsed: float


def iterate(
    oracle: Oracle,
    iteration: Iteration,
    start: Start,
    tests: Sequence[StoppingTest],
    tolerances: Tolerances,
    observers: Sequence[Callable[[Progress], None]] = (),
) -> Outcome:
    """Run an iteration until a stopping test speaks.

    Failures of the problem's functions and of the rule end the loop with a reason; they never
    lose the best point, which is the iterate with the least KKT merit
    (:meth:`~casadi_hybrid.residuals.Tolerances.merit`).
    """
    began = time.perf_counter()
    last: Progress | None = None
    best: Progress | None = None
    best_merit = np.inf
    t = 0

    def outcome(reason: StopReason, detail: str = "") -> Outcome:
        point = last if reason in _LAST_POINT else best
        return Outcome(reason, detail, last, point, t, time.perf_counter() - began)

    correction: Correction | None = None
    # A diverging iterate overflows before a test sees it; that is a status, not a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            state = iteration.init(oracle, start)
            while True:
                t = state.t
                if not (np.isfinite(state.x).all() and np.isfinite(state.mu).all()):
                    return outcome(StopReason.DIVERGED, f"not finite at iteration {t}")
                at = iteration.evaluate(oracle, state)
                residuals = iteration.residuals(state, at)
                elapsed = time.perf_counter() - began
                last = Progress(state, at, residuals, correction, elapsed)
                merit = tolerances.merit(residuals)
                if merit <= 1 and not iteration.settled(state, at):
                    merit = np.inf  # a maximizer or saddle point that is being left
                if merit < best_merit or best is None:
                    best, best_merit = last, merit
                for observe in observers:
                    observe(last)
                for test in tests:
                    reason = test(last)
                    if reason is StopReason.CONVERGED and not iteration.settled(state, at):
                        continue
                    if reason is not None:
                        return outcome(reason)
                state, correction = iteration.step(oracle, state, at)
        except (EvaluationError, DesignError, StallError, np.linalg.LinAlgError) as error:
            if last is None:
                last = best = _start_point(oracle, start)
            return outcome(_reason(error), f"iteration {t}: {error}")


def _reason(error: Exception) -> StopReason:
    if isinstance(error, StallError):
        return error.reason
    evaluation = isinstance(error, EvaluationError)
    return StopReason.EVALUATION_ERROR if evaluation else StopReason.DESIGN_INFEASIBLE


def _start_point(oracle: Oracle, start: Start) -> Progress | None:
    """The start as a point to return when the method failed before its first iterate."""
    try:
        at = oracle.first(start.x0)
    except EvaluationError:
        return None
    lam = start.multipliers
    state = State(start.x0, lam, np.zeros_like(lam), lam)
    return Progress(state, at, residuals_at(at, lam), None, 0.0)
