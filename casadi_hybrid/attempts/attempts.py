"""What is tried after an attempt that gave no solution: another central path, another start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import hypot

import numpy as np

from casadi_hybrid.attempts.attempt import FIRST_PATIENCE, PATIENCE, Attempt
from casadi_hybrid.barrier.pace import BESIDE
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.point.kkt import violations
from casadi_hybrid.point.residuals import Tolerances
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import EASED, eased

# How far the bounds are widened where the barrier finds no interior and stalls (relative).
RELAXATION = 1e-8
_SECOND_NU, _SECOND_PUSH = 100.0, 0.25
_BESIDE_STEPS = 20
_ESCAPES, _SMALL = 3, 50
_SAME = 1e-3  # two violations that differ by less are one local minimum found twice
_UNFINISHED = (StopReason.STALLED, StopReason.ITERATION_LIMIT, StopReason.DIVERGED)
_WIDER = (*_UNFINISHED, StopReason.NO_MULTIPLIERS)


def remultiplied(result: Result) -> Attempt:
    """At a point with huge multipliers: the least ones on its active set, the hot mode alone."""
    none = WarmStart(np.zeros_like(result.lam_x), np.zeros_like(result.lam_g), result.working_set)
    return Attempt(result.x, 1, warm=none, least=True)


def next_attempt(
    program: Problem,
    x0: Vector,
    max_iter: int,
    tolerances: Tolerances,
    tried: Sequence[Attempt],
    done: Sequence[Result],
    *,
    no_choice: bool = False,
) -> Attempt | None:
    """What to try after ``done``, which came from ``tried``; None where there is no hope.

    - No multipliers: where gradients depend there may be some all the same, the least ones; else a
      KKT point beside it, where the tolerances allow one.
    - Blocked where rows are far less steep than at the start: on from there, with its scales.
    - Newton steps find no feasible point, and any would do (there is no objective, or there is
      ``no_choice`` for it because there are as many equations as unknowns): a root by
      Gauss–Newton steps.
    - That neither: once more by short steps, then with the objective where that was not first.
    - No interior, the central path was lost early, or it left the domain of the functions: wider
      bounds, a larger first ν.
    - That neither: on from the best point, with the bounds as they are and scales taken there.
    - Gone to infinity along infeasible points: a root first.
    - A local minimum of the violation: a root from some way off, until one minimum is found
      twice, and then one from x0. Where g is affine there is nothing to escape from; where there is
      an objective, only problems of up to 50 variables try it, to which it costs little, by short
      steps that stay where the escape has led.
    - A root from there, after which the steps for the objective left the feasible points for good:
      on from the feasible point, with scales taken there.
    """
    # Where there are no multipliers at the point, nor at one beside it, nothing was learned.
    useful = [k for k, one in enumerate(tried) if not (one.beside or one.least)]
    onward = _onward(tried[useful[-1]], done[useful[-1]], tried[useful[-1] + 1 :])
    if onward is not None:
        return onward
    tried, done = [tried[k] for k in useful], [done[k] for k in useful]
    attempt, result = tried[-1], done[-1]
    if attempt.last:
        return None
    infeasible = result.stop is StopReason.LOCALLY_INFEASIBLE
    many = max(PATIENCE, max_iter - FIRST_PATIENCE - PATIENCE)
    any_root = (program.feasibility or no_choice) and not program.linear
    if any_root and not any(one.root for one in tried):
        return Attempt(x0, PATIENCE, root=True, scaled=False)
    if attempt.root and not attempt.escapes and not program.linear:
        if not attempt.cautious:
            return replace(attempt, start=x0, cautious=True)
        if program.m <= program.n and all(one.root for one in tried):
            return Attempt(x0, PATIENCE)
        if not infeasible:
            return replace(attempt, start=result.x, last=True, max_iter=many)
    if infeasible or attempt.escapes:
        worth = not program.linear and (any_root or program.n <= _SMALL)
        return _escape(tried, done, _ESCAPES if worth else 0, x0, cautious=not any_root)
    if result.stop is StopReason.DIVERGED and not any(one.root for one in tried):
        return Attempt(x0, PATIENCE, root=True)
    # Where the iterate has left the domain of the functions; not where it began outside.
    left = result.stop is StopReason.EVALUATION_ERROR and result.iterations > 0
    if (left or result.stop in _WIDER) and not any(kind.relaxation for kind in tried):
        return Attempt(x0, many, RELAXATION, _SECOND_NU, _SECOND_PUSH)
    if result.stop in _UNFINISHED:
        point = best(done, tolerances)
        given = WarmStart(point.lam_x, point.lam_g)
        return Attempt(point.x, PATIENCE, warm=given, last=True)
    return None


def best(done: Sequence[Result], tolerances: Tolerances) -> Result:
    """A solution; else proof of unboundedness, a feasible point, proof of infeasibility, anything.

    Where a point is feasible, a local minimum of the violation says nothing of the problem.
    """

    def rank(result: Result) -> tuple[int, float, bool]:
        if result.success:
            return 0, 0.0, False
        if result.stop is StopReason.UNBOUNDED:
            return 1, 0.0, False
        # Of two points that are equally good to a percent or so, one that is not run away from.
        merit = round(float(np.log10(tolerances.merit(result.residuals))), 2)
        diverged = result.stop is StopReason.DIVERGED
        if result.residuals.feasibility <= tolerances.feasibility:
            return 2, merit, diverged
        if result.stop is StopReason.LOCALLY_INFEASIBLE:
            return 3, _violation(result), False
        return 4, merit, diverged

    return min(done, key=rank)


def _onward(attempt: Attempt, result: Result, since: Sequence[Attempt]) -> Attempt | None:
    """What takes a result further from where it is, before anything begins anew.

    Args:
        since: what has been tried there.
    """
    degenerate = result.beside is not None or result.point is PointStatus.FRITZ_JOHN_POINT
    if degenerate and not since:
        return remultiplied(result)
    if result.beside is not None and not any(one.beside for one in since):
        start, warm = result.beside
        return Attempt(start, _BESIDE_STEPS, BESIDE, scaled=False, warm=warm, beside=True)
    if not since and attempt.rescale and result.stop is StopReason.STALLED and _eased(result):
        return Attempt(result.x, PATIENCE)
    return None


def _escape(
    tried: Sequence[Attempt], done: Sequence[Result], hopes: int, x0: Vector, *, cautious: bool
) -> Attempt | None:
    """A root from some way off, or on from the feasible point that such a search has found.

    Where nothing is found there, at last a root from x0: steps for the objective may have left its
    basin with the first of them.
    """
    attempt, result = tried[-1], done[-1]
    number = attempt.escapes
    if number and attempt.root and result.point is PointStatus.FEASIBLE_NOT_STATIONARY:
        return Attempt(result.x, PATIENCE, escapes=number)
    start = _away(result.x, number + 1)
    if number >= hopes or (number and _found_twice(tried, done)):
        start = x0
        if not hopes or any(one.root and np.array_equal(one.start, x0) for one in tried):
            return None
    return Attempt(
        start,
        PATIENCE,
        root=True,
        cautious=cautious,
        scaled=attempt.scaled,
        escapes=number + 1,
    )


def _eased(result: Result) -> bool:
    """Whether scales taken at the end differ much from those of the start."""
    start, end = result.start, result.end
    if start is None or end is None:
        return False
    return eased(result.bounds, start.J, end.J) >= EASED


def _found_twice(tried: Sequence[Attempt], done: Sequence[Result]) -> bool:
    """Whether two searches for a root have ended at one local minimum of the violation."""
    now = _violation(done[-1])
    return any(
        abs(_violation(old) - now) <= _SAME * now
        for attempt, old in zip(tried[:-1], done[:-1], strict=True)
        if attempt.root and old.stop is StopReason.LOCALLY_INFEASIBLE
    )


def _violation(result: Result) -> float:
    bounds = result.bounds
    beyond = violations(result.g, bounds.lbg, bounds.ubg)
    return hypot(*beyond.tolist())  # whose squares may be too large


def _away(x: Vector, number: int) -> Vector:
    """A start at a relative distance of about one half, the same in every run."""
    draws = np.random.default_rng(number).uniform(-1.0, 1.0, x.size)
    return np.asarray(x + 0.5 * np.maximum(1.0, np.abs(x)) * draws)
