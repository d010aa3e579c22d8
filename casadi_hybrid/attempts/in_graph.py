"""What the engine needs to make the attempts of a solve by itself, in a graph."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.attempts.data import both_attempts, composite_of
from casadi_hybrid.engine.cold import AttemptData
from casadi_hybrid.engine.in_graph import Pool
from casadi_hybrid.engine.warm import engine_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem

_MOST = 2**31 - 1  # of C's int


def pool_of(problem: Problem, limits: Limits, *, warm_starts: bool) -> Pool | None:
    """The memory of a problem's solves in graphs; None where the engine does not take it."""
    engine = engine_of(problem)
    if isinstance(engine, str) or limits.max_time < np.inf:
        return None
    return Pool(
        engine, problem, limits, *both_attempts(problem, limits, overdetermined=False),
        warm_starts=warm_starts, composite=composite_of(problem, limits),
    )  # fmt: skip


def starts_of(problem: Problem, limits: Limits, bounds: Bounds) -> tuple[AttemptData, AttemptData]:
    """How attempts start where Python goes on with none: from x0 alone, and from multipliers.

    Args:
        problem, limits: what is solved, and to which tolerances.
        bounds: of the kinds of all solves.
    """
    equations = int(np.count_nonzero(bounds.lbg == bounds.ubg))
    free = int(np.count_nonzero(bounds.lbx < bounds.ubx))
    first, near = both_attempts(problem, limits, overdetermined=equations > free)
    first.rescale = near.rescale = 0  # what would go on with other scales is not there
    first.max_time = near.max_time = np.inf  # a caller's clock says how much there is
    first.patience = min(limits.max_iter, _MOST)  # no other attempt waits
    return first, near
