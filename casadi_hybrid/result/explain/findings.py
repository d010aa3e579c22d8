"""Sentences about a solve of a nonlinear program, from what its result holds."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.result.answer import Answer
from casadi_hybrid.result.explain.conflict import conflicting_set
from casadi_hybrid.result.explain.dependence import dependent_constraints, rank_tolerance
from casadi_hybrid.result.explain.diagnosis import (
    bad_scales,
    constant_constraints,
    fall,
    fixed_variables,
    last_direction,
    listed,
    worst_violations,
)

_MANY = 5
_LARGE_MULTIPLIER = 1e6
_RUNAWAY = (StopReason.UNBOUNDED, StopReason.DIVERGED)
_UNFINISHED = (
    StopReason.DIVERGED, StopReason.STALLED, StopReason.ITERATION_LIMIT, StopReason.TIME_LIMIT
)  # fmt: skip


def findings(result: Answer) -> tuple[str, ...]:
    """What there is to say about the outcome; most of it only where the solve failed."""
    conflict = _conflict(result)
    said = [*conflict, *_infeasibility(result, beside_conflict=bool(conflict))]
    said += [*_undefined(result), *_falling(result), *_ray(result)]
    if result.end is not None and not conflict:
        said += _dependence(result)
    if not result.success and not conflict and result.stop not in _RUNAWAY:
        said += _scaling(result)
    fixed = fixed_variables(result)
    if fixed:
        said.append(f"Fixed by equal bounds: {listed(fixed)}.")
    return tuple(said)


def _conflict(result: Answer) -> list[str]:
    """What contradicts each other: with it, dependence and scales have nothing to add."""
    if not result.infeasible or not worst_violations(result, at_most=1):
        return []
    conflict = conflicting_set(result)
    return [] if conflict is None else conflict.sentences()


def _infeasibility(result: Answer, *, beside_conflict: bool) -> list[str]:
    worst = worst_violations(result, at_most=_MANY)
    if not worst:
        return []
    said = ["Worst violations:", *(f"  {one}" for one in worst)]
    slope = result.certificate
    if slope is not None and result.point is PointStatus.INFEASIBLE_STATIONARY:
        said.append(
            f"Certificate: the slope of the violation is {slope:.2e}, so no small step reduces it."
        )
        if not beside_conflict:
            said.append(
                "Constraints contradict each other, or this is a local minimum of their "
                "violation: relax one of them, or start elsewhere."
            )
    elif slope is not None:
        said.append(
            f"The slope of the violation is {slope:.2e}: a step from here can still reduce it, so "
            "this is no proof that the constraints are inconsistent."
        )
    violated = {one.name for one in worst}
    constant = [name for name in constant_constraints(result) if name in violated]
    if constant:
        said.append(
            f"The derivatives of {listed(constant)} by the free variables are zero at the start "
            "and at the end: where no free variable enters, no step can meet it; where one does, "
            "start elsewhere."
        )
    return said


def _undefined(result: Answer) -> list[str]:
    count = result.evaluations.get("undefined", 0)
    if result.error is None or not count or result.stop is StopReason.EVALUATION_ERROR:
        return []
    return [
        f"At {count} trial points a function of the problem was not defined; they were rejected. "
        f"The last: {result.error}."
    ]


def _falling(result: Answer) -> list[str]:
    """That f falls without bound, or does so apparently, where the solve shows it."""
    size = float(np.abs(result.x).max(initial=0.0))
    if result.stop is StopReason.UNBOUNDED:
        return [
            f"f falls without bound along feasible points: f = {result.f:.6g} at |x| = {size:.2e}."
        ]
    least = fall(result) if result.stop in _UNFINISHED else None
    if least is None or result.success:
        return []
    there = f"at |x| = {size:.2e}" if least == result.f else "at a feasible iterate"
    return [
        f"f falls apparently without bound: f = {least:.6g} {there}.",
        "This is no proof; check the sign of the objective, or bound what may grow.",
    ]


def _ray(result: Answer) -> list[str]:
    apparent = result.stop in _UNFINISHED and fall(result) == result.f
    if result.stop not in _RUNAWAY and (result.success or not apparent):
        return []
    ray = last_direction(result)
    if ray is None:
        return []
    size = float(np.abs(result.x).max())
    said = [f"The last step, at |x| = {size:.2e} and f = {result.f:.3g}: {ray}."]
    if result.stop is StopReason.UNBOUNDED:
        said.append(
            "Bound the variables named, or check the sign of the objective and the direction of "
            "the inequalities."
        )
    return said


def _dependence(result: Answer) -> list[str]:
    dependent = dependent_constraints(result)
    if dependent is None:
        return ["Whether constraints depend on each other was not looked for: too many are active."]
    said = []
    if dependent:
        near = rank_tolerance(result)
        said = [f"Active constraints whose gradients depend on others, to within {near:g}:"]
        said += [f"  {one}" for one in dependent[:_MANY]]
        if len(dependent) > _MANY:
            said.append(f"  and {len(dependent) - _MANY} more")
        if result.success:
            said.append("Their multipliers are not unique; those returned are one choice of many.")
        elif result.certificate is None:
            said.append("Multipliers may not exist here; leave out what says the same twice.")
    largest = max(np.abs(result.lam_g).max(initial=0.0), np.abs(result.lam_x).max(initial=0.0))
    told = bool(dependent) or not result.success
    if told and largest > _LARGE_MULTIPLIER * max(1.0, abs(result.f)):
        names = (*result.constraint_names, *(f"bound on {n}" for n in result.variable_names))
        i = int(np.argmax(np.abs(np.concatenate((result.lam_g, result.lam_x)))))
        said.append(f"The largest multiplier is {largest:.2e}, of {names[i]}.")
    return said


def _scaling(result: Answer) -> list[str]:
    spreads = bad_scales(result)
    return ["Badly scaled:", *(f"  {one}" for one in spreads)] if spreads else []
