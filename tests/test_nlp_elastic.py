"""The elastic restoration: its kernel against the full matrix, its start, and what it is for."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from problems.chains import chain_disc

from casadi_hybrid import nlpsol
from casadi_hybrid.barrier.elastic import PENALTY, ElasticForm, ElasticKernel, begin_elastic
from casadi_hybrid.barrier.filter import Filter
from casadi_hybrid.barrier.inertia import factor_with_inertia
from casadi_hybrid.barrier.iterate import Iterate, Settings
from casadi_hybrid.barrier.newton import newton_step
from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.errors import StallError
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.standard_form.form import StandardForm

X = ca.SX.sym("x", 3)
G = ca.vertcat(ca.sumsqr(X) - 4, X[0] * X[1] + X[2], X[2] - ca.sin(X[0]))


def form_at(x0: Any) -> StandardForm:
    program = Problem.from_nlp({"x": X, "f": X[0], "g": G})
    bounds = Bounds(
        np.full(3, -2.0), np.array([2.0, np.inf, 2.0]), np.zeros(3), np.array([0, 0, 1])
    )
    return StandardForm(program, bounds, np.zeros(0), np.array(x0, dtype=float))


def iterate_at(form: StandardForm) -> Iterate:
    at = form.point(np.clip(form.start, form.lower + 0.1, form.upper - 0.1))
    n = form.n
    z_lower, z_upper = np.where(form.has_lower, 0.3, 0.0), np.where(form.has_upper, 0.2, 0.0)
    return Iterate(at, np.ones(form.m), z_lower[:n], z_upper[:n], 0.1, Filter.start(1.0))


def test_the_kernel_with_p_and_n_eliminated_is_the_full_one() -> None:
    form = form_at([0.5, 1.0, -0.3])
    it = begin_elastic(form, iterate_at(form), 1.0)
    elastic: ElasticForm = it.restoration.form
    inner: Iterate = it.restoration.inner
    n, m = form.n, form.m
    rng = np.random.default_rng(0)
    half = rng.standard_normal((n, n))
    W, E = half @ half.T, 1e-3
    D = inner.barrier_diagonal(elastic)
    kernel = ElasticKernel(form.kernel(), elastic)
    kernel.factor(W, D, inner.at.A, E)
    A = np.hstack((inner.at.A.A, -np.eye(m), np.eye(m)))
    upper = np.diag(D)
    upper[:n, :n] += W + np.diag(elastic.proximity)
    K = np.block([[upper, A.T], [A, -E * np.eye(m)]])
    b = rng.standard_normal(n + 3 * m)
    np.testing.assert_allclose(K @ kernel.solve(b), b, atol=1e-9)
    assert kernel.negative == int((np.linalg.eigvalsh(K) < 0).sum()) == m


def test_the_start_solves_the_elastic_problem_for_p_and_n() -> None:
    """p − n = c, and each of p and n minimizes ρ(p + n) − ν(log p + log n) on that line."""
    form = form_at([0.5, 1.0, -0.3])
    before = iterate_at(form)
    it = begin_elastic(form, before, 1.0)
    inner = it.restoration.inner
    p, n = it.restoration.form.parts(inner.at)
    np.testing.assert_allclose(p - n, before.at.c, atol=1e-12)
    np.testing.assert_allclose(inner.at.c, 0.0, atol=1e-12)
    assert inner.nu == pytest.approx(max(0.1, np.abs(before.at.c).max()))
    np.testing.assert_allclose(2 * PENALTY - inner.nu / p - inner.nu / n, 0.0, atol=1e-6 * PENALTY)


def test_a_start_whose_bounds_meet_its_equations_is_no_obstacle() -> None:
    """x₀ ≥ 0 and x₀ = 0: the distance to the bound falls to rounding, ν has to fall after it."""
    N = 30
    v, u = ca.SX.sym("v", N + 1), ca.SX.sym("u", N)
    g = ca.vertcat(v[0], v[1:] - v[:-1] - (u - v[:-1] ** 2) / N)
    solver = nlpsol("s", "hybrid", {"x": ca.vertcat(v, u), "f": -v[-1], "g": g})
    solver(x0=0.1, lbx=0, ubx=[np.inf] * (N + 1) + [1] * N, lbg=0, ubg=0)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 25


def race(N: int) -> tuple[Any, dict[str, Any]]:
    """A car to the finish in minimum time under a speed limit that depends on the place."""
    p, v, u, T = ca.SX.sym("p", N + 1), ca.SX.sym("v", N + 1), ca.SX.sym("u", N), ca.SX.sym("T")
    h, rows = T / N, []
    for k in range(N):
        middle = v[k] + 0.5 * h * (u[k] - v[k])
        rows += [p[k + 1] - p[k] - h * middle, v[k + 1] - v[k] - h * (u[k] - middle)]
    limits = 1 - ca.sin(2 * ca.pi * p) / 2 - v
    x = ca.vertcat(p, v, u, T)
    g = ca.vertcat(*rows, limits, p[0], v[0], p[-1] - 1, u, T)
    free = [0.0] * len(rows) + [0.0] * (N + 1) + [0.0] * 3 + [0.0] * N + [0.0]
    most = [0.0] * len(rows) + [np.inf] * (N + 1) + [0.0] * 3 + [1.0] * N + [np.inf]
    start = [0.0] * (N + 1) + [1.0] * (N + 1) + [0.0] * N + [1.0]
    return nlpsol("race", "hybrid", {"x": x, "f": T, "g": g}), {
        "x0": start,
        "lbg": free,
        "ubg": most,
    }


@pytest.mark.parametrize("N", [20, 40])
def test_a_race_is_not_restored_by_tiny_steps(N: int) -> None:
    solver, call = race(N)
    solver(**call)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 75
    assert float(solver.result.f) == pytest.approx(1.905, abs=5e-2)


def test_a_stationary_sum_of_violations_ends_a_hopeless_problem() -> None:
    """A point mass that cannot be in time: infeasible, with the certificate, and not at length."""
    N = 40
    p, v, u = ca.SX.sym("p", N + 1), ca.SX.sym("v", N + 1), ca.SX.sym("u", N)
    rows = [p[0], v[0], p[-1] - 1, v[-1]]
    rows += [p[1:] - p[:-1] - v[:-1] / N, v[1:] - v[:-1] - (ca.sin(u) - 0.1 * v[:-1] ** 3) / N]
    solver = nlpsol(
        "s", "hybrid", {"x": ca.vertcat(p, v, u), "f": ca.sumsqr(u), "g": ca.vertcat(*rows)}
    )
    solver(
        x0=0,
        lbx=[-np.inf] * (2 * N + 2) + [-1] * N,
        ubx=[np.inf] * (2 * N + 2) + [1] * N,
        lbg=0,
        ubg=0,
    )
    stats = solver.stats()
    assert stats["stop_reason"] == "LOCALLY_INFEASIBLE"
    assert stats["point_status"] == "INFEASIBLE_STATIONARY"
    assert solver.result.certificate <= 1e-5
    assert stats["iter_count"] <= 60


def test_short_steps_lead_to_the_restoration_only_where_they_led_away() -> None:
    form = form_at([0.5, 1.0, -0.3])
    it = changed(iterate_at(form), short=5)
    theta = float(np.abs(it.at.c).sum())
    W = form.hessian(it.at, it.y)
    away = changed(it, theta_short=0.99 * theta)
    nearer = changed(it, theta_short=1.01 * theta)
    assert newton_step(form, Settings(), form.kernel(), away, W) is None
    new = newton_step(form, Settings(), form.kernel(), nearer, W)
    assert new is not None
    assert new.short <= 1  # counted anew


def test_far_from_feasibility_the_shift_ends_earlier() -> None:
    """A Hessian of −10¹⁵ I wants a shift of over 10¹⁵, which only a feasible point gets."""
    form = form_at([0.5, 1.0, -0.3])
    far, steep = iterate_at(form), -1e15 * np.eye(form.n)
    with pytest.raises(StallError):
        factor_with_inertia(form, form.kernel(), far, steep)
    feasible = changed(far, at=changed(far.at, c=0.0 * far.at.c, theta=0.0))
    assert factor_with_inertia(form, form.kernel(), feasible, steep).shift > 1e15


def test_chains_around_a_disc_are_not_lost() -> None:
    """A restoration after five short steps, wherever they led, lost three of four of these."""
    solved = 0
    for links in (50, 60, 70, 80):
        made = chain_disc(links)
        solver = nlpsol("chain", "hybrid", {key: made[key] for key in "xfg"})
        solver(**{key: made[key] for key in ("x0", "lbx", "ubx", "lbg", "ubg")})
        solved += solver.stats()["success"]
    assert solved >= 3


def test_a_relaxation_is_never_wider_than_the_tolerance_allows() -> None:
    """A row of slope 10⁵ is scaled by 10⁻³: 10⁻⁸ of its scaled bounds were 10⁻⁵ of its own."""
    program = Problem.from_nlp({"x": X, "f": X[0] + X[2], "g": ca.vertcat(1e5 * X[0], X[1])})
    bounds = Bounds(np.full(3, -1e4), np.full(3, 1e4), np.array([-1, -1]), np.array([1, 1]))
    plain, wide = (
        StandardForm(program, bounds, np.zeros(0), np.ones(3), *relaxation)
        for relaxation in ((), (1e-8, 5e-7))
    )
    scale = np.array([1, 1, 1, 1e-3, 1])  # three variables, two slacks
    np.testing.assert_allclose(plain.scale_c, scale[3:])
    for moved in (plain.lower - wide.lower, wide.upper - plain.upper):
        np.testing.assert_allclose(moved / scale, [5e-7] * 4 + [1e-8], rtol=1e-4)
