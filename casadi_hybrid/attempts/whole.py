"""A solve by the core: numbers in, a result out."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.attempts.solved import spent_in
from casadi_hybrid.attempts.verdict import context_of
from casadi_hybrid.barrier.barrier import Barrier
from casadi_hybrid.barrier.composite import Composite
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.solve import Core
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.kernel.sparse import Sparse
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.evaluator import patterns_of
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import Linearization, inside_of
from casadi_hybrid.point.limits import Limits

STOPS = (
    StopReason.CONVERGED, StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT, StopReason.DIVERGED,
    StopReason.EVALUATION_ERROR, StopReason.STOPPED_BY_USER, StopReason.LOCALLY_INFEASIBLE,
    StopReason.UNBOUNDED, StopReason.NO_MULTIPLIERS, StopReason.STALLED,
)  # fmt: skip
POINTS = (
    PointStatus.KKT_POINT, PointStatus.FRITZ_JOHN_POINT, PointStatus.FEASIBLE_NOT_STATIONARY,
    PointStatus.STATIONARY_NOT_FEASIBLE, PointStatus.INFEASIBLE_STATIONARY,
    PointStatus.NOT_CONVERGED, PointStatus.UNDEFINED,
)  # fmt: skip
COMPOSITE = 2


def solve_by_core(
    problem: Problem, numbers: Numbers, limits: Limits, warm: WarmStart | None, watch: Watch
) -> Result | str:
    """The result; why not, where the core does not take the problem."""
    engine = engine_of(problem)
    if isinstance(engine, str):
        return engine
    space = engine.prepare(numbers.bounds)
    space.fill(numbers, warm or WarmStart(np.zeros(problem.n), np.zeros(problem.m)))
    space.limit(limits)
    space.begin_with(None if warm is None else warm.working_set)
    core = Core(engine.library, problem, limits, space)
    core.solve()
    watch.take(core.rows[: core.observer.count].tolist(), 0, 0.0)
    return result_of_answer(problem, numbers, limits, space.solved())


def result_of_answer(
    problem: Problem, numbers: Numbers, limits: Limits, found: Solved
) -> Result:
    """What C says, as a result."""
    bounds, x0, said, x = numbers.bounds, numbers.x0, found.said, found.array("x")
    pattern = patterns_of(problem)[0]
    start = clipped = np.clip(x0, bounds.lbx, bounds.ubx)
    if not said.placed:
        start = np.where(bounds.lbx < bounds.ubx, x0, clipped)
    elif said.placed > 1:
        start = inside_of(bounds, clipped)
    evaluations, seconds = spent_in(said, undefined=said.undefined)
    return Result(
        x=x,
        f=said.end.f,
        g=found.array("g"),
        bounds=bounds,
        lam_x=found.array("lam_x"),
        lam_g=found.array("lam_g"),
        residuals=found.residuals,
        stop=STOPS[said.stop],
        point=POINTS[said.point],
        certificate=None if np.isnan(said.certificate) else said.certificate,
        start=Linearization(start, found.array("gradient0"), Sparse(pattern, found.array("J0"))),
        end=Linearization(x, found.array("gradient"), Sparse(pattern, found.array("J"))),
        iterations=said.steps,
        evaluations=evaluations,
        seconds=seconds,
        elapsed=said.elapsed,
        tolerances=limits.tolerances,
        method=Composite.label if said.method == COMPOSITE else Barrier.label,
        engine="c",
        **context_of(problem, x0, numbers.p),
    )
