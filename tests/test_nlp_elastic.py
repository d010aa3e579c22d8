"""The elastic restoration, and what it is for."""

import ctypes as ct
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_form import Form
from problems.chains import chain_disc

from casadi_hybrid import Problem, nlpsol


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
    x = ca.SX.sym("x", 3)
    problem = Problem.from_nlp({"x": x, "f": x[0] + x[2], "g": ca.vertcat(1e5 * x[0], x[1])})
    form = Form(problem, problem.numbers(x0=1, lbx=-1e4, ubx=1e4, lbg=-1, ubg=1))
    scale = np.array([1, 1, 1, 1e-3, 1])  # three variables, two slacks
    np.testing.assert_allclose(form.of_form("scale_c", 2), scale[3:])
    bounds = [form.of_form(name, 5).copy() for name in ("lower", "upper")]
    form.form.relaxation = 1e-8
    form.space._numbers.feasibility = 1e-6
    form.core.hybrid_make_form(ct.byref(form.form), ct.byref(form.point))
    for name, before, sign in zip(("lower", "upper"), bounds, (-1, 1), strict=True):
        moved = sign * (form.of_form(name, 5) - before)
        np.testing.assert_allclose(moved / scale, [5e-7] * 4 + [1e-8], rtol=1e-4)
