"""Attempts as the engine in C reads them."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.attempts.attempt import Attempt, composite_attempt, first_attempt, warm_attempt
from casadi_hybrid.engine.cold import AttemptData
from casadi_hybrid.point.limits import Limits, floor_of
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.standard_form.structure import DENSE_LIMIT, may_be_composite


def data_of(attempt: Attempt, limits: Limits, problem: Problem) -> AttemptData:
    """The numbers of an attempt that no steps come before and that never pauses.

    Args:
        attempt: how it starts and ends.
        limits: of the solve.
        problem: what is solved.
    """
    return AttemptData(
        nu=attempt.nu, floor=floor_of(limits.scaled_tol), push=attempt.push,
        divergence=limits.divergence, max_time=limits.max_time, pause=np.inf, t0=0,
        patience=attempt.max_iter, near=attempt.near, feasibility=problem.feasibility,
        relaxation=attempt.relaxation, unscaled=not attempt.scaled, root=attempt.root,
        cautious=attempt.cautious, rescale=attempt.rescale,
        dense=problem.n + problem.m <= DENSE_LIMIT, composite=attempt.composite,
    )  # fmt: skip


def attempts_of(
    problem: Problem, limits: Limits
) -> tuple[AttemptData, AttemptData, AttemptData | None]:
    """The attempts from x0 alone and from multipliers nearby.

    And that by composite steps, with which equations alone begin; None where they do not.
    """
    return *both_attempts(problem, limits, overdetermined=False), composite_of(problem, limits)


def composite_of(problem: Problem, limits: Limits) -> AttemptData | None:
    """The attempt by composite steps; None where none begins with them."""
    if not may_be_composite(problem):
        return None
    attempt = composite_attempt(np.zeros(problem.n))
    return data_of(attempt, limits, problem)


def both_attempts(
    problem: Problem, limits: Limits, *, overdetermined: bool
) -> tuple[AttemptData, AttemptData]:
    """The attempts from x0 alone and from multipliers nearby."""
    start, none = np.zeros(problem.n), np.zeros(problem.m)
    first = first_attempt(problem, start, overdetermined)
    near = warm_attempt(start, WarmStart(start, none))
    return (
        data_of(first, limits, problem),
        data_of(near, limits, problem),
    )
