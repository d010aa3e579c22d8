"""Matrix steps under any split, and one look-ahead step."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.cases.rule_parts import whole

from casadi_hybrid import Problem, Solver
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.paper.experiment.generator import FITTED
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.paper.law import Correction, State, advance
from casadi_hybrid.paper.rules import (
    DesignRule,
    FullCancellation,
    MatrixRule,
    NegativeCancellation,
    ScheduleRule,
    WhitenedRule,
)
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle

Array = Any
norm = np.linalg.norm
SHAPES = [(3, 5), (5, 3), (4, 4), (4, 1)]


def oracle_of(problem: Problem) -> Oracle:
    return Oracle(problem.functions, np.zeros(0))


# --- the general additivity statement -----------------------------------------------------------


def resplit(rule: Any, m: int, seed: int | None) -> ScheduleRule:
    """The rule's M_t and steps, divided by an arbitrary matrix that changes with t."""
    rng = np.random.default_rng(seed)
    shares = rng.normal(size=(100, m, m))

    def schedule(at: Evaluation, t: int) -> Correction:
        c = rule.decide(at, t)
        part = 0.0 * c.M if seed is None else (1 + norm(c.M)) * shares[t]
        looks = getattr(c, "lookahead", False)
        return Correction(c.M - part, part, c.eta_x, c.eta_d, lookahead=looks)

    return ScheduleRule(schedule, needs_hessian=True)


def drift(problem: Problem, x0: Array, lam: Array, rule: Any, steps: int, **options: Any) -> float:
    """Largest deviation of x_t and π_t from the unsplit run, relative to their size."""
    runs = []
    for seed in (None, 1, 2):
        iteration = Hybrid(resplit(rule, problem.m, seed), **options)
        solver = Solver(problem, iteration, tol=1e-300, max_iter=steps)
        runs.append(whole(solver.solve(x0, lam_g0=lam, history=True), steps))
    assert norm(runs[1].mu - runs[2].mu) > 1e-3 * norm(runs[0].mu)  # the splits do differ
    worst = 0.0
    for run in runs[1:]:
        for name in ("x", "multipliers"):
            a, b = getattr(runs[0], name), getattr(run, name)
            worst = max(worst, np.abs(a - b).max() / np.abs(a).max())
    return worst


RULES = {
    "memory": MatrixRule(drive="memory"),
    "look-ahead": MatrixRule(),
    "look-ahead, full": MatrixRule(FullCancellation()),
    "look-ahead, negative": MatrixRule(NegativeCancellation()),
    "whitened": WhitenedRule(),
    "scalar steps": DesignRule(kernel_floor=0.5, M_max=1e9),
}


def within(condition: float, seed: int, n: int, m: int, radius: float) -> Any:
    """An instance whose start is that far from (x*, μ*), in x and in μ."""
    recipe = replace(FITTED, multiplier_radius=radius)
    return make_instance(condition, seed, n=n, m=m, radius=radius, recipe=recipe)


def near(n: int, m: int, radius: float = 0.03) -> Any:
    """An instance whose start is in reach of steps without safeguards."""
    return within(3, 7, n, m, radius)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", RULES)
def test_no_split_changes_a_trajectory(name: str, shape: tuple[int, int]) -> None:
    """Any C_opt,t whatsoever, not symmetric, another at each step, as long as M_t is the rule's."""
    i = near(*shape)
    assert drift(i.problem, i.x0, i.multipliers0, RULES[name], 12) <= 1e-12


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_look_ahead_forgets_the_multiplier_and_so_forgives_a_wrong_memory(shape):
    """Where π⁺ is unique it is Newton's, whatever π was; with m > n the rest of π is carried on."""
    n, m = shape
    i = near(n, m)
    rule = RULES["look-ahead"]
    found = drift(i.problem, i.x0, i.multipliers0, rule, 3, memory="untelescoped")
    assert found > 1e-6 if m > n else found <= 1e-12


# --- what a look-ahead step is ------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_look_ahead_step_does_not_depend_on_m(shape: tuple[int, int]) -> None:
    """For every M with A = H + BᵀMB invertible, definite or not: Newton–KKT, or Gauss–Newton."""
    i = near(*shape, radius=0.5)
    at = oracle_of(i.problem).second(i.x0, i.multipliers0)
    m, n = at.B.shape
    rng = np.random.default_rng(0)
    zero = np.zeros(m)
    ends = []
    for _ in range(5):
        M = 3 * rng.normal(size=(m, m))
        M = M + M.T
        P = np.linalg.inv(at.hessian + at.B.T @ M @ at.B)
        D = np.linalg.pinv(at.B @ P @ at.B.T, rcond=1e-9)
        step = Correction(M, 0 * M, P, D, lookahead=True)
        state = State(i.x0, i.multipliers0, zero, i.multipliers0)
        ends.append(advance(state, at, step, zero).x)
    for end in ends[1:]:
        assert np.abs(end - ends[0]).max() <= 1e-8 * norm(ends[0] - i.x0)
    if m >= n:
        newton = i.x0 - np.linalg.pinv(at.B) @ at.h
    else:
        K = np.block([[at.hessian, at.B.T], [at.B, np.zeros((m, m))]])
        newton = i.x0 - np.linalg.solve(K, np.concatenate([at.gradient, at.h]))[:n]
    assert ends[0] == pytest.approx(newton, abs=1e-8)


def errors_of(i: Any, method: str, steps: int) -> Array:
    solver = Solver(i.problem, method, tol=1e-300, max_iter=steps)
    history = solver.solve(i.x0, lam_g0=i.multipliers0, history=True).history
    return np.hypot(
        norm(history.x - i.x_star, axis=1),
        norm((history.multipliers - i.multipliers_star) @ i.B_star, axis=1),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_look_ahead_converges_quadratically_and_memory_in_two_steps(shape, seed):
    """Linearized, D1's iteration matrix is nilpotent: its square vanishes, itself it does not."""
    n, m = shape
    i = within(2, seed, n, m, 0.02)
    one = errors_of(i, "matrix-lookahead", 3)
    two = errors_of(i, "matrix-memory", 6)
    floor = 1e-13
    assert one[1] <= 60 * one[0] ** 2
    assert one[2] <= 60 * one[1] ** 2 + floor
    assert two[1] > 0.1 * two[0]
    assert two[2] <= 300 * two[0] ** 2
    assert two[4] <= 300 * two[2] ** 2 + floor
