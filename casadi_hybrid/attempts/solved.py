"""From what the engine in C has solved to the result, and to the list of iterates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.attempt import WARM_NU
from casadi_hybrid.attempts.verdict import context_of
from casadi_hybrid.barrier.barrier import Barrier
from casadi_hybrid.barrier.composite import Composite
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.course.record import Watch, held
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import AnswerData
from casadi_hybrid.kernel.sparse import Sparse
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.evaluator import patterns_of
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import Linearization, inside_of
from casadi_hybrid.standard_form.structure import DENSE_LIMIT

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
    kernel, hessian = _kernel_of(problem, said), problem.functions.hessian
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
    """Let a watch record the first iterate of the warm mode."""
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


def cut_off(result: Result, limits: Limits) -> Result:
    """The result of a warm mode that a limit has ended."""
    late = result.elapsed >= limits.max_time
    feasible = result.residuals.feasibility <= limits.tolerances.feasibility
    return altered(
        result,
        stop=StopReason.TIME_LIMIT if late else StopReason.ITERATION_LIMIT,
        point=PointStatus.FEASIBLE_NOT_STATIONARY if feasible else PointStatus.NOT_CONVERGED,
    )


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
        kernel=SVD if composite else _kernel_of(problem, said),
        **context_of(problem, x0, numbers.p),
    )


def _kernel_of(problem: Problem, said: AnswerData) -> str:
    """The kernel that had the last word at least once."""
    if said.outside:
        return "lapack" if problem.n + problem.m <= DENSE_LIMIT else "feral"
    return "ldl" if said.chosen else "ldl-fixed"
