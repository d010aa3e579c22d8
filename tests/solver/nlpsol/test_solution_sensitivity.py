"""Solution derivatives where they do not exist, or nearly so."""

from copy import copy
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.cases.derivatives import CASES

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.sensitivity import (
    Sensitivities,
    SensitivityError,
    SensitivityWarning,
    Solution,
    solution_sensitivity,
)
from casadi_hybrid.solver.solver import Solver


def one():
    """min (x − p)² s.t. x ≥ 1: weakly active at p = 1."""
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": (x - p) ** 2}
    return Problem.from_nlp(nlp, variable_names=["height"], lbx=1)


def derivatives(problem, x, p, lam_g=()):
    """Those at x under equations, with multipliers zero of the bounds."""
    at = Solution(np.array(x, float), np.zeros(len(x)), np.array(lam_g, float))
    bounds = problem.bounds
    rows = np.zeros(problem.m)
    return Sensitivities(problem)(at, np.full(1, p), Bounds(bounds.lbx, bounds.ubx, rows, rows))


def test_weakly_active_is_said():
    program = one()
    with pytest.warns(SensitivityWarning, match=r"weakly active: height lies on a bound.*a kink"):
        found = derivatives(program, [1], 1)
    assert found["jac_x_p"] == pytest.approx(np.ones((1, 1)))  # the inactive side
    result = Solver(program).solve(p=1.0)
    assert result.success
    with pytest.warns(SensitivityWarning, match="weakly active: height"):
        solution_sensitivity(program, result)


def test_no_solution_no_derivative():
    with pytest.raises(SensitivityError, match="no solution: its largest KKT residual is 4"):
        derivatives(one(), [3], 1)


def test_singular_systems_are_refused():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    f = ca.sumsqr(x)
    twice = Problem.from_nlp({"x": x, "p": p, "f": f, "g": ca.vertcat(x[0] - p, 2 * (x[0] - p))})
    flat = Problem.from_nlp({"x": x, "p": p, "f": (x[0] - p) ** 2})
    with pytest.raises(SensitivityError, match="singular"):
        derivatives(twice, [1, 0], 1, [-2, 0])
    with pytest.raises(SensitivityError, match="no curvature"):
        derivatives(flat, [1, 0], 1)


def test_dependence_among_many_rows_is_refused():
    # The last row is the sum of the others: none of the pivots of the KKT matrix is zero for sure.
    n = 500
    x, p = ca.SX.sym("x", n), ca.SX.sym("p")
    chain = ca.vertcat(x[0], x[1:] - 0.9 * x[:-1]) - p
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x), "g": ca.vertcat(chain, ca.sum1(chain))}
    with pytest.raises(SensitivityError, match="singular"):
        derivatives(Problem.from_nlp(nlp), np.zeros(n), 0, np.zeros(n + 1))


def test_badly_scaled_is_not_singular():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    f = 1e8 * (x[0] - p) ** 2 + 1e-6 * (x[1] - p) ** 2
    found = derivatives(Problem.from_nlp({"x": x, "p": p, "f": f}), [1, 1], 1)
    np.testing.assert_allclose(found["jac_x_p"], np.ones((2, 1)), rtol=1e-9)


@pytest.mark.parametrize("limit", [1.0, 10.0], ids=["holds", "does not"])
@pytest.mark.parametrize("of", range(3), ids=["f", "g", "x"])
@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.filterwarnings("ignore::casadi_hybrid.utils.errors.ScaleWarning")
def test_units_change_no_derivative(unit, of, limit):
    """min |x − p|² s.t. x_1 + x_2 ≤ limit at p = 3, with f, g or x in another unit."""
    f, g, u = (unit if i == of else 1.0 for i in range(3))
    x, p, P = ca.SX.sym("x", 2), ca.SX.sym("p"), ca.MX.sym("P")
    nlp = {"x": x, "p": p, "f": f * ca.sumsqr(x / u - p), "g": g * ca.sum1(x) / u}
    solver = nlpsol("solver", "hybrid", nlp)
    found = solver(p=P, ubg=g * limit)
    graph = ca.Function("graph", [P], [ca.jacobian(found[key], P) / by for key, by in
                                       (("x", u), ("f", f))])(3)  # fmt: skip
    number = solution_sensitivity(nlp, (solver(p=3, ubg=g * limit), solver.result)[1], wrt=["p"])
    right = ([[0.0], [0.0]], [[10.0]]) if limit == 1.0 else ([[1.0], [1.0]], [[0.0]])
    for dx, df in (graph, (number["jac_x_p"] / u, number["jac_f_p"] / f)):
        np.testing.assert_allclose(dx, right[0], atol=5e-3)
        np.testing.assert_allclose(df, right[1], atol=5e-3)


def test_compiled_functions_have_derivatives_too():
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    program = Problem.from_nlp({"x": x, "p": p, "f": (x - p) ** 2})
    compiled = copy(program)
    compiled.__dict__["functions"] = replace(program.functions, backend="compiled")
    np.testing.assert_allclose(derivatives(compiled, [1], 1)["jac_x_p"], [[1.0]])


