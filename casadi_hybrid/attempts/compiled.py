"""An attempt on the engine in C: its result where it solves, else where Python goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.attempts import Attempt
from casadi_hybrid.attempts.data import data_of
from casadi_hybrid.attempts.patience import Patience
from casadi_hybrid.attempts.solved import (
    SVD,
    kernel_of,
    observe,
    observe_start,
    result_of,
    seen,
    spent_in,
    warm_end,
    warm_result,
)
from casadi_hybrid.attempts.verdict import Trail
from casadi_hybrid.barrier.barrier import Barrier, Begun
from casadi_hybrid.barrier.composite import Composite, Guarded
from casadi_hybrid.barrier.iterate import Iterate, Settings
from casadi_hybrid.barrier.rays import RayTest
from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.errors import EvaluationError, Interrupted
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.cold import CAUSES, WORDS, Cold, IterateData
from casadi_hybrid.engine.structures import (
    DIVERGED,
    IN_VAIN,
    INFEASIBLE,
    LARGE,
    LIMIT,
    PAUSED,
    SOLVED,
    STALLED,
    UNBOUNDED,
    UNDEFINED,
    AnswerData,
    ResidualsData,
)
from casadi_hybrid.engine.warm import WORDS as HOT_WORDS
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.engine.workspace import Workspace
from casadi_hybrid.loop import LAST_POINT, Earlier, Outcome
from casadi_hybrid.point.residuals import Residuals
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.stopping import Limits, Progress

_ENDED = {
    INFEASIBLE: StopReason.LOCALLY_INFEASIBLE, STALLED: StopReason.STALLED,
    UNBOUNDED: StopReason.UNBOUNDED, DIVERGED: StopReason.DIVERGED,
    UNDEFINED: StopReason.EVALUATION_ERROR, LIMIT: StopReason.ITERATION_LIMIT,
}  # fmt: skip


@dataclass(frozen=True)
class Handed:
    """An attempt that the engine has begun and Python goes on with.

    Attributes:
        cold: its state.
        why: a sentence; where it has ended by itself, what went wrong on the way.
        began: the time at its start.
        evaluations: so far.
        seconds: in them.
        steps: so far.
        interrupted: whether Ctrl-C has ended it; then no iterate is due.
        start_is_best: whether no iterate is nearer to a solution than the point given, at which
            only the warm mode has looked.
        kernel: what has factored.
        ended: why no step led on, where it has ended by itself and Python only judges.
        is_lottery: whether it began where a row has no slope, and ended by nothing but its own
            steps: the way from there hangs on rounding, and Python's is another.
    """

    cold: Cold
    why: str
    began: float
    evaluations: Mapping[str, int]
    seconds: Mapping[str, float]
    steps: int
    interrupted: bool = False
    start_is_best: bool = False
    is_lottery: bool = False
    kernel: str = ""
    ended: StopReason | None = None

    def resume(
        self,
        barrier: Barrier,
        trail: Trail,
        watch: Watch,
        ray: RayTest,
        patience: Patience,
        before: int,
    ) -> Earlier:
        """Tell the barrier iteration, and all that look at it, where they are.

        Args:
            barrier, trail, watch, ray, patience: of this attempt.
            before: steps taken in earlier attempts.
        """
        cold, state, form = self.cold, self.cold.state, barrier.form
        for key, number in self.evaluations.items():
            form.evaluator.counts[key] += number
        for key, spent in self.seconds.items():
            form.evaluator.seconds[key] += spent
        if not self.interrupted and self.ended is None:
            watched = cold.iterate(form, state.watched, None) if state.now.watching else None
            now = self._iterate(barrier, state.now, watched)
            if not isinstance(barrier, Composite):
                now = changed(now, restoration=cold.root(now.at))
            watch.drop(before + max(1, state.now.t))  # a start is seen once
            barrier.begun = Begun(now, state.now.t, bool(state.rows_dependent))
        undefined = cold.x_undefined()
        if undefined is not None:
            form.remember_undefined(undefined)
        start = barrier.given() if self.start_is_best else None
        if start is not None:
            trail(seen(barrier, start, 0, before))
        trail.step, trail.x_before = cold.last_step(), cold.x_before()
        feasible = self._progress(barrier, state.feasible, before)
        if feasible is not None and (trail.feasible is None or feasible.f <= trail.feasible.f):
            trail.feasible = feasible
        trail.beside = self._progress(barrier, state.beside, before) or trail.beside
        watch.x_before = trail.x_before
        ray.seen, ray.size_before = state.ray.least, state.ray.reach
        patience.before = state.merit_before
        if start is not None:
            return Earlier(seen(barrier, start, 0, before), self.began)
        return Earlier(self._progress(barrier, state.best, before), self.began)

    def outcome(self, barrier: Barrier, earlier: Earlier, before: int) -> Outcome:
        """That of an attempt which has ended by itself, at its last iterate."""
        cold, reason, best = self.cold, self.ended, earlier.best
        assert reason is not None
        of, last, error, detail = cold.state.now, None, None, ""
        if reason in LAST_POINT:
            last = best = self._progress(barrier, of, before, cold.infeasibility())
        if reason in (StopReason.STALLED, StopReason.LOCALLY_INFEASIBLE):
            detail = f"iteration {of.t}: {CAUSES[cold.state.cause]}"
        elif reason is StopReason.EVALUATION_ERROR:
            error = self._undefined(barrier)
            detail = f"iteration {of.t}: {error}"
        elif reason is StopReason.DIVERGED and not cold.is_finite():
            detail = f"not finite at iteration {of.t}"
        return Outcome(reason, detail, last, best, of.t, time.perf_counter() - self.began, error)

    def _undefined(self, barrier: Barrier) -> EvaluationError:
        """What ended the attempt, found again at its last iterate."""
        it = self._iterate(barrier, self.cold.state.now, None)
        try:
            barrier.form.hessian(it.at, it.y)
        except EvaluationError as error:
            return error
        known = barrier.form.undefined
        return known or EvaluationError("a function of the problem", "", np.nan)

    def _iterate(self, barrier: Barrier, of: IterateData, watched: Iterate | None) -> Iterate:
        """An iterate of the engine's with what the steps of this kind carry."""
        it = self.cold.iterate(barrier.form, of, watched)
        if not isinstance(barrier, Composite):
            return it
        return Guarded(**vars(it), guards=self.cold.guards(barrier.jacobian(it.at)))

    def _progress(
        self, barrier: Barrier, of: IterateData, before: int, blame: Vector | None = None
    ) -> Progress | None:
        if of.t < 0:
            return None
        it = self._iterate(barrier, of, None)
        return seen(barrier, it if blame is None else changed(it, blame=blame), of.t, before)


