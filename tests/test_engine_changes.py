"""Sets that change one bound at a time, in C by the factorization of a set before: as in Python,
which factors each of them."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from test_engine_pieces import Twins, iterate_at, start_of

from casadi_hybrid import Problem
from casadi_hybrid.barrier import hot
from casadi_hybrid.barrier.hot import CONVEX, _step
from casadi_hybrid.barrier.polish import active_guess
from casadi_hybrid.engine.structures import LIMIT
from casadi_hybrid.point.limits import Limits


def dense(draws: np.random.Generator, n: int = 24, m: int = 6) -> dict[str, Any]:
    """A quadratic program with rows that are equations, rows with bounds, and bounds."""
    x = ca.SX.sym("x", n)
    L, A = draws.standard_normal((n, n)), draws.standard_normal((m + 4, n))
    b = A @ draws.uniform(-0.5, 0.5, n)
    return {
        "nlp": {
            "x": x,
            "f": 0.5 * ca.sumsqr(ca.DM(L.T) @ x) + ca.dot(ca.DM(5 * draws.standard_normal(n)), x),
            "g": ca.DM(A) @ x,
        },
        "lbx": -np.ones(n), "ubx": np.ones(n),
        "lbg": b - np.r_[np.zeros(m), np.ones(4)], "ubg": b + np.r_[np.zeros(m), np.ones(4)],
    }  # fmt: skip


def past_walls(draws: np.random.Generator, N: int = 20) -> dict[str, Any]:
    """A mass that follows a line past walls: what is violated is a whole piece of the horizon."""
    u, v, f, g = ca.SX.sym("u", N), ca.SX.sym("v", 2 * N), 0, []
    at, speed = draws.uniform(-0.2, 0.2), draws.uniform(-1, 1)
    for k in range(N):
        g += [v[2 * k] - at - 0.1 * speed, v[2 * k + 1] - speed - 0.1 * u[k]]
        at, speed = v[2 * k], v[2 * k + 1]
        f += (at - 0.7 * np.sin(0.4 * k + draws.uniform())) ** 2 + 0.01 * u[k] ** 2
    wall = np.tile([0.4, ca.inf], N)
    return {
        "nlp": {"x": ca.vertcat(u, v), "f": 10 * f, "g": ca.vertcat(*g)},
        "lbx": np.r_[-2 * np.ones(N), -wall], "ubx": np.r_[2 * np.ones(N), wall],
        "lbg": np.zeros(2 * N), "ubg": np.zeros(2 * N),
    }  # fmt: skip


def tied(draws: np.random.Generator) -> dict[str, Any]:
    """The same where a row is the sum of entries that all have bounds: they cannot all be met."""
    made = dense(draws)
    x = made["nlp"]["x"]
    made["nlp"]["g"] = ca.vertcat(made["nlp"]["g"], x[0] + x[1] + x[2], x[3] - x[4])
    made["lbg"], made["ubg"] = np.r_[made["lbg"], 1.0, 2.0], np.r_[made["ubg"], 1.0, 2.0]
    return made


Made = Callable[[np.random.Generator], dict[str, Any]]


@pytest.mark.parametrize(("made", "most"), [(dense, 0.9), (past_walls, 0.5), (tied, None)])
def test_they_lead_where_a_factorization_each_leads(
    made: Made, most: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = [0]
    pinned = hot._Model.pinned

    def noted(model: Any, *active: np.ndarray) -> Any:
        sets[0] += 1
        return pinned(model, *active)

    monkeypatch.setattr(hot._Model, "pinned", noted)
    compared = in_c = in_python = 0
    for seed in range(30):
        draws = np.random.default_rng(seed)
        program = made(draws)
        problem = Problem(**program.pop("nlp"))
        given = {"x0": draws.uniform(-1, 1, problem.n), "lam_g0": np.zeros(problem.m)}
        given["lam_x0"] = draws.standard_normal(problem.n) * (np.abs(given["x0"]) > 0.7)
        numbers = problem.numbers(**program, **given)
        twins = Twins(problem, numbers)
        twins.space.limit(replace(Limits(), max_iter=1))
        status = twins.space.warm(None)
        form = twins.twin
        y, z_lower, z_upper = form.from_user_multipliers(numbers.lam_x0, numbers.lam_g0)
        it = iterate_at(twins, start_of(twins), draws, 0.0)
        it = replace(it, y=y, z_lower=z_lower, z_upper=z_upper)
        sets[0] = 0
        found = _step(form, form.kernel(), it, active_guess(form, it), CONVEX)
        if status not in (0, 7) or found is None:
            continue
        compared += 1
        in_c += twins.space.answer.factors
        in_python += sets[0]
        new = found[0]
        lam_x, lam_g = form.user_multipliers(new.at, new.y, new.z_upper - new.z_lower)
        for name, other in (("x", new.at.x), ("lam_x", lam_x), ("lam_g", lam_g)):
            size = np.abs(other).max(initial=1.0)
            np.testing.assert_allclose(
                twins.space.outputs[name],
                other,
                rtol=0,
                atol=1e-6 * size,
                err_msg=f"{name}, {seed}",
            )
    assert compared >= 15
    if most is not None:
        assert in_c <= most * in_python


def test_the_clock_is_asked_before_every_factorization_of_a_step() -> None:
    program = past_walls(np.random.default_rng(3))
    problem = Problem(**program.pop("nlp"))
    numbers = problem.numbers(**program, x0=np.ones(problem.n), lam_g0=np.ones(problem.m))
    space, ticks = Twins(problem, numbers).space, [0]

    def clock() -> float:
        ticks[0] += 1
        return float(ticks[0])

    now = ct.CFUNCTYPE(ct.c_double)(clock)
    space._functions.now = ct.cast(now, ct.c_void_p)
    space.limit(replace(Limits(), max_iter=1))
    space.warm(None)
    whole = space.answer.factors
    assert whole > 3
    seen = []
    for seconds in range(1, 40):
        space.limit(replace(Limits(), max_iter=1, max_time=float(seconds)))
        if space.warm(None) == LIMIT and not space.answer.steps:  # nothing was moved
            assert space.answer.moved == 0.0
        seen.append(space.answer.factors)
    assert sorted(set(seen)) == list(range(whole + 1))


def test_a_step_in_vain_leaves_no_trace() -> None:
    """The first step leads a little past a kink of the slope; a second one on the same
    factorization is expected to solve it, and the curvature is another one there."""
    x = ca.SX.sym("x", 2)
    f = (x[0] - 1e-6) ** 2 + 10 * ca.fmax(0, x[0]) ** 2 + (x[1] - 1) ** 2
    problem = Problem(x=x, f=f, g=x[0] + x[1])
    numbers = problem.numbers(x0=[-1, 1], lam_g0=[1e-14], lbg=-5, ubg=5)
    space = Twins(problem, numbers).space
    space.limit(replace(Limits(), max_iter=2))
    assert space.warm(None) == LIMIT
    assert (space.answer.steps, space.answer.firsts, space.answer.factors) == (2, 3, 1)
    x0, end = space.outputs["x"][0], space.answer.end
    assert x0 == pytest.approx(1e-6)
    assert end.f == pytest.approx(10 * x0**2, rel=1e-6, abs=0)
    assert end.stationarity == pytest.approx(20 * x0, rel=1e-6)
