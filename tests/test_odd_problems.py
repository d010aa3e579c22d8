"""Problems of odd structure."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from problems.hs import hs_problem

from casadi_hybrid import nlpsol, verify

x, X = ca.SX.sym("x"), ca.SX.sym("X", 2)
INF = float("inf")


def solved(nlp: Any, options: Any = None, **call: Any) -> Any:
    solver = nlpsol("s", "hybrid", nlp, options)
    solver(**call)
    return solver


def test_a_root_is_looked_for_from_a_start_that_is_one() -> None:
    """More equations than free variables, and a row with one side: its slack has no violation."""
    nlp = {"x": X, "f": X[0], "g": ca.vertcat(X[0] * X[1], X[0] ** 2)}
    solver = solved(nlp, x0=[1, 2], lbx=[1, 2], ubx=[1, 2], lbg=[2, 0.5], ubg=[2, INF])
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 1


def test_large_multipliers_of_pinned_bounds_leave_the_rows_exact() -> None:
    """Slacks are pinned by a large number, not by an infinite one."""
    solver = solved({"x": x, "f": -118685 * x, "g": -0.12 * x}, x0=-1.24, lbg=0.6, ubg=3.6)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 6
    np.testing.assert_allclose(solver.result.x, -5, rtol=1e-15)


def test_a_restart_for_smaller_multipliers_is_no_limit_of_the_caller() -> None:
    """A constant row at its bound may have any multiplier."""
    nlp = {"x": X, "f": 4.5e-8 * X[1], "g": ca.SX(-1)}
    solver = solved(nlp, x0=[0.69, -0.26], lbx=[-0.5, -INF], ubx=[-0.5, INF], lbg=-1, ubg=2)
    assert solver.stats()["success"]
    assert solver.stats()["stop_reason"] == "CONVERGED"


def test_the_way_back_to_the_least_violation_is_a_step() -> None:
    nlp = {"x": x, "f": x, "g": ca.vertcat(x, -x, 2 * x)}
    stats = solved(nlp, x0=0, lbg=[-2, 0, -2], ubg=[-1, 0, -1]).stats()
    assert stats["stop_reason"] == "LOCALLY_INFEASIBLE"
    assert stats["iterations"]["iter"] == [*range(stats["iter_count"] + 1)]


@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e-6, 1e-4])
def test_equations_with_an_objective_of_next_to_no_slope(scale: float) -> None:
    """Its iterates are within tolerance long before steps end."""
    y = ca.SX.sym("y", 3)
    nlp = {"x": y, "f": scale * ca.sum1(y), "g": ca.sumsqr(y)}
    assert solved(nlp, x0=[1, 1, 1], lbg=3, ubg=3).stats()["success"]


@pytest.mark.parametrize("number", [33, 57, 73, 113])
def test_where_the_constant_of_a_row_stands_decides_nothing(number: int) -> None:
    """In the book it stands in the row, whose value at its bound is rounding of its terms."""
    made = hs_problem(number).build()
    nlp = {"x": made["x"], "f": 1e12 * made["f"], "g": made["g"]}
    call = {name: made[name] for name in ("lbx", "ubx", "lbg", "ubg")}
    solver = nlpsol("s", "hybrid", nlp)
    answer = solver(x0=hs_problem(number).x0, **call)
    assert solver.stats()["success"]
    np.testing.assert_allclose(float(answer["f"]) / 1e12, hs_problem(number).f_star, rtol=1e-4)
    assert verify(nlp, answer, **call, ipopt=False).first.holds(1e-6, scaled=False)


@pytest.mark.parametrize("number", [64, 71, 72])
def test_steps_on_an_active_set_keep_to_the_limit(number: int) -> None:
    """Those that solve, those in vain, and those of a restart for smaller multipliers."""
    made = hs_problem(number).build()
    nlp = {name: made[name] for name in ("x", "f", "g")}
    call = {name: made[name] for name in ("lbx", "ubx", "lbg", "ubg")}
    for limit in range(25):
        stats = solved(nlp, {"max_iter": limit}, x0=hs_problem(number).x0, **call).stats()
        assert stats["iter_count"] <= limit
        assert stats["iterations"]["iter"] == [*range(stats["iter_count"] + 1)]
    assert stats["success"]


@pytest.mark.parametrize("number", [26, 32, 46])
def test_an_iterate_within_tolerance_is_not_lost_at_the_limit(number: int) -> None:
    """Steps go on until the scaled error is small too; a limit on the way ends a success."""
    made = hs_problem(number).build()
    nlp = {name: made[name] for name in ("x", "f", "g")}
    call = {name: made[name] for name in ("lbx", "ubx", "lbg", "ubg")}
    course = solved(nlp, x0=hs_problem(number).x0, **call).stats()["iterations"]
    worst = np.max([course["inf_pr"], course["inf_du"], course["compl"]], axis=0)
    first = int(np.flatnonzero(worst <= 1e-6)[0])
    assert first < len(worst) - 1
    stats = solved(nlp, {"max_iter": first}, x0=hs_problem(number).x0, **call).stats()
    assert stats["success"]
    assert stats["stop_reason"] == "ITERATION_LIMIT"


def test_multipliers_of_dependent_rows_are_found_where_they_grew_without_bound() -> None:
    """One feasible point, at which two rows and a bound are active, and a steep objective."""
    nlp = {
        "x": x,
        "f": 3.2e7 * (2 * ca.exp(0.5 * x) + (x - 0.17) ** 2),
        "g": ca.vertcat(x**2, x**2, ca.sin(2.55 * x), 2 * x**2 - 1),
    }
    sides = {"lbg": [0.09, -INF, -INF, -0.82], "ubg": [0.09, 0.09, np.sin(0.765), INF]}
    solver = solved(nlp, x0=1.12, lbx=0.3, **sides)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 60