def takes(attempt: Attempt) -> bool:
    """Whether the engine takes attempts of this kind: all rows kept, multipliers for good."""
    return not attempt.beside and (attempt.warm is None or attempt.near)


def run_on_engine(
    program: Problem,
    numbers: Numbers,
    options: Limits,
    attempt: Attempt,
    settings: Settings,
    watch: Watch,
    before: int,
) -> Result | Handed | str:
    """An attempt as far as the engine takes it; why not, where it does not begin it.

    Where the attempt has a warm start the warm mode is first; what it has spent in vain is counted.
    """
    engine = engine_of(program)
    if isinstance(engine, str):
        return engine
    began, began_at = time.perf_counter(), watch.now()
    runs: list[AnswerData] = []
    space = engine.prepare(numbers.bounds)
    space.fill(numbers, attempt.warm)
    space.limit(options)
    space.went_wrong()  # what is still there was not of this attempt
    t0, at_start = 0, np.inf
    if attempt.warm is not None:
        done = _warm(program, numbers, options, attempt.warm, settings, space, watch)
        if not isinstance(done, AnswerData):
            return done
        at_start, t0 = _merit(done.start, options), done.steps
        runs.append(done)
    cold = space.cold_mode(composite=attempt.composite)
    cold.set(data_of(attempt, settings, options, program), t0)
    status = cold.begin()
    if status != PAUSED:
        return _with(space.went_wrong(), WORDS[status])
    interrupted, wrong = False, ""
    try:
        while status == PAUSED:
            status, rows = cold.go_on()
            watch.take(rows, before, began_at)
        wrong = space.went_wrong()
    except KeyboardInterrupt:
        if cold.state.best.t < 0:
            raise
        watch.take(cold.due(), before, began_at)
        interrupted = True
    spent = spent_in(*runs, space.answer, undefined=cold.state.undefined)
    if status == SOLVED and not interrupted:
        solved, step = space.solved(), cold.last_step()
        found = result_of(
            program, numbers, options, solved, step, *spent, composite=attempt.composite
        )
        return _noted(found, wrong)
    ended = None
    if not interrupted and status in _ENDED:
        ended = _stop(status, space.answer.steps, rows[-1][-1] if rows else 0.0, options)
    why = wrong if ended else _with(wrong, WORDS.get(status, "it was interrupted"))
    best = np.inf if cold.state.best.t < 0 else _merit(cold.state.of_best, options)
    no_nearer = not (interrupted or best <= at_start)
    lottery = not (interrupted or ended or runs) and space.is_flat()
    kernel = SVD if attempt.composite else kernel_of(program, space.answer)
    return Handed(
        cold, why, began, *spent, space.answer.steps, interrupted, no_nearer, lottery,
        kernel, ended,
    )  # fmt: skip


