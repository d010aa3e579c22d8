r"""The result of a solve by the default method.

The core (``core/src``) runs phases one after another until one ends at a solution or at a proof
that there is none. For the standard form min f(w), c(w) = 0, l ≤ w ≤ u each iteration of the
interior-point method solves

    [ W + Σ + σI   Aᵀ ] [ dw ]     [ ∇φ_ν + Aᵀy ]
    [     A      −εI ] [ dy ] = − [      c      ],   Σ = Z_l/(w − l) + Z_u/(u − w),

with φ_ν = f − νΣlog(w − l) − νΣlog(u − w); σ is raised until the inertia of the matrix is that of
a minimum. Globalization is the filter line search of Wächter and Biegler (Math. Program. 106, 2006)
with second-order corrections on the same factor, and ν falls by min(0.2ν, ν^1.5). Where the filter
blocks, or nothing improves any more, the elastic problem reduces ‖c‖₁ by the same steps with a
penalty for every row. If that ends at a stationary violation, a least-squares problem reduces ‖c‖₂,
which can prove infeasibility. Once ν is small and the active set clear, one step goes to its
solution.
"""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.binding.core import engine_of
from casadi_hybrid.core.binding.solved import Solved
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import Evaluator
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.point.linearization import Linearization
from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.record.answer import Ending
from casadi_hybrid.solver.record.record import course_of, each_step
from casadi_hybrid.solver.result import Result
from casadi_hybrid.utils.errors import (
    BrokenFunctionError,
    EvaluationError,
    InputError,
    OutOfTimeError,
)
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.sparse import Sparse
from casadi_hybrid.utils.status import Conditions, PointStatus, StopReason

# Members by hybrid_answer.stop.
STOPS = tuple(reason for reason in StopReason if hasattr(C, f"HYBRID_STOP_{reason.name}"))
# Members by hybrid_answer.point.
POINTS = tuple(PointStatus)
# Members by hybrid_answer.order.
CONDITIONS = tuple(Conditions)
# Causes of a stalled iteration by hybrid_answer.cause.
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
_LIMITS = StopReason.STOPPED_BY_USER, StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT
_FINAL = PointStatus.KKT_POINT, PointStatus.UNDEFINED
_PLAIN = StopReason.CONVERGED, StopReason.UNBOUNDED, *_LIMITS
# Name of the method in a result.
BARRIER = "hybrid (barrier)"
# Kinks next to the point of a stalled solve.
_NEAR, _NEARER = 1e-6, 1e-8  # distances, relative to max(1, |x|)
_JUMP = 1e-3  # least jump, relative to the largest derivative of the same function


def end_of(run: Solved) -> Ending:
    """Return the end of a solve by the core, also if an exception or Ctrl-C ended it."""
    said, raised = run.said, run.raised
    stop, point = STOPS[said.stop], POINTS[said.point]
    error = None if point is PointStatus.KKT_POINT else _undefined(run)
    phases = "phase" if said.phases == 1 else "phases"
    detail = f"none of {said.phases} {phases} came further"
    # An exception ended the solve from outside: the core knows nothing of it.
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
        stop=stop,
        point=point,
        conditions=CONDITIONS[said.order],
        detail=detail,
        error=error,
        iterations=said.steps,
        evaluations={
            "first": said.firsts,
            "values": said.values,
            "second": said.seconds,
            "undefined": said.undefined,
        },
        elapsed=said.elapsed,
        seconds={"first": said.in_firsts, "values": said.in_values, "second": said.in_seconds},
        method=BARRIER,
        hessian=run.problem.functions.hessian,
        engine="c",
        kernel="ldl" if said.chosen else "ldl-fixed",
    )


def result_of(run: Solved) -> Result:
    """Return the result of a solve by the core."""
    said, problem, arrays = run.said, run.problem, run.arrays
    start, end = None, None
    if POINTS[said.point] is not PointStatus.UNDEFINED:
        J = problem.functions.entries[0]
        start = Linearization(arrays["x_start"], arrays["gradient0"], Sparse(J, arrays["J0"]))
        end = Linearization(arrays["x"], arrays["gradient"], Sparse(J, arrays["J"]))
    ending, f = end_of(run), said.end.f
    if start is None and ending.error is not None:
        f = ending.error.objective
    remarks = _remarks(problem)
    # Finite differences have jumps of their own.
    failed = ending.stop is StopReason.STALLED and not ending.success
    if failed and not problem.functions.differenced and engine_of(problem).evaluate is not None:
        remarks += _kinks(problem, arrays["x"], arrays["p"])
    if run.faint:
        remarks += (run.faint,)
    return Result(
        x=arrays["x"],
        g=arrays["g"],
        lam_x=arrays["lam_x"],
        lam_g=arrays["lam_g"],
        last=last_of(run),
        f=f,
        residuals=Residuals(said.end.feasibility, said.end.stationarity, said.end.complementarity),
        certificate=None if isnan(said.certificate) else said.certificate,
        start=start,
        end=end,
        step=arrays["step"] if said.step and said.stepped else None,
        history=course_of(each_step(run.rows, said.steps)),
        **vars(ending),
        remarks=remarks,
        **_context(run),
    )


def last_of(run: Solved) -> dict[str, Any]:
    """Start of a solve that continues this one: the last iterate at a limit, else x."""
    arrays, point = run.arrays, POINTS[run.said.point]
    if STOPS[run.said.stop] in _LIMITS and point not in _FINAL:
        last, n = arrays["last"], run.problem.n
        return {"x0": last[:n], "lam_x0": last[n : 2 * n], "lam_g0": last[2 * n :]}
    return {"x0": arrays["x"], "lam_x0": arrays["lam_x"], "lam_g0": arrays["lam_g"]}


