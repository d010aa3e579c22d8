r"""A solve by the default method: numbers in, a result out.

The core (``engine/c``) makes runs one after another until one is a solution or a proof that there
is none. For the standard form min f(w), c(w) = 0, l ≤ w ≤ u each iteration of the interior-point
method solves

    [ W + Σ + σI   Aᵀ ] [ dw ]     [ ∇φ_ν + Aᵀy ]
    [     A      −εI ] [ dy ] = − [      c      ],   Σ = Z_l/(w − l) + Z_u/(u − w),

with φ_ν = f − νΣlog(w − l) − νΣlog(u − w). This is :mod:`casadi_hybrid.iterations.law` with base
multiplier y, correction M = ε⁻¹I and primal metric P = (W + Σ + σI + AᵀMA)⁻¹; σ is raised until
the inertia of the matrix says that P is positive definite where it has to be. Globalization is the
filter line search of Wächter and Biegler (Math. Program. 106, 2006) with second-order corrections
on the same factor, and ν falls by min(0.2ν, ν^1.5). Where the filter blocks, or nothing improves
any more, the elastic problem reduces ‖c‖₁ by the same steps with a penalty for every row; where
that ends at a stationary violation, a least-squares problem reduces ‖c‖₂, which can prove it. Once
ν is small and the active set clear, one step goes to its solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from casadi_hybrid.basics.errors import (
    BrokenFunctionError,
    EvaluationError,
    InputError,
    Interrupted,
    OutOfTimeError,
)
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.sparse import Sparse
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.engine.solve import Core
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import CAUSES
from casadi_hybrid.engine.warm import any_engine_of
from casadi_hybrid.iterations.law import State
from casadi_hybrid.iterations.stopping import Progress
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.linearization import Linearization
from casadi_hybrid.point.residuals import Residuals
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import Evaluator, evaluating_until_when, patterns_of
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result.answer import altered
from casadi_hybrid.result.call import Call
from casadi_hybrid.result.history import Course, Recorder
from casadi_hybrid.result.record import Watch
from casadi_hybrid.result.result import Result
from casadi_hybrid.result.view import View

STOPS = (
    StopReason.CONVERGED, StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT, StopReason.DIVERGED,
    StopReason.EVALUATION_ERROR, StopReason.STOPPED_BY_USER, StopReason.LOCALLY_INFEASIBLE,
    StopReason.UNBOUNDED, StopReason.NO_MULTIPLIERS, StopReason.STALLED,
)  # fmt: skip
"""Of ``hybrid_answer.stop``."""
POINTS = (
    PointStatus.KKT_POINT, PointStatus.FRITZ_JOHN_POINT, PointStatus.FEASIBLE_NOT_STATIONARY,
    PointStatus.STATIONARY_NOT_FEASIBLE, PointStatus.INFEASIBLE_STATIONARY,
    PointStatus.NOT_CONVERGED, PointStatus.UNDEFINED,
)  # fmt: skip
"""Of ``hybrid_answer.point``."""
LABELS = ("hybrid (barrier)", "hybrid (barrier)", "hybrid (composite step)")
"""Of ``hybrid_answer.method``."""
_COMPOSITE = 2


@dataclass(frozen=True)
class Automatic:
    """The default method: the core in C, for every problem."""

    label: str = "auto"

    limits: ClassVar[Limits] = Limits()
    alone: ClassVar[bool] = False
    """Whether composite steps are all that is tried."""

    def refusal(self, problem: Problem, bounds: Bounds) -> str:
        """It takes all."""
        return ""

    def run(self, problem: Problem, call: Call) -> Result:
        """Solve, with the course of the solve in the result.

        Raises:
            InputError: for an x_{−1}, which it has no use for.
            Interrupted: with the best point, where Ctrl-C ended it.
        """
        if call.x_prev is not None:
            raise InputError(f"x_prev is for methods with memory; method {self.label!r} has none")
        numbers, limits = call.numbers, call.limits
        watch = call.watch or Watch(log=call.log)
        recorder = Recorder()
        core = any_engine_of(problem).core(numbers.bounds, limits, self.alone)
        fill(core, numbers, call.warm)
        reasons: list[StopReason] = []
        look = _looks(call, watch, recorder, reasons)
        core.begin(look, evaluating_until_when())
        try:
            core.solve()
        finally:
            core.end()
        found = core.space.solved()
        if look is None:
            watch.take(core.rows().tolist())
        watch.hold(found.steps)
        recorder.hold(found.steps)
        course = recorder.history() if recorder.rows else watch.course()
        raised = core.raised
        result = finished(result_of(problem, numbers, limits, found), course, raised)
        if reasons and result.stop is StopReason.STOPPED_BY_USER:
            result = altered(result, stop=reasons[0])
        if self.label != "auto":
            result = altered(result, method=self.label)
        if isinstance(raised, KeyboardInterrupt):
            raise halted(result, raised)
        if raised is not None and not isinstance(raised, BrokenFunctionError):
            raise raised
        return result


def fill(core: Core, numbers: Numbers, warm: WarmStart | None) -> None:
    """Hand the numbers of a solve to the core, which keeps to its own limits."""
    space = core.space
    none = WarmStart(np.zeros(numbers.x0.size), np.zeros(numbers.bounds.lbg.size))
    space.fill(numbers, warm or none)
    space.limit(core.limits)
    space.begin_with(None if warm is None else warm.working_set)


def finished(result: Result, course: Course, raised: BaseException | None) -> Result:
    """The result with its course, and with what ended the solve from outside the core."""
    others: dict[str, Any] = {"history": course}
    if isinstance(raised, BrokenFunctionError):
        others |= {
            "stop": StopReason.EVALUATION_ERROR, "error": raised,
            "detail": f"iteration {result.iterations}: {raised}",
        }  # fmt: skip
    elif isinstance(raised, OutOfTimeError):
        others |= {"stop": StopReason.TIME_LIMIT, "detail": ""}
    elif raised is not None:
        others |= {"stop": StopReason.STOPPED_BY_USER, "detail": "interrupted"}
    return altered(result, **others)


def halted(result: Result, raised: KeyboardInterrupt) -> Interrupted:
    """What Ctrl-C becomes: it has the best point until then.

    Raises:
        KeyboardInterrupt: where there is none.
    """
    if result.point is PointStatus.UNDEFINED and not isinstance(raised, OutOfTimeError):
        raise raised
    halt = raised if isinstance(raised, Interrupted) else Interrupted()
    if halt is not raised:
        halt.__cause__ = raised
    halt.result = result
    return halt


@dataclass(frozen=True)
class _At:
    """The functions at an iterate, as far as an observer may ask."""

    objective: float
    constraints: Vector


def _looks(
    call: Call, watch: Watch, recorder: Recorder, reasons: list[StopReason]
) -> Callable[[View], bool] | None:
    """What is shown every iterate; None where nobody looks before the solve has ended.

    Reasons gets what a stopping test says.
    """
    if not (call.history or call.callback or call.stopping or not watch.silent):
        return None
    nothing = np.zeros(call.numbers.bounds.lbg.size)

    def look(view: View) -> bool:
        watch.see(view)
        t, f, *residuals = view.row[:5]
        state = State(view.x, view.lam_g, nothing, view.lam_g, int(t), None)
        at = _At(f, view.g)
        progress = Progress(state, at, Residuals(*residuals), None, view.row[-1])
        if call.history:
            recorder.hold(progress.t - 1)
            recorder(progress, lam_x=view.lam_x, nu=view.row[5], shift=view.row[9])
        stop = watch.stop
        if call.callback is not None:
            stop = call.callback(progress) is True or stop
        for test in () if stop else call.stopping:
            if (reason := test(progress)) is not None:
                reasons.append(reason)
                return True
        return stop

    return look


def result_of(problem: Problem, numbers: Numbers, limits: Limits, found: Solved) -> Result:
    """What the core has found, as a result."""
    bounds, x0, said, x = numbers.bounds, numbers.x0, found.said, found.array("x")
    pattern = patterns_of(problem)[0]
    start = clipped = np.clip(x0, bounds.lbx, bounds.ubx)
    if not said.placed:
        start = np.where(bounds.lbx < bounds.ubx, x0, clipped)
    elif said.placed > 1:
        start = _inside(bounds, clipped)
    stop, point = STOPS[said.stop], POINTS[said.point]
    error = None if point is PointStatus.KKT_POINT else _undefined(problem, numbers, found)
    first = last = None
    if point is not PointStatus.UNDEFINED:
        first = Linearization(start, found.array("gradient0"), Sparse(pattern, found.array("J0")))
        last = Linearization(x, found.array("gradient"), Sparse(pattern, found.array("J")))
    return Result(
        x=x,
        f=said.end.f,
        g=found.array("g"),
        bounds=bounds,
        lam_x=found.array("lam_x"),
        lam_g=found.array("lam_g"),
        residuals=found.residuals,
        stop=stop,
        point=point,
        detail=_detail(stop, said, error),
        error=error,
        certificate=None if np.isnan(said.certificate) else said.certificate,
        start=first,
        end=last,
        step=found.step,
        iterations=said.steps,
        evaluations={"first": said.firsts, "second": said.seconds, "undefined": said.undefined},
        seconds={"first": said.in_firsts, "second": said.in_seconds},
        elapsed=said.elapsed,
        tolerances=limits.tolerances,
        limits=limits,
        method=LABELS[min(said.method, _COMPOSITE)] if said.method == _COMPOSITE else LABELS[0],
        engine="c",
        kernel="svd" if said.method == _COMPOSITE else "ldl" if said.chosen else "ldl-fixed",
        **context_of(problem, x0, numbers.p),
    )


def _detail(stop: StopReason, said: Any, error: EvaluationError | None) -> str:
    """A sentence with the particulars of a failure, or nothing."""
    if stop in (StopReason.CONVERGED, StopReason.UNBOUNDED, StopReason.STOPPED_BY_USER):
        return ""
    if stop is StopReason.EVALUATION_ERROR and error is not None:
        return f"iteration {said.ended}: {error}"
    if stop in (StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT):
        return ""
    if said.cause:
        return f"iteration {said.ended}: {CAUSES[said.cause]}"
    runs = "run" if said.runs == 1 else "runs"
    return f"none of {said.runs} {runs} came further"


def _inside(bounds: Bounds, x: Vector) -> Vector:
    """A point a little off its bounds, as ``problem/scaling.c`` moves it there."""
    lower, upper = bounds.lbx, bounds.ubx
    room = np.minimum(1e-2, 0.25 * (upper - lower))
    return np.asarray(np.clip(x, lower + room, upper - room))


def _undefined(problem: Problem, numbers: Numbers, found: Solved) -> EvaluationError | None:
    """What was not defined last, found again; None where all was."""
    said = found.said
    if found.x_undefined is None and STOPS[said.stop] is not StopReason.EVALUATION_ERROR:
        return None
    if found.by_python:
        return found.undefined
    evaluator = Evaluator(problem, numbers.p)
    x = found.array("x") if found.x_undefined is None else found.x_undefined
    try:
        evaluator.first(x)
        evaluator.hessian(x, found.array("lam_g"))
    except EvaluationError as error:
        return error
    except InputError:  # there are no second derivatives
        pass
    return None


def context_of(problem: Problem, x0: Vector, p: Vector) -> dict[str, Any]:
    """What a result says of its problem."""
    names = problem.functions
    remarks = []
    if names.lacking:
        remarks.append(f"there are no second derivatives to rely on: {names.lacking}")
    if names.differenced:
        remarks.append(
            "first derivatives are finite differences, so residuals are known no better than "
            "these: about 1e-8 of the size of what is differenced"
        )
    return {
        "hessian": names.hessian,
        "remarks": tuple(remarks),
        "problem": problem.name,
        "constraint_names": names.constraint_names,
        "variable_names": names.variable_names,
        "patterns": names.patterns,
        "x0": x0,
        "p": p,
    }


def undefined_result(
    problem: Problem, numbers: Numbers, limits: Limits, error: EvaluationError
) -> Result:
    """The result where no iterate could be evaluated: x where that was tried, nothing known."""
    return Result(
        x=numbers.x0 if error.x is None else error.x,
        f=np.nan,
        g=np.full(problem.m, np.nan),
        bounds=numbers.bounds,
        lam_x=np.zeros(problem.n),
        lam_g=np.zeros(problem.m),
        residuals=Residuals(np.inf, np.inf, np.inf),
        stop=StopReason.EVALUATION_ERROR,
        point=PointStatus.UNDEFINED,
        detail=f"iteration 0: {error}",
        error=error,
        iterations=0,
        evaluations={},
        elapsed=0.0,
        tolerances=limits.tolerances,
        method=LABELS[0],
        **context_of(problem, numbers.x0, numbers.p),
    )
