"""The search for a root, smaller multipliers of a solution, and least squares by hand."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.core import assert_cut_short, solved

from casadi_hybrid import Problem, Solver

Made = tuple[dict[str, Any], dict[str, Any]]


def decay() -> Made:
    """Two numbers that six observations of one decay share: more equations than unknowns."""
    x, times = ca.SX.sym("x", 2), np.arange(6) / 2
    seen = 3 * np.exp(-0.7 * times)
    return {"x": x, "g": x[0] * ca.exp(x[1] * times) - seen}, {"x0": [1, 0], "lbg": 0, "ubg": 0}


def inside() -> Made:
    """The same between bounds, with an inequality and a fixed variable."""
    problem, _ = decay()
    y, z = ca.SX.sym("y"), ca.SX.sym("z")
    x = ca.vertcat(problem["x"], y, z)
    g = ca.vertcat(problem["g"] * y, ca.sumsqr(x) + z)
    bounds = {"lbx": [0, -1, 2, 0.1], "ubx": [4, 0.5, 2, 9], "lbg": [0] * 6 + [-np.inf]}
    return {"x": x, "g": g}, {"x0": [1, 0, 2, 1], **bounds, "ubg": [0] * 6 + [60]}


def curved() -> Made:
    """A double root, where Gauss and Newton alone are slow."""
    x = ca.SX.sym("x", 2)
    g = ca.vertcat(x[0] ** 2 + x[1] - 1, x[0] * (x[1] - 1), (x[1] - 1) ** 2)
    return {"x": x, "g": g}, {"x0": [2, 3], "lbg": 0, "ubg": 0}


@pytest.mark.parametrize("made", [decay, inside, curved])
def test_root_is_found(made: Any) -> None:
    """Nothing is minimized: no constraint has a multiplier, and no Gauss-Newton step a length."""
    solver, found = solved(made())
    assert solver.stats()["success"]
    numbers, lists = made()[1], solver.stats()["iterations"]
    assert (found["g"] >= np.asarray(numbers["lbg"]) - 1e-6).all()
    assert (found["g"] <= np.asarray(numbers["ubg"]) + 1e-6).all()
    assert not any(found[key].any() for key in ("lam_x", "lam_g"))
    assert_cut_short(made(), 3)
    if made in (decay, curved):  # bounds may need a barrier
        assert np.isnan([lists[key][:-1] for key in ("alpha_pr", "alpha_du")]).all()
    if made is decay:
        np.testing.assert_allclose(found["x"], [3, -0.7], atol=1e-6)


def test_huge_multipliers_keep_the_solution() -> None:
    """A row of small slope, whose one multiplier is large: 4/x² = 2.25/y², both are as cheap."""
    x = ca.SX.sym("x", 2)
    problem = {"x": x, "f": x[0] + x[1], "g": 4 / x[0] + 2.25 / x[1]}
    solver, found = solved((problem, {"x0": 1, "lbx": 1e-3, "ubx": 4e6, "ubg": 0.005}))
    assert solver.stats()["success"]
    assert found["lam_g"] > 1e5
    np.testing.assert_allclose(found["x"], [1400, 1050], rtol=1e-6)


# --- least squares by hand ------------------------------------------------------------------------


@dataclass
class LeastSquares:
    """Damped Gauss-Newton steps on ½‖h‖², with the curvature of h where these are slow."""

    functions: Any  # x → h, B and Σ h_i ∇²h_i
    damping: float = 1e-3
    curved: bool = False

    def step(self, x: np.ndarray, seen: Counter[str]) -> np.ndarray:
        """Return the next iterate, far from a stationary point."""
        h, B, curvature = (np.array(out) for out in self.functions(x))
        h, growth, curved = h.ravel(), 2.0, self.curved
        units = (B**2).sum(axis=0)
        slope = B.T @ h
        while True:
            G = B.T @ B + curved * curvature
            M = G + np.diag(self.damping * units)
            if curved and np.linalg.eigvalsh(M)[0] <= 0:
                curved = False
                seen["indefinite"] += 1
                continue
            d = -np.linalg.solve(M, slope)
            trial = np.array(self.functions(x + d)[0]).ravel()
            ratio = 0.5 * (h @ h - trial @ trial) / -(slope @ d + 0.5 * d @ G @ d)
            if ratio > 1e-4:
                break
            seen["refused"] += 1
            self.damping *= growth
            growth *= 2
        seen["curved"] += int(curved)
        if ratio > 0.75:
            self.damping = max(0.1 * self.damping, 1e-14)
            seen["longer"] += 1
        elif ratio < 0.25:
            self.damping *= 2
            seen["shorter"] += 1
        self.curved = trial @ trial > 0.8 * (h @ h)
        return x + d


def test_least_squares_steps_match_formulas() -> None:
    """More equations than unknowns, from random starts."""
    x = ca.SX.sym("x", 3)
    bent = 2 * ca.cos(3 * x[0] * x[1]) + 3
    h = ca.vertcat(3 * (x[1] - x[0] ** 2), 1 - x[0] * x[2], ca.exp(x[2]) - x[1], bent)
    solver, seen = Solver(Problem(x=x, f=ca.sumsqr(x), h=h)), Counter[str]()
    weights = ca.SX.sym("weights", 4)
    curvature = ca.substitute(ca.hessian(ca.dot(weights, h), x)[0], weights, h)
    functions = ca.Function("functions", [x], [h, ca.jacobian(h, x), curvature])
    for seed in range(30):
        expected = 2 * np.random.default_rng(seed).normal(size=3)
        iterates = solver.solve(expected, history=True).history.x
        search = LeastSquares(functions)
        for iterate in iterates[1:12]:
            values, B, _ = (np.array(out) for out in functions(expected))
            if np.linalg.norm(B.T @ values) <= 1e-4:  # further steps are rounding
                break
            expected = search.step(expected, seen)
            assert iterate == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert set(+seen) == {"curved", "indefinite", "shorter", "longer", "refused"}


def valley(scale: tuple[float, float], size: float) -> Problem:
    """Rosenbrock's residuals, with a third that makes them inconsistent."""
    x = ca.SX.sym("x", 2)
    a, b = x[0] / scale[0], x[1] / scale[1]
    return Problem(x=x, f=0, h=size * ca.vertcat(10 * (b - a**2), 1 - a, 0.1 * (a + b)))


@pytest.mark.parametrize("scale", [(1e-3, 1.0), (1.0, 1e4), (1e2, 1e-3)])
def test_units_of_variables_change_no_step(scale: tuple[float, float]) -> None:
    start = np.array([-1.2, 1.0])
    plain = Solver(valley((1.0, 1.0), 1.0)).solve(start, history=True).history.x[:8]
    scaled = Solver(valley(scale, 1e3)).solve(start * scale, history=True).history.x[:8]
    assert scaled / scale == pytest.approx(plain, rel=1e-6, abs=1e-8)
