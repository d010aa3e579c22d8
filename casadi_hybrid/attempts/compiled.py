"""An attempt on the engine in C: its result where it solves, else where Python goes on."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.attempts.attempts import Attempt
from casadi_hybrid.attempts.patience import Patience
from casadi_hybrid.attempts.verdict import Trail, context_of
from casadi_hybrid.barrier.barrier import Barrier, Begun
from casadi_hybrid.barrier.iterate import Settings
from casadi_hybrid.barrier.rays import RayTest
from casadi_hybrid.basics.errors import Interrupted
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.cold import WORDS, Cold, IterateData
from casadi_hybrid.engine.structures import (
    LARGE,
    NO_SET,
    NOT_NEARER,
    OTHER_PATTERN,
    PAUSED,
    SOLVED,
)
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.engine.workspace import Workspace
from casadi_hybrid.kernel.sparse import Sparse
from casadi_hybrid.loop import Earlier, Outcome
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import patterns_of
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import Linearization
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
    """

    cold: Cold
    why: str
    began: float
    evaluations: Counter[str]
    seconds: Counter[str]
    steps: int
    interrupted: bool = False

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
        if not self.interrupted:
            watched = cold.iterate(form, state.watched, None) if state.now.watching else None
            now = cold.iterate(form, state.now, watched)
            watch.drop(before + state.now.t)
            barrier.begun = Begun(now, state.now.t, bool(state.rows_dependent))
        undefined = cold.x_undefined()
        if undefined is not None:
            form.remember_undefined(undefined)
        trail.step, trail.x_before = cold.last_step(), cold.x_before()
        trail.feasible = self._progress(barrier, state.feasible, before)
        trail.beside = self._progress(barrier, state.beside, before)
        watch.x_before = trail.x_before
        ray.size_before, patience.before = state.reach_before, state.merit_before
        return Earlier(self._progress(barrier, state.best, before), self.began)

    def _progress(self, barrier: Barrier, of: IterateData, before: int) -> Progress | None:
        if of.t < 0:
            return None
        state = barrier.state_of(self.cold.iterate(barrier.form, of, None), of.t)
        at = state.carry.at
        return Progress(state, at, barrier.residuals(state, at), None, 0.0, before)


def takes(attempt: Attempt) -> bool:
    """Whether the engine takes attempts of this kind: by the barrier method, in ordinary scales."""
    special = attempt.root or attempt.composite or attempt.beside or attempt.relaxation
    return attempt.scaled and not special and (attempt.warm is None or attempt.near)


def run_on_engine(
    program: Problem,
    p: Vector,
    bounds: Bounds,
    options: Limits,
    attempt: Attempt,
    settings: Settings,
    watch: Watch,
    before: int,
) -> Result | Handed | str:
    """An attempt as far as the engine takes it; why not, where it does not begin it."""
    engine = engine_of(program)
    if isinstance(engine, str):
        return engine
    began = time.perf_counter()
    began_at = watch.now()
    counts, seconds = Counter[str](), Counter[str]()
    space = engine.spaces[0] if engine.spaces else engine.prepare(bounds)
    status = _begin(space, p, bounds, options, attempt, settings, watch, counts, seconds)
    if status == OTHER_PATTERN:
        space = engine.prepare(bounds)
        status = _begin(space, p, bounds, options, attempt, settings, watch, counts, seconds)
    if status != PAUSED:
        return WORDS[status]
    cold = space.cold
    assert cold is not None
    interrupted = False
    try:
        while status == PAUSED:
            status, rows = cold.go_on()
            watch.take(rows, before, began_at)
    except KeyboardInterrupt:
        if cold.state.best.t < 0:
            raise
        interrupted = True
    _count(space, counts, seconds)
    counts["undefined"] += cold.state.undefined
    if status == SOLVED and not interrupted:
        return _result(program, p, bounds, options, attempt, space, cold, counts, seconds)
    why = WORDS.get(status, "it was interrupted")
    return Handed(cold, why, began, counts, seconds, space.answer.steps, interrupted)


