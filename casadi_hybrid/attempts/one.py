"""One attempt at a nonlinear program: standard form, barrier iteration, the common loop, result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.attempt import Attempt
from casadi_hybrid.attempts.compiled import Handed, interrupted_on_engine, run_on_engine, takes
from casadi_hybrid.attempts.patience import Patience
from casadi_hybrid.attempts.verdict import Trail, make_result, undefined_result
from casadi_hybrid.barrier.barrier import Barrier
from casadi_hybrid.barrier.composite import Composite
from casadi_hybrid.barrier.iterate import Settings
from casadi_hybrid.barrier.rays import RayTest
from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.errors import EvaluationError, Interrupted
from casadi_hybrid.course.record import Watch
from casadi_hybrid.iterations.base import Start
from casadi_hybrid.loop import iterate
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import WIDEST, StandardForm
from casadi_hybrid.stopping import KKTTest, LimitTest, StoppingTest

Observer = Callable[..., None]


def settings_of(attempt: Attempt, limits: Limits) -> Settings:
    """The constants of the barrier method for an attempt."""
    return Settings(
        tol=limits.scaled_tol, tolerances=limits.tolerances, nu_start=attempt.nu,
        push=attempt.push, root_first=attempt.root, cautious=attempt.cautious, near=attempt.near,
        rescale=attempt.rescale, steps=limits.max_iter,
        beside=min(attempt.max_iter, limits.max_iter) if attempt.beside else 0,
    )  # fmt: skip


def run_attempt(
    program: Problem,
    numbers: Numbers,
    options: Limits,
    watch: Watch | None,
    observers: Sequence[Observer],
    tests: Sequence[StoppingTest],
    attempt: Attempt,
    before: int,
) -> Result:
    """One attempt: on the engine in C where it takes it, from where that stops in Python."""
    if attempt.least:
        options = changed(options, max_iter=min(attempt.max_iter, options.max_iter))
    handed: Handed | None = None
    if not takes(attempt):
        why = "attempts of this kind run in Python"
    elif watch is None:
        why = "every iterate is looked at"
    else:
        begun = changed(numbers, x0=attempt.start)
        done = run_on_engine(program, begun, options, attempt, watch, before)
        if isinstance(done, Result):
            return done
        handed, why = (done, done.why) if isinstance(done, Handed) else (None, done)
        if attempt.near and (handed is None or (handed.start_is_best and handed.ended is None)):
            # The point given is the best of all, and Python goes on from there.
            watch.drop(before)
            handed = None
        elif handed is not None and handed.is_lottery:
            watch.drop(before)
            handed = None
    return go_on(program, numbers, options, watch, observers, tests, attempt, before, handed, why)


def go_on(
    program: Problem,
    numbers: Numbers,
    options: Limits,
    watch: Watch | None,
    observers: Sequence[Observer],
    tests: Sequence[StoppingTest],
    attempt: Attempt,
    before: int,
    handed: Handed | None,
    why: str,
) -> Result:
    """An attempt in Python, from where the engine has left it if that has begun it.

    Raises:
        Interrupted: with the best point, where Ctrl-C ended it there or ends it here.
    """
    x0, p, bounds, tolerances = attempt.start, numbers.p, numbers.bounds, options.tolerances
    try:
        form = StandardForm(
            program, bounds, p, x0, attempt.relaxation, WIDEST * tolerances.feasibility,
            scaled=attempt.scaled, even=attempt.composite, beside=attempt.beside,
            dense=attempt.composite,
        )  # fmt: skip
    except EvaluationError as error:
        return undefined_result(program, bounds, p, x0, tolerances, error, why)
    trail = Trail(tolerances.feasibility)
    ray, patience = RayTest(bounds, tolerances), Patience(attempt.max_iter, tolerances)
    method = Composite if attempt.composite else Barrier
    barrier = method(form, settings_of(attempt, options), attempt.warm)
    earlier = None
    if handed is not None:
        assert isinstance(barrier, Barrier)
        assert watch is not None
        earlier = handed.resume(barrier, trail, watch, ray, patience, before)
        if handed.ended is not None:
            outcome = handed.outcome(barrier, earlier, before)
            found = make_result(program, barrier, outcome, tolerances, x0, trail, handed.why)
            return altered(
                found, engine="c", kernel=handed.kernel, evaluations=dict(handed.evaluations),
                seconds=dict(handed.seconds),
            )  # fmt: skip
    try:
        if handed is not None and handed.interrupted:
            raise interrupted_on_engine(handed, earlier)
        outcome = iterate(
            Oracle(program.functions, p),
            barrier,
            Start(x0, np.zeros(program.m)),
            [
                ray,
                KKTTest(tolerances),
                *tests,
                LimitTest(1 if attempt.beside else options.max_iter, options.max_time),
                patience,
            ],
            tolerances,
            [trail, *(partial(observe, multipliers=barrier.multipliers) for observe in observers)],
            before,
            earlier,
        )
    except Interrupted as halt:
        halt.result = make_result(program, barrier, halt.result, tolerances, x0, trail, why)
        raise
    return make_result(program, barrier, outcome, tolerances, x0, trail, why)
