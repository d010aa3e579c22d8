"""Judgement of a point: its facts, and the report."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.verify.first_order.active import find_active, qualify
from casadi_hybrid.verify.first_order.face import Faces, Instance
from casadi_hybrid.verify.first_order.infeasible import violation_slope
from casadi_hybrid.verify.first_order.kkt import first_order
from casadi_hybrid.verify.ipopt import IpoptRun, ask_ipopt
from casadi_hybrid.verify.point import Candidate
from casadi_hybrid.verify.reasons import findings, notes, undefined
from casadi_hybrid.verify.report import Comparison, Relation, Report
from casadi_hybrid.verify.second_order.critical import judged_with_near_limits


def judge(instance: Instance, candidate: Candidate, *, ipopt: bool) -> Report:
    """Judge a point as :func:`casadi_hybrid.verify.verify` does, its arguments checked."""
    x, tol, n = candidate.x, instance.tol, instance.problem.n
    x.setflags(write=False)
    report = partial(Report, instance.problem.name, x, tol=tol, scaled=instance.scaled)
    try:
        faces = Faces(instance, x)
    except EvaluationError as error:
        return report(f=np.nan, findings=(undefined(error),))
    rows = faces.rows
    first = first_order(faces, candidate.multipliers)
    multipliers, given = first.multipliers, first.given
    multipliers.setflags(write=False)
    active = find_active(rows, multipliers, tol)
    qualification = qualify(faces, active)
    # Multipliers that are not unique differ without a fault.
    if given is not None and qualification.licq:
        given = replace(given, distance=float(np.abs(given.multipliers - multipliers).max()))
    lam_x, lam_g = multipliers[:n], multipliers[n:]
    facts = report(
        f=rows.f,
        lam_x=lam_x,
        lam_g=lam_g,
        given=given,
        active=active,
        **first.residuals._asdict(),
        **qualification._asdict(),
    )
    # The second order has a meaning at KKT points alone.
    if instance.within(*first.residuals):
        second = judged_with_near_limits(faces, first, active, qualification.licq)
        facts = replace(facts, second=second)
    elif not instance.within(first.residuals.feasibility):
        facts = replace(facts, violation=violation_slope(rows, tol))
    if ipopt:
        # With the fitted multipliers a solution is where IPOPT starts and stops.
        run = ask_ipopt(instance, x, (lam_x, lam_g))
        facts = replace(facts, restart=_compare(facts, instance, multipliers, run))
    if ipopt and candidate.x0 is not None:
        run = ask_ipopt(instance, candidate.x0)
        facts = replace(facts, reference=_compare(facts, instance, multipliers, run))
    reasons = findings(facts, faces, first)
    return replace(facts, findings=reasons, notes=notes(facts, faces, multipliers, ipopt))


def _compare(facts: Report, instance: Instance, multipliers: Vector, run: IpoptRun) -> Comparison:
    """Compare a run with x: within √tol·max(1, ‖x‖_∞) it is the same point."""
    x, f, tol = facts.x, facts.f, facts.tol
    distance, difference = float(np.abs(run.x - x).max()), run.f - f
    multiplier_difference = None
    if run.conditions is None:
        relation = Relation.NO_RUN
    # f determines a minimum to √tol only: it changes by the square of a small step.
    elif distance <= float(np.sqrt(tol)) * max(1.0, float(np.abs(x).max())):
        relation = Relation.SAME_POINT
        if facts.licq:
            theirs = np.concatenate((run.lam_x, run.multipliers))
            multiplier_difference = float(np.abs(theirs - multipliers).max())
    elif not instance.within(*run.conditions.residuals):
        relation = Relation.NO_KKT_POINT
    elif abs(difference) <= tol * max(1.0, abs(f)):
        relation = Relation.EQUAL
    else:
        relation = Relation.LOWER if difference < 0 else Relation.HIGHER
    return Comparison(
        **vars(run),
        relation=relation,
        distance=distance,
        f_difference=difference,
        multiplier_difference=multiplier_difference,
    )
