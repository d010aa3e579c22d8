"""Trajectories for claims: run the solver's own loop for a fixed number of steps, and compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Matrix, Vector, as_vector, count
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.claims.record import DIFFERENT, EQUAL, Claim
from casadi_hybrid.course.history import Recorder
from casadi_hybrid.iterations import Iteration, Start
from casadi_hybrid.loop import iterate
from casadi_hybrid.point.residuals import Tolerances
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.stopping import DivergenceTest, LimitTest, StoppingTest

# Beyond this a trajectory says nothing about a claim: rounding errors have grown with it.
DIVERGED = 1e8

Step = float | Matrix | Callable[[int], float | Matrix]


@dataclass(frozen=True, eq=False)
class Trial:
    """What the compared runs have in common: all but the split of the correction.

    Args:
        problem: the problem.
        x0, x_prev: x_0 and x_{−1} (None: x_{−1} = x_0).
        dual: the start of the dual variable; each claim says which one (μ_0, ν_0, π_0 or λ_0).
        eta_x: primal step, or metric P (n×n), or a function of t that returns either.
        eta_d: dual step, or metric D (m×m), or a function of t that returns either.
        iterations: number of steps T ≥ 1; no residual test ends a run earlier.
        p: parameter values, where the problem has parameters.

    Raises:
        InputError: for a wrong shape, non-finite numbers, or ``iterations`` < 1.
    """

    problem: Problem
    x0: Vector
    dual: Vector
    x_prev: Vector | None = None
    eta_x: Step = 0.03
    eta_d: Step = 0.5
    iterations: int = 200
    p: Any = None

    def __post_init__(self) -> None:
        count(self.iterations, "iterations", at_least=1)
        n, m = self.problem.n, self.problem.m
        x0 = as_vector(self.x0, n, "x0")
        x_prev = x0 if self.x_prev is None else as_vector(self.x_prev, n, "x_prev")
        object.__setattr__(self, "x0", x0)
        object.__setattr__(self, "x_prev", x_prev)
        object.__setattr__(self, "dual", as_vector(self.dual, m, "dual"))
        p = as_vector([] if self.p is None else self.p, self.problem.n_p, "p")
        object.__setattr__(self, "p", p)

    def case(self, rest: str) -> str:
        """Return the shape and the number of steps as text."""
        return f"n={self.problem.n} m={self.problem.m} T={self.iterations} {rest}"

    def residual(self, x: Vector) -> Vector:
        """Return h(x)."""
        return Oracle(self.problem.functions, self.p).residual(x)

    def from_dual(self, dual: Vector) -> Trial:
        """Return the trial with another start of the dual variable."""
        return replace(self, dual=dual)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a claim compares; one row an iterate, t = 0 … T.

    Attributes:
        x: x_t.
        mu: μ_t, which depends on the split.
        multipliers: π_t, the memory-free multipliers.
        effective: ν_t, the effective dual the step to x_t used.
        h_prev: h(x_{t−1}), without noise; the first row is h(x_{−1}).
        failure: why the run ended before T, or empty.
    """

    x: Matrix
    mu: Matrix
    multipliers: Matrix
    effective: Matrix
    h_prev: Matrix
    failure: str


def follow(trial: Trial, iteration: Iteration) -> Trajectory:
    """Run the solver's loop for exactly T steps and return the trajectory.

    Raises:
        InputError: when the problem's functions or the rule fail at the start.
    """
    recorder = Recorder()
    oracle = Oracle(trial.problem.functions, trial.p)
    start = Start(trial.x0, trial.dual, trial.x_prev)
    tests: list[StoppingTest] = [DivergenceTest(DIVERGED), LimitTest(trial.iterations, np.inf)]
    outcome = iterate(oracle, iteration, start, tests, Tolerances(), [recorder])
    if not recorder.rows:
        raise InputError(f"the run cannot start at x0: {outcome.detail}")
    failure = ""
    if outcome.reason is not StopReason.ITERATION_LIMIT:
        failure = f"{outcome.reason.value}, iteration {outcome.iterations}"
    history = recorder.history()
    assert trial.x_prev is not None
    before = [trial.residual(trial.x_prev), *history.h[:-1]]
    return Trajectory(
        history.x,
        history.mu,
        history.multipliers,
        history.effective_multipliers,
        np.array(before),
        failure,
    )


def deviation(first: Matrix, second: Matrix) -> float:
    """max_t ‖a_t − b_t‖_∞ relative to max(1, max_t ‖a_t‖_∞, max_t ‖b_t‖_∞)."""
    scale = max(1.0, float(np.abs(first).max()), float(np.abs(second).max()))
    return float(np.abs(first - second).max()) / scale


def judged(
    name: str,
    case: str,
    runs: Sequence[Trajectory],
    compare: Callable[[], tuple[tuple[str, float], ...]],
    bound: float,
    counterexample: bool = False,
) -> Claim:
    """Return the claim with the deviations of ``compare``, or NaN where a run ended early."""
    failure = next((run.failure for run in runs if run.failure), "")
    deviations = (("x", float("nan")),) if failure else compare()
    return Claim(name, case, deviations, bound, counterexample, failure)


def _first_and_others(runs: Sequence[Trajectory]) -> tuple[Trajectory, Sequence[Trajectory]]:
    if len(runs) < 2:
        raise InputError("a comparison needs at least two runs; give two splits or more")
    return runs[0], runs[1:]


def same(name: str, case: str, runs: Sequence[Trajectory], tolerance: float = EQUAL) -> Claim:
    """Claim that all runs have the x_t and the ν_t of the first."""
    first, others = _first_and_others(runs)
    return judged(
        name,
        case,
        runs,
        lambda: (
            ("x", max(deviation(first.x, run.x) for run in others)),
            ("nu", max(deviation(first.effective, run.effective) for run in others)),
        ),
        tolerance,
    )


def different(name: str, case: str, runs: Sequence[Trajectory]) -> Claim:
    """Counter-example: every further run leaves the x_t of the first."""
    first, others = _first_and_others(runs)
    return judged(
        name,
        case,
        runs,
        lambda: (("x", min(deviation(first.x, run.x) for run in others)),),
        DIFFERENT,
        counterexample=True,
    )
