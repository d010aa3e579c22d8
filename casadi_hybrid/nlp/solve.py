"""One solve of a nonlinear program: standard form, barrier iteration, the common loop, result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from casadi_hybrid.errors import EvaluationError
from casadi_hybrid.inputs import Vector
from casadi_hybrid.iterations.base import Start
from casadi_hybrid.loop import iterate
from casadi_hybrid.nlp.barrier import Barrier
from casadi_hybrid.nlp.iterate import NU_START, Settings
from casadi_hybrid.nlp.program import Program
from casadi_hybrid.nlp.result import NlpResult
from casadi_hybrid.nlp.standard import Bounds, StandardForm
from casadi_hybrid.nlp.verdict import Trail, make_result, undefined_result
from casadi_hybrid.nlp.working_set import WarmStart
from casadi_hybrid.oracle import Oracle
from casadi_hybrid.residuals import Tolerances
from casadi_hybrid.status import StopReason
from casadi_hybrid.stopping import KKTTest, LimitTest, Progress, StoppingTest

# How far the bounds are widened where the barrier finds no interior and stalls (relative).
RELAXATION = 1e-8
# After so many steps without an answer another start of the central path is tried.
FIRST_ATTEMPT = 200
SECOND_NU, SECOND_PUSH = 100.0, 0.25
ESCAPES = 3
Observer = Callable[..., None]
_UNFINISHED = (StopReason.STALLED, StopReason.ITERATION_LIMIT)


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Limits and tolerances of a solve.

    Args:
        tol: scaled optimality error at which the solve may end (IPOPT's ``tol``).
        residual_tol: what the unscaled KKT residuals have to meet as well.
        max_iter: steps.
        max_time: wall-clock seconds.
    """

    tol: float = 1e-8
    residual_tol: float = 1e-6
    max_iter: int = 3000
    max_time: float = np.inf

    @property
    def tolerances(self) -> Tolerances:
        """The residual tolerance for each of the three residuals."""
        return Tolerances(self.residual_tol, self.residual_tol, self.residual_tol)


def solve_program(
    program: Program,
    x0: Vector,
    p: Vector,
    bounds: Bounds,
    options: SolveOptions,
    *,
    warm: WarmStart | None = None,
    observers: Sequence[Observer] = (),
    tests: Sequence[StoppingTest] = (),
) -> NlpResult:
    """Solve from x0 by the barrier iteration.

    Args:
        program: the problem.
        x0, p, bounds: checked numbers of the right sizes.
        options: limits and tolerances.
        warm: multipliers and, where it is known, the working set of a solution nearby. The active
            set is tried first by Newton steps from x0 (the hot mode); where that does not solve,
            the cold solve runs.
        observers: called with the progress, whose ``at`` is a
            :class:`~casadi_hybrid.nlp.standard.Point`, and with ``multipliers``, a function from
            its state to (lam_x, lam_g) in the user's units.
        tests: further stopping tests of the loop.
    """
    attempt = _Attempt(0.0, NU_START, min(FIRST_ATTEMPT, options.max_iter))
    done: list[NlpResult] = []
    iterations, elapsed, escapes = 0, 0.0, 0
    counts: dict[str, int] = {}
    start = x0
    while True:
        left = replace(
            options,
            max_iter=min(attempt.max_iter, options.max_iter - iterations),
            max_time=options.max_time - elapsed,
        )
        result = _run(program, start, p, bounds, left, warm, observers, tests, attempt)
        done.append(result)
        iterations += result.iterations
        elapsed += result.elapsed
        for key, number in result.evaluations.items():
            counts[key] = counts.get(key, 0) + number
        if result.success or iterations >= options.max_iter:
            break
        if result.stop is StopReason.LOCALLY_INFEASIBLE and escapes < ESCAPES:
            # A local minimum of the violation: once more, from some way off.
            escapes += 1
            start = _away(result.x, escapes)
            attempt = replace(attempt, max_iter=FIRST_ATTEMPT)
        elif result.stop in _UNFINISHED and attempt.relaxation == 0.0:
            # No interior, or the central path was lost early: wider bounds, a larger first ν.
            start = x0
            attempt = _Attempt(RELAXATION, SECOND_NU, options.max_iter)
        else:
            break
    best = _best(done, options.tolerances)
    return replace(best, x0=x0, iterations=iterations, elapsed=elapsed, evaluations=counts)


def _best(done: Sequence[NlpResult], tolerances: Tolerances) -> NlpResult:
    """A solution; else proof of unboundedness or infeasibility; else the least residual."""

    def rank(result: NlpResult) -> tuple[int, float]:
        if result.success:
            return 0, 0.0
        if result.stop is StopReason.UNBOUNDED:
            return 1, 0.0
        if result.stop is StopReason.LOCALLY_INFEASIBLE:
            return 2, result.residuals.feasibility
        return 3, tolerances.merit(result.residuals)

    return min(done, key=rank)


def _away(x: Vector, number: int) -> Vector:
    """A start at a relative distance of about one half, the same in every run."""
    draws = np.random.default_rng(number).uniform(-1.0, 1.0, x.size)
    return x + 0.5 * np.maximum(1.0, np.abs(x)) * draws


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How one attempt widens the bounds, where its ν starts, and how long it may take."""

    relaxation: float
    nu_start: float
    max_iter: int


def _run(
    program: Program,
    x0: Vector,
    p: Vector,
    bounds: Bounds,
    options: SolveOptions,
    warm: WarmStart | None,
    observers: Sequence[Observer],
    tests: Sequence[StoppingTest],
    attempt: _Attempt,
) -> NlpResult:
    tolerances = options.tolerances
    try:
        form = StandardForm(program, bounds, p, x0, attempt.relaxation)
    except EvaluationError as error:
        return undefined_result(program, bounds, p, x0, tolerances, error)
    trail = Trail()
    settings = Settings(tol=options.tol, tolerances=tolerances, nu_start=attempt.nu_start)
    if attempt.relaxation:
        settings = replace(settings, push=SECOND_PUSH)
    barrier = Barrier(form, settings, warm)
    outcome = iterate(
        Oracle(program.functions, p),
        barrier,
        Start(x0, np.zeros(program.m)),
        [KKTTest(tolerances), _unbounded, *tests, LimitTest(options.max_iter, options.max_time)],
        tolerances,
        [trail, *(partial(observe, multipliers=barrier.multipliers) for observe in observers)],
    )
    return make_result(program, barrier, outcome, tolerances, x0, trail.step)


def _unbounded(progress: Progress) -> StopReason | None:
    """UNBOUNDED where x runs away along feasible points with falling f, else DIVERGED."""
    size = float(np.abs(progress.state.x).max())
    if size <= 1e10:
        return None
    feasible = progress.residuals.feasibility <= 1e-6 * size
    if feasible and progress.at.f < 0.0:
        return StopReason.UNBOUNDED
    return StopReason.DIVERGED if size > 1e20 else None
