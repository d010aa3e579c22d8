"""Identities between methods, and changes of a problem that leave trajectories unchanged.

Each test is an identity of the paper or one line of algebra, written in the test's docstring.
"""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.judges import paper_by_hand as by_hand

from casadi_hybrid import History, Problem, Solver
from casadi_hybrid.paper.rules import FixedMetric
from casadi_hybrid.problem.oracle import Oracle

Array = Any
STEPS = 30


@pytest.fixture(scope="module")
def case() -> tuple[Any, ...]:
    problem, x0, mu0 = by_hand.instance(2.0, 3)
    return problem, Problem(**problem.symbolic()), x0, mu0


def run(problem: Problem, method: str, x0: Array, lam: Array, **options: Any) -> History:
    x_prev = options.pop("x_prev", None)
    solver = Solver(problem, method, tol=1e-300, max_iter=STEPS, **options)
    history = solver.solve(x0, lam_g0=lam, x_prev=x_prev, history=True).history
    assert len(history.x) == STEPS + 1
    return history


def close(a: Array, b: Array, tolerance: float = 1e-12) -> bool:
    return bool(np.abs(a - b).max() <= tolerance * np.abs(b).max())


def linear_problem(seed: int = 0, n: int = 3, m: int = 2) -> tuple[Problem, Array]:
    """A strongly convex nonquadratic f with linear h."""
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", n)
    B, b = rng.normal(size=(m, n)), rng.normal(size=m)
    f = ca.sumsqr(x) + ca.sum1(ca.cosh(x)) + ca.dot(ca.DM(rng.normal(size=n)), x)
    return Problem(x=x, f=f, h=ca.mtimes(ca.DM(B), x) - ca.DM(b)), rng.normal(size=n)


