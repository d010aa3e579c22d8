"""From what the engine in C has solved to the result, and to the list of iterates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.outline import SVD, first_row, kernel_of, rows_of, spent_in
from casadi_hybrid.attempts.verdict import context_of
from casadi_hybrid.barrier.barrier import Barrier
from casadi_hybrid.barrier.composite import Composite
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.solved import ColdSolve, Solved
from casadi_hybrid.engine.structures import AnswerData
from casadi_hybrid.kernel.sparse import Sparse
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.evaluator import patterns_of
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import Linearization, inside_of


def observe_start(said: AnswerData, watch: Watch) -> None:
    """Let a watch record the first iterate of the warm mode."""
    watch.jump(first_row(said), None)


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


def cold_result(
    problem: Problem,
    numbers: Numbers,
    limits: Limits,
    found: Solved,
    cold: ColdSolve,
    watch: Watch,
) -> Result:
    """The result of a solve by an attempt after the warm mode, whose history the watch has then."""
    runs = [found.said]
    if cold.warm is not None:
        observe_start(cold.warm, watch)
        runs.insert(0, cold.warm)
    watch.take(cold.rows, 0, 0.0)
    spent = spent_in(*runs, undefined=cold.undefined)
    made = result_of(problem, numbers, limits, found, cold.step, *spent, composite=cold.composite)
    return altered(made, history=watch.course(), limits=limits)


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
        kernel=SVD if composite else kernel_of(said),
        **context_of(problem, x0, numbers.p),
    )
