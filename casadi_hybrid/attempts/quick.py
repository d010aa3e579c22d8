"""A warm start on the engine in C: where its warm mode solves, nothing else has to be made."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.attempts.attempts import WARM_NU
from casadi_hybrid.attempts.verdict import context_of
from casadi_hybrid.barrier.barrier import Barrier
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.call import Call
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.kernel.sparse import Sparse
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.patterns import patterns_of
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import Linearization
from casadi_hybrid.stopping import Limits


def quick_solve(problem: Problem, call: Call) -> Solved | str:
    """The solution that the warm mode of the engine finds, or why it was not asked or found none.

    What it does not solve is left to the Python path, which begins as if this had not been.
    """
    if call.warm is None:
        return "there is no warm start"
    watch = call.watch
    told = call.callback or call.stopping or call.history or call.log
    if told or not (watch is None or watch.silent):
        return "every iterate is looked at"
    if call.limits.max_time < np.inf:
        return "there is a limit in seconds"
    engine = engine_of(problem)
    if isinstance(engine, str):
        return engine
    return engine.solve(call.numbers, call.warm, call.limits)


def observe(found: Solved, watch: Watch) -> None:
    """Let a watch record the two iterates of the warm mode, the first and the last."""
    said = found.said
    at, end = said.start, said.end
    first = (0, at.f, at.feasibility, at.stationarity, at.complementarity, WARM_NU)
    watch.jump((*first, 0.0, 0.0, 0.0, 0.0), None)
    if found.steps:
        last = (found.steps, end.f, end.feasibility, end.stationarity, end.complementarity, 0.0)
        watch.jump((*last, said.moved, 1.0, 1.0, 0.0), found.steps - 1)


def result_of(
    problem: Problem, numbers: Numbers, limits: Limits, found: Solved, watch: Watch
) -> Result:
    """The result of a solve on the engine."""
    bounds, said, x = numbers.bounds, found.said, found.array("x")
    pattern = patterns_of(problem)[0]
    clipped = np.clip(numbers.x0, bounds.lbx, bounds.ubx)
    start = np.where(bounds.lbx < bounds.ubx, numbers.x0, clipped)
    step = x - clipped
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
        step=step if step.any() else None,
        iterations=found.steps,
        evaluations={"first": said.firsts, "second": said.seconds, "undefined": 0},
        seconds={"first": said.in_firsts, "second": said.in_seconds},
        elapsed=said.elapsed,
        tolerances=limits.tolerances,
        method=Barrier.label,
        engine="c",
        kernel="ldl",
        history=watch.course(),
        **context_of(problem, numbers.x0, numbers.p),
    )
