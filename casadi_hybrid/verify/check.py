"""The entry of the verifier: collect the facts on a point, then say what speaks against it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError, InputError
from casadi_hybrid.basics.inputs import Vector, positive
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.verify.compare import compare
from casadi_hybrid.verify.ipopt import IpoptRun, run_ipopt
from casadi_hybrid.verify.kkt import FirstOrder, first_order
from casadi_hybrid.verify.point import Candidate, read_candidate
from casadi_hybrid.verify.reasons import collect_findings, collect_notes, undefined
from casadi_hybrid.verify.report import Report
from casadi_hybrid.verify.second_order.curvature import SecondOrder, second_order
from casadi_hybrid.verify.verdict import Comparison


def verify(
    problem: Problem,
    result_or_point: Any,
    *,
    p: Any = None,
    multipliers: Any = None,
    x0: Any = None,
    ipopt: bool = True,
    tol: float = 1e-6,
    scaled: bool = False,
) -> Report:
    """Judge a point of min f s.t. h = 0 independently of the solver that found it.

    The point is accepted when h = 0 and ∇f + J_hᵀλ = 0 hold within ``tol`` for multipliers that
    the verifier fits itself, when the second-order condition does not refute a minimum, and when
    IPOPT started at the point stays there. Multipliers that come with the point must satisfy the
    first-order condition too (L = f + λᵀh).

    Args:
        problem: the problem.
        result_or_point: a :class:`~casadi_hybrid.result.Result`, the answer of a CasADi solver
            (a mapping with ``x`` and, if there, ``lam_g``), or the n numbers of a point.
        p: parameter values; those of a result by default, else needed when the problem has any.
        multipliers: m numbers to judge; by default those that come with the result.
        x0: start of the solve, from which IPOPT is run for comparison; by default that of the
            result. Where IPOPT gets to from there is reported, not judged: another
            local solution is no mistake.
        ipopt: whether to run IPOPT at all.
        tol: tolerance on the residuals in the infinity norm. IPOPT may move the point by
            √tol·max(1, ‖x‖_∞).
        scaled: hold the scaled residuals against ``tol`` instead of the unscaled ones (see
            :class:`~casadi_hybrid.verify.kkt.FirstOrder`).

    Returns:
        A :class:`Report`, also for a point with NaN or where a function is undefined.

    Raises:
        InputError: for a wrong shape or type, naming the argument.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x", 2)
        >>> circle = Problem(x=x, f=x[0] + x[1], h={"circle": ca.sumsqr(x) - 2})
        >>> verify(circle, [-1, -1]).accepted
        True
        >>> [reason.name for reason in verify(circle, [1, 1]).categories]
        ['NOT_A_MINIMIZER']
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
    positive(tol, "tol")
    candidate = read_candidate(problem, result_or_point, p, multipliers, x0)
    candidate.x.setflags(write=False)

    names = problem.functions
    oracle = Oracle(names, candidate.p)
    report = partial(Report, problem=problem.name, x=candidate.x, tol=tol, scaled=scaled)
    try:
        at = _evaluate(oracle, candidate.x, names.variable_names)
    except EvaluationError as error:
        return report(f=np.nan, findings=(undefined(error),))
    first = first_order(oracle, at, candidate.multipliers)
    second = _second(oracle, at, first, candidate, tol, scaled=scaled)
    restart = reference = None
    if ipopt:

        def beside(run: IpoptRun) -> Comparison:
            return compare(
                run,
                at.x,
                at.f,
                tol,
                scaled=scaled,
                multipliers=partial(_multiplier_difference, first),
            )

        restart = beside(run_ipopt(problem, at.x, candidate.p, first.fit.multipliers))
        if candidate.x0 is not None:
            reference = beside(run_ipopt(problem, candidate.x0, candidate.p))
    return report(
        f=at.f,
        findings=collect_findings(at, names, first, second, restart, tol, scaled=scaled),
        notes=collect_notes(first, second, reference, ipopt=ipopt),
        first=first,
        second=second,
        restart=restart,
        reference=reference,
    )


def _evaluate(oracle: Oracle, x: Vector, names: tuple[str, ...]) -> Evaluation:
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size:
        raise EvaluationError("the point x", names[bad[0]], float(x[bad[0]]))
    return oracle.first(x)


def _second(
    oracle: Oracle,
    at: Evaluation,
    first: FirstOrder,
    candidate: Candidate,
    tol: float,
    *,
    scaled: bool,
) -> SecondOrder | None:
    if not first.holds(tol, scaled=scaled):
        return None
    given = first.given
    usable = given is not None and given.stationarity.within(tol, scaled=scaled)
    multipliers = candidate.multipliers if usable else None
    return second_order(oracle, at, first.fit, multipliers, first.stationarity.value, tol)


def _multiplier_difference(first: FirstOrder, run: IpoptRun) -> float | None:
    if not (first.fit.unique and run.conditions.fit.unique):
        return None
    return float(np.abs(run.multipliers - first.fit.multipliers).max())
