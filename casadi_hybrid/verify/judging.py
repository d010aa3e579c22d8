"""Facts about a point, and the report made of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.verify.first_order.active import find_active, qualify
from casadi_hybrid.verify.first_order.face import Faces, Instance
from casadi_hybrid.verify.first_order.infeasible import violation_slope
from casadi_hybrid.verify.first_order.kkt import first_order
from casadi_hybrid.verify.ipopt import IpoptRun, ask_ipopt
from casadi_hybrid.verify.point import Candidate
from casadi_hybrid.verify.reasons import findings, notes, undefined
from casadi_hybrid.verify.report import Report
from casadi_hybrid.verify.second_order.critical import judged_with_near_limits
from casadi_hybrid.verify.verdict import Comparison, Relation


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
    first.multipliers.setflags(write=False)
    active = find_active(rows, first.multipliers, tol)
    qualification = qualify(faces, active)
    if first.given is not None and qualification.licq:
        distance = float(np.abs(first.given.multipliers - first.multipliers).max())
        first = replace(first, given=replace(first.given, distance=distance))
    facts = report(f=rows.f, findings=(), first=first, active=active, qualification=qualification)
    if instance.within(*first.residuals):
        second = judged_with_near_limits(faces, first, active, qualification)
        facts = replace(facts, second=second)
    elif not instance.within(first.feasibility):
        facts = replace(facts, violation=violation_slope(rows, tol))
    if ipopt:
        warm = first.multipliers[:n], first.multipliers[n:]
        facts = replace(facts, restart=_compare(facts, ask_ipopt(instance, x, warm)))
        if candidate.x0 is not None:
            facts = replace(facts, reference=_compare(facts, ask_ipopt(instance, candidate.x0)))
    return replace(facts, findings=findings(facts, faces), notes=notes(facts, instance, ipopt))


def _compare(facts: Report, run: IpoptRun) -> Comparison:
    """Compare a run with x: within √tol·max(1, ‖x‖_∞) it is the same point."""
    x, f, tol = facts.x, facts.f, facts.tol
    distance, difference = float(np.abs(run.x - x).max()), run.f - f
    multiplier_difference = None
    if run.conditions is None:
        relation = Relation.NO_RUN
    elif distance <= float(np.sqrt(tol)) * max(1.0, float(np.abs(x).max())):
        relation = Relation.SAME_POINT
        if facts.first is not None and facts.licq:
            multipliers = np.concatenate((run.lam_x, run.multipliers))
            multiplier_difference = float(np.abs(multipliers - facts.first.multipliers).max())
    elif not run.conditions.holds(tol, scaled=facts.scaled):
        relation = Relation.NO_KKT_POINT
    elif abs(difference) <= tol * max(1.0, abs(f)):
        relation = Relation.EQUAL
    else:
        relation = Relation.LOWER if difference < 0 else Relation.HIGHER
    return Comparison(run, relation, distance, difference, multiplier_difference)