def interrupted_on_engine(handed: Handed, earlier: Earlier | None) -> Interrupted:
    """What Ctrl-C becomes while C runs: it has the best iterate until then."""
    assert earlier is not None
    halt, best = Interrupted(), earlier.best
    seconds = time.perf_counter() - earlier.began
    stop = StopReason.STOPPED_BY_USER
    halt.result = Outcome(stop, "interrupted", best, best, handed.steps, seconds)
    return halt


def _count(space: Workspace, counts: Counter[str], seconds: Counter[str]) -> None:
    """Add what the last run on the engine has spent."""
    said = space.answer
    counts["first"] += said.firsts
    counts["second"] += said.seconds
    seconds["first"] += said.in_firsts
    seconds["second"] += said.in_seconds


def _hot(
    space: Workspace,
    attempt: Attempt,
    warm: WarmStart,
    watch: Watch,
    counts: Counter[str],
    seconds: Counter[str],
) -> int:
    """The warm mode first; the steps it took in vain, or its status, negative, for Python to judge.

    Where it was tried before this it has failed and does so again; it costs a part of what follows.
    """
    status = space.warm(warm.working_set)
    if status not in (NO_SET, NOT_NEARER):
        return -status or -LARGE
    said, at = space.answer, space.answer.start
    row = (0, at.f, at.feasibility, at.stationarity, at.complementarity, attempt.nu)
    watch.jump((*row, 0.0, 0.0, 0.0, 0.0), None)
    _count(space, counts, seconds)
    return int(said.steps)


def _begin(
    space: Workspace,
    p: Vector,
    bounds: Bounds,
    options: Limits,
    attempt: Attempt,
    settings: Settings,
    watch: Watch,
    counts: Counter[str],
    seconds: Counter[str],
) -> int:
    inputs = space.inputs
    inputs["x0"][:], inputs["p"][:] = attempt.start, p
    inputs["lbx"][:], inputs["ubx"][:] = bounds.lbx, bounds.ubx
    inputs["lbg"][:], inputs["ubg"][:] = bounds.lbg, bounds.ubg
    space.limit(options)
    spent = 0
    if attempt.warm is not None:
        inputs["lam_x0"][:], inputs["lam_g0"][:] = attempt.warm.lam_x, attempt.warm.lam_g
        spent = _hot(space, attempt, attempt.warm, watch, counts, seconds)
        if spent < 0:
            return -spent
    cold = space.cold_mode()
    numbers = cold.attempt
    numbers.nu, numbers.floor, numbers.push = settings.nu_start, settings.floor, settings.push
    numbers.divergence, numbers.max_time = watch.divergence, options.max_time
    numbers.patience, numbers.near, numbers.t0 = attempt.max_iter, attempt.near, spent
    numbers.feasibility = space.feasibility
    return cold.begin()


def _result(
    program: Problem,
    p: Vector,
    bounds: Bounds,
    options: Limits,
    attempt: Attempt,
    space: Workspace,
    cold: Cold,
    counts: Counter[str],
    seconds: Counter[str],
) -> Result:
    found = space.solved()
    said, pattern = found.said, patterns_of(program)[0]
    x0 = attempt.start
    start = np.where(bounds.lbx < bounds.ubx, x0, np.clip(x0, bounds.lbx, bounds.ubx))
    return Result(
        x=found.array("x"),
        f=said.end.f,
        g=found.array("g"),
        bounds=bounds,
        lam_x=found.array("lam_x"),
        lam_g=found.array("lam_g"),
        residuals=found.residuals,
        stop=StopReason.CONVERGED,
        point=PointStatus.KKT_POINT,
        start=Linearization(start, found.array("gradient0"), Sparse(pattern, found.array("J0"))),
        end=Linearization(
            found.array("x"), found.array("gradient"), Sparse(pattern, found.array("J"))
        ),
        step=cold.last_step(),
        iterations=found.steps,
        evaluations=dict(counts),
        seconds=dict(seconds),
        elapsed=said.elapsed,
        tolerances=options.tolerances,
        method=Barrier.label,
        engine="c",
        kernel="ldl",
        **context_of(program, x0, p),
    )
