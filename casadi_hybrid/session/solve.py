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

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

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
from casadi_hybrid.basics.status import Conditions, PointStatus, StopReason
from casadi_hybrid.engine.core import STARTS, engine_of
from casadi_hybrid.engine.header import C
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.iterations.law import State
from casadi_hybrid.iterations.stopping import Progress
from casadi_hybrid.point.limits import METHOD_NAMES, Limits
from casadi_hybrid.point.linearization import Linearization
from casadi_hybrid.point.residuals import Residuals
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import Evaluator
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result.answer import Ending, altered
from casadi_hybrid.result.call import Call
from casadi_hybrid.result.history import Recorder
from casadi_hybrid.result.record import Watch
from casadi_hybrid.result.result import Result
from casadi_hybrid.result.view import View

STOPS = tuple(one for one in StopReason if hasattr(C, f"HYBRID_STOP_{one.name}"))
"""Of ``hybrid_answer.stop``."""
POINTS = tuple(PointStatus)
"""Of ``hybrid_answer.point``."""
CONDITIONS = tuple(Conditions)
"""Of ``hybrid_answer.order``."""
CAUSES = {
    C.HYBRID_TINY_STEPS: "the steps have become tiny",
    C.HYBRID_WRONG_INERTIA: "no shift of the Hessian gives the KKT matrix the inertia of a minimum",
    C.HYBRID_NO_PROGRESS: "nothing improves any more",
    C.HYBRID_NO_DESCENT: "no step decreases the barrier function any more",
    C.HYBRID_SLOW_VIOLATION: "the constraint violation fell by less than 10 % over 50 steps",
    C.HYBRID_ROUNDED_VIOLATION: "the violation is at the level of rounding",
    C.HYBRID_LEAST_SQUARES: "the constraint violation is stationary but not zero: the constraints "
    "are inconsistent, or this is a local minimum of their violation",
    C.HYBRID_LEAST_SUM: "the sum of the violations is stationary but not zero: the constraints are "
    "inconsistent, or this is a local minimum of their violation",
}
"""Why no step led on: ``hybrid_answer.cause``."""
_LIMITS = {StopReason.STOPPED_BY_USER, StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT}
_PLAIN = {StopReason.CONVERGED, StopReason.UNBOUNDED} | _LIMITS
BARRIER = "hybrid (barrier)"
"""Name of the method in a result."""


@dataclass(frozen=True)
class Automatic:
    """The default method: the core in C, for every problem."""

    label: str = METHOD_NAMES[0]
    limits: Limits = field(default_factory=Limits)

    def refusal(self, problem: Problem, bounds: Bounds) -> str:
        """It takes all."""
        return ""

    def run(self, problem: Problem, call: Call) -> Result:
        """Solve, with the course of the solve in the result, also where Ctrl-C ended it."""
        if call.x_prev is not None:
            raise InputError(f"x_prev is for methods with memory; method {self.label!r} has none")
        watch, recorder, reasons = Watch(log=call.log), Recorder(), list[StopReason]()
        nothing = np.zeros(problem.m)

        def look(view: View) -> bool:
            watch.see(view)
            t, f, *residuals = view.row[:5]
            state = State(view.x, view.lam_g, nothing, view.lam_g, int(t), None)
            at = SimpleNamespace(f=f, h=view.g)
            progress = Progress(state, at, Residuals(*residuals), None, view.row[-1])
            if call.history:
                recorder.hold(progress.t - 1)
                recorder(progress, lam_x=view.lam_x, nu=view.row[5], shift=view.row[9])
            if call.callback is not None and call.callback(progress) is True:
                return True
            for test in call.stopping:
                if (reason := test(progress)) is not None:
                    reasons.append(reason)
                    return True
            return False

        core = engine_of(problem).core(call.numbers.bounds, call.limits)
        core.fill(call.numbers, call.warm)
        looked_at = call.history or call.callback or call.stopping or call.log
        core.solve(call.limits, look if looked_at else None)
        run = Solved.of(core, problem, call.limits)
        watch.hold(run.said.steps)
        recorder.hold(run.said.steps)
        result, raised = result_of(run), run.raised
        if recorder.rows:
            result = altered(result, history=recorder.history())
        if reasons and result.stop is StopReason.STOPPED_BY_USER:
            result = altered(result, stop=reasons[0])
        if self.label not in METHOD_NAMES:
            result = altered(result, method=self.label)
        if isinstance(raised, KeyboardInterrupt) and not isinstance(raised, OutOfTimeError):
            raise halted(result, raised)
        if not isinstance(raised, None | BrokenFunctionError | OutOfTimeError):
            raise raised
        return result


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


def end_of(run: Solved) -> Ending:
    """How a solve by the core ended, with what ended it from outside."""
    said, raised = run.said, run.raised
    stop, point = STOPS[said.stop], POINTS[said.point]
    error = None if point is PointStatus.KKT_POINT else _undefined(run)
    runs = "run" if said.runs == 1 else "runs"
    detail = f"none of {said.runs} {runs} came further"
    if isinstance(raised, BrokenFunctionError):
        stop, error = StopReason.EVALUATION_ERROR, raised
        detail = f"iteration {said.steps}: {raised}"
    elif isinstance(raised, OutOfTimeError):
        stop, detail = StopReason.TIME_LIMIT, ""
    elif raised is not None:
        stop, detail = StopReason.STOPPED_BY_USER, "interrupted"
    elif stop in _PLAIN:
        detail = ""
    elif stop is StopReason.EVALUATION_ERROR and error is not None:
        detail = f"iteration {said.ended}: {error}"
    elif said.cause:
        detail = f"iteration {said.ended}: {CAUSES[said.cause]}"
    return Ending(
        stop=stop, point=point, conditions=CONDITIONS[said.order], detail=detail,
        error=error, iterations=said.steps,
        evaluations={
            "first": said.firsts, "values": said.values, "second": said.seconds,
            "undefined": said.undefined,
        },
        elapsed=said.elapsed,
        seconds={"first": said.in_firsts, "values": said.in_values, "second": said.in_seconds},
        method=BARRIER, hessian=run.problem.functions.hessian,
        engine="c", kernel="ldl" if said.chosen else "ldl-fixed",
    )  # fmt: skip


