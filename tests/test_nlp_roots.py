"""Systems without an objective: roots, least violations, and how long a hopeless one may take."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import nlpsol

X = ca.SX.sym("x", 2)


def solved(g: Any, x0: Any, f: Any = 0, **bounds: Any) -> tuple[Any, np.ndarray]:
    """The solver after its call, and x."""
    solver = nlpsol("s", "hybrid", {"x": X, "f": ca.SX(f), "g": g})
    found = solver(x0=x0, **bounds)
    return solver, np.asarray(found["x"].full()).ravel()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_an_overdetermined_root_is_found_in_any_units(scale: float) -> None:
    y = X / scale
    g = ca.vertcat(ca.sumsqr(y) - 5, y[0] * y[1] - 2, y[0] - 2 * y[1] + 3)
    solver, x = solved(g, [3 * scale, 3 * scale], lbg=0, ubg=0)
    assert solver.stats()["success"]
    np.testing.assert_allclose(x / scale, [1, 2], atol=1e-6)
    assert solver.stats()["iter_count"] <= 15


def test_an_objective_does_not_disturb_a_root_that_leaves_it_no_choice() -> None:
    g = ca.vertcat(X[0] - 1, X[1] - 2, ca.sumsqr(X) - 5)
    solver, x = solved(g, [0, 0], f=ca.exp(X[0]) * X[1], lbg=0, ubg=0)
    assert solver.stats()["success"]
    np.testing.assert_allclose(x, [1, 2], atol=1e-6)


def test_an_inconsistent_system_ends_at_its_least_squares() -> None:
    t, y = np.arange(4.0), np.array([1.0, 2.0, 5.0, 3.0])
    solver, x = solved(X[0] + X[1] * t - y, [9, 9], lbg=0, ubg=0)
    assert solver.stats()["point_status"] == "INFEASIBLE_STATIONARY"
    assert solver.stats()["unified_return_status"] == "SOLVER_RET_INFEASIBLE"
    np.testing.assert_allclose(x, np.polyfit(t, y, 1)[::-1], atol=1e-6)
    assert solver.stats()["iter_count"] <= 10


def test_a_hopeless_violation_is_not_proved_at_length() -> None:
    solver, _ = solved(ca.sumsqr(X), [1, 2], f=X[0] ** 2, lbg=-np.inf, ubg=-1)
    assert solver.stats()["stop_reason"] == "LOCALLY_INFEASIBLE"
    assert solver.stats()["iter_count"] <= 100


def test_a_ray_along_a_curve_is_unbounded() -> None:
    solver, _ = solved(X[1] - X[0] ** 2, [1, 1], f=-X[1], lbg=0, ubg=0)
    assert solver.stats()["stop_reason"] == "UNBOUNDED"
    assert solver.stats()["iter_count"] <= 50
