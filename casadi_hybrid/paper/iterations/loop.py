"""The one loop that drives every method."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.paper.iterations.base import Iteration, Start
from casadi_hybrid.paper.iterations.residuals import residuals_at
from casadi_hybrid.paper.iterations.stopping import IterationProgress, IterationTest
from casadi_hybrid.paper.law import Correction, State
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

# Here the last iterate is itself the evidence: the point that passed the test, the stationary
# violation, the end of the ray, the point where multipliers cease to exist, where steps end.
LAST_POINT = (
    StopReason.CONVERGED, StopReason.STALLED, StopReason.LOCALLY_INFEASIBLE, StopReason.UNBOUNDED,
    StopReason.NO_MULTIPLIERS,
)  # fmt: skip

# EvaluationError and DesignError are ArithmeticErrors, as are OverflowError, FloatingPointError and
# ZeroDivisionError.
_FAILURES = (ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why the loop stopped, the last and the best progress (None if the functions failed at the
    very start), the steps taken, their seconds, and the evaluation error where one ended it.
    """

    reason: StopReason
    detail: str
    last: IterationProgress | None
    best: IterationProgress | None
    iterations: int
    elapsed: float
    error: EvaluationError | None = None


def iterate(
    oracle: Oracle,
    iteration: Iteration,
    start: Start,
    tests: Sequence[IterationTest],
    tolerances: Tolerances,
    observers: Sequence[Callable[[IterationProgress], None]] = (),
) -> Outcome:
    """Run an iteration until a stopping test speaks.

    Failures of the problem's functions and of the rule, overflow too, end the loop with a reason;
    what observers and tests raise is the caller's. Ctrl-C comes out as an
    :class:`~casadi_hybrid.utils.errors.Interrupted` that has the outcome. The best point is the
    iterate with the least ``Tolerances.merit``.
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
        return Outcome(reason, detail, last, point, t, time.perf_counter() - began, error)

    def failed(error: Exception) -> Outcome:
        nonlocal last, best
        if last is None:
            last = best = _start_point(oracle, start)
        designed = isinstance(error, DesignError | np.linalg.LinAlgError)
        reason = StopReason.DESIGN_INFEASIBLE if designed else StopReason.EVALUATION_ERROR
        known = error if isinstance(error, EvaluationError) else None
        return outcome(reason, f"iteration {t}: {_sentence(error, oracle)}", known)

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
            if merit < best_merit or best is None:
                best, best_merit = last, merit
            for observe in observers:
                observe(last)
            for test in tests:
                reason = test(last)
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


def _start_point(oracle: Oracle, start: Start) -> IterationProgress | None:
    """The start as a point to return when the method failed before its first iterate."""
    try:
        at = oracle.first(start.x0)
    except EvaluationError:
        return None
    lam = start.multipliers
    state = State(start.x0, lam, np.zeros_like(lam), lam)
    return IterationProgress.of(state, at, residuals_at(at, lam), None, 0.0)
