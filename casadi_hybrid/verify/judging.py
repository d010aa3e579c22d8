"""Collect the facts on a point, then say what speaks against it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.problem.evaluator import GeneralEvaluator
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.verify.compare import compare
from casadi_hybrid.verify.first_order.active import ActiveSet, Qualification, find_active, qualify
from casadi_hybrid.verify.first_order.face import Faces
from casadi_hybrid.verify.first_order.infeasible import violation_slope
from casadi_hybrid.verify.first_order.kkt import FirstOrder
from casadi_hybrid.verify.ipopt import Asked, IpoptRun, ask_ipopt
from casadi_hybrid.verify.notes import collect_notes, on_bounds
from casadi_hybrid.verify.point import Candidate
from casadi_hybrid.verify.reasons import collect_findings, undefined
from casadi_hybrid.verify.report import Report
from casadi_hybrid.verify.second_order.critical import critical_second_order
from casadi_hybrid.verify.second_order.curvature import SecondOrder
from casadi_hybrid.verify.verdict import Comparison


def judge(
    problem: Problem, candidate: Candidate, tol: float, *, scaled: bool, ipopt: bool
) -> Report:
    """What :func:`casadi_hybrid.verify.verify` says of a point, its arguments checked."""
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
        notes=(
            *on_bounds(problem.m, candidate.bounds),
            *collect_notes(first, qualification, second, reference, ipopt=ipopt),
        ),
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