def test_a_large_sparse_chain():
    n = 600
    x, p = ca.SX.sym("x", n), ca.SX.sym("p", 2)
    f = ca.sumsqr(x - p[0]) + 0.1 * ca.sumsqr(x[1:] - x[:-1])
    program = Problem.from_nlp({"x": x, "p": p, "f": f, "g": x[::3] * p[1]})
    result = Solver(program).solve(p=[2.0, 1.5], ubg=1)
    assert result.success
    found = solution_sensitivity(program, result, wrt=("p",))
    # Every third x is pinned at 1/p₁, whose slope is −1/p₁²; the others follow by symmetry.
    np.testing.assert_allclose(found["jac_x_p"][::3, 1], -1 / 1.5**2, rtol=1e-6)
    np.testing.assert_allclose(found["jac_x_p"][::3, 0], 0.0, atol=1e-9)
    pair = np.linalg.solve([[2.4, -0.2], [-0.2, 2.4]], [2.0, 2.0])
    np.testing.assert_allclose(found["jac_x_p"][1:3, 0], pair, rtol=1e-6)


def test_what_is_returned_for_plain_numbers():
    nlp, call, at = CASES["everything"]()
    given = {key: ca.DM(value).full().squeeze() for key, value in call(ca.DM(at)).items()}
    values = given.pop("p")
    problem = Problem.from_nlp(nlp)
    result = Solver(problem, scaled_tol=1e-11).solve(p=values, **given)
    found = solution_sensitivity(problem, result, values, result.bounds)
    p = ca.MX.sym("p", 3)
    out = nlpsol("solver", "hybrid", nlp, {"tol": 1e-11, "residual_tol": 1e-7})(p=p, **given)
    for name in ("x", "f", "g", "lam_x", "lam_g"):
        expected = ca.Function("J", [p], [ca.jacobian(out[name], p)])(values)
        np.testing.assert_allclose(found[f"jac_{name}_p"], expected, rtol=1e-6, atol=1e-7)
    # The envelope theorem: df*/d(bound) is minus the multiplier.
    np.testing.assert_allclose(found["jac_f_lbg"][0, 1], -result.lam_g[1], rtol=1e-6)
    np.testing.assert_allclose(found["jac_f_lbx"][0, 2], -result.lam_x[2], rtol=1e-6)
    assert set(found) == {
        f"jac_{output}_{of}"
        for output in ("x", "f", "g", "lam_x", "lam_g")
        for of in ("p", "lbx", "ubx", "lbg", "ubg")
    }
    only = solution_sensitivity(problem, result, wrt=("p",))  # at p and the bounds of the solve
    assert set(only) == {name for name in found if name.endswith("_p")}
    np.testing.assert_allclose(only["jac_x_p"], found["jac_x_p"], rtol=1e-12)
    with pytest.raises(InputError, match="unknown input 'lb'"):
        solution_sensitivity(problem, result, values, wrt=("lb",))


def test_failed_solve_has_no_derivative():
    x, bound = ca.SX.sym("x"), ca.MX.sym("bound")
    solver = nlpsol("s", "hybrid", {"x": x, "f": x, "g": x**2}, {"max_iter": 30})
    found = solver(ubg=bound)["x"]
    graph = ca.Function("graph", [bound], [found, ca.jacobian(found, bound)])
    with pytest.raises(RuntimeError, match="the point is no solution"):
        graph(-1)
    assert not solver.result.success


def test_dependent_limits_must_agree():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    names = {"variable_names": ["a", "b"], "constraint_names": ["low", "twice"]}

    def found(rows, **call):
        nlp = {"x": x, "p": p, "f": ca.sumsqr(x - ca.vertcat(0, x[0] + p)), "g": ca.vertcat(*rows)}
        program = Problem.from_nlp(nlp, **names)
        result = Solver(program).solve(p=1.0, **call)
        assert result.success
        return solution_sensitivity(program, result, wrt=("p",))

    for call in ({"lbg": 0}, {"lbg": 0, "ubg": 0}):
        agree = found([x[0] - p**2, 2 * (x[0] - p**2)], **call)
        np.testing.assert_allclose(agree["jac_x_p"], [[2], [3]], rtol=1e-5)
        np.testing.assert_allclose(agree["jac_f_p"], [[4]], rtol=1e-5)
    with pytest.raises(SensitivityError, match="low and twice lie on limits that contradict"):
        found([x[0] - p, x[0] - 2 + p], lbg=0)


def test_least_squares_of_exact_sensors():
    A = np.array([[1.0, 2], [3, -1], [0.5, 1]])
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 3)
    nlp = {"x": x, "p": y, "f": ca.sumsqr((ca.DM(A) @ x - y) / 1e-7)}
    solver, seen = nlpsol("s", "hybrid", nlp), A @ [90, 0.3] + [1e-7, 0, -2e-7]
    solver(x0=[80, 0], p=seen)
    found = solution_sensitivity(nlp, solver.result, p=seen)
    assert found["jac_x_p"] == pytest.approx(np.linalg.pinv(A), abs=1e-9)
