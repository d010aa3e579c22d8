"""Solution derivatives where they do not exist, or nearly so."""

import casadi as ca
import numpy as np
import pytest
from support.cases.derivatives import CASES

from casadi_hybrid import InputError, Problem, Solver, nlpsol, solution_sensitivity
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.solver.sensitivity import (
    Sensitivities,
    SensitivityError,
    SensitivityWarning,
    Solution,
)

x1, x2, p1 = ca.SX.sym("x"), ca.SX.sym("x", 2), ca.SX.sym("p")


def problem_of(x, f, g=(), **names):
    return Problem.from_nlp({"x": x, "p": p1, "f": f, "g": g}, **names)


# min (x − p)² s.t. x ≥ 1: weakly active at p = 1.
WEAK = problem_of(x1, (x1 - p1) ** 2, variable_names=["height"], lbx=1)


def derivatives(problem, x, p, lam_g=()):
    """Derivatives at x under equations, with multipliers zero of the bounds."""
    point = Solution(np.array(x, float), np.zeros(len(x)), np.array(lam_g, float))
    bounds, rows = problem.bounds, np.zeros(problem.m)
    limits = Bounds(bounds.lbx, bounds.ubx, rows, rows)
    return Sensitivities(problem)(point, np.full(1, p), limits)


def test_weakly_active_bound_warns():
    with pytest.warns(SensitivityWarning, match="height"):
        slopes = derivatives(WEAK, [1], 1)
    assert slopes["jac_x_p"] == pytest.approx(np.ones((1, 1)))  # the inactive side
    result = Solver(WEAK).solve(p=1.0)
    with pytest.warns(SensitivityWarning, match="height"):
        solution_sensitivity(WEAK, result)


def chain_with_sum(n=500):
    """The last row is the sum of the others: no pivot of the KKT matrix is zero for sure."""
    x = ca.SX.sym("x", n)
    chain = ca.vertcat(x[0], x[1:] - 0.9 * x[:-1]) - p1
    return problem_of(x, ca.sumsqr(x), g=ca.vertcat(chain, ca.sum1(chain)))


TWICE = problem_of(x2, ca.sumsqr(x2), g=ca.vertcat(x2[0] - p1, 2 * (x2[0] - p1)))
FLAT = problem_of(x2, (x2[0] - p1) ** 2)
REFUSED = {
    "no solution": (WEAK, [3], 1, [], "no solution"),
    "dependent rows": (TWICE, [1, 0], 1, [-2, 0], "singular"),
    "many dependent rows": (chain_with_sum(), np.zeros(500), 0, np.zeros(501), "singular"),
    "flat": (FLAT, [1, 0], 1, [], "no curvature"),
}


@pytest.mark.parametrize("label", REFUSED)
def test_missing_derivatives_are_refused(label):
    *arguments, message = REFUSED[label]
    with pytest.raises(SensitivityError, match=message):
        derivatives(*arguments)


def test_badly_scaled_is_not_singular():
    f = 1e8 * (x2[0] - p1) ** 2 + 1e-6 * (x2[1] - p1) ** 2
    slopes = derivatives(problem_of(x2, f), [1, 1], 1)
    np.testing.assert_allclose(slopes["jac_x_p"], np.ones((2, 1)), rtol=1e-9)


@pytest.mark.parametrize("limit", [1.0, 10.0], ids=["holds", "does not"])
@pytest.mark.parametrize("of", range(3), ids=["f", "g", "x"])
@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.filterwarnings("ignore::casadi_hybrid.utils.errors.ScaleWarning")
def test_units_change_no_derivative(unit, of, limit):
    """min |x − p|² s.t. x_1 + x_2 ≤ limit at p = 3, with f, g or x in another unit."""
    f, g, u = (unit if i == of else 1.0 for i in range(3))
    nlp = {"x": x2, "p": p1, "f": f * ca.sumsqr(x2 / u - p1), "g": g * ca.sum1(x2) / u}
    solver, P = nlpsol("solver", "hybrid", nlp), ca.MX.sym("P")
    answer = solver(p=P, ubg=g * limit)
    slopes = [ca.jacobian(answer["x"], P), ca.jacobian(answer["f"], P)]
    graph = ca.Function("graph", [P], slopes)(3)
    solver(p=3, ubg=g * limit)
    numbers = solution_sensitivity(nlp, solver.result, wrt=["p"])
    right = ([[0.0], [0.0]], [[10.0]]) if limit == 1.0 else ([[1.0], [1.0]], [[0.0]])
    for dx, df in (graph, (numbers["jac_x_p"], numbers["jac_f_p"])):
        np.testing.assert_allclose(dx / u, right[0], atol=5e-3)
        np.testing.assert_allclose(df / f, right[1], atol=5e-3)


