"""Matrix-valued steps: for every split of the correction, and as Newton–KKT steps.

With P = (W + D + BᵀMB)⁻¹ and the look-ahead drive v = (BPBᵀ + R)⁻¹(h − Bw), the law's step solves

    [ W + D   Bᵀ ] [ dx ]     [ g + Bᵀπ ]
    [   B    −E  ] [ dy ] = − [    h    ],    E = (R⁻¹ + M)⁻¹.

R → ∞ is the step without a drive, E = M⁻¹; R = 0 is the Newton–KKT step, E = 0.
"""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.rule_parts import whole

from casadi_hybrid import Problem, Solver
from casadi_hybrid.paper import rules
from casadi_hybrid.paper.experiment import make_instance
from casadi_hybrid.paper.experiment.generator import FITTED
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.paper.law import Correction, State, advance
from casadi_hybrid.paper.rules import DesignRule, MatrixRule
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle

Array = Any
norm = np.linalg.norm
SHAPES = [(3, 5), (5, 3), (4, 4), (4, 1)]


def run(problem: Problem, method: Any, x0: Array, lam: Array, steps: int, **options: Any) -> Any:
    solver = Solver(problem, method, tol=1e-300, max_iter=steps, **options)
    return whole(solver.solve(x0, lam_g0=lam, history=True), steps)


def near(condition: float, seed: int, shape: tuple[int, int], radius: float) -> Any:
    """An instance whose start is that far from (x*, μ*), in x and in μ."""
    recipe = replace(FITTED, multiplier_radius=radius)
    return make_instance(condition, seed, n=shape[0], m=shape[1], radius=radius, recipe=recipe)


def resplit(rule: Any, m: int, seed: int | None) -> rules.ScheduleRule:
    """The rule's M_t and steps, divided by an arbitrary matrix that changes with t."""
    shares = np.random.default_rng(seed).normal(size=(100, m, m))

    def schedule(at: Evaluation, t: int) -> Correction:
        c = rule.decide(at, t)
        part = 0.0 * c.M if seed is None else (1 + norm(c.M)) * shares[t]
        looks = getattr(c, "lookahead", False)
        return Correction(c.M - part, part, c.eta_x, c.eta_d, lookahead=looks)

    return rules.ScheduleRule(schedule, needs_hessian=True)


def drift(i: Any, rule: Any, steps: int, **options: Any) -> float:
    """Largest deviation of x_t and π_t from the unsplit run, relative to their size."""
    methods = (Hybrid(resplit(rule, i.problem.m, seed), **options) for seed in (None, 1, 2))
    first, *others = (run(i.problem, way, i.x0, i.multipliers0, steps) for way in methods)
    assert norm(others[0].mu - others[1].mu) > 1e-3 * norm(first.mu)  # the splits do differ
    pairs = [(first.x, other.x) for other in others]
    pairs += [(first.multipliers, other.multipliers) for other in others]
    return max(np.abs(a - b).max() / np.abs(a).max() for a, b in pairs)