def test_three_duals_of_a_run(case: tuple[Any, ...]) -> None:
    """π_t = μ_t − C_opt,t−1 h_{t−1} and ν_t = μ_t + C_aug,t−1 h_{t−1} = π_t + M_{t−1} h_{t−1}."""
    problem, made, x0, lam = case
    history = run(made, "closed-form", x0, lam)
    duals = history.mu, history.multipliers, history.effective_multipliers
    for t, design in enumerate(history.corrections):
        h = problem.h(history.x[t])
        mu, pi, nu = (rows[t + 1] for rows in duals)
        assert pi == pytest.approx(mu - design.C_opt @ h, abs=1e-13)
        assert nu == pytest.approx(mu + design.C_aug @ h, abs=1e-13)
        assert nu == pytest.approx(pi + design.M @ h, abs=1e-13)
        # π moves by the drive alone.
        assert pi - history.multipliers[t] == pytest.approx(design.eta_d * h, abs=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_linear_pdhg_is_the_law(seed: int) -> None:
    """For linear h, h(2x⁺ − x) = 2h⁺ − h, so the dual half of primal-first PDHG is

        μ_t = μ_{t−1} + σh_t + σ(h_t − h_{t−1}),   x_{t+1} = x_t − τ(g_t + Bᵀμ_t).

    With ν_{t+1} := μ_t this is ALG(0, σI) with η_d = σ and ν for its dual: ν_1 = μ_0 and, as
    ν_1 = π_1 + σh_0 = π_0 + 2σh_0, π_0 = μ_0 − 2σh_0. ALG(σI, 0) from the same π_0 is the same.
    """
    made, x0 = linear_problem(seed)
    mu0 = np.array([0.3, -0.2])
    tau, sigma = 0.04, 0.7
    expected = run(made, "pdhg", x0, mu0, tau=tau, sigma=sigma)
    h0 = Oracle(made.functions, np.zeros(0)).residual(x0)
    for C, Omega in ((sigma, 0.0), (0.0, sigma), (0.25 * sigma, 0.75 * sigma)):
        options = {"C_aug": C, "C_opt": Omega, "eta_x": tau, "eta_d": sigma}
        got = run(made, "constant", x0, mu0 - 2 * sigma * h0, **options)
        assert close(got.x, expected.x)
        assert close(got.effective_multipliers[1:], expected.mu[:-1])


def test_linearized_al_is_a_shifted_law(case: tuple[Any, ...]) -> None:
    """x⁺ = x − η(g + Bᵀ(μ + ch)), μ⁺ = μ + ηh⁺: with π_t = μ_t − ηh_t, ALG(cI, 0)."""
    problem, made, x0, lam = case
    expected = run(made, "linearized-al", x0, lam, eta=0.05, penalty=1.5)
    start = lam - 0.05 * problem.h(x0)
    got = run(made, "constant", x0, start, C_aug=1.5, eta_x=0.05, eta_d=0.05)
    assert close(got.x, expected.x)
    assert close(got.multipliers[1:], expected.mu[:-1])


DESIGNS = ["closed-form", "pure-augmented", "pure-optimistic", "grid"]


def transformed(problem: Problem, T: Array, S: Array, f_scale: float = 1.0) -> Problem:
    """min c·f(Ty) s.t. S h(Ty) = 0."""
    y = ca.SX.sym("y", problem.n)
    f, h = ca.Function("g", [problem.x], [problem.f, problem.h])(ca.mtimes(ca.DM(T), y))
    return Problem(x=y, f=f_scale * f, h=ca.mtimes(ca.DM(S), h))


@pytest.mark.parametrize("method", DESIGNS)
@pytest.mark.parametrize(("s", "c"), [(7.0, 1.0), (1.0, 20.0), (0.1, 20.0)])
def test_units_do_not_matter(case: tuple[Any, ...], method: str, s: float, c: float) -> None:
    """h' = sh with R' = R/s² and f' = cf with δ' = cδ have the same x_t.

    M' = cM/s², η_x' = η_x/c, η_d' = cη_d/s² and λ' = cλ/s.
    """
    _, made, x0, lam = case
    scaled = transformed(made, np.eye(3), s * np.eye(5), c)
    metrics = FixedMetric(np.eye(5)), FixedMetric(np.eye(5) / s**2)
    a = run(made, method, x0, lam, metric=metrics[0], delta=0.3, M_max=1e9)
    b = run(scaled, method, x0, c / s * lam, metric=metrics[1], delta=0.3 * c, M_max=1e9)
    factors = dict.fromkeys(("alpha", "a_x", "min_eig_A"), c)
    factors |= {"eta_x": 1 / c, "a_d": s**2 / c, "theta": 1.0}
    factors |= dict.fromkeys(("eta_d", "norm_M"), c / s**2)
    for name, factor in factors.items():
        expected = pytest.approx(a.design(name) * factor, rel=1e-8, nan_ok=True)
        assert b.design(name) == expected, name
    assert a.active == b.active
    assert close(b.x, a.x, 1e-10)
    assert close(s / c * b.multipliers, a.multipliers, 1e-9)


def test_metric_may_follow_the_rows() -> None:
    """m = n and h' = Sh with R' = S⁻ᵀRS⁻¹: M' = S⁻ᵀMS⁻¹, so α, A_M and BᵀMB stay."""
    rng = np.random.default_rng(2)
    x = ca.SX.sym("x", 3)
    W = rng.normal(size=(3, 3))
    h = ca.mtimes(ca.DM(W), x) + 0.1 * x**2
    problem = Problem(x=x, f=ca.sum1(ca.sin(x)), h=h)
    F = rng.normal(size=(3, 3))
    R = F @ F.T + np.eye(3)
    S = rng.normal(size=(3, 3)) + 2 * np.eye(3)
    inverse = np.linalg.inv(S)
    scaled = transformed(problem, np.eye(3), S)
    x0, lam = rng.normal(size=3), rng.normal(size=3)
    a, b = (
        run(made, "closed-form", x0, start, metric=FixedMetric(metric), M_max=1e9).corrections[0]
        for made, start, metric in (
            (problem, lam, R),
            (scaled, inverse.T @ lam, inverse.T @ R @ inverse),
        )
    )
    assert pytest.approx(inverse.T @ a.M @ inverse, rel=1e-9) == b.M
    for name in ("alpha", "a_x", "min_eig_A"):
        assert getattr(b, name) == pytest.approx(getattr(a, name), rel=1e-8)
