"""The explanation of a failed solve: names, numbers and certificates, each recomputed here."""

import pickle
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import Problem, Result, Solver, nlpsol
from casadi_hybrid.solver.explain.conflict import conflicting_set
from casadi_hybrid.solver.explain.diagnosis import (
    bad_scales,
    constant_constraints,
    fall,
    last_direction,
    worst_violations,
)
from casadi_hybrid.solver.explain.findings import dependent_constraints

X = ca.SX.sym("x", 3)
ROWS = ["first", "second", "third"]
COLUMNS = ["height", "width", "depth"]
INF = np.inf
NO_ROW = ca.SX(0, 1)


def solved(f: Any, g: Any, call: dict[str, Any], **options: Any) -> Result:
    rows = g.numel() if isinstance(g, ca.SX) else 0
    named = {"constraint_names": ROWS[:rows], "variable_names": COLUMNS, "max_iter": 300}
    solver = nlpsol("s", "hybrid", {"x": X, "f": f, "g": g}, {**named, **options})
    solver(**call)
    assert solver.explain() == solver.result.explain()
    return solver.result


def test_worst_violations_are_named_and_certified() -> None:
    """The certificate is ‖Σ v_i ∇g_i‖ over its parts: small at a contradiction only."""
    g, lower, upper = ca.vertcat(ca.sumsqr(X), X[0], X[1]), [-9, 1, -INF], [-1, 2, 5]
    call = {"x0": 1, "lbg": lower, "ubg": upper}
    result = solved(ca.sumsqr(X), g, call)
    assert result.point.name == "INFEASIBLE_STATIONARY"
    v = result.g - np.clip(result.g, lower, upper)
    worst = worst_violations(result)
    assert [violation.name for violation in worst] == ["first", "second"]
    for violation, value, excess in zip(worst, result.g[:2], v[:2], strict=True):
        assert (violation.value, violation.excess) == pytest.approx((value, excess))
        assert f"{value:.6g}" in str(violation)
        assert str(violation) in result.explain()
    assert "third" not in result.explain()
    assert not {"stationarity", "complementarity"} & set(result.explain().split())
    J = ca.Function("J", [X], [ca.jacobian(g, X)])
    at_x, at_start = (J(x).full() for x in (result.x, result.start.x))
    length = np.maximum(np.linalg.norm(at_x, axis=1), np.linalg.norm(at_start, axis=1))
    bend = 2 * abs(v[0]) * max(1.0, np.abs(result.x).max())  # ∇²(x'x) = 2I, other rows are flat
    slope = np.linalg.norm(at_x.T @ v) / max(np.abs(v) @ length, bend)
    assert result.certificate == pytest.approx(slope, abs=1e-11)
    assert result.certificate < 1e-6
    assert f"{result.certificate:.2e}" in result.explain()
    # The same start, stopped before it has settled: no certificate.
    assert solved(ca.sumsqr(X), g, call, max_iter=1).certificate > 1e-3
    assert solved(ca.sumsqr(X), g, {"ubg": [4, 2, 5]}).certificate is None


def test_flat_violation_is_no_certificate() -> None:
    for g, call in (
        # 1e-7·x ≥ 1 is far from met at x = 1, but not contradicted: its slope is only small.
        (1e-7 * X[2], {"x0": 1, "lbg": 1, "ubx": 1e8}),
        # x₀² ≤ 1 is violated with a slope at x₀ = 2, however large x₂ is, which is not in it.
        (X[0] ** 2, {"x0": [2, 0, 1e8], "ubg": 1}),
    ):
        result = solved(0 * X[0], g, call, max_iter=0)
        assert result.certificate == pytest.approx(1.0)
        assert result.point.name != "INFEASIBLE_STATIONARY"


