"""Starts on bounds, restorations on the way, and how far bounds are relaxed."""

import ctypes as ct

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import solved
from support.cases.shooting import runge_kutta
from support.judges.standard_form import Form

from casadi_hybrid import Problem


def test_start_fixed_at_a_bound_is_solved() -> None:
    """x₀ ≥ 0 and x₀ = 0: the distance to the bound falls to rounding, ν has to fall after it."""
    N = 30
    v, u = ca.SX.sym("v", N + 1), ca.SX.sym("u", N)
    g = ca.vertcat(v[0], v[1:] - v[:-1] - (u - v[:-1] ** 2) / N)
    solver = solved(
        {"x": ca.vertcat(v, u), "f": -v[-1], "g": g},
        x0=0.1,
        lbx=0,
        ubx=[np.inf] * (N + 1) + [1] * N,
        lbg=0,
        ubg=0,
    )
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 25


@pytest.mark.parametrize("N", [20, 40, 50])
def test_race_takes_few_steps(N: int) -> None:
    """CasADi's example of a car with a speed limit along a track, in the least time.

    With 50 intervals 73 steps, had θ to grow in five short ones before a restoration is due.
    """
    x, u, T = ca.SX.sym("x", 2, N + 1), ca.SX.sym("u", 1, N), ca.SX.sym("T")
    rows = [
        x[:, k + 1] - runge_kutta(lambda x, u: ca.vertcat(x[1], u - x[1]), x[:, k], u[k], T / N)
        for k in range(N)
    ]
    speed = x[1, :] - 1 + ca.sin(2 * np.pi * x[0, :]) / 2
    g = ca.veccat(*rows, speed, u, x[:, 0], x[0, N] - 1, T)
    solver = solved(
        {"x": ca.veccat(x, u, T), "f": T, "g": g},
        x0=np.r_[np.tile([0.0, 1.0], N + 1), np.zeros(N), 1.0],
        lbg=np.r_[np.zeros(2 * N), np.full(N + 1, -np.inf), np.zeros(N + 4)],
        ubg=np.r_[np.zeros(3 * N + 1), np.ones(N), np.zeros(3), np.inf],
    )
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 50
    assert float(solver.result.f) == pytest.approx(1.905, abs=5e-2)


def test_chains_around_a_disc_are_solved() -> None:
    """N rigid links of length 4 between (0, 0) and (2, 0), of least energy, from a plumb line.

    A restoration after five short steps, wherever they led, lost three of four of these.
    """
    successes = []
    for N in (50, 60, 70, 80):
        nodes, t = ca.SX.sym("nodes", 2, N + 1), np.linspace(0, 1, N + 1)
        links = ca.sum1((nodes[:, 1:] - nodes[:, :-1]) ** 2) - (4 / N) ** 2
        disc = ca.sum1((nodes - ca.DM([1, -1])) ** 2)
        g = ca.veccat(links, nodes[:, 0], nodes[:, N] - ca.DM([2, 0]), disc)
        energy = (ca.sum2(nodes[1, :]) - (nodes[1, 0] + nodes[1, N]) / 2) / N
        solver = solved(
            {"x": ca.vec(nodes), "f": energy, "g": g},
            x0=np.column_stack([0 * t, -t]).ravel(),
            lbg=np.r_[np.zeros(N + 4), np.full(N + 1, 0.3**2)],
            ubg=np.r_[np.zeros(N + 4), np.full(N + 1, np.inf)],
        )
        successes.append(solver.stats()["success"])
    assert sum(successes) >= 3


def test_relaxation_stays_within_the_tolerance() -> None:
    """A row of slope 10⁵ is scaled by 10⁻³: 10⁻⁸ of its scaled bounds were 10⁻⁵ of its own."""
    x = ca.SX.sym("x", 3)
    problem = Problem.from_nlp({"x": x, "f": x[0] + x[2], "g": ca.vertcat(1e5 * x[0], x[1])})
    form = Form(problem, problem.numbers(x0=1, lbx=-1e4, ubx=1e4, lbg=-1, ubg=1))
    scale = np.array([1, 1, 1, 1e-3, 1])  # three variables, two slacks
    np.testing.assert_allclose(form.of_form("scale_c", 2), scale[3:])
    bounds = [form.of_form(name, 5).copy() for name in ("lower", "upper")]
    form.form.relaxation = 1e-8
    form.core.hybrid_make_form(ct.byref(form.form), ct.byref(form.point))
    for name, before, sign in zip(("lower", "upper"), bounds, (-1, 1), strict=True):
        moved = sign * (form.of_form(name, 5) - before)
        np.testing.assert_allclose(moved / scale, [5e-7] * 4 + [1e-8], rtol=1e-4)
