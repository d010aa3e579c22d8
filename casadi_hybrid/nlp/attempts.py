"""What is tried after an attempt that gave no solution: another central path, another start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.inputs import Vector
from casadi_hybrid.nlp.iterate import NU_START
from casadi_hybrid.nlp.program import Program
from casadi_hybrid.nlp.residuals import violations
from casadi_hybrid.nlp.result import NlpResult
from casadi_hybrid.residuals import Tolerances
from casadi_hybrid.status import StopReason

# How far the bounds are widened where the barrier finds no interior and stalls (relative).
RELAXATION = 1e-8
# After so many steps without an answer another start of the central path is tried.
PATIENCE = 200
_SECOND_NU, _SECOND_PUSH = 100.0, 0.25
_ESCAPES = 3
_SAME = 1e-3  # two violations that differ by less are one local minimum found twice
_UNFINISHED = (StopReason.STALLED, StopReason.ITERATION_LIMIT, StopReason.DIVERGED)


@dataclass(frozen=True, eq=False)
class Attempt:
    """How one run starts.

    Attributes:
        start: x0 of this run.
        max_iter: its steps.
        relaxation: how far bounds are widened.
        nu, push: first barrier parameter, and relative distance of the start from its bounds.
        root: whether a root of the constraints is looked for before the objective is.
        scaled: whether rows are scaled.
        escapes: how many starts away from a local minimum of the violation there were.
    """

    start: Vector
    max_iter: int
    relaxation: float = 0.0
    nu: float = NU_START
    push: float = 1e-2
    root: bool = False
    scaled: bool = True
    escapes: int = 0


def first_attempt(program: Program, x0: Vector, max_iter: int, overdetermined: bool) -> Attempt:
    """Roots first where there is no objective, or where equations leave it nothing to choose."""
    root = program.feasibility or overdetermined
    return Attempt(x0, min(max_iter, PATIENCE), root=root, scaled=not root)


def next_attempt(
    program: Program, x0: Vector, max_iter: int, attempt: Attempt, done: Sequence[NlpResult]
) -> Attempt | None:
    """What to try after ``done``, whose last came from ``attempt``; None where there is no hope.

    - No interior, or the central path was lost early: wider bounds, a larger first ν.
    - A local minimum of the violation: a root from some way off, until one minimum is found
      twice. Where g is affine there is nothing to escape from.
    """
    result = done[-1]
    first, infeasible = len(done) == 1, result.stop is StopReason.LOCALLY_INFEASIBLE
    if first and attempt.root and not (infeasible and program.m > program.n):
        return Attempt(x0, PATIENCE)
    if infeasible or attempt.escapes:
        if program.linear or attempt.escapes >= _ESCAPES or _found_twice(done):
            return None
        number = attempt.escapes + 1
        start = _away(result.x, number)
        return Attempt(start, PATIENCE, root=True, scaled=attempt.scaled, escapes=number)
    if result.stop in _UNFINISHED and attempt.relaxation == 0.0:
        return Attempt(x0, max_iter, RELAXATION, _SECOND_NU, _SECOND_PUSH)
    return None


def best(done: Sequence[NlpResult], tolerances: Tolerances) -> NlpResult:
    """A solution; else proof of unboundedness or infeasibility; else the least residual."""

    def rank(result: NlpResult) -> tuple[int, float]:
        if result.success:
            return 0, 0.0
        if result.stop is StopReason.UNBOUNDED:
            return 1, 0.0
        if result.stop is StopReason.LOCALLY_INFEASIBLE:
            return 2, _violation(result)
        return 3, tolerances.merit(result.residuals)

    return min(done, key=rank)


def _found_twice(done: Sequence[NlpResult]) -> bool:
    now = _violation(done[-1])
    return any(
        abs(_violation(old) - now) <= _SAME * now
        for old in done[:-1]
        if old.stop is StopReason.LOCALLY_INFEASIBLE
    )


def _violation(result: NlpResult) -> float:
    bounds = result.bounds
    return float(np.linalg.norm(violations(result.g, bounds.lbg, bounds.ubg)))


def _away(x: Vector, number: int) -> Vector:
    """A start at a relative distance of about one half, the same in every run."""
    draws = np.random.default_rng(number).uniform(-1.0, 1.0, x.size)
    return np.asarray(x + 0.5 * np.maximum(1.0, np.abs(x)) * draws)
