"""What a failed solve says: names, numbers and certificates, each recomputed here."""

import pickle
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import Problem, Result, Solver, nlpsol
from casadi_hybrid.solver.explain.diagnosis import (
    bad_scales,
    fall,
    last_direction,
    worst_violations,
)
from casadi_hybrid.solver.explain.findings import dependent_constraints

X = ca.SX.sym("x", 3)
ROWS = ["first", "second", "third"]
COLUMNS = ["height", "width", "depth"]
INF = np.inf


def solved(f: Any, g: Any, call: dict[str, Any], **options: Any) -> Result:
    rows = g.numel() if isinstance(g, ca.SX) else 0
    named = {"constraint_names": ROWS[:rows], "variable_names": COLUMNS, "max_iter": 300}
    solver = nlpsol("s", "hybrid", {"x": X, "f": f, "g": g}, {**named, **options})
    solver(**call)
    assert solver.explain() == solver.result.explain()
    return solver.result


def test_the_worst_violations_by_name_value_and_bound() -> None:
    g = ca.vertcat(ca.sumsqr(X), X[0], X[1])
    result = solved(ca.sumsqr(X), g, {"x0": 1, "lbg": [-9, 1, -INF], "ubg": [-1, 2, 5]})
    assert result.point.name == "INFEASIBLE_STATIONARY"
    worst = worst_violations(result)
    assert [one.name for one in worst] == ["first", "second"]
    for one, value, bound in zip(worst, result.g[:2], (-1.0, 1.0), strict=True):
        assert one.value == value
        assert one.excess == pytest.approx(one.value - bound)
    text = result.explain()
    assert f"first = {result.g[0]:.6g}, above its upper bound -1 by" in text
    assert f"second = {result.g[1]:.6g}, below its lower bound 1 by" in text
    assert "third" not in text


def test_the_certificate_is_the_slope_of_the_violation() -> None:
    """‖Σ v_i ∇g_i‖ over its parts, from CasADi's derivatives: small at a contradiction only."""
    g = ca.vertcat(ca.sumsqr(X), X[0])
    call = {"x0": 1, "lbg": [-9, 1], "ubg": [-1, 2]}
    result = solved(ca.sumsqr(X), g, call)
    J = ca.Function("J", [X], [ca.jacobian(g, X)])
    v = result.g - np.clip(result.g, call["lbg"], call["ubg"])
    at_x, at_start = (J(x).full() for x in (result.x, result.start.x))
    length = np.maximum(np.linalg.norm(at_x, axis=1), np.linalg.norm(at_start, axis=1))
    bend = 2 * abs(v[0]) * max(1.0, np.abs(result.x).max())  # ∇²(x'x) = 2I, the other row is flat
    slope = np.linalg.norm(at_x.T @ v) / max(np.abs(v) @ length, bend)
    assert result.certificate == pytest.approx(slope, abs=1e-11)
    assert result.certificate < 1e-6
    assert f"slope of the violation is {result.certificate:.2e}" in result.explain()
    # The same start, stopped before it has settled: no certificate.
    early = solved(ca.sumsqr(X), g, call, max_iter=1)
    assert early.certificate > 1e-3
    assert "no proof that the constraints are inconsistent" in early.explain()
    feasible = solved(ca.sumsqr(X), g, {"ubg": [4, 2]})
    assert feasible.certificate is None


@pytest.mark.parametrize(
    ("g", "call"),
    [
        # 1e-7·x ≥ 1 is far from met at x = 1, but not contradicted: its slope is only small.
        (1e-7 * X[2], {"x0": 1, "lbg": 1, "ubx": 1e8}),
        # x₀² ≤ 1 is violated with a slope at x₀ = 2, however large x₂ is, which is not in it.
        (X[0] ** 2, {"x0": [2, 0, 1e8], "ubg": 1}),
    ],
    ids=["small units", "a variable far away"],
)
def test_what_looks_flat_is_no_certificate(g: Any, call: dict[str, Any]) -> None:
    result = solved(0 * X[0], g, call, max_iter=0)
    assert result.certificate == pytest.approx(1.0)
    assert result.point.name != "INFEASIBLE_STATIONARY"


def test_a_row_without_variables_is_named() -> None:
    result = solved(ca.sumsqr(X), ca.vertcat(X[0], 3 + 0 * X[1]), {"ubg": [1, 2], "x0": 1})
    assert "The derivatives of second by the free variables are zero" in result.explain()
    assert not result.success


