"""Solution derivatives: finite differences, IPOPT in an MX graph, and graphs around the solver."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from derivative_cases import CASES as PROBLEMS

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.casadi_api.sensitivity import solution_sensitivity
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.solver import Solver

TIGHT = {"tol": 1e-11, "residual_tol": 1e-7}
QUIET = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-11}
# Without min_lam CasADi takes every multiplier that is not exactly zero for an active constraint,
# and after an interior-point solve none is.
DIFFERENTIABLE = QUIET | {
    "min_lam": 1e-6,
    "ipopt.fixed_variable_treatment": "make_constraint",
    "ipopt.bound_relax_factor": 0.0,
}
OUTPUTS = ("x", "f", "g", "lam_x", "lam_g")


CASES = ["equation", "upper row", "fixed variable", "everything", "pendulum"]


def stated(name):
    """The problem, the arguments of a solve but p, and p."""
    nlp, call, at = PROBLEMS[name]()
    given = {key: ca.DM(value).full().ravel() for key, value in call(ca.DM(at)).items()}
    return nlp, given, given.pop("p")


def jacobians(solver, arguments, values):
    """d(output)/dp of a solver in an MX graph, at ``values``."""
    p = ca.MX.sym("p", len(values))
    out = solver(p=p, **arguments)
    slopes = ca.Function("slopes", [p], [ca.jacobian(out[name], p) for name in OUTPUTS])
    return dict(zip(OUTPUTS, (part.full() for part in slopes(values)), strict=True))


def differences(solver, arguments, name, values, step=1e-4):
    """Central differences, fourth order, of every output with respect to one input."""
    values = np.asarray(values, dtype=float)

    def at(offset):
        found = solver(**{**arguments, name: values + offset})
        return {key: found[key].full().ravel() for key in OUTPUTS}

    columns = {key: [] for key in OUTPUTS}
    for direction in np.eye(values.size) * step:
        near, far = (at(direction), at(-direction)), (at(2 * direction), at(-2 * direction))
        for key in OUTPUTS:
            slope = 8 * (near[0][key] - near[1][key]) - (far[0][key] - far[1][key])
            columns[key].append(slope / (12 * step))
    return {key: np.array(value).T for key, value in columns.items()}


@pytest.mark.parametrize("case", CASES)
def test_parameters_against_finite_differences(case):
    nlp, arguments, values = stated(case)
    solver = nlpsol("solver", "hybrid", nlp, TIGHT)
    found = jacobians(solver, arguments, values)
    expected = differences(solver, arguments, "p", values)
    for name in OUTPUTS:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_parameters_against_ipopt(case):
    nlp, arguments, values = stated(case)
    solver = nlpsol("solver", "hybrid", nlp, TIGHT)
    theirs = ca.nlpsol("theirs", "ipopt", nlp, DIFFERENTIABLE)
    found, expected = (jacobians(each, arguments, values) for each in (solver, theirs))
    for name in OUTPUTS:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


def test_the_cases_have_active_constraints():
    solves = {}
    for case in CASES[1:]:
        nlp, arguments, values = stated(case)
        solver = nlpsol("solver", "hybrid", nlp, TIGHT)
        solves[case] = solver(p=values, **arguments)
    assert solves["upper row"]["lam_g"][0] > 0.1
    assert solves["fixed variable"]["lam_x"][1] > 0.1
    assert solves["everything"]["lam_g"][1] < -0.1
    assert solves["everything"]["lam_x"][2] < -0.1
    assert np.abs(solves["pendulum"]["lam_x"].full()).max() > 0.1


@pytest.mark.parametrize(("name", "at"), [("lbg", [0, 0.4, -60.0]), ("lbx", [-2, -2, 0.9, -2])])
def test_bounds_against_finite_differences(name, at):
    nlp, arguments, values = stated("everything")
    rows = [1] if name == "lbg" else [0, 1, 2, 3]  # an equation's lower bound has one side only
    arguments = {**arguments, "p": values}
    solver = nlpsol("solver", "hybrid", nlp, TIGHT)
    wrt = ca.MX.sym(name, len(at))
    out = solver(**{**arguments, name: wrt})
    slopes = ca.Function("slopes", [wrt], [ca.jacobian(out[key], wrt) for key in OUTPUTS])(at)
    for i in rows:

        def moved(solver=solver, i=i, **changed):
            full = np.array(at, dtype=float)
            full[i] = changed.pop(name)[0]
            return solver(**{**changed, name: full})

        expected = differences(moved, arguments, name, [at[i]])
        for key, slope in zip(OUTPUTS, slopes, strict=True):
            np.testing.assert_allclose(
                slope.full()[:, [i]], expected[key], rtol=1e-5, atol=1e-5, err_msg=key
            )


def test_both_bounds_of_an_equation_move_together():
    nlp, arguments, values = stated("equation")
    solver = nlpsol("solver", "hybrid", nlp, TIGHT)
    arguments = {"x0": arguments["x0"], "p": values}
    b = ca.MX.sym("b")
    out = solver(**arguments, lbg=b, ubg=b)
    slope = ca.Function("slope", [b], [ca.jacobian(out["x"], b)])(0).full()

    def moved(b, **rest):
        return solver(**rest, lbg=b, ubg=b)

    np.testing.assert_allclose(
        slope, differences(moved, arguments, "b", [0.0])["x"], rtol=1e-5, atol=1e-6
    )


def test_inside_a_graph_in_both_directions():
    nlp, arguments, _ = stated("upper row")
    solver = nlpsol("solver", "hybrid", nlp, TIGHT)
    q, seed = ca.MX.sym("q"), ca.MX.sym("seed", 2)
    p = ca.vertcat(q**2, ca.sin(q))
    x = solver(p=p, **arguments)["x"]
    graph = ca.Function(
        "graph",
        [q, seed],
        [ca.gradient(ca.sumsqr(x) + q, q), ca.jtimes(x, q, 2), ca.jtimes(x, q, seed, True)],
    )
    slope, forward, reverse = (part.full() for part in graph(1.2, [1, -2]))
    inner = jacobians(solver, arguments, [1.44, np.sin(1.2)])["x"]
    dx = inner @ np.array([[2.4], [np.cos(1.2)]])
    at = solver(p=[1.44, np.sin(1.2)], **arguments)["x"].full()
    np.testing.assert_allclose(slope, 2 * at.T @ dx + 1, rtol=1e-9)
    np.testing.assert_allclose(forward, 2 * dx, rtol=1e-9)
    np.testing.assert_allclose(reverse, np.array([[1, -2]]) @ dx, rtol=1e-9)


def unpack(arguments, n, m):
    names = (("lbx", n), ("ubx", n), ("lbg", m), ("ubg", m))
    return Bounds(*(np.broadcast_to(arguments[k], size).astype(float) for k, size in names))


def test_plain_numbers():
    nlp, arguments, values = stated("everything")
    bounds = unpack(arguments, 4, 3)
    result = Solver(nlp, scaled_tol=1e-11).solve(
        1.0, values, lbx=bounds.lbx, ubx=bounds.ubx, lbg=bounds.lbg, ubg=bounds.ubg
    )
    found = solution_sensitivity(nlp, result, values, bounds)
    expected = jacobians(nlpsol("solver", "hybrid", nlp, TIGHT), arguments, values)
    for name in OUTPUTS:
        np.testing.assert_allclose(found[f"jac_{name}_p"], expected[name], rtol=1e-6, atol=1e-7)
    # The envelope theorem: df*/d(bound) is minus the multiplier.
    np.testing.assert_allclose(found["jac_f_lbg"][0, 1], -result.lam_g[1], rtol=1e-6)
    np.testing.assert_allclose(found["jac_f_lbx"][0, 2], -result.lam_x[2], rtol=1e-6)
    only = solution_sensitivity(nlp, result, wrt=("p",))  # at p and the bounds of the solve
    assert set(only) == {f"jac_{o}_p" for o in OUTPUTS}
    np.testing.assert_allclose(only["jac_x_p"], found["jac_x_p"], rtol=1e-12)
    with pytest.raises(InputError, match="unknown input 'lb'"):
        solution_sensitivity(nlp, result, values, bounds, wrt=("lb",))
    assert set(found) == {
        f"jac_{o}_{i}" for o in OUTPUTS for i in ("p", "lbx", "ubx", "lbg", "ubg")
    }


def test_a_solve_in_a_graph_that_fails():
    x, bound = ca.SX.sym("x"), ca.MX.sym("bound")
    nlp = {"x": x, "f": x, "g": x**2}
    strict = nlpsol("strict", "hybrid", nlp, {"max_iter": 30, "error_on_fail": True})
    graph = ca.Function("graph", [bound], [strict(ubg=bound)["x"]])
    with pytest.raises(RuntimeError, match="strict failed"):
        graph(-1)
    lenient = nlpsol("lenient", "hybrid", nlp, {"max_iter": 30})
    found = lenient(ubg=bound)["x"]
    graph = ca.Function("graph", [bound], [found, ca.jacobian(found, bound)])
    with pytest.raises(RuntimeError, match="the point is no solution"):
        graph(-1)
    assert not lenient.result.success
