"""Matrix-valued steps: by hand, as Newton–KKT steps, and for every split of the correction."""

from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import pytest
from support.cases.rule_parts import whole
from support.judges import paper_by_hand as by_hand

from casadi_hybrid import Problem, Solver
from casadi_hybrid.paper.rules import FloorCancellation, NegativeCancellation
from casadi_hybrid.problem.oracle import Oracle

Array = Any
norm = np.linalg.norm
STEPS = 50
PAPER = {"delta": 0.35, "kappa_x": 0.08}


class MatrixDesign(NamedTuple):
    """Channels and matrix steps of one iteration."""

    C_aug: Array
    C_opt: Array
    P: Array
    D: Array


def run(problem: Problem, method: str, x0: Array, lam: Array, steps: int, **options: Any) -> Any:
    solver = Solver(problem, method, tol=1e-300, max_iter=steps, **options)
    return whole(solver.solve(x0, lam_g0=lam, history=True), steps)


@pytest.fixture(scope="module")
def tall() -> tuple[Any, ...]:
    """n = 3, m = 5, from the paper's class."""
    problem, x0, mu0 = by_hand.instance(4.0, 2)
    return problem, Problem(**problem.symbolic()), x0, mu0


def law(problem: Any, rule: Any, x: Array, pi: Array, *, lookahead: bool) -> Any:
    """π⁺ = π + v, x⁺ = x − P[g + Bᵀ(π⁺ + M h)] with v = D h or D(h − Bw)."""
    while True:
        yield x, pi
        g, h, B = problem.gradient(x), problem.h(x), problem.jacobian(x)
        d = rule(problem.hessian(x, pi), B)
        M = d.C_aug + d.C_opt
        w = d.P @ (g + B.T @ (pi + M @ h))
        pi = pi + d.D @ (h - B @ w if lookahead else h)
        x = x - d.P @ (g + B.T @ (pi + M @ h))


def whitened(H: Array, B: Array, delta: float = 3.0, kappa_x: float = 0.5) -> MatrixDesign:
    """The paper's design for (H, TB), T = (BBᵀ)^{+½}, mapped back by C = TC′T, D = η_d T²."""
    e, W = np.linalg.eigh(B @ B.T)
    e, W = e[-3:], W[:, -3:]
    T = W @ np.diag(e**-0.5) @ W.T
    d = by_hand.PaperDesign(delta=delta, kappa_x=kappa_x)(H, T @ B)
    return MatrixDesign(T @ d.C_aug @ T, T @ d.C_opt @ T, d.eta_x * np.eye(3), d.eta_d * T @ T)


def floored(H: Array, B: Array) -> MatrixDesign:
    """Full column rank: H + BᵀMB = H₊ with eigenvalues max(e, 0.1), P = H₊⁻¹, D = (BPBᵀ)⁺."""
    e, W = np.linalg.eigh(H)
    lifted = W @ np.diag(np.maximum(e, 0.1)) @ W.T
    pinv = np.linalg.pinv(B)
    P = np.linalg.inv(lifted)
    D = np.linalg.pinv(B @ P @ B.T, rcond=1e-10)
    return MatrixDesign(pinv.T @ (lifted - H) @ pinv, np.zeros((5, 5)), P, D)


@pytest.mark.parametrize(
    ("method", "rule", "options"),
    [
        ("whitened", whitened, {}),
        ("whitened", partial(whitened, **PAPER), PAPER),
        ("matrix-memory", floored, {}),
        ("matrix-lookahead", floored, {}),
    ],
)
def test_iterates_by_hand(tall: tuple[Any, ...], method: str, rule: Any, options: Any) -> None:
    problem, made, x0, lam = tall
    if method == "matrix-memory":
        x0 = problem.x_star + 0.1 * (x0 - problem.x_star)  # D1 overshoots from far away
    expected = law(problem, rule, x0, lam, lookahead=method == "matrix-lookahead")
    xs, pis = map(np.array, zip(*islice(expected, STEPS + 1), strict=True))
    history = run(made, method, x0, lam, STEPS, **options)
    assert np.abs(history.x - xs).max() <= 1e-12 * np.abs(xs).max()
    assert np.abs(history.multipliers - pis).max() <= 1e-11 * np.abs(pis).max()


def wide(seed: int) -> tuple[Problem, Array, Array]:
    """n = 4, m = 2, nonlinear, with a positive definite Hessian of f near the origin."""
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 4)
    G = rng.normal(size=(4, 4))
    f = ca.bilin(ca.DM(G @ G.T + np.eye(4)), x, x) + ca.sum1(ca.cos(x)) + 0.3 * x[0] ** 3
    h = ca.mtimes(ca.DM(rng.normal(size=(2, 4))), x) + 0.2 * ca.vertcat(x[0] * x[3], ca.sin(x[1]))
    return Problem(x=x, f=f, h=h - 0.1), 0.2 * rng.normal(size=4), 0.1 * rng.normal(size=2)


def newton_kkt(problem: Problem, x: Array, lam: Array) -> Any:
    """[H Bᵀ; B 0](d, λ⁺) = −(∇f, h)."""
    oracle = Oracle(problem.functions, np.zeros(0))
    while True:
        yield x, lam
        at = oracle.second(x, lam)
        m, n = at.B.shape
        K = np.block([[at.hessian, at.B.T], [at.B, np.zeros((m, m))]])
        step = np.linalg.solve(K, -np.concatenate([at.gradient, at.h]))
        x, lam = x + step[:n], step[n:]


CORRECTIONS = [FloorCancellation(), NegativeCancellation()]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cancellation", CORRECTIONS, ids=lambda c: type(c).__name__)
def test_the_look_ahead_step_is_the_newton_kkt_step(seed: int, cancellation: Any) -> None:
    """Whatever M is, as long as nothing on ker B needs lifting."""
    problem, x0, lam = wide(seed)
    history = run(problem, "matrix-lookahead", x0, lam, 6, cancellation=cancellation)
    expected = newton_kkt(problem, x0, lam)
    xs, lams = map(np.array, zip(*islice(expected, 7), strict=True))
    assert np.abs(history.x - xs).max() <= 1e-11 * np.abs(xs).max()
    assert np.abs(history.multipliers - lams).max() <= 1e-10 * np.abs(lams).max()
