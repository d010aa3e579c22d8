"""One solve of a nonlinear program: the attempts one after another, and the best point of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.attempt import Attempt, composite_attempt, first_attempt, warm_attempt
from casadi_hybrid.attempts.attempts import best, next_attempt, remultiplied
from casadi_hybrid.attempts.multipliers import Again, has_huge_multipliers, restart_on_engine
from casadi_hybrid.attempts.one import Observer, run_attempt
from casadi_hybrid.attempts.verdict import agreed
from casadi_hybrid.barrier.composite import is_composite
from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.errors import BrokenFunctionError, InputError, Interrupted
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.call import Call
from casadi_hybrid.course.history import Recorder
from casadi_hybrid.course.record import Watch, nu_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.residuals import Tolerances
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.stopping import Progress, StoppingTest

# After a proof, or where there is no time or wish to go on, nothing else is tried.
_FINAL = (
    StopReason.UNBOUNDED,
    StopReason.STOPPED_BY_USER,
    StopReason.TARGET_REACHED,
    StopReason.TIME_LIMIT,
)


@dataclass(frozen=True)
class Automatic:
    """The default method: attempts by the barrier iteration, for every problem."""

    label: str = "auto"

    limits: ClassVar[Limits] = Limits()

    def refusal(self, problem: Problem, bounds: Bounds) -> str:
        """It takes all."""
        return ""

    def run(self, problem: Problem, call: Call) -> Result:
        """Solve, with the course of the solve in the result.

        Raises:
            InputError: for an x_{−1}, which it has no use for.
        """
        if call.x_prev is not None:
            raise InputError(f"x_prev is for methods with memory; method {self.label!r} has none")
        numbers, limits = call.numbers, call.limits
        watch = call.watch or Watch(numbers.bounds, log=call.log, divergence=limits.divergence)
        recorder = Recorder()
        seen = bool(call.history or call.callback or call.stopping or not watch.silent)
        observers: list[Observer] = [watch.observe]
        tests = [watch.test, *call.stopping]
        if call.history:
            observers.append(partial(_record, recorder))
        if call.callback is not None:
            asked = _Asked(call.callback)
            observers.append(asked.observe)
            tests.append(asked.test)

        def whole(result: Result) -> Result:
            course = recorder.history() if recorder.rows else watch.course()
            method = result.method if self.label == "auto" else self.label
            return altered(result, history=course, method=method, limits=limits)

        if not seen and os.environ.get("HYB_CORE"):
            from casadi_hybrid.attempts.whole import solve_by_core  # noqa: PLC0415

            found = solve_by_core(problem, numbers, limits, call.warm, watch)
            if not isinstance(found, str):
                return whole(found)
        try:
            result = solve_problem(
                problem, numbers, limits, warm=call.warm, watch=None if seen else watch,
                observers=observers, tests=tests,
            )  # fmt: skip
        except Interrupted as halt:
            halt.result = halt.result and whole(halt.result)
            raise
        return whole(result)


def _record(recorder: Recorder, progress: Progress, multipliers: Callable[..., Any]) -> None:
    """Take the row of an iterate, with what only the barrier method has."""
    inner = nu_of(progress), progress.state.carry.shift
    recorder(progress, multipliers(progress.state)[0], inner)


@dataclass
class _Asked:
    """A user's function, asked at every iterate; its wish to stop comes after a convergence."""

    callback: Callable[[Progress], bool | None]
    _stop: bool = False

    def observe(self, progress: Progress, multipliers: object) -> None:
        self._stop = self.callback(progress) is True

    def test(self, progress: Progress) -> StopReason | None:
        return StopReason.STOPPED_BY_USER if self._stop else None