def test_large_sparse_chain_has_known_slopes():
    n = 600
    x, p = ca.SX.sym("x", n), ca.SX.sym("p", 2)
    f = ca.sumsqr(x - p[0]) + 0.1 * ca.sumsqr(x[1:] - x[:-1])
    problem = Problem.from_nlp({"x": x, "p": p, "f": f, "g": x[::3] * p[1]})
    result = Solver(problem).solve(p=[2.0, 1.5], ubg=1)
    slopes = solution_sensitivity(problem, result, wrt=("p",))["jac_x_p"]
    # Every third x is pinned at 1/p₁, whose slope is −1/p₁²; the others follow by symmetry.
    np.testing.assert_allclose(slopes[::3, 1], -1 / 1.5**2, rtol=1e-6)
    np.testing.assert_allclose(slopes[::3, 0], 0.0, atol=1e-9)
    pair = np.linalg.solve([[2.4, -0.2], [-0.2, 2.4]], [2.0, 2.0])
    np.testing.assert_allclose(slopes[1:3, 0], pair, rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_plain_numbers_have_all_derivatives(compiled, request):
    if compiled:
        request.getfixturevalue("compiler")
    nlp, call, theta = CASES["everything"]()
    arguments = {key: ca.DM(value).full().squeeze() for key, value in call(ca.DM(theta)).items()}
    values = arguments.pop("p")
    problem = Problem.from_nlp(nlp, compile=compiled)
    result = Solver(problem, scaled_tol=1e-11).solve(p=values, **arguments)
    slopes = solution_sensitivity(problem, result, values, result.bounds)
    outputs, inputs = ("x", "f", "g", "lam_x", "lam_g"), ("p", "lbx", "ubx", "lbg", "ubg")
    assert set(slopes) == {f"jac_{output}_{of}" for output in outputs for of in inputs}
    p, tight = ca.MX.sym("p", 3), {"tol": 1e-11, "residual_tol": 1e-7}
    answer = nlpsol("solver", "hybrid", nlp, tight)(p=p, **arguments)
    for name in outputs:
        expected = ca.Function("J", [p], [ca.jacobian(answer[name], p)])(values)
        np.testing.assert_allclose(slopes[f"jac_{name}_p"], expected, rtol=1e-6, atol=1e-7)
    # The envelope theorem: df*/d(bound) is minus the multiplier.
    for kind, lam in (("x", result.lam_x), ("g", result.lam_g)):
        upper, lower = slopes[f"jac_f_ub{kind}"][0], slopes[f"jac_f_lb{kind}"][0]
        np.testing.assert_allclose(upper, -np.maximum(lam, 0), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(lower, -np.minimum(lam, 0), rtol=1e-6, atol=1e-6)
    only = solution_sensitivity(problem, result, wrt=("p",))  # at p and the bounds of the solve
    assert set(only) == {name for name in slopes if name.endswith("_p")}
    np.testing.assert_allclose(only["jac_x_p"], slopes["jac_x_p"], rtol=1e-12)
    with pytest.raises(InputError, match="'lb'"):
        solution_sensitivity(problem, result, values, wrt=("lb",))


def test_failed_solve_has_no_derivative():
    bound = ca.MX.sym("bound")
    solver = nlpsol("s", "hybrid", {"x": x1, "f": x1, "g": x1**2}, {"max_iter": 30})
    x = solver(ubg=bound)["x"]
    graph = ca.Function("graph", [bound], [x, ca.jacobian(x, bound)])
    with pytest.raises(RuntimeError, match="no solution"):
        graph(-1)
    assert not solver.result.success


def test_dependent_limits_must_agree():
    names = {"variable_names": ["a", "b"], "constraint_names": ["low", "twice"]}

    def slopes(rows, **call):
        f = ca.sumsqr(x2 - ca.vertcat(0, x2[0] + p1))
        nlp = {"x": x2, "p": p1, "f": f, "g": ca.vertcat(*rows)}
        problem = Problem.from_nlp(nlp, **names)
        result = Solver(problem).solve(p=1.0, **call)
        assert result.success
        return solution_sensitivity(problem, result, wrt=("p",))

    for call in ({"lbg": 0}, {"lbg": 0, "ubg": 0}):
        agreeing = slopes([x2[0] - p1**2, 2 * (x2[0] - p1**2)], **call)
        np.testing.assert_allclose(agreeing["jac_x_p"], [[2], [3]], rtol=1e-5)
        np.testing.assert_allclose(agreeing["jac_f_p"], [[4]], rtol=1e-5)
    with pytest.raises(SensitivityError, match="low and twice"):
        slopes([x2[0] - p1, x2[0] - 2 + p1], lbg=0)


def test_least_squares_of_exact_sensors():
    A = np.array([[1.0, 2], [3, -1], [0.5, 1]])
    y = ca.SX.sym("y", 3)
    nlp = {"x": x2, "p": y, "f": ca.sumsqr((ca.DM(A) @ x2 - y) / 1e-7)}
    solver, measured = nlpsol("s", "hybrid", nlp), A @ [90, 0.3] + [1e-7, 0, -2e-7]
    solver(x0=[80, 0], p=measured)
    slopes = solution_sensitivity(nlp, solver.result, p=measured)
    assert slopes["jac_x_p"] == pytest.approx(np.linalg.pinv(A), abs=1e-9)