@pytest.mark.parametrize(
    ("f", "g", "function", "entry"),
    [
        (ca.log(X[1]), ca.SX(0, 1), "the objective f", ""),
        (ca.sqrt(X[1]), ca.SX(0, 1), "the gradient of f", "d/dwidth"),
        (ca.sumsqr(X), ca.vertcat(X[0], ca.log(X[1])), "the constraint function g", "second"),
        (ca.sumsqr(X), ca.vertcat(X[0], ca.sqrt(X[1])), "the Jacobian of g", "d second / d width"),
    ],
)
def test_an_undefined_function_is_named_with_its_entry_and_point(f, g, function, entry):
    result = solved(f, g, {"x0": [1, 0, 2]})
    error = result.error
    assert result.stop.name == "EVALUATION_ERROR"
    assert (error.function, error.entry) == (function, entry)
    assert not np.isfinite(error.value)
    assert error.x.tolist() == [1.0, 0.0, 2.0]
    text = result.explain()
    assert f"At the start: {function} is " in text
    assert not entry or f"in its entry {entry}, at height" in text
    assert "Start from another x0, bound the variables" in text
    assert "iteration 0" not in text
    assert "at height = 1, width = 0, depth = 2" in text
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.x == error.x).all()


def test_a_hessian_that_is_undefined_everywhere_is_named_with_its_entry() -> None:
    f = ca.fmin(X[1], 0) ** 1.5 + X[0] ** 2 + 1e-3 * (X[1] - 1) ** 2
    result = solved(f, ca.SX(0, 1), {"x0": [1, 0, 2]})
    assert result.stop.name == "EVALUATION_ERROR"
    assert result.error.function == "the Hessian of the Lagrangian"
    assert result.error.entry == "d²/dwidth dwidth"
    assert not np.isfinite(result.error.value)
    assert "the Hessian of the Lagrangian is nan in its entry d²/dwidth dwidth" in result.explain()


def test_an_undefined_derivative_leaves_the_objective_known() -> None:
    result = solved(3 + ca.norm_2(X), ca.SX(0, 1), {"x0": 0})
    assert result.point.name == "UNDEFINED"
    assert (result.f, result.error.function) == (3.0, "the gradient of f")
    result = solved(ca.sumsqr(X - 1), ca.norm_2(X), {"x0": 0, "ubg": 1})
    assert (result.f, result.error.function) == (3.0, "the Jacobian of g")
    assert np.isnan(solved(ca.sqrt(X[0] - 1), ca.SX(0, 1), {"x0": 0}).f)