def test_violated_equation_has_its_value() -> None:
    result = solved(X[0], X[0] + X[1], {"lbg": 3, "ubg": 3, "lbx": 0, "ubx": 1})
    (violation,) = worst_violations(result)
    assert (violation.name, violation.lower, violation.upper) == ("first", 3, 3)
    numbers = ("3", f"{result.g[0]:.6g}", f"{3 - result.g[0]:.3g}")
    assert all(number in str(violation) for number in numbers)
    constant = solved(ca.sumsqr(X), ca.vertcat(X[0], 3 + 0 * X[1]), {"ubg": [1, 2], "x0": 1})
    assert constant_constraints(constant) == ("second",)


def test_explain_lists_conflict_first() -> None:
    """And no dependent rows, which explain no contradiction."""
    bounds = {"lbg": [-INF, -INF, 3], "ubg": [1, 2, INF]}
    result = solved(ca.sumsqr(X), ca.vertcat(X[0], 2 * X[0], X[0]), bounds)
    assert result.infeasible
    conflict = "\n".join(conflicting_set(result).sentences())
    text = result.explain()
    assert 0 < text.index(conflict) < text.index(str(worst_violations(result)[0]))
    assert dependent_constraints(result)
    assert not any(str(dependence) in text for dependence in dependent_constraints(result))
    assert not any(str(spread) in text for spread in bad_scales(result))


WIDTH = X[1]
UNDEFINED = [
    (ca.log(WIDTH), NO_ROW, "the objective f", "", np.nan),
    (ca.sqrt(WIDTH), NO_ROW, "the gradient of f", "d/dwidth", 0.0),
    (ca.sumsqr(X), ca.vertcat(X[0], ca.log(WIDTH)), "the constraint function g", "second", np.nan),
    (ca.sumsqr(X), ca.vertcat(X[0], ca.sqrt(WIDTH)), "the Jacobian of g", "d second / d width", 5),
    (
        ca.fmin(WIDTH, 0) ** 1.5 + X[0] ** 2 + 1e-3 * (WIDTH - 1) ** 2,
        NO_ROW,
        "the Hessian of the Lagrangian",
        "d²/dwidth dwidth",
        1.001,
    ),
]


@pytest.mark.parametrize(("f", "g", "function", "entry", "value"), UNDEFINED)
def test_undefined_function_is_named(f, g, function, entry, value):
    """With its entry and the point; the objective is known where its derivatives are not."""
    result = solved(f, g, {"x0": [1, 0, 2]})
    error = result.error
    assert result.stop.name == "EVALUATION_ERROR"
    assert (error.function, error.entry) == (function, entry)
    assert not np.isfinite(error.value)
    assert function in result.explain()
    assert entry in result.explain()
    if "Hessian" not in function:
        assert result.point.name == "UNDEFINED"
        assert result.f == pytest.approx(value, nan_ok=True)
        assert error.x.tolist() == [1.0, 0.0, 2.0]
        assert all(name in result.explain() for name in COLUMNS)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.x == error.x).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_kink_is_named(scale: float) -> None:
    for kink in (ca.fmax(X[1], -X[1] / 2), 0.3 * X[1] + ca.fabs(X[1]), ca.norm_2(X[1:])):
        result = solved(scale * (ca.sumsqr(X) + kink), NO_ROW, {"x0": [0.3, 1.3, 0.4]})
        assert result.stop.name == "STALLED"
        assert any(name in result.remarks[0] for name in COLUMNS[1:])
    # At a cusp of the feasible set, and in a steep valley, there is none.
    cusp = ca.vertcat(X[1] - X[0] ** 3, -X[1] - X[0] ** 3)
    valley = 1e6 * (X[1] - X[0] ** 2) ** 4 + X[0] ** 3
    for f, g in ((X[0], cusp), (valley, NO_ROW)):
        result = solved(scale * f, g, {"x0": 1, "ubg": 0}, max_iter=60)
        assert not any(name in remark for remark in result.remarks for name in COLUMNS)


