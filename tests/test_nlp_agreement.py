"""Verdicts that agree with themselves: the word, the point and what ended the solve."""

from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import nlpsol

x, X = ca.SX.sym("x"), ca.SX.sym("X", 2)


def solved(nlp: Any, options: Any = None, **call: Any) -> Any:
    solver = nlpsol("s", "hybrid", nlp, options)
    solver(**call)
    return solver


@pytest.mark.parametrize("f", [-ca.sqrt(x), -(x**0.3), -ca.sqrt(1 + x**2)], ids=str)
def test_an_objective_that_falls_ever_more_slowly_is_unbounded_and_no_success(f: Any) -> None:
    solver = solved({"x": x, "f": f}, lbx=1, x0=2)
    stats = solver.stats()
    assert stats["stop_reason"] == "UNBOUNDED"
    assert not stats["success"]
    assert stats["point_status"] != "KKT_POINT"


@pytest.mark.parametrize("least", [-1.0, -1e12])
def test_a_minimum_far_out_is_no_ray(least: float) -> None:
    solver = solved({"x": x, "f": (x - 1e11) ** 2 + least})
    assert solver.stats()["success"]
    assert float(solver.result.x[0]) == pytest.approx(1e11)


@pytest.mark.parametrize("x0", [[0, 0], [0.5, 0.5], [1, 0], [-1, 2]])
def test_a_hyperbola_with_a_ray_is_unbounded_not_infeasible(x0: Any) -> None:
    """Min x₀ − x₁ s.t. 0 ≤ x₀x₁ ≤ 1: x₀ = 0, x₁ → ∞."""
    solver = solved({"x": X, "f": X[0] - X[1], "g": X[0] * X[1]}, lbg=0, ubg=1, x0=x0)
    assert solver.stats()["stop_reason"] == "UNBOUNDED"
    assert "falls without bound" in solver.explain()


def test_multipliers_without_bound_excuse_no_residual() -> None:
    """A disc and its tangent: no multipliers exist, and rounding of huge ones proves nothing."""
    solver = solved({"x": X, "f": X[0] - X[1], "g": ca.sumsqr(X)}, lbx=[1, -np.inf], ubg=1)
    r = solver.result
    slope = np.array([1.0, -1.0]) + 2 * r.x * r.lam_g + r.lam_x
    assert not solver.stats()["success"] or np.abs(slope).max() <= 1e-6 * (1 + 1e-6)


@pytest.mark.parametrize("limit", [0, 1, 3, 7, 15, 30, 60])
def test_the_iteration_limit_is_the_reason_when_it_ended_the_solve(limit: int) -> None:
    """Whatever run it cut off."""
    nlp = {"x": X, "f": X[0] ** 2, "g": ca.vertcat(ca.sumsqr(X) + 1, X[0] * ca.exp(X[1]))}
    solver = solved(nlp, {"max_iter": limit}, lbg=0, ubg=0, x0=[1, 2])
    stats = solver.stats()
    assert stats["iter_count"] <= limit or stats["stop_reason"] != "ITERATION_LIMIT"
    if stats["iter_count"] >= limit:
        assert stats["stop_reason"] == "ITERATION_LIMIT"
        assert stats["unified_return_status"] == "SOLVER_RET_LIMITED"


def test_a_feasible_point_is_not_lost_beside_a_local_minimum_of_the_violation() -> None:
    """From the feasible side of a hill the iterates may end behind it; the verdict may not."""
    g = ca.vertcat((X[0] ** 2 - 1) ** 2 + 0.1 * X[0] + X[1] ** 2, X[1])
    for start in np.linspace(-2.0, 2.0, 17):
        solver = solved({"x": X, "f": ca.cos(3 * X[0]), "g": g}, lbg=[-1, 0], ubg=[-0.05, 0],
                        x0=[start, 0])  # fmt: skip
        stats = solver.stats()
        if stats["stop_reason"] == "LOCALLY_INFEASIBLE":
            assert stats["point_status"] == "INFEASIBLE_STATIONARY"
            assert solver.result.residuals.feasibility > 1e-6
            assert not -1 <= float(ca.Function("g", [X], [g])([start, 0])[0]) <= -0.05
        else:
            assert stats["success"]


@pytest.mark.parametrize("radius", [1.0, 0.0])
def test_an_equation_written_as_two_inequalities_gives_bounded_multipliers(radius: float) -> None:
    g = ca.sumsqr(X) - 1 if radius else X[0] - X[1]
    nlp = {"x": X, "f": X[0] + 2 * X[1] ** 2 + X[0] ** 2, "g": ca.vertcat(g, g)}
    solver = nlpsol("s", "hybrid", nlp)
    answer = solver(x0=[0.5, -0.5], lbg=[-np.inf, 0], ubg=[0, np.inf])
    assert solver.stats()["success"]
    assert np.abs(solver.result.lam_g).max() <= 1e4
    once = nlpsol("s", "hybrid", {**nlp, "g": g})(x0=answer["x"], lbg=0, ubg=0)
    np.testing.assert_allclose(float(answer["f"]), float(once["f"]), atol=1e-6)
    net = float(ca.sum1(answer["lam_g"]))
    np.testing.assert_allclose(net, float(once["lam_g"]), atol=1e-5)
    solver(warm_start=solver.result, lbg=[-np.inf, 0], ubg=[0, np.inf])
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 3


@pytest.mark.parametrize("twice", [False, True])
def test_a_cost_of_the_wrong_sign_is_unbounded_also_where_the_dynamics_bend(twice: bool) -> None:
    """A pendulum whose input nothing limits; sin keeps every step of an iteration short."""
    n = 10
    z = ca.MX.sym("z", 3 * n)
    angle, speed, torque = z[:n], z[n : 2 * n], z[2 * n :]
    before = ca.vertcat(1, angle[:-1]), ca.vertcat(0, speed[:-1])
    rows = ca.vertcat(
        angle - before[0] - 0.1 * before[1], speed - before[1] - 0.1 * (ca.sin(before[0]) + torque)
    )
    nlp = {"x": z, "f": -ca.sumsqr(z), "g": ca.vertcat(rows, rows) if twice else rows}
    solver = solved(nlp, lbg=0, ubg=0)
    assert solver.stats()["stop_reason"] == "UNBOUNDED"
    assert solver.stats()["iter_count"] <= 50
    r = solver.result
    assert r.f < -1e20
    assert np.abs(r.g).max() <= 1e-2  # sin of a number near 1e11 is not known better


@pytest.mark.parametrize(
    ("nlp", "call"),
    [
        ({"x": x, "f": -x / (1 + 1e-6 * ca.fabs(x))}, {}),
        ({"x": x, "f": -1e6 * (1 - ca.exp(-x / 1e6))}, {}),
        ({"x": x, "f": -ca.log(x)}, {"lbx": 1, "x0": 2}),
        ({"x": x, "f": -x + 1e-30 * x**4}, {}),
        ({"x": X, "f": -X[0], "g": X[1] - ca.sin(X[0])}, {"lbg": 0, "ubg": 0, "ubx": 1e9}),
        ({"x": X, "f": -X[0], "g": X[1] - ca.atan(X[0] / 1e6)},
         {"lbg": 0, "ubg": 0, "ubx": [np.inf, 1.5]}),
        ({"x": X, "f": -X[0] - X[1], "g": ca.sumsqr(X / 1e3)}, {"ubg": 1e12}),
    ],
)  # fmt: skip
def test_what_levels_off_or_is_held_back_far_out_is_not_unbounded(nlp: Any, call: Any) -> None:
    assert solved(nlp, **call).stats()["stop_reason"] != "UNBOUNDED"