def _undefined(run: Solved) -> EvaluationError | None:
    """Return the last undefined value of a function; None if all were defined."""
    said, arrays = run.said, run.arrays
    x = arrays["x"]
    seen = bool(said.x_undefined and x.size) and not np.isnan(arrays["x_undefined"][0])
    if not seen and STOPS[said.stop] is not StopReason.EVALUATION_ERROR:
        return None
    # Functions in Python have raised with the place; those in C are called again for it.
    if engine_of(run.problem).evaluate is None:
        return run.undefined
    evaluator = Evaluator(run.problem, arrays["p"])
    x = arrays["x_undefined"] if seen else x
    try:
        evaluator.first(x)
        evaluator.hessian(x, arrays["lam_g"])
    except EvaluationError as error:
        return error
    except InputError:  # there are no second derivatives
        pass
    return None


def _kinks(problem: Problem, x: Vector, p: Vector) -> tuple[str, ...]:
    """Return a sentence on the function with the largest jump of a derivative across x."""
    # One fixed direction in which every variable moves, each by another amount: multiples of an
    # irrational number spread evenly over [0, 1).
    weights = 1.0 + np.modf(0.7548776662466927 * np.arange(1, x.size + 1))[0]
    direction = weights * np.maximum(1.0, np.abs(x))
    evaluator, jumps = Evaluator(problem, p), []
    try:
        for distance in (_NEAR, _NEARER):
            sides = [_first_derivatives(evaluator, x + s * distance * direction) for s in (-1, 1)]
            jumps.append(np.abs(sides[1][0] - sides[0][0]))
    except EvaluationError:
        return ()
    (before, rows, columns), (after, *_) = sides
    size = np.zeros(1 + problem.m)
    np.maximum.at(size, rows, np.maximum(np.abs(before), np.abs(after)))
    near, nearer = jumps
    # On a hundredth of the distance a smooth derivative changes by a hundredth; a jump stays as
    # large.
    jump = np.where((nearer >= 0.5 * near) & (nearer > _JUMP * size[rows]), nearer, 0.0)
    k = int(np.argmax(jump))
    if not jump[k] > 0.0:
        return ()
    name = ("the objective", *problem.functions.constraint_names)[rows[k]]
    return (
        f"{name} has a kink at this point: its derivative by "
        f"{problem.functions.variable_names[columns[k]]} jumps from {before[k]:.3g} to "
        f"{after[k]:.3g}. Smooth it (fmax, fabs, norm_2 at 0, the knots of an interpolation), or "
        "state its pieces as constraints of a variable",
    )


def _first_derivatives(
    evaluator: Evaluator, x: Vector
) -> tuple[Vector, NDArray[np.intp], NDArray[np.intp]]:
    """Nonzeros of (∇fᵀ; J_g) with their rows and columns."""
    _, gradient, _, J = evaluator.first(x)
    J = J.tocoo()
    rows = np.append(np.zeros(gradient.size, dtype=int), J.row + 1)
    return np.append(gradient, J.data), rows, np.append(np.arange(gradient.size), J.col)


def _remarks(problem: Problem) -> tuple[str, ...]:
    """Remarks on derivatives that are missing or inaccurate."""
    functions, remarks = problem.functions, []
    if functions.lacking:
        remarks.append(f"there are no second derivatives to rely on: {functions.lacking}")
    if functions.differenced:
        remarks.append(
            "first derivatives are finite differences, so residuals are known no better than "
            "these: about 1e-8 of the size of what is differenced"
        )
    return tuple(remarks)


def context_of(
    problem: Problem, x0: Vector, p: Vector, bounds: Bounds, limits: Limits
) -> dict[str, Any]:
    """Fields of a result with its problem and the arguments of its solve."""
    functions = problem.functions
    return {
        "problem": problem.name,
        "constraint_names": functions.constraint_names,
        "variable_names": functions.variable_names,
        "patterns": functions.patterns,
        "bounds": bounds,
        "x0": x0,
        "p": p,
        "tolerances": limits.tolerances,
        "limits": limits,
    }


def _context(run: Solved) -> dict[str, Any]:
    arrays = run.arrays
    bounds = Bounds(arrays["lbx"], arrays["ubx"], arrays["lbg"], arrays["ubg"])
    return context_of(run.problem, arrays["x0"], arrays["p"], bounds, run.limits)


def unknown_at(x: Vector, problem: Problem) -> dict[str, Any]:
    """Fields of a result at a point without any evaluation."""
    return {
        "x": x,
        "f": np.nan,
        "g": np.full(problem.m, np.nan),
        "lam_x": np.zeros(problem.n),
        "lam_g": np.zeros(problem.m),
        "residuals": Residuals(np.inf, np.inf, np.inf),
        "point": PointStatus.UNDEFINED,
    }


def undefined_result(run: Solved, error: EvaluationError) -> Result:
    """Return the result of a solve that could not begin, for this error."""
    return Result(
        **unknown_at(run.arrays["x0"], run.problem),
        stop=StopReason.EVALUATION_ERROR,
        detail=f"iteration 0: {error}",
        error=error,
        iterations=0,
        evaluations={},
        elapsed=0.0,
        method=BARRIER,
        hessian=run.problem.functions.hessian,
        remarks=_remarks(run.problem),
        **_context(run),
    )
