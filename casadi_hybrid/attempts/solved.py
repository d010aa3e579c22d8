"""From what the engine in C has solved to the result, and to the list of iterates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.attempts import WARM_NU
from casadi_hybrid.attempts.verdict import Trail, context_of, make_result
from casadi_hybrid.barrier.barrier import Barrier
from casadi_hybrid.barrier.composite import Composite
from casadi_hybrid.barrier.iterate import Iterate, Settings
from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.course.record import Watch, held
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import AnswerData
from casadi_hybrid.kernel.sparse import Sparse
from casadi_hybrid.loop import LAST_POINT, Outcome
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.evaluator import patterns_of
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import DENSE_LIMIT, Linearization, StandardForm, inside_of
from casadi_hybrid.stopping import Limits, Progress

SVD = "svd"
"""The kernel of composite steps: the engine's own singular values."""


class Outline(NamedTuple):
    """What statistics say of a solve by the warm mode, without its :class:`Result`: that takes as
    long as a small problem is solved in, and most who ask for statistics ask for nothing else.
    """

    iterations: int
    evaluations: Mapping[str, int]
    seconds: Mapping[str, float]
    elapsed: float
    hessian: str
    kernel: str
    success: bool = True
    stop: StopReason = StopReason.CONVERGED
    point: PointStatus = PointStatus.KKT_POINT
    error: Exception | None = None
    detail: str = ""
    engine: str = "c"
    engine_note: str = ""


def outline_of(problem: Problem, said: AnswerData) -> Outline:
    """That of a solve with this answer."""
    kernel, hessian = kernel_of(problem, said), problem.functions.hessian
    return Outline(said.steps, *spent_in(said), said.elapsed, hessian, kernel)


def rows_of(said: AnswerData) -> list[tuple[Any, ...]]:
    """The two iterates of a warm solve as they are recorded: the first, which stays until the last
    step, and the last.
    """
    rows = [_row(0, said.start, WARM_NU)]
    if said.steps:
        for _ in range(said.steps - 1):
            rows.append(held(rows[-1]))
        rows.append(_row(said.steps, said.end, 0.0, said.moved, 1.0, 1.0))
    return rows


def _row(t: int, at: Any, nu: float, moved: float = 0.0, *parts: float) -> tuple[Any, ...]:
    known = (at.f, at.feasibility, at.stationarity, at.complementarity)
    return (t, *known, nu, moved, *(parts or (0.0, 0.0)), 0.0)


def observe_start(said: AnswerData, watch: Watch) -> None:
    """Let a watch record the first iterate of the warm mode, where that is defined."""
    if said.start.f == said.start.f:
        watch.jump(_row(0, said.start, WARM_NU), None)


def observe(said: AnswerData, watch: Watch) -> None:
    """Let a watch record the two iterates of a warm solve."""
    for row in rows_of(said):
        watch.jump(row, None)


def warm_result(problem: Problem, numbers: Numbers, limits: Limits, found: Solved) -> Result:
    """The result of a solve by the warm mode, without its history."""
    bounds, said = numbers.bounds, found.said
    step = found.array("x") - np.clip(numbers.x0, bounds.lbx, bounds.ubx)
    last = step if step.any() else None
    return result_of(problem, numbers, limits, found, last, *spent_in(said))


def seen(barrier: Barrier, it: Iterate, t: int, before: int) -> Progress:
    """What the loop sees of an iterate."""
    state = barrier.state_of(it, t)
    return Progress(state, it.at, barrier.residuals(state, it.at), None, 0.0, before)


