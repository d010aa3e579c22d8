"""The entry of the verifier: collect the facts on a point, then say what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import positive
from casadi_hybrid.problem.evaluator import GeneralEvaluator
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.verify.compare import compare
from casadi_hybrid.verify.first_order.active import ActiveSet, Qualification, find_active, qualify
from casadi_hybrid.verify.first_order.face import Faces
from casadi_hybrid.verify.first_order.infeasible import violation_slope
from casadi_hybrid.verify.first_order.kkt import FirstOrder
from casadi_hybrid.verify.ipopt import Asked, IpoptRun, ask_ipopt
from casadi_hybrid.verify.notes import collect_notes
from casadi_hybrid.verify.point import read_candidate, read_problem
from casadi_hybrid.verify.reasons import collect_findings, undefined
from casadi_hybrid.verify.report import Report
from casadi_hybrid.verify.second_order.critical import critical_second_order
from casadi_hybrid.verify.second_order.curvature import SecondOrder
from casadi_hybrid.verify.verdict import Comparison


def verify(
    problem: Problem | Mapping[str, Any],
    answer: Any,
    *,
    p: Any = None,
    lbx: Any = None,
    ubx: Any = None,
    lbg: Any = None,
    ubg: Any = None,
    multipliers: Any = None,
    x0: Any = None,
    tol: float = 1e-6,
    scaled: bool = False,
    ipopt: bool = True,
    constraint_names: Sequence[str] | None = None,
    variable_names: Sequence[str] | None = None,
) -> Report:
    """Judge a point of min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx, whoever found it.

    The point is accepted when feasibility, stationarity, complementarity and the signs of
    multipliers that the verifier fits itself hold within ``tol``, when the second-order condition
    does not refute a minimum, and when IPOPT started at the point stays there. Multipliers that
    come with the point must satisfy the conditions too (L = f + lam_gᵀg + lam_xᵀx). At an
    infeasible point the report says whether the violation is stationary, which confirms or refutes
    a solver's verdict of local infeasibility.

    What is None is taken from the answer where it is a result that knows it, else from the
    problem: g has no bounds in CasADi's dictionary, and the equations of a Problem are zero.

    Args:
        problem: a :class:`~casadi_hybrid.Problem`, or CasADi's dictionary with ``x``, ``f`` and,
            where there are any, ``g`` and ``p``.
        answer: a :class:`~casadi_hybrid.Result`, what a CasADi solver returns (a mapping, or an
            object, with ``x`` and, if there, ``lam_x`` and ``lam_g``), or the n numbers of a point.
        p, lbx, ubx, lbg, ubg: the instance, as ``nlpsol`` takes it.
        multipliers: m numbers lam_g to judge in place of those that come with the answer.
        x0: start of the solve, from which IPOPT is run for comparison. Where it gets to from there
            is reported, not judged: another local solution is no mistake.
        tol: tolerance on the residuals in the infinity norm. IPOPT may move the point by
            √tol·max(1, ‖x‖_∞).
        scaled: hold the scaled residuals against ``tol`` instead of the unscaled ones.
        ipopt: whether to run IPOPT.
        constraint_names: names of the constraints, those of the problem by default.
        variable_names: names of the variables, likewise.

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
        >>> nlp = {"x": x, "f": ca.sumsqr(x - 1), "g": x[0] + x[1]}
        >>> report = verify(nlp, [0.5, 0.5], ubg=1)
        >>> report.accepted, float(report.lam_g[0])
        (True, 1.0)
        >>> [reason.name for reason in verify(nlp, [0.5, 0.5], lbg=1).categories]
        ['WRONG_SIGN', 'IPOPT_MOVED']
    """
    positive(tol, "tol")
    problem = read_problem(problem, constraint_names, variable_names)
    candidate = read_candidate(problem, answer, p, (lbx, ubx, lbg, ubg), multipliers, x0)
    candidate.x.setflags(write=False)
    evaluator = GeneralEvaluator(problem, candidate.p)
    asked = Asked(problem, evaluator, candidate.bounds, tol, scaled)
    report = partial(Report, problem=problem.name, x=candidate.x, tol=tol, scaled=scaled)
    try:
        faces = asked.faces(candidate.x)
    except EvaluationError as error:
        return report(f=np.nan, findings=(undefined(error),))
    rows = faces.rows
    first = asked.first_order(faces, candidate.multipliers)
    first.multipliers.setflags(write=False)
    active = find_active(rows, first.sides, first.multipliers, tol)
    qualification = qualify(faces, active)
    if first.given is not None and qualification.licq:
        distance = float(np.abs(first.given.multipliers - first.multipliers).max())
        first = replace(first, given=replace(first.given, distance=distance))
    feasible = first.feasibility.within(tol, scaled=scaled)
    violation = None if feasible else violation_slope(rows, tol)
    second = _second(faces, first, active, qualification, tol, scaled=scaled)
    restart = reference = None
    if ipopt:

        def beside(run: IpoptRun) -> Comparison:
            apart = partial(_multiplier_difference, first, qualification)
            return compare(run, rows.x, rows.f, tol, scaled=scaled, multipliers=apart)

        warm = first.multipliers[: problem.n], first.multipliers[problem.n :]
        restart = beside(ask_ipopt(asked, rows.x, warm))
        if candidate.x0 is not None:
            reference = beside(ask_ipopt(asked, candidate.x0))
    return report(
        f=rows.f,
        findings=collect_findings(
            rows, first, qualification, violation, second, restart, tol, scaled=scaled
        ),
        notes=collect_notes(first, qualification, second, reference, ipopt=ipopt),
        second=second,
        restart=restart,
        reference=reference,
        first=first,
        active=active,
        qualification=qualification,
        violation=violation,
    )


def _second(
    faces: Faces,
    first: FirstOrder,
    active: ActiveSet,
    qualification: Qualification,
    tol: float,
    *,
    scaled: bool,
) -> SecondOrder | None:
    if not first.holds(tol, scaled=scaled):
        return None
    given = first.given
    usable = given is not None and given.residuals.dual_hold(tol, scaled=scaled)
    return critical_second_order(
        faces,
        active,
        qualification,
        first.multipliers,
        given.multipliers if given is not None and usable else None,
        tol,
    )


def _multiplier_difference(
    first: FirstOrder, qualification: Qualification, run: IpoptRun
) -> float | None:
    if not qualification.licq:
        return None
    theirs = np.concatenate((run.lam_x, run.multipliers))
    return float(np.abs(theirs - first.multipliers).max())
