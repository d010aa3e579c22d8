"""Schittkowski's second collection is what is published of it.

Each formula is held against the published pair (x*, f*): f(x*) = f*, x* is feasible, and bounded
least squares finds multipliers there. IPOPT from the published start must reach f* but for the
local minima that are named.
"""

import sys
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import lsq_linear

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from problems.more import MORE, MORE_SYSTEMS
from problems.more_base import Squares

PROBLEMS = {entry.number: entry for entry in MORE}
every = pytest.mark.parametrize("number", sorted(PROBLEMS))
UNBOUNDED = {306}
# Where IPOPT from x0 ends in another local minimum, and its value.
LOCAL = {
    202: 48.984254, 236: -8.1975167, 238: -8.1975167, 239: -8.1975167, 265: 1.9036248, 270: 0.0,
    294: 3.9739405, 295: 3.9865791, 296: 3.9866238, 297: 3.9866238, 298: 3.9866238,
    299: 3.9866238, 309: 0.28914917, 312: 5.9225628, 327: 0.03064762, 368: -0.75,
}  # fmt: skip
# f is so flat at x* that the gradient is within tolerance where f − f* is not.
FLAT = {283}


@cache
def functions(number: int) -> tuple[dict, ca.Function]:
    nlp = PROBLEMS[number].build()
    gradient, jacobian = ca.gradient(nlp["f"], nlp["x"]), ca.jacobian(nlp["g"], nlp["x"])
    return nlp, ca.Function("nlp", [nlp["x"]], [nlp["f"], nlp["g"], gradient, jacobian])


def test_numbers_are_of_the_book():
    assert len(PROBLEMS) == len(MORE) >= 100
    assert min(PROBLEMS) >= 201
    assert max(PROBLEMS) <= 395


@every
def test_published_minimizer(number):
    entry = PROBLEMS[number]
    if entry.x_star is None:
        pytest.skip("no minimizer is published")
    nlp, evaluate = functions(number)
    x = np.array(entry.x_star)
    f, g, gradient, jacobian = (part.full() for part in evaluate(x))
    scale = max(1.0, abs(entry.f_star))
    assert float(f[0, 0]) == pytest.approx(entry.f_star, abs=1e-5 * scale)
    values = np.concatenate((g.ravel(), x))
    low, high = np.array(nlp["lbg"] + nlp["lbx"]), np.array(nlp["ubg"] + nlp["ubx"])
    near = 1e-4 * np.maximum(1.0, np.abs(values))
    assert (np.maximum(low - values, values - high) <= near).all()
    active = (values <= low + near) | (values >= high - near)
    normals = np.vstack((jacobian, np.eye(x.size)))[active]
    upper, lower = high <= values + near, low >= values - near
    cone = (np.where(lower[active], -np.inf, 0.0), np.where(upper[active], np.inf, 0.0))
    slope = gradient.ravel()
    if active.any():
        slope = slope + normals.T @ lsq_linear(normals.T, -slope, cone, method="bvls").x
    assert np.abs(slope).max() <= 1e-3 * (1 + np.abs(gradient).max())


@every
def test_ipopt_reaches_the_published_value(number):
    entry = PROBLEMS[number]
    nlp, _ = functions(number)
    limits = {"print_level": 0, "sb": "yes", "tol": 1e-9, "bound_relax_factor": 0}
    options = {"print_time": False, "show_eval_warnings": False, "ipopt": limits}
    solver = ca.nlpsol("s", "ipopt", {key: nlp[key] for key in ("x", "f", "g")}, options)
    bounds = {key: nlp[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    f = float(solver(x0=entry.x0, **bounds)["f"])
    if number in UNBOUNDED:
        assert f < -1e8
        return
    assert solver.stats()["success"]
    expected = LOCAL.get(number, entry.f_star)
    near = 1e-4 if number in FLAT else 1e-5
    assert f == pytest.approx(expected, abs=near * max(1.0, abs(expected)))


def test_systems_are_the_residuals_of_the_squares():
    squares = {f"{e.name}E": e for e in MORE if isinstance(e, Squares)}
    assert [system.name for system in MORE_SYSTEMS] == list(squares)
    for system in MORE_SYSTEMS:
        entry, problem = squares[system.name], system.build()
        data = entry.build()
        h = ca.Function("h", [problem.x], [ca.sumsqr(problem.h)])
        f = ca.Function("f", [data["x"]], [data["f"]])
        point = np.array(entry.x0) + 0.01
        assert float(h(point)) == pytest.approx(float(f(point)), rel=1e-12)
        assert (system.n, system.m) == (len(entry.x0), problem.m)