RULES = {
    "memory": MatrixRule(drive="memory"),
    "look-ahead": MatrixRule(),
    "look-ahead, full": MatrixRule(rules.FullCancellation()),
    "look-ahead, negative": MatrixRule(rules.NegativeCancellation()),
    "whitened": rules.WhitenedRule(),
    "scalar steps": DesignRule(kernel_floor=0.5, M_max=1e9),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_split_changes_a_trajectory(shape: tuple[int, int]) -> None:
    """Any C_opt,t whatsoever, not symmetric, another at each step, as long as M_t is the rule's.

    Where π⁺ is unique the look-ahead step is Newton's, whatever π was, and even a memory that does
    not telescope changes nothing; with m > n the rest of π is carried on.
    """
    n, m = shape
    i = near(3, 7, shape, 0.03)
    for name, rule in RULES.items():
        assert drift(i, rule, 12) <= 1e-12, name
    forgotten = drift(i, RULES["look-ahead"], 3, memory="untelescoped")
    assert forgotten > 1e-6 if m > n else forgotten <= 1e-12


def newton(at: Any) -> tuple[Array, Array]:
    """(d, λ⁺) of [H Bᵀ; B 0](d, λ⁺) = −(∇f, h)."""
    m, n = at.B.shape
    K = np.block([[at.hessian, at.B.T], [at.B, np.zeros((m, m))]])
    step = np.linalg.solve(K, -np.concatenate([at.gradient, at.h]))
    return step[:n], step[n:]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cancellation", [rules.FloorCancellation(), rules.NegativeCancellation()])
def test_look_ahead_iterates_are_newtons(seed: int, cancellation: Any) -> None:
    """For every M, where nothing on ker B needs lifting: n = 4, m = 2, ∇²f ≻ 0 near the origin."""
    rng = np.random.default_rng(seed)
    s, G = ca.SX.sym("x", 4), rng.normal(size=(4, 4))
    f = ca.bilin(ca.DM(G @ G.T + np.eye(4)), s, s) + ca.sum1(ca.cos(s)) + 0.3 * s[0] ** 3
    h = ca.mtimes(ca.DM(rng.normal(size=(2, 4))), s) + 0.2 * ca.vertcat(s[0] * s[3], ca.sin(s[1]))
    problem, x, lam = Problem(x=s, f=f, h=h - 0.1), 0.2 * rng.normal(size=4), np.zeros(2)
    oracle = Oracle(problem.functions, np.zeros(0))
    history = run(problem, "matrix-lookahead", x, lam, 6, cancellation=cancellation)
    for t in range(7):
        assert history.x[t] == pytest.approx(x, abs=1e-11)
        assert history.multipliers[t] == pytest.approx(lam, abs=1e-10 * norm(history.multipliers))
        step, lam = newton(oracle.second(x, lam))
        x = x + step


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_look_ahead_is_quadratic_memory_in_two_steps(shape, seed):
    """Linearized, D1's iteration matrix is nilpotent: its square vanishes, itself it does not."""
    i = near(2, seed, shape, 0.02)

    def errors(method: str, steps: int) -> Array:
        history = run(i.problem, method, i.x0, i.multipliers0, steps)
        dual = norm((history.multipliers - i.multipliers_star) @ i.B_star, axis=1)
        return np.hypot(norm(history.x - i.x_star, axis=1), dual)

    ahead, memory, floor = errors("matrix-lookahead", 3), errors("matrix-memory", 6), 1e-13
    assert ahead[1] <= 60 * ahead[0] ** 2
    assert ahead[2] <= 60 * ahead[1] ** 2 + floor
    assert memory[1] > 0.1 * memory[0]
    assert memory[2] <= 300 * memory[0] ** 2
    assert memory[4] <= 300 * memory[2] ** 2 + floor


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e3, np.inf])
def test_kernel_step_is_a_step_of_the_law(size: float, seed: int) -> None:
    """For every split, after any step before; R = size·I, and no drive where it is infinite."""
    n, m = 7, 4
    rng = np.random.default_rng(seed)
    W, B, M = (rng.standard_normal(shape) for shape in ((n, n), (m, n), (m, m)))
    W, M = W @ W.T + np.eye(n), M @ M.T + 0.5 * np.eye(m)
    x, g = rng.standard_normal((2, n))
    h, pi, h_before = rng.standard_normal((3, m))
    at = Evaluation(x, 0.0, g, h, B, W, h)
    P = np.linalg.inv(W + B.T @ M @ B)
    looks = bool(np.isfinite(size))
    drive = np.linalg.inv(B @ P @ B.T + size * np.eye(m)) if looks else np.zeros((m, m))
    E = np.linalg.inv(np.eye(m) / size + M) if size else np.zeros((m, m))
    K = np.block([[W, B.T], [B, -E]])
    assert np.count_nonzero(np.linalg.eigvalsh(K) < 0) == m
    step = np.linalg.solve(K, -np.concatenate((g + B.T @ pi, h)))[:n]
    for theta in (0.0, 0.5, 1.0):
        memory = (1 - theta) * M @ h_before
        correction = Correction(theta * M, (1 - theta) * M, P, drive, looks)
        end = advance(State(x, pi + memory, memory, pi), at, correction, memory).x
        np.testing.assert_allclose(end - x, step, rtol=1e-7, atol=1e-9)