def test_rejected_trial_points_are_told_after_failures() -> None:
    """Newton's step on x − log x leads from 3 to −3, where log is not defined."""
    f = X[0] - ca.log(X[0]) + ca.sumsqr(X[1:])
    early = solved(f, NO_ROW, {"x0": [3, 0, 0]}, max_iter=1)
    assert early.evaluations["undefined"] >= 1
    assert early.error.function == "the objective f"
    assert early.error.x[0] <= 0
    assert str(early.error) in early.explain()
    done = solved(f, NO_ROW, {"x0": [3, 0, 0]})
    assert done.success
    assert done.error is None


def test_dependent_constraints_have_their_combination() -> None:
    total = X[0] + X[1]
    g = ca.vertcat(total, 1e4 * X[2], 2 * total - 3e4 * X[2])
    result = solved(ca.sumsqr(X - 1), g, {"lbg": [1, 5e3, -1.5e4 + 2], "ubg": [1, 5e3, -1.5e4 + 2]})
    assert result.success
    (dependence,) = dependent_constraints(result)
    rows = {"first": [1, 1, 0], "second": [0, 0, 1e4], "third": [2, 2, -3e4]}
    combined = sum(factor * np.array(rows[name]) for name, factor in dependence.combination)
    np.testing.assert_allclose(combined, rows[dependence.name], atol=1e-6)
    assert str(dependence) in result.explain()
    # Bounds take part; independent rows are not accused.
    g = ca.vertcat(X[0] + X[1], X[1])
    call = {"lbx": [0.5, 0, 0], "ubx": [0.5, 1, 1], "lbg": [1, 0], "ubg": [1, 0.5]}
    result = solved(ca.sumsqr(X - 1), g, call)
    (dependence,) = dependent_constraints(result)
    assert {dependence.name, dependence.combination[0][0]} == {"first", "second"}
    assert dependence.bounds == ("height",)
    assert "height" in str(dependence)
    g = ca.vertcat(X[0] + X[1], X[0] - X[1], 1e-6 * X[2])
    result = solved(ca.sumsqr(X - 1), g, {"lbg": [1, 0, 1e-7], "ubg": [1, 0, 1e-7]})
    assert dependent_constraints(result) == ()


def test_tangency_has_huge_multipliers_or_none() -> None:
    """Two circles that touch: their gradients are parallel there, and f pulls sideways.

    Next to the tangency are points that are KKT points within 1e-6, with multipliers of millions.
    """
    circles = ca.vertcat(ca.sumsqr(X[:2]), ca.sumsqr(X[:2] - ca.DM([2, 0])), X[2])
    result = solved(X[1], circles, {"x0": [0.9, 0.3, 0], "ubg": [1, 1, 3]})
    (dependence,) = dependent_constraints(result, 1e-2)
    named = {dependence.name, *(name for name, _ in dependence.combination)}
    assert named == {"first", "second"}
    assert result.success
    assert np.abs(result.lam_g).max() > 1e5
    # Two cubics that touch: beside it, multipliers of 1/(6x²) are too large for the tolerances.
    rows = ca.vertcat(X[1] - X[0] ** 3, -X[1] - X[0] ** 3)
    result = solved(-X[0], rows, {"x0": [-1, 0.5, 0], "lbg": 0})
    assert (result.stop.name, result.point.name) == ("NO_MULTIPLIERS", "FRITZ_JOHN_POINT")
    assert "first" in result.explain()


def test_unbounded_problem_has_a_ray() -> None:
    """min x − z with x ≥ y, y ≥ 1: only z runs away, and f falls by one a unit."""
    result = solved(X[0] - X[2], X[0] - X[1], {"lbg": 0, "lbx": [-INF, 1, -INF], "x0": 2})
    assert result.stop.name == "UNBOUNDED"
    ray = last_direction(result)
    assert ray.direction[2] == 1.0
    assert ray.slope == pytest.approx(ray.direction[0] - ray.direction[2])
    assert ray.slope < -0.5
    assert ray.moving[0] == ("depth", 1.0)
    assert str(ray) in result.explain()
    assert f"{result.f:.6g}" in result.explain()


