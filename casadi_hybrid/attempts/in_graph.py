"""What the engine needs to make the attempts of a solve by itself, in a graph."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.attempts.attempt import composite_attempt, first_attempt, warm_attempt
from casadi_hybrid.attempts.data import data_of
from casadi_hybrid.engine.cold import AttemptData
from casadi_hybrid.engine.in_graph import Pool
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.standard_form.structure import may_be_composite

_MOST = 2**31 - 1  # of C's int


def attempts_of(
    problem: Problem, limits: Limits
) -> tuple[AttemptData, AttemptData, AttemptData | None]:
    """The attempts from x0 alone and from multipliers nearby.

    And that by composite steps, with which equations alone begin; None where they do not.
    """
    return *_both(problem, limits, overdetermined=False), _composite(problem, limits)


def _composite(problem: Problem, limits: Limits) -> AttemptData | None:
    if not may_be_composite(problem):
        return None
    attempt = composite_attempt(np.zeros(problem.n))
    return data_of(attempt, limits, problem)


def pool_of(problem: Problem, limits: Limits, *, warm_starts: bool) -> Pool | None:
    """The memory of a problem's solves in graphs; None where the engine does not take it."""
    engine = engine_of(problem)
    if isinstance(engine, str) or limits.max_time < np.inf:
        return None
    return Pool(
        engine, problem, limits, *_both(problem, limits, overdetermined=False),
        warm_starts=warm_starts, composite=_composite(problem, limits),
    )  # fmt: skip


def starts_of(problem: Problem, limits: Limits, bounds: Bounds) -> tuple[AttemptData, AttemptData]:
    """How attempts start where Python goes on with none: from x0 alone, and from multipliers.

    Args:
        problem, limits: what is solved, and to which tolerances.
        bounds: of the kinds of all solves.
    """
    equations = int(np.count_nonzero(bounds.lbg == bounds.ubg))
    free = int(np.count_nonzero(bounds.lbx < bounds.ubx))
    first, near = _both(problem, limits, overdetermined=equations > free)
    first.rescale = near.rescale = 0  # what would go on with other scales is not there
    first.alone = near.alone = 1
    first.max_time = near.max_time = np.inf  # a caller's clock says how much there is
    first.patience = min(limits.max_iter, _MOST)  # no other attempt waits
    return first, near


def _both(
    problem: Problem, limits: Limits, *, overdetermined: bool
) -> tuple[AttemptData, AttemptData]:
    start, none = np.zeros(problem.n), np.zeros(problem.m)
    first = first_attempt(problem, start, overdetermined)
    near = warm_attempt(start, WarmStart(start, none))
    return (
        data_of(first, limits, problem),
        data_of(near, limits, problem),
    )