def solve_problem(
    program: Problem,
    numbers: Numbers,
    limits: Limits,
    *,
    warm: WarmStart | None = None,
    watch: Watch | None = None,
    observers: Sequence[Observer] = (),
    tests: Sequence[StoppingTest] = (),
) -> Result:
    """Solve from x0 by the barrier iteration.

    Args:
        program: the problem.
        numbers: start, parameters and bounds, checked.
        limits: limits and tolerances.
        warm: multipliers and, where it is known, the working set of a solution nearby. The active
            set is tried first by Newton steps from x0 (the hot mode); where that does not solve,
            the barrier iteration starts from x0 and these multipliers, with a small ν where they
            nearly solve the problem; where that does not, the cold solve runs. That begins with
            composite steps where there are equations alone
            (:mod:`casadi_hybrid.barrier.composite`).
        watch: what records the iterates, where nobody else looks at them: then attempts run on the
            engine in C as far as it takes them.
        observers: called with the progress, whose ``at`` is a
            :class:`~casadi_hybrid.standard_form.form.Point`, and with ``multipliers``, a function
            from its state to (lam_x, lam_g) in the user's units.
        tests: further stopping tests of the loop.
    """
    options, x0, bounds = limits, numbers.x0, numbers.bounds
    tolerances = options.tolerances
    equations = int(np.count_nonzero(bounds.lbg == bounds.ubg))
    free = int(np.count_nonzero(bounds.lbx < bounds.ubx))
    cold = first_attempt(program, x0, equations > free)
    openings = [] if warm is None else [warm_attempt(x0, warm)]
    if is_composite(program, bounds):
        openings.append(composite_attempt(x0))
    ahead = len(openings)
    following: Attempt | None = [*openings, cold][0]
    done: list[Result] = []
    tried: list[Attempt] = []
    iterations, elapsed = 0, 0.0
    spent = _Spent()
    while following is not None:
        attempt = following
        left = changed(
            options,
            max_iter=options.max_iter - iterations,
            max_time=options.max_time - elapsed,
        )
        try:
            result = run_attempt(
                program, numbers, left, watch, observers, tests, attempt, iterations
            )
        except KeyboardInterrupt as error:
            raise _interrupted(error, done, tolerances, x0) from error.__cause__
        done.append(result)
        tried.append(attempt)
        iterations += result.iterations
        elapsed += result.elapsed
        spent.add(result)
        if _is_last(result) or iterations >= options.max_iter:
            break
        if len(tried) <= ahead:
            following = [*openings, cold][len(tried)]
            continue
        following = next_attempt(
            program,
            x0,
            options.max_iter,
            tolerances,
            tried[ahead:],
            done[ahead:],
            no_choice=equations >= free,
        )
    points = [one for of, one in zip(tried, done, strict=True) if one.success or not of.least]
    chosen = _blamed(best(points, tolerances), done[-1])
    cut = iterations >= options.max_iter or elapsed >= options.max_time
    ended = done[-1].stop in (StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT)
    if cut and ended and not chosen.success:
        chosen = altered(chosen, stop=done[-1].stop, detail=done[-1].detail)
    if chosen.stop is StopReason.ITERATION_LIMIT and iterations < options.max_iter:
        # The limit was that of one attempt, not the caller's.
        detail = f"none of {len(done)} attempts came further in its share of the iterations"
        chosen = altered(chosen, stop=agreed(StopReason.STALLED, chosen.point), detail=detail)
    more = chosen.success and iterations < options.max_iter
    if more and not _is_beside(chosen, tried, done) and has_huge_multipliers(chosen):
        left = changed(
            options, max_iter=options.max_iter - iterations, max_time=options.max_time - elapsed
        )
        again = _remultiplied(program, numbers, left, chosen, iterations, watch is not None)
        iterations, elapsed = iterations + again.iterations, elapsed + again.elapsed
        spent.add(again)
        chosen = again.better_than(chosen)
    elif chosen is done[0] and len(done) == 1:
        return chosen  # as it is: all of its numbers are those of the solve
    return altered(
        chosen,
        x0=x0,
        iterations=iterations,
        elapsed=elapsed,
        evaluations=spent.evaluations,
        seconds=spent.seconds,
    )


def _is_last(result: Result) -> bool:
    """Whether there is nothing to be tried after this."""
    broken = isinstance(result.error, BrokenFunctionError)
    return result.success or result.stop in _FINAL or broken


def _blamed(chosen: Result, last: Result) -> Result:
    """The best point, with what ended the solve where that was a broken function."""
    if not isinstance(last.error, BrokenFunctionError):
        return chosen
    return altered(chosen, stop=last.stop, detail=last.detail, error=last.error)


@dataclass
class _Spent:
    """The evaluations of all attempts and their seconds."""

    evaluations: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, result: Result | Again) -> None:
        for key, number in result.evaluations.items():
            self.evaluations[key] = self.evaluations.get(key, 0) + number
        for key, time in result.seconds.items():
            self.seconds[key] = self.seconds.get(key, 0.0) + time


def _interrupted(
    error: KeyboardInterrupt, done: Sequence[Result], tolerances: Tolerances, x0: Vector
) -> Interrupted:
    """What Ctrl-C becomes after the attempts that are done: it has the best point of all."""
    halt = error if isinstance(error, Interrupted) else Interrupted()
    known = [*done] if halt.result is None else [*done, halt.result]
    if known:
        chosen = best(known, tolerances)
        halt.result = altered(
            chosen,
            stop=StopReason.STOPPED_BY_USER,
            detail="interrupted",
            x0=x0,
            iterations=sum(one.iterations for one in known),
            elapsed=sum(one.elapsed for one in known),
        )
    return halt


def _is_beside(chosen: Result, tried: Sequence[Attempt], done: Sequence[Result]) -> bool:
    """Whether multipliers are huge because they are those of a point next to one without any."""
    return any(one.beside and result is chosen for one, result in zip(tried, done, strict=True))


def _remultiplied(
    program: Problem,
    numbers: Numbers,
    limits: Limits,
    result: Result,
    before: int,
    quiet: bool,
) -> Again:
    """The restart for smaller multipliers, on the engine where nobody looks at iterates."""
    restart = remultiplied(result)
    again = restart_on_engine(program, numbers, limits, restart) if quiet else None
    if again is None:
        again = Again.of(run_attempt(program, numbers, limits, None, (), (), restart, before))
    return again