@pytest.mark.parametrize(
    "kink", [ca.fmax(X[1], -X[1] / 2), 0.3 * X[1] + ca.fabs(X[1]), ca.norm_2(X[1:])]
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_kink_is_named_by_function_and_variable(kink: Any, scale: float) -> None:
    result = solved(scale * (ca.sumsqr(X) + kink), ca.SX(0, 1), {"x0": [0.3, 1.3, 0.4]})
    assert result.stop.name == "STALLED"
    assert "the objective has a kink" in result.remarks[0]
    assert any(f"derivative by {name} jumps" in result.remarks[0] for name in COLUMNS[1:])


def test_a_smooth_point_has_no_kink_named() -> None:
    """A cusp of the feasible set and a steep valley stall too."""
    for f, g in ((X[0], ca.vertcat(X[1] - X[0] ** 3, -X[1] - X[0] ** 3)),
                 (1e6 * (X[1] - X[0] ** 2) ** 4 + X[0] ** 3, ca.SX(0, 1))):  # fmt: skip
        result = solved(f, g, {"x0": 1, "ubg": 0}, max_iter=60)
        assert not any("kink" in remark for remark in result.remarks)


def test_rejected_trial_points_are_told_where_the_solve_fails() -> None:
    """Newton's step on x − log x leads from 3 to −3, where log is not defined."""
    f = X[0] - ca.log(X[0]) + ca.sumsqr(X[1:])
    early = solved(f, ca.SX(0, 1), {"x0": [3, 0, 0]}, max_iter=1)
    assert early.evaluations["undefined"] >= 1
    assert early.error.function == "the objective f"
    assert early.error.x[0] <= 0
    assert "trial points a function of the problem was not defined" in early.explain()
    done = solved(f, ca.SX(0, 1), {"x0": [3, 0, 0]})
    assert done.success
    assert done.error is None
    assert "not defined" not in done.explain()


def test_dependent_constraints_are_named_with_their_combination() -> None:
    total = X[0] + X[1]
    g = ca.vertcat(total, 1e4 * X[2], 2 * total - 3e4 * X[2])
    result = solved(ca.sumsqr(X - 1), g, {"lbg": [1, 5e3, -1.5e4 + 2], "ubg": [1, 5e3, -1.5e4 + 2]})
    assert result.success
    found = dependent_constraints(result)
    assert len(found) == 1
    rows = {"first": [1, 1, 0], "second": [0, 0, 1e4], "third": [2, 2, -3e4]}
    combined = sum(factor * np.array(rows[name]) for name, factor in found[0].combination)
    np.testing.assert_allclose(combined, rows[found[0].name], atol=1e-6)
    assert "multipliers are not unique" in result.explain()
    assert str(found[0]) in result.explain()


def test_bounds_take_part_in_a_dependence() -> None:
    g = ca.vertcat(X[0] + X[1], X[1])
    call = {"lbx": [0.5, 0, 0], "ubx": [0.5, 1, 1], "lbg": [1, 0], "ubg": [1, 0.5]}
    result = solved(ca.sumsqr(X - 1), g, call)
    (one,) = dependent_constraints(result)
    assert {one.name, one.combination[0][0]} == {"first", "second"}
    assert one.bounds == ("height",)
    assert "Fixed by equal bounds: height." in result.explain()


def test_independent_constraints_are_not_accused() -> None:
    g = ca.vertcat(X[0] + X[1], X[0] - X[1], 1e-6 * X[2])
    result = solved(ca.sumsqr(X - 1), g, {"lbg": [1, 0, 1e-7], "ubg": [1, 0, 1e-7]})
    assert dependent_constraints(result) == ()
    # The two statuses, the objective and the residuals, no more.
    assert result.explain().count("\n") == 3


def test_a_tangency_has_huge_multipliers_and_says_which_rows() -> None:
    """Two circles that touch: their gradients are parallel there, and f pulls sideways.

    Next to the tangency are points that are KKT points within 1e-6, with multipliers of millions.
    """
    circles = ca.vertcat(ca.sumsqr(X[:2]), ca.sumsqr(X[:2] - ca.DM([2, 0])), X[2])
    result = solved(X[1], circles, {"x0": [0.9, 0.3, 0], "ubg": [1, 1, 3]})
    (one,) = dependent_constraints(result, 1e-2)
    assert {one.name, *(name for name, _ in one.combination)} == {"first", "second"}
    assert result.success
    assert np.abs(result.lam_g).max() > 1e5
    assert "Their multipliers are not unique" in result.explain()


def test_a_cusp_has_no_multipliers_and_says_which_rows() -> None:
    """Two cubics that touch: beside it, multipliers of 1/(6x²) are too large for the tolerances."""
    rows = ca.vertcat(X[1] - X[0] ** 3, -X[1] - X[0] ** 3)
    result = solved(-X[0], rows, {"x0": [-1, 0.5, 0], "lbg": 0})
    assert (result.stop.name, result.point.name) == ("NO_MULTIPLIERS", "FRITZ_JOHN_POINT")
    assert "Multipliers may not exist here" in result.explain()


def test_the_ray_of_an_unbounded_problem() -> None:
    """min x − z with x ≥ y, y ≥ 1: only z runs away, and f falls by one a unit."""
    result = solved(X[0] - X[2], X[0] - X[1], {"lbg": 0, "lbx": [-INF, 1, -INF], "x0": 2})
    assert result.stop.name == "UNBOUNDED"
    ray = last_direction(result)
    assert ray.direction[2] == 1.0
    assert ray.slope == pytest.approx(ray.direction[0] - ray.direction[2])
    assert ray.slope < -0.5
    assert ray.moving[0] == ("depth", 1.0)
    text = result.explain()
    assert "depth by +1" in text
    assert f"f changes by {ray.slope:.3g}" in text
    size = np.abs(result.x).max()
    assert f"f falls without bound along feasible points: f = {result.f:.6g}" in text
    assert f"at |x| = {size:.2e}" in text


def test_an_objective_that_falls_where_the_solve_was_cut_off() -> None:
    """−(x² + y²)³ under x = y from (1, 1), stopped below −1e12: said as what it looks like."""
    f, g = -(ca.sumsqr(X[:2]) ** 3) + X[2] ** 2, X[0] - X[1]
    call = {"x0": [1, 1, 0], "lbg": 0, "ubg": 0}
    full = solved(f, g, call)
    assert full.stop.name == "UNBOUNDED"
    assert "f falls without bound" in full.explain()
    low = next(int(t) for t, v in zip(full.history.t, full.history.f, strict=True) if v < -1e12)
    early = solved(f, g, call, max_iter=low)
    assert early.stop.name == "ITERATION_LIMIT"
    assert last_direction(early).direction == pytest.approx([1, 1, 0], abs=1e-6)
    least = fall(early)
    assert least <= -1e12
    assert f"f falls apparently without bound: f = {least:.6g}" in early.explain()
    assert "no proof" in early.explain()
    # Neither a solution nor a solve cut off before that.
    for other in (solved(f, g, call, max_iter=2), solved(ca.sumsqr(X), g, call)):
        assert fall(other) is None
        assert "without bound" not in other.explain()


def test_the_objective_is_always_stated() -> None:
    for f, call, said in (
        (ca.sumsqr(X) + 0.125, {"x0": 1}, "f(x) = 0.125."),
        (X[0], {"lbx": 2, "ubx": 3, "max_iter": 0, "x0": 2.5}, "f(x) = "),
        (ca.log(X[0]), {"x0": -1}, "The objective is not known there."),
    ):
        numbers = {key: value for key, value in call.items() if key != "max_iter"}
        result = solved(f, ca.SX(0, 1), numbers, max_iter=call.get("max_iter", 300))
        assert said in result.explain()


def test_a_start_moved_inside_its_bounds_is_told_as_such() -> None:
    result = solved(ca.log(X[0] - 5), ca.SX(0, 1), {"x0": [0, 0, 0], "lbx": 1, "ubx": 2})
    assert result.stop.name == "EVALUATION_ERROR"
    assert "At the start, moved inside its bounds: the objective f is nan" in result.explain()


def test_bad_scales_name_rows_and_variables() -> None:
    f = ca.sumsqr(X[:2] - 1) + 1e-8 * X[2]
    g = ca.vertcat(1e7 * X[0] + X[2], X[1] + 1e-3 * X[2] ** 2, 1e-9 * X[0])
    call = {"lbg": [1, 1, -INF], "ubg": [2, 2, INF]}
    result = solved(f, g, call, max_iter=0)
    spreads = {one.what: one for one in bad_scales(result)}
    rows = spreads["the largest derivatives of the constraints"]
    assert rows.largest == ("first", 1e7)
    assert rows.smallest == ("second", 1.0)  # the third has no bound
    assert spreads["the derivatives of f"].smallest == ("depth", 1e-8)
    assert "Badly scaled:" in result.explain()
    assert str(rows) in result.explain()
    # A problem in good units says nothing, nor does one that was solved.
    good = solved(ca.sumsqr(X), ca.vertcat(X[0] + X[1], X[2]), {"lbg": 1}, max_iter=0)
    assert bad_scales(good) == ()
    assert "scaled" not in solved(f, g, call).explain()


def test_sparse_derivatives_are_diagnosed_alike() -> None:
    """The same findings through scipy matrices, beyond the size of dense solves."""
    n = 200
    x = ca.SX.sym("x", n)
    g = ca.vertcat(*(x[i] + x[i + 1] for i in range(0, n, 2)), x[0] + x[1], x[2] + x[4])
    names = [f"pair {i}" for i in range(n // 2)] + ["again", "other"]
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1), "g": g}, {
        "constraint_names": names, "max_iter": 100
    })  # fmt: skip
    solver(lbg=[1] * (n // 2) + [1, 1], ubg=[1] * (n // 2) + [1, 1])
    result = solver.result
    assert result.success, solver.explain()
    (one,) = dependent_constraints(result)
    assert {one.name, one.combination[0][0]} == {"pair 0", "again"}
    solver(lbg=[1] * (n // 2) + [2, 1], ubg=[1] * (n // 2) + [2, 1])
    result = solver.result
    assert not result.success
    assert {one.name for one in worst_violations(result)} == {"pair 0", "again"}
    assert bad_scales(result) == ()
    assert result.certificate < 1e-5


def test_a_result_of_equations_explains_itself_too() -> None:
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=ca.sumsqr(x), h={"ring": ca.sumsqr(x) + 1})
    result = Solver(problem).solve([0.3, 0.2])
    text = result.explain()
    assert result.stop.value in text
    assert result.point.value in text
    assert "at ring" in text
    assert f"f(x) = {result.f:.10g}." in text
    problem = Problem(x=x, f=ca.sumsqr(x), h={"ring": ca.log(x[0]) + x[1]})
    for method, advice in (
        ("closed-form", "Start from another x0, or write the function"),
        ("auto", "Start from another x0, bound the variables"),
    ):
        text = Solver(problem, method).solve([-1, 0]).explain()
        assert "At the start: the constraint function h is nan in its entry ring, at x_0" in text
        assert advice in text