def warm_end(
    problem: Problem,
    numbers: Numbers,
    limits: Limits,
    start: WarmStart,
    settings: Settings,
    found: Solved,
    stop: StopReason,
) -> Result:
    """The result of the warm mode where that has ended without a solution for good.

    Args:
        problem, numbers, limits: what was solved, from where, and to which tolerances.
        start: the multipliers.
        settings: of the attempt.
        found: the last iterate.
        stop: why it has ended.
    """
    form = StandardForm(problem, numbers.bounds, numbers.p, numbers.x0)
    barrier, trail = Barrier(form, settings, start), Trail(limits.tolerances.feasibility)
    given, x = barrier.given(), found.array("x")
    assert given is not None
    rows = form.with_slacks(form.point(np.concatenate((x[form.free], form.start[form.n_free :]))))
    at = form.point(np.clip(rows, form.lower, form.upper))
    y, lower, upper = form.from_user_multipliers(found.array("lam_x"), found.array("lam_g"))
    it = changed(given, at=at, y=y, z_lower=lower, z_upper=upper)
    iterates = [seen(barrier, given, 0, 0), seen(barrier, it, found.steps, 0)]
    for progress in iterates:
        trail(progress)
    last = iterates[-1]
    best = last
    if stop not in LAST_POINT:
        best = min(iterates, key=lambda one: limits.tolerances.merit(one.residuals))
    outcome = Outcome(stop, "", last, best, found.steps, found.said.elapsed)
    made = make_result(problem, barrier, outcome, limits.tolerances, numbers.x0, trail, "")
    evaluations, seconds = spent_in(found.said)
    kernel = kernel_of(problem, found.said)
    return altered(made, engine="c", kernel=kernel, evaluations=evaluations, seconds=seconds)


def spent_in(*runs: AnswerData, undefined: int = 0) -> tuple[dict[str, int], dict[str, float]]:
    """The evaluations of the problem's functions in runs on the engine, and their seconds, by kind.

    Args:
        *runs: what C says of each.
        undefined: trial points in them at which a function was not defined.
    """
    evaluations = {
        "first": sum(said.firsts for said in runs),
        "second": sum(said.seconds for said in runs),
        "undefined": undefined,
    }
    seconds = {
        "first": sum(said.in_firsts for said in runs),
        "second": sum(said.in_seconds for said in runs),
    }
    return evaluations, seconds


def result_of(
    problem: Problem,
    numbers: Numbers,
    limits: Limits,
    found: Solved,
    step: Vector | None,
    evaluations: Mapping[str, int],
    seconds: Mapping[str, float],
    *,
    composite: bool = False,
) -> Result:
    """The result of what a mode has solved.

    Args:
        problem, numbers, limits: what was solved, from where, and to which tolerances.
        found: what C says.
        step: the last one before the solution, None where none was taken.
        evaluations, seconds: of the problem's functions, by kind.
        composite: whether by composite steps.
    """
    bounds, x0, said, x = numbers.bounds, numbers.x0, found.said, found.array("x")
    pattern = patterns_of(problem)[0]
    start = clipped = np.clip(x0, bounds.lbx, bounds.ubx)
    if not said.placed:
        start = np.where(bounds.lbx < bounds.ubx, x0, clipped)
    elif said.placed > 1:
        start = inside_of(bounds, clipped)
    return Result(
        x=x,
        f=said.end.f,
        g=found.array("g"),
        bounds=bounds,
        lam_x=found.array("lam_x"),
        lam_g=found.array("lam_g"),
        residuals=found.residuals,
        stop=StopReason.CONVERGED,
        point=PointStatus.KKT_POINT,
        start=Linearization(start, found.array("gradient0"), Sparse(pattern, found.array("J0"))),
        end=Linearization(x, found.array("gradient"), Sparse(pattern, found.array("J"))),
        step=step,
        iterations=found.steps,
        evaluations=evaluations,
        seconds=seconds,
        elapsed=said.elapsed,
        tolerances=limits.tolerances,
        method=Composite.label if composite else Barrier.label,
        engine="c",
        kernel=SVD if composite else kernel_of(problem, said),
        **context_of(problem, x0, numbers.p),
    )


def kernel_of(problem: Problem, said: AnswerData) -> str:
    """The kernel that had the last word at least once."""
    if said.outside:
        return "lapack" if problem.n + problem.m <= DENSE_LIMIT else "feral"
    return "ldl" if said.chosen else "ldl-fixed"
