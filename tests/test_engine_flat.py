"""Starts at which a row has no slope: its scale is one."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from engine_cases import assert_kkt, needs_engine, solved

Made = tuple[dict[str, Any], dict[str, Any]]
INF = np.inf


@pytest.fixture(autouse=True)
def core() -> None:
    needs_engine()


def rosenbrock_in_a_disc() -> Made:
    """The first example of many tutorials."""
    x = ca.SX.sym("x", 2)
    f = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    return {"x": x, "f": f, "g": ca.sumsqr(x)}, {"x0": [0, 0], "ubg": 1}


def circle_between_bounds() -> Made:
    """An equation without a slope: the kernel is singular at the first step."""
    x = ca.SX.sym("x", 3)
    f = (x[0] - 2) ** 2 + (x[1] - 0.3) ** 2 + ca.exp(x[2]) * x[0]
    numbers = {"x0": 0, "lbx": -2, "ubx": 3, "lbg": 1, "ubg": 1}
    return {"x": x, "f": f, "g": ca.sumsqr(x)}, numbers


def steep_beside_flat() -> Made:
    """One row is scaled, one has no slope, one none in its free variable, one no bound."""
    x = ca.SX.sym("x", 3)
    g = ca.vertcat(900 * x[0] + x[1], x[0] * x[1], x[1] ** 2 + x[2], x[0] ** 2)
    f = (x[0] - 1) ** 2 + (x[1] + 2) ** 2 + x[0] * x[2]
    bounds = {"lbx": [-3, -3, 0.5], "ubx": [3, 3, 0.5]}
    limits = {"lbg": [-INF, -0.5, 0.6, -INF], "ubg": [500, 0.25, 1.5, INF]}
    return {"x": x, "f": f, "g": g}, {"x0": [0, 0, 0.5], **bounds, **limits}


def discs() -> Made:
    """The same row many times: beyond the limit of full matrices."""
    n = 60
    x, y = ca.SX.sym("x", n), ca.SX.sym("y", n)
    f = ca.sumsqr(x - 1) + ca.sumsqr(y[1:] - y[:-1] - 0.1) + ca.dot(x, y) + y[0]
    return {"x": ca.vertcat(x, y), "f": f, "g": x**2 + y**2}, {"x0": 0, "ubg": 1}


def arm() -> Made:
    """More equations than unknowns: a root is looked for first."""
    q = ca.SX.sym("q", 2)
    hand = ca.vertcat(ca.cos(q[0]) + ca.cos(q[0] + q[1]), ca.sin(q[0]) + ca.sin(q[0] + q[1]))
    at = ca.DM([np.cos(0.4) + np.cos(1.3), np.sin(0.4) + np.sin(1.3)])
    g = ca.vertcat(hand - at, (q[0] - 0.1) ** 2 - 0.09)
    return {"x": q, "g": g}, {"x0": [0.1, 0.2], "lbg": 0, "ubg": 0}


STARTS = [rosenbrock_in_a_disc, circle_between_bounds, steep_beside_flat, discs, arm]


def has_flat_row(made: Made) -> bool:
    """Whether a row has no slope at all at the start."""
    problem, numbers = made
    x = problem["x"]
    J = ca.Function("J", [x], [ca.jacobian(problem["g"], x)])(numbers["x0"]).full()
    return not np.abs(J).max(axis=1).all()


@pytest.mark.parametrize("made", STARTS)
def test_they_are_left(made: Callable[[], Made]) -> None:
    assert has_flat_row(made())
    solver, found = solved(made())
    assert solver.stats()["success"]
    problem, numbers = made()
    assert_kkt((problem, numbers), found)


@pytest.mark.parametrize("seed", range(4))
def test_where_only_rounding_leaves_the_start_a_minimizer_is_found(seed: int) -> None:
    """At the centre of a ring nothing says where to go: which of the two it is hangs on a hair."""
    x = ca.SX.sym("x", 2)
    x0 = 1e-15 * np.random.default_rng(seed).uniform(-1, 1, 2) * (seed > 0)
    problem = {"x": x, "f": x[0] ** 2 + 0.1 * x[0] * x[1] ** 2, "g": ca.sumsqr(x)}
    made = problem, {"x0": x0, "lbx": -4, "ubx": 4, "lbg": 1, "ubg": 4}
    solver, found = solved(made)
    assert solver.stats()["success"]
    assert_kkt(made, found)
