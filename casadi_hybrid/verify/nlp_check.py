"""The entry for nonlinear programs: collect the facts on a point, say what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import EvaluationError, InputError
from casadi_hybrid.basics.inputs import Vector, positive
from casadi_hybrid.problem.columns import as_column, as_columns
from casadi_hybrid.problem.evaluator import GeneralEvaluator
from casadi_hybrid.problem.expressions import check_expression
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.verify.compare import compare as compare_run
from casadi_hybrid.verify.first_order.active import ActiveSet, Qualification, find_active, qualify
from casadi_hybrid.verify.first_order.infeasible import violation_slope
from casadi_hybrid.verify.first_order.kkt import NlpFirstOrder, nlp_first_order
from casadi_hybrid.verify.first_order.rows import Rows
from casadi_hybrid.verify.ipopt import Asked, IpoptRun, ask_ipopt
from casadi_hybrid.verify.nlp_point import NlpCandidate, read_nlp_candidate
from casadi_hybrid.verify.nlp_reasons import nlp_findings, nlp_notes
from casadi_hybrid.verify.nlp_report import NlpReport
from casadi_hybrid.verify.reasons import undefined
from casadi_hybrid.verify.second_order.critical import nlp_second_order
from casadi_hybrid.verify.second_order.curvature import SecondOrder
from casadi_hybrid.verify.verdict import Comparison


def verify_nlp(
    nlp: Mapping[str, Any],
    answer: Any,
    *,
    p: Any = None,
    lbx: Any = -np.inf,
    ubx: Any = np.inf,
    lbg: Any = -np.inf,
    ubg: Any = np.inf,
    x0: Any = None,
    tol: float = 1e-6,
    names: Sequence[str] | None = None,
    variable_names: Sequence[str] | None = None,
    compare: bool = True,
    scaled: bool = False,
) -> NlpReport:
    """Judge a point of min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx, whoever found it.

    The point is accepted when feasibility, stationarity, complementarity and the signs of
    multipliers that the verifier fits itself hold within ``tol``, when the second-order condition
    does not refute a minimum, and when IPOPT started at the point finds no lower one from there.
    Multipliers that come with the point must satisfy the conditions too
    (L = f + lam_gᵀg + lam_xᵀx). At an infeasible point the report says whether the violation is
    stationary, which confirms or refutes a solver's verdict of local infeasibility.

    Args:
        nlp: CasADi's dictionary with ``x``, ``f`` and, where there are any, ``g`` and ``p``.
        answer: what a solver returns (a mapping, or an object, with ``x`` and, if there, ``lam_x``
            and ``lam_g``), or the n numbers of a point.
        p, lbx, ubx, lbg, ubg: the instance, as ``nlpsol`` takes it.
        x0: start of the solve, from which IPOPT is run for comparison. Where it gets to from there
            is reported, not judged.
        tol: tolerance on the residuals in the infinity norm.
        names: names of the constraints, ``g[i]`` by default.
        variable_names: names of the variables, ``x[i]`` by default.
        compare: whether to run IPOPT.
        scaled: hold the scaled residuals against ``tol`` instead of the unscaled ones.

    Returns:
        An :class:`NlpReport`, also for a point with NaN or where a function is undefined.

    Raises:
        InputError: for a wrong shape or type, naming the argument.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x", 2)
        >>> nlp = {"x": x, "f": ca.sumsqr(x - 1), "g": x[0] + x[1]}
        >>> report = verify_nlp(nlp, [0.5, 0.5], ubg=1)
        >>> report.accepted, float(report.lam_g[0])
        (True, 1.0)
        >>> [reason.name for reason in verify_nlp(nlp, [0.5, 0.5], lbg=1).categories]
        ['WRONG_SIGN', 'IPOPT_MOVED']
    """
    positive(tol, "tol")
    if not isinstance(nlp, Mapping):
        raise InputError(f"nlp must be a dictionary with 'x', 'f', 'g', got {type(nlp).__name__}")
    nlp, shapes = as_columns(nlp)
    p = as_column(p, shapes.get("p"))
    program = Problem.from_nlp(nlp, constraint_names=names, variable_names=variable_names)
    candidate = read_nlp_candidate(program, answer, p, (lbx, ubx, lbg, ubg), x0)
    candidate.x.setflags(write=False)
    report = partial(NlpReport, problem=program.name, x=candidate.x, tol=tol, scaled=scaled)
    evaluator = GeneralEvaluator(program, candidate.p)
    try:
        rows = _rows(evaluator, candidate, candidate.x)
    except EvaluationError as error:
        return report(f=np.nan, findings=(undefined(error),))
    first = nlp_first_order(rows, tol, scaled=scaled, given=candidate.multipliers)
    first.multipliers.setflags(write=False)
    active = find_active(rows, first.sides, first.multipliers, tol)
    qualification = qualify(rows, active)
    feasible = first.feasibility.within(tol, scaled=scaled)
    violation = None if feasible else violation_slope(rows, tol)
    second = _second(evaluator, rows, candidate, first, active, qualification, tol, scaled=scaled)
    restart = reference = None
    if compare:
        asked = _asked(nlp, evaluator, candidate, tol, scaled=scaled)

        def beside(run: IpoptRun) -> Comparison:
            return compare_run(
                run,
                rows.x,
                rows.f,
                tol,
                scaled=scaled,
                multipliers=partial(_multiplier_difference, first, qualification),
            )

        warm = first.multipliers[: program.n], first.multipliers[program.n :]
        restart = beside(ask_ipopt(asked, rows.x, warm))
        if candidate.x0 is not None:
            reference = beside(ask_ipopt(asked, candidate.x0))
    return report(
        f=rows.f,
        findings=nlp_findings(
            rows, first, qualification, violation, second, restart, tol, scaled=scaled
        ),
        notes=nlp_notes(first, qualification, second, restart, reference, ipopt=compare),
        second=second,
        restart=restart,
        reference=reference,
        first=first,
        active=active,
        qualification=qualification,
        violation=violation,
    )


def _rows(evaluator: GeneralEvaluator, candidate: NlpCandidate, x: Vector) -> Rows:
    functions = evaluator.program.functions
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size:
        raise EvaluationError("the point x", functions.variable_names[bad[0]], float(x[bad[0]]))
    names = functions.variable_names + functions.constraint_names
    return Rows.at(x, evaluator.first(x), candidate.bounds, names)


def _second(
    evaluator: GeneralEvaluator,
    rows: Rows,
    candidate: NlpCandidate,
    first: NlpFirstOrder,
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
    return nlp_second_order(
        evaluator,
        rows,
        candidate.bounds,
        active,
        qualification,
        first.multipliers,
        given.multipliers if given is not None and usable else None,
        tol,
    )


def _asked(
    nlp: Mapping[str, Any],
    evaluator: GeneralEvaluator,
    candidate: NlpCandidate,
    tol: float,
    *,
    scaled: bool,
) -> Asked:
    kind = type(nlp["x"])
    p = nlp.get("p", kind(0, 1))
    f = check_expression(nlp.get("f", 0), "f", kind)
    g = check_expression(nlp.get("g", kind(0, 1)), "g", kind)
    graph = ca.Function("graph", [nlp["x"], p if p.numel() else kind.sym("p", 0)], [f, g])

    def judge(x: Vector, lam_x: Vector, lam_g: Vector) -> tuple[float, NlpFirstOrder]:
        rows = _rows(evaluator, candidate, x)
        return rows.f, nlp_first_order(rows, tol, scaled=scaled, given=(lam_x, lam_g))

    b = candidate.bounds
    return Asked(kind, graph, candidate.p, b.lbx, b.ubx, b.lbg, b.ubg, judge)


def _multiplier_difference(
    first: NlpFirstOrder, qualification: Qualification, run: IpoptRun
) -> float | None:
    if not qualification.licq:
        return None
    theirs = np.concatenate((run.lam_x, run.multipliers))
    return float(np.abs(theirs - first.multipliers).max())
