"""Sets that change one bound at a time, by the factorization of a set before."""

import ctypes as ct
from dataclasses import replace
from itertools import count
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import assert_kkt
from support.judges.standard_form import Form

from casadi_hybrid import Problem
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.point.limits import Limits

LIMIT = C.HYBRID_LIMIT


def dense(draws: np.random.Generator, n: int = 24, m: int = 6) -> tuple[Any, Any]:
    """A quadratic program with rows that are equations, rows with bounds, and bounds."""
    x, L = ca.SX.sym("x", n), draws.standard_normal((n, n))
    A = draws.standard_normal((m + 4, n))
    b, room = A @ draws.uniform(-0.5, 0.5, n), np.r_[np.zeros(m), np.ones(4)]
    slope = ca.DM(5 * draws.standard_normal(n))
    nlp = {"x": x, "f": 0.5 * ca.bilin(ca.DM(L @ L.T), x, x) + ca.dot(slope, x), "g": ca.DM(A) @ x}
    return nlp, {"lbx": -np.ones(n), "ubx": np.ones(n), "lbg": b - room, "ubg": b + room}


def past_walls(draws: np.random.Generator, N: int = 20) -> tuple[Any, Any]:
    """A mass that follows a line past walls: a whole piece of the horizon is violated."""
    u, v, f, g = ca.SX.sym("u", N), ca.SX.sym("v", 2 * N), 0, []
    position, speed = draws.uniform(-0.2, 0.2), draws.uniform(-1, 1)
    for k in range(N):
        g += [v[2 * k] - position - 0.1 * speed, v[2 * k + 1] - speed - 0.1 * u[k]]
        position, speed = v[2 * k], v[2 * k + 1]
        f += (position - 0.7 * np.sin(0.4 * k + draws.uniform())) ** 2 + 0.01 * u[k] ** 2
    most = np.r_[2 * np.ones(N), np.tile([0.4, ca.inf], N)]
    nlp = {"x": ca.vertcat(u, v), "f": 10 * f, "g": ca.vertcat(*g)}
    return nlp, {"lbx": -most, "ubx": most, "lbg": np.zeros(2 * N), "ubg": np.zeros(2 * N)}


def tied(draws: np.random.Generator) -> tuple[Any, Any]:
    """The same where a row is the sum of entries that all have bounds: they cannot all be met."""
    nlp, bounds = dense(draws)
    x = nlp["x"]
    nlp["g"] = ca.vertcat(nlp["g"], x[0] + x[1] + x[2], x[3] - x[4])
    return nlp, bounds | {key: np.r_[bounds[key], 1.0, 2.0] for key in ("lbg", "ubg")}


@pytest.mark.parametrize(
    ("made", "least", "most"), [(dense, 30, 0.9), (past_walls, 28, 0.5), (tied, 15, 1.0)]
)
def test_one_step_solves_quadratic_programs(made: Any, least: int, most: float) -> None:
    """By its KKT conditions; changes of the set cost less than a factorization each."""
    solved = factors = changes = 0
    for seed in range(30):
        draws = np.random.default_rng(seed)
        nlp, bounds = made(draws)
        problem = Problem(**nlp)
        start = {"x0": draws.uniform(-1, 1, problem.n), "lam_g0": np.zeros(problem.m)}
        start["lam_x0"] = draws.standard_normal(problem.n) * (np.abs(start["x0"]) > 0.7)
        form = Form(problem, problem.numbers(**bounds, **start))
        form.space.limit(replace(Limits(), max_iter=1))
        if form.warm() != C.HYBRID_SOLVED:
            continue
        solved += 1
        found = {name: form.space.parts[name] for name in ("x", "lam_x", "lam_g")}
        assert_kkt((nlp, bounds), found)
        factors += form.space.answer.factors
        changes += np.count_nonzero((found["lam_x"] != 0) != (start["lam_x0"] != 0))
    assert solved >= least
    assert factors <= most * changes


def test_clock_is_asked_before_every_factorization() -> None:
    nlp, bounds = past_walls(np.random.default_rng(3))
    problem = Problem(**nlp)
    numbers = problem.numbers(**bounds, x0=np.ones(problem.n), lam_g0=np.ones(problem.m))
    form = Form(problem, numbers)
    space, ticks = form.space, count(1)
    clock = ct.CFUNCTYPE(ct.c_double)(lambda: float(next(ticks)))
    form.functions.now = ct.cast(clock, ct.c_void_p)
    space.limit(replace(Limits(), max_iter=1))
    form.warm()
    whole, seen = space.answer.factors, set()
    assert whole > 3
    for seconds in range(1, 40):
        space.limit(replace(Limits(), max_iter=1, max_time=float(seconds)))
        if form.warm() == LIMIT and not space.answer.steps:  # nothing was moved
            assert space.answer.moved == 0.0
        seen.add(space.answer.factors)
    assert seen == set(range(whole + 1))


def test_rejected_step_leaves_no_trace() -> None:
    """The first step leads a little past a kink of the slope; a second one on the same
    factorization is expected to solve it, and the curvature is another one there."""
    x = ca.SX.sym("x", 2)
    f = (x[0] - 1e-6) ** 2 + 10 * ca.fmax(0, x[0]) ** 2 + (x[1] - 1) ** 2
    problem = Problem(x=x, f=f, g=x[0] + x[1])
    form = Form(problem, problem.numbers(x0=[-1, 1], lam_g0=[1e-14], lbg=-5, ubg=5))
    space = form.space
    space.limit(replace(Limits(), max_iter=2))
    assert form.warm() == LIMIT
    assert (space.answer.steps, space.answer.firsts, space.answer.factors) == (2, 3, 1)
    x0, end = space.parts["x"][0], space.answer.end
    assert x0 == pytest.approx(1e-6)
    assert end.f == pytest.approx(10 * x0**2, rel=1e-6, abs=0)
    assert end.stationarity == pytest.approx(20 * x0, rel=1e-6)


@pytest.mark.parametrize("kind", [1, -1])
def test_repeated_row_drops_no_bound(kind: int) -> None:
    """epsilon dy exceeds the tolerance then, though rows and bound do not contradict each other:
    the set is factored without epsilon, and with it."""
    x = ca.SX.sym("x", 2)
    row, slope = 1e-2 * (x[0] + x[1]), kind * 1e4
    f = 0.5 * ca.sumsqr(x) - slope * x[0] - 20 * slope * x[1]
    problem = Problem(x=x, f=f, g=ca.vertcat(row, row))
    bounds = {"ubx": [ca.inf, 0.0]} if kind > 0 else {"lbx": [-ca.inf, 0.0]}
    numbers = problem.numbers(x0=[1, 0], lam_x0=[0, kind], lbg=1.001e-2, ubg=1.001e-2, **bounds)
    form = Form(problem, numbers)
    form.space.limit(replace(Limits(), max_iter=1))
    form.warm()
    assert form.space.parts["x"] == pytest.approx([1.001, 0], abs=1e-5)
    assert form.space.answer.factors == 2