def test_falling_objective_is_told_at_a_limit() -> None:
    """−(x² + y²)³ under x = y from (1, 1), stopped below −1e12."""
    f, g = -(ca.sumsqr(X[:2]) ** 3) + X[2] ** 2, X[0] - X[1]
    call = {"x0": [1, 1, 0], "lbg": 0, "ubg": 0}
    full = solved(f, g, call)
    assert full.stop.name == "UNBOUNDED"
    early = solved(f, g, call, max_iter=int(full.history.t[full.history.f < -1e12][0]))
    assert early.stop.name == "ITERATION_LIMIT"
    assert last_direction(early).direction == pytest.approx([1, 1, 0], abs=1e-6)
    assert fall(early) <= -1e12
    assert f"{fall(early):.6g}" in early.explain()
    # Neither a solution nor a solve cut off before that.
    assert fall(solved(f, g, call, max_iter=2)) is fall(solved(ca.sumsqr(X), g, call)) is None


def test_bad_scales_are_named() -> None:
    f = ca.sumsqr(X[:2] - 1) + 1e-8 * X[2]
    g = ca.vertcat(1e7 * X[0] + X[2], X[1] + 1e-3 * X[2] ** 2, 1e-9 * X[0])
    call = {"lbg": [1, 1, -INF], "ubg": [2, 2, INF]}
    result = solved(f, g, call, max_iter=0)
    spreads = bad_scales(result)
    rows = next(spread for spread in spreads if spread.largest == ("first", 1e7))
    assert rows.smallest == ("second", 1.0)  # the third has no bound
    assert ("depth", 1e-8) in [spread.smallest for spread in spreads]
    assert str(rows) in result.explain()
    # A problem in good units says nothing, nor does one that was solved.
    good = solved(ca.sumsqr(X), ca.vertcat(X[0] + X[1], X[2]), {"lbg": 1}, max_iter=0)
    assert bad_scales(good) == ()
    assert str(rows) not in solved(f, g, call).explain()


def test_sparse_derivatives_have_the_same_findings() -> None:
    """The same findings through scipy matrices, beyond the size of dense solves."""
    n = 200
    x = ca.SX.sym("x", n)
    g = ca.vertcat(*(x[i] + x[i + 1] for i in range(0, n, 2)), x[0] + x[1], x[2] + x[4])
    names = [f"pair {i}" for i in range(n // 2)] + ["again", "other"]
    options = {"constraint_names": names, "max_iter": 100}
    solver = nlpsol("s", "hybrid", {"x": x, "f": ca.sumsqr(x - 1), "g": g}, options)
    solver(lbg=1, ubg=1)
    assert solver.result.success, solver.explain()
    (dependence,) = dependent_constraints(solver.result)
    assert {dependence.name, dependence.combination[0][0]} == {"pair 0", "again"}
    rows = [1] * (n // 2) + [2, 1]
    solver(lbg=rows, ubg=rows)
    for members in (worst_violations(solver.result), conflicting_set(solver.result).members):
        assert {member.name for member in members} == {"pair 0", "again"}
    assert bad_scales(solver.result) == ()
    assert solver.result.certificate < 1e-5


def test_equations_explain_themselves_too() -> None:
    x = ca.SX.sym("x", 2)
    problem = Problem(x=x, f=ca.sumsqr(x), h={"ring": ca.sumsqr(x) + 1})
    result = Solver(problem).solve([0.3, 0.2])
    for part in (result.stop.value, result.point.value, "ring", f"{result.f:.10g}"):
        assert part in result.explain()
    problem = Problem(x=x, f=ca.sumsqr(x), h={"ring": ca.log(x[0]) + x[1]})
    for method in ("closed-form", "auto"):
        result = Solver(problem, method).solve([-1, 0])
        assert (result.error.function, result.error.entry) == ("the constraint function h", "ring")
        assert all(part in result.explain() for part in (result.error.function, "ring", "x_0"))
