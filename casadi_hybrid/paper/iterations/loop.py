"""The loop that runs an iteration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.paper.iterations.base import Iteration, Start, residuals_at
from casadi_hybrid.paper.iterations.stopping import IterationProgress, IterationTest
from casadi_hybrid.paper.law import Correction
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.point.residuals import Tolerances
from casadi_hybrid.utils.arrays import all_finite
from casadi_hybrid.utils.errors import (
    DesignError,
    EvaluationError,
    Interrupted,
    NotAugmentableError,
)
from casadi_hybrid.utils.status import StopReason

# The last iterate is itself the evidence: it passed the test, or is the end of the ray.
LAST_POINT = (StopReason.CONVERGED, StopReason.UNBOUNDED, StopReason.NO_MULTIPLIERS)

# EvaluationError and DesignError are ArithmeticErrors, as are OverflowError, FloatingPointError and
# ZeroDivisionError.
_FAILURES = (ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of a run of the loop."""

    reason: StopReason
    detail: str
    best: IterationProgress | None  # the returned point; None if the functions failed at the start
    iterations: int
    elapsed: float
    error: EvaluationError | None = None  # the one that ended the run


def iterate(
    oracle: Oracle,
    iteration: Iteration,
    start: Start,
    stop: IterationTest,
    tolerances: Tolerances,
    observers: Sequence[Callable[[IterationProgress], None]] = (),
) -> Outcome:
    """Run an iteration until ``stop`` returns a reason.

    Failures of the problem's functions and of the rule, overflow too, end the loop with a reason.
    Ctrl-C raises an :class:`~casadi_hybrid.utils.errors.Interrupted` with the outcome.
    """
    began = time.perf_counter()
    last: IterationProgress | None = None
    best: IterationProgress | None = None
    best_merit = np.inf
    t = 0

    def outcome(
        reason: StopReason, detail: str = "", error: EvaluationError | None = None
    ) -> Outcome:
        point = last if reason in LAST_POINT else best
        return Outcome(reason, detail, point, t, time.perf_counter() - began, error)

    def failed(error: Exception) -> Outcome:
        nonlocal best
        if best is None:
            best = start_progress(oracle, start)
        designed = isinstance(error, DesignError | np.linalg.LinAlgError)
        reason = StopReason.DESIGN_INFEASIBLE if designed else StopReason.EVALUATION_ERROR
        evaluation = error if isinstance(error, EvaluationError) else None
        return outcome(reason, f"iteration {t}: {_sentence(error, oracle)}", evaluation)

    correction: Correction | None = None
    # A diverging iterate overflows before a test sees it; that is a status, not a warning.
    with np.errstate(over="ignore", invalid="ignore"), _interruptible(outcome):
        try:
            state = iteration.init(oracle, start)
        except _FAILURES as error:
            return failed(error)
        while True:
            t = state.t
            if not (all_finite(state.x) and all_finite(state.mu)):
                return outcome(StopReason.DIVERGED, f"not finite at iteration {t}")
            try:
                at = iteration.evaluate(oracle, state)
                residuals = iteration.residuals(state, at)
            except _FAILURES as error:
                return failed(error)
            elapsed = time.perf_counter() - began
            last = IterationProgress.of(state, at, residuals, correction, elapsed)
            merit = tolerances.merit(residuals)
            # A merit of NaN is never the least, but the first point counts whatever its merit.
            if merit < best_merit or best is None:
                best, best_merit = last, merit
            # Exceptions of observers and of `stop` are the caller's.
            for observe in observers:
                observe(last)
            reason = stop(last)
            if reason is not None:
                return outcome(reason)
            try:
                state, correction = iteration.step(oracle, state, at)
            except _FAILURES as error:
                return failed(error)


@contextmanager
def _interruptible(outcome: Callable[[StopReason, str], Outcome]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        halt = error if isinstance(error, Interrupted) else Interrupted()
        halt.result = outcome(StopReason.STOPPED_BY_USER, "interrupted")
        if halt is error:
            raise
        raise halt from error


def _sentence(error: Exception, oracle: Oracle) -> str:
    if isinstance(error, NotAugmentableError):
        return error.sentence(oracle.functions.variable_names)
    plain = isinstance(error, EvaluationError | DesignError | np.linalg.LinAlgError)
    return str(error) if plain else f"{type(error).__name__}: {error}"


def start_progress(oracle: Oracle, start: Start) -> IterationProgress | None:
    """Return the start as a point, for a method that failed before its first iterate."""
    try:
        at = oracle.first(start.x0)
    except EvaluationError:
        return None
    return IterationProgress.of(start.state, at, residuals_at(at, start.multipliers))