def _warm(
    program: Problem,
    numbers: Numbers,
    options: Limits,
    start: WarmStart,
    settings: Settings,
    space: Workspace,
    watch: Watch,
) -> Result | AnswerData | str:
    """The warm mode: its result, what it has spent in vain, or why it does not begin."""
    status, said = space.warm_once(start), space.answer
    if status in IN_VAIN:
        observe_start(said, watch)
        return AnswerData.from_buffer_copy(said)
    if status in (SOLVED, LARGE):
        observe(said, watch)
        found = warm_result(program, numbers, options, space.solved())
        return _noted(found, space.went_wrong())
    if status in _ENDED:
        observe(said, watch)
        stop = _stop(status, said.steps, said.elapsed, options)
        return warm_end(program, numbers, options, start, settings, space.solved(), stop)
    return _with(space.went_wrong(), HOT_WORDS[status])


def _stop(status: int, steps: int, elapsed: float, options: Limits) -> StopReason:
    """Why a run has ended; where neither limit is reached its share of the steps is spent."""
    late = status == LIMIT and steps < options.max_iter and elapsed >= options.max_time
    return StopReason.TIME_LIMIT if late else _ENDED[status]


def _merit(at: ResidualsData, options: Limits) -> float:
    """The largest residual in units of its tolerance."""
    residuals = Residuals(at.feasibility, at.stationarity, at.complementarity)
    return options.tolerances.merit(residuals)


def interrupted_on_engine(handed: Handed, earlier: Earlier | None) -> Interrupted:
    """What Ctrl-C becomes while C runs: it has the best iterate until then."""
    assert earlier is not None
    halt, best = Interrupted(), earlier.best
    seconds = time.perf_counter() - earlier.began
    stop = StopReason.STOPPED_BY_USER
    halt.result = Outcome(stop, "interrupted", best, best, handed.steps, seconds)
    return halt


def _noted(result: Result, wrong: str) -> Result:
    """A solution of the engine's with what went wrong on the way."""
    return altered(result, engine_note=wrong) if wrong else result


def _with(wrong: str, why: str) -> str:
    """Why the engine did not solve it, with what went wrong where Python's kernel was asked."""
    return f"{why}; {wrong}" if wrong else why
