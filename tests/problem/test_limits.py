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
