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
from casadi_hybrid.attempts.solved import observe, observe_start, result_of, spent_in, warm_result
from casadi_hybrid.attempts.verdict import Trail
from casadi_hybrid.barrier.barrier import Barrier, Begun
from casadi_hybrid.barrier.composite import Composite, Guarded
from casadi_hybrid.barrier.iterate import Iterate, Settings
from casadi_hybrid.barrier.rays import RayTest
from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.errors import Interrupted
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.cold import WORDS, Cold, IterateData
from casadi_hybrid.engine.structures import (
    LIMIT,
    NO_SET,
    NOT_NEARER,
    PAUSED,
    SOLVED,
    AnswerData,
    ResidualsData,
)
from casadi_hybrid.engine.warm import WORDS as HOT_WORDS
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.loop import Earlier, Outcome
from casadi_hybrid.point.residuals import Residuals
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.stopping import Limits, Progress


@dataclass(frozen=True)
class Handed:
    """An attempt that the engine has begun and Python goes on with.

    Attributes:
        cold: its state.
        why: a sentence.
        began: the time at its start.
        evaluations: so far.
        seconds: in them.
        steps: so far.
        interrupted: whether Ctrl-C has ended it; then no iterate is due.
        start_is_best: whether no iterate is nearer to a solution than the point given, at which
            only the warm mode has looked.
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
        form.remember(cold.points())
        if not self.interrupted:
            watched = cold.iterate(form, state.watched, None) if state.now.watching else None
            now = self._iterate(barrier, state.now, watched)
            if not isinstance(barrier, Composite):
                now = changed(now, restoration=cold.root(now.at))
            watch.drop(before + max(1, state.now.t))  # a start is seen once
            barrier.begun = Begun(now, state.now.t, bool(state.rows_dependent))
        undefined = cold.x_undefined()
        if undefined is not None:
            form.remember_undefined(undefined)
        trail.step, trail.x_before = cold.last_step(), cold.x_before()
        trail.feasible = self._progress(barrier, state.feasible, before)
        trail.beside = self._progress(barrier, state.beside, before)
        watch.x_before = trail.x_before
        ray.seen, ray.size_before = state.seen, state.reach_before
        patience.before = state.merit_before
        return Earlier(self._progress(barrier, state.best, before), self.began)

    def _iterate(self, barrier: Barrier, of: IterateData, watched: Iterate | None) -> Iterate:
        """An iterate of the engine's with what the steps of this kind carry."""
        it = self.cold.iterate(barrier.form, of, watched)
        if not isinstance(barrier, Composite):
            return it
        return Guarded(**vars(it), guards=self.cold.guards(barrier.jacobian(it.at)))

    def _progress(self, barrier: Barrier, of: IterateData, before: int) -> Progress | None:
        if of.t < 0:
            return None
        state = barrier.state_of(self._iterate(barrier, of, None), of.t)
        at = state.carry.at
        return Progress(state, at, barrier.residuals(state, at), None, 0.0, before)


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
        status, said = space.warm_once(attempt.warm), space.answer
        if status == SOLVED and said.steps and said.elapsed >= options.max_time:
            status = LIMIT  # too late, in its last step: Python stops where the time was over
        if status == SOLVED:
            observe(said, watch)
            found = warm_result(program, numbers, options, space.solved())
            return _noted(found, space.went_wrong())
        if status not in (NO_SET, NOT_NEARER):
            return _with(space.went_wrong(), HOT_WORDS[status])
        observe_start(said, watch)
        at_start = _merit(said.start, options)
        runs.append(AnswerData.from_buffer_copy(said))
        t0 = said.steps
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
    why = _with(wrong, WORDS.get(status, "it was interrupted"))
    best = np.inf if cold.state.best.t < 0 else _merit(cold.state.of_best, options)
    steps, no_nearer = space.answer.steps, not (interrupted or best <= at_start)
    lottery = not (interrupted or status == LIMIT or runs) and space.is_flat()
    return Handed(cold, why, began, *spent, steps, interrupted, no_nearer, lottery)


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