def result_of(run: Solved) -> Result:
    """What the core has found, as a result."""
    said = run.said
    found: dict[str, Any] = {name: run.array(name) for name in ("x", "g", "lam_x", "lam_g")}
    first, last = None, None
    if POINTS[said.point] is not PointStatus.UNDEFINED:
        pattern = run.problem.functions.entries[0]
        start = run.array("x_start")
        first = Linearization(start, run.array("gradient0"), Sparse(pattern, run.array("J0")))
        last = Linearization(found["x"], run.array("gradient"), Sparse(pattern, run.array("J")))
    ending, f = end_of(run), said.end.f
    if first is None and ending.error is not None:
        f = ending.error.objective
    return Result(
        **found,
        last=last_of(run),
        f=f,
        residuals=Residuals(said.end.feasibility, said.end.stationarity, said.end.complementarity),
        certificate=None if np.isnan(said.certificate) else said.certificate,
        start=first,
        end=last,
        step=run.array("step") if said.step and said.stepped else None,
        history=run.watch.course(),
        **vars(ending),
        remarks=(*_remarks(run.problem), *_kinks(run, ending), *filter(None, [run.faint])),
        **context_of(run.problem, run.numbers, run.limits),
    )


def last_of(run: Solved) -> dict[str, Any]:
    """Where who goes on begins: the last iterate at a limit, else x."""
    n, point = run.problem.n, POINTS[run.said.point]
    known = point in (PointStatus.KKT_POINT, PointStatus.UNDEFINED)
    if STOPS[run.said.stop] in _LIMITS and not known:
        parts: Any = np.split(run.array("last"), (n, 2 * n))
    else:
        parts = map(run.array, ("x", "lam_x", "lam_g"))
    return dict(zip(STARTS, parts, strict=True))


def _undefined(run: Solved) -> EvaluationError | None:
    """What was not defined last, found again; None where all was."""
    said, x = run.said, run.array("x")
    seen = bool(said.x_undefined and x.size) and not np.isnan(run.array("x_undefined")[0])
    if not seen and STOPS[said.stop] is not StopReason.EVALUATION_ERROR:
        return None
    if engine_of(run.problem).evaluate is None:
        return run.undefined
    evaluator = Evaluator(run.problem, run.array("p"))
    x = run.array("x_undefined") if seen else x
    try:
        evaluator.first(x)
        evaluator.hessian(x, run.array("lam_g"))
    except EvaluationError as error:
        return error
    except InputError:  # there are no second derivatives
        pass
    return None


def _kinks(run: Solved, ending: Ending) -> tuple[str, ...]:
    """Sentences about kinks where a solve has stalled."""
    at_end = ending.stop is StopReason.STALLED and ending.point is not PointStatus.KKT_POINT
    if not at_end or run.problem.functions.differenced or engine_of(run.problem).evaluate is None:
        return ()
    from casadi_hybrid.session.kinks import kinks  # noqa: PLC0415 - after a failure alone

    return kinks(run.problem, run.array("x"), run.array("p"))


def _remarks(problem: Problem) -> tuple[str, ...]:
    """What a result says of derivatives that are none, or no good ones."""
    functions, remarks = problem.functions, []
    if functions.lacking:
        remarks.append(f"there are no second derivatives to rely on: {functions.lacking}")
    if functions.differenced:
        remarks.append(
            "first derivatives are finite differences, so residuals are known no better than "
            "these: about 1e-8 of the size of what is differenced"
        )
    return tuple(remarks)


def context_of(problem: Problem, numbers: Numbers, limits: Limits) -> dict[str, Any]:
    """What a result says of its problem and of what it was asked."""
    functions = problem.functions
    return {
        "problem": problem.name,
        "constraint_names": functions.constraint_names,
        "variable_names": functions.variable_names,
        "patterns": functions.patterns,
        "bounds": numbers.bounds,
        "x0": numbers.x0,
        "p": numbers.p,
        "tolerances": limits.tolerances,
        "limits": limits,
    }


def unknown_at(x: Vector, problem: Problem) -> dict[str, Any]:
    """What a result says of a point where nothing could be evaluated."""
    n, m = problem.n, problem.m
    return {
        "x": x, "f": np.nan, "g": np.full(m, np.nan), "lam_x": np.zeros(n), "lam_g": np.zeros(m),
        "residuals": Residuals(np.inf, np.inf, np.inf), "point": PointStatus.UNDEFINED,
    }  # fmt: skip


def undefined_result(run: Solved, error: EvaluationError) -> Result:
    """The result of a solve that could not be begun, for this error."""
    return Result(
        **unknown_at(run.array("x0"), run.problem),
        stop=StopReason.EVALUATION_ERROR,
        detail=f"iteration 0: {error}",
        error=error,
        iterations=0,
        evaluations={},
        elapsed=0.0,
        method=BARRIER,
        hessian=run.problem.functions.hessian,
        remarks=_remarks(run.problem),
        **context_of(run.problem, run.numbers, run.limits),
    )
