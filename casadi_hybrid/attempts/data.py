"""An attempt as the engine in C reads it."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.attempts.attempt import Attempt
from casadi_hybrid.engine.cold import AttemptData
from casadi_hybrid.point.limits import Limits, floor_of
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.standard_form.structure import DENSE_LIMIT


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
