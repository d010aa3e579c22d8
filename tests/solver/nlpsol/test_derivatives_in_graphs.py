"""First and second derivatives of a solution in a graph: differences, IPOPT, closed forms."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.derivatives import CASES
from support.cases.nlp import OUTPUTS, PEER

from casadi_hybrid import Opti, Problem, nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver

TIGHT = {"tol": 1e-12, "residual_tol": 1e-9}
# min_lam: else CasADi takes all that an interior-point method leaves positive for active.
QUIET = PEER | {"ipopt.tol": 1e-12, "min_lam": 1e-6}
QUIET |= {"ipopt.fixed_variable_treatment": "make_constraint"}
Made = tuple[ca.Function, np.ndarray]


def of_nlp(name: str) -> Callable[[str], Made]:
    """θ → all outputs of a solve, and the θ to look at."""

    def made(plugin: str) -> Made:
        nlp, call, at = CASES[name]()
        make, options = (nlpsol, TIGHT) if plugin == "hybrid" else (ca.nlpsol, QUIET)
        t = ca.MX.sym("t", len(at))
        found = make("s", plugin, nlp, options)(**call(t))
        return ca.Function("F", [t], [ca.veccat(*(found[key] for key in OUTPUTS))]), np.array(at)

    return made


def opti_of(plugin: str) -> tuple[Any, tuple[str, Any]]:
    """An Opti, and the arguments of its ``solver``."""
    return (Opti(), ("hybrid", TIGHT)) if plugin == "hybrid" else (ca.Opti(), ("ipopt", QUIET))


def of_opti(rows: Callable[[Any, Any, Any], list[Any]]) -> Callable[[str], Made]:
    """Parameters → x and the multipliers of the first row."""

    def made(plugin: str) -> Made:
        opti, solver = opti_of(plugin)
        x, q = opti.variable(3), opti.parameter(2)
        opti.minimize(ca.sumsqr(x - 2) + ca.exp(x[0] - x[1]) + 0.1 * x[2] ** 4)
        opti.set_initial(x, 0.3)
        constraints = rows(opti, x, q)
        opti.subject_to(constraints)
        opti.solver(*solver)
        shown = ca.vertcat(x, ca.vec(opti.dual(constraints[0])))
        return opti.to_function("F", [q], [shown]), np.array([0.9, 0.7])

    return made


def opti_mpc(plugin: str) -> Made:
    """The usual law: where the state is measured is all that changes."""
    opti, solver = opti_of(plugin)
    X, U, x0 = opti.variable(2, 7), opti.variable(1, 6), opti.parameter(2)
    opti.minimize(ca.sumsqr(X) + ca.sumsqr(U))
    for k in range(6):
        step = ca.vertcat(X[1, k], U[k] - ca.sin(X[0, k]))
        opti.subject_to(X[:, k + 1] == X[:, k] + 0.2 * step)
    opti.subject_to(X[:, 0] == x0)
    opti.subject_to(opti.bounded(-0.1, U, 1))
    opti.solver(*solver)
    return opti.to_function("law", [x0], [ca.vec(U)]), np.array([0.9, 0.7])


MADE = {name: of_nlp(name) for name in CASES} | {
    "Opti, bounds": of_opti(lambda opti, x, q: [x[:2] <= q]),
    "Opti, a sum": of_opti(lambda opti, x, q: [ca.sum1(x) == q[0]]),
    "Opti, a row": of_opti(lambda opti, x, q: [x[0] + x[1] * x[2] <= q[0], opti.bounded(-9, x, 9)]),
    "Opti, predictive control": opti_mpc,
}


def derivatives(F: ca.Function) -> ca.Function:
    """Jacobian, gradient and Hessian of a number made of all entries, and a product in reverse."""
    t = ca.MX.sym("t", F.size1_in(0))
    found = F(t)
    weights = np.cos(np.arange(found.numel()))  # no two the same
    value = ca.dot(weights, found) + 0.1 * ca.dot(weights, found**2)
    reverse = ca.jtimes(found, t, ca.MX(weights), True)
    shown = [ca.jacobian(found, t), ca.gradient(value, t), ca.hessian(value, t)[0], reverse]
    return ca.Function("d", [t], shown)


def slope(of: Callable[[Any], Any], at: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Central differences of fourth order."""
    columns = [
        (8 * (of(at + d) - of(at - d)) - (of(at + 2 * d) - of(at - 2 * d))) / (12 * step)
        for d in np.eye(at.size) * step
    ]
    return np.hstack([column.full() for column in columns])


@pytest.mark.parametrize("name", MADE)
def test_against_differences_and_ipopt(name: str):
    F, at = MADE[name]("hybrid")
    D, weights = derivatives(F), np.cos(np.arange(F.size1_out(0)))
    found = [part.full() for part in D(at)]
    assert np.abs(found[0]).max() > 0.1
    J = slope(F, at)
    gradient = J.T @ (weights * (1 + 0.2 * F(at).full().ravel()))
    differences = [J, gradient[:, None], slope(lambda t: D(t)[1], at), (J.T @ weights)[:, None]]
    for one, other in zip(found, differences, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * (1 + np.abs(other).max()))
    if name != "matrix of parameters":  # CasADi cannot differentiate its own solvers for a row x
        for one, by_ipopt in zip(found, derivatives(MADE[name]("ipopt")[0])(at), strict=True):
            np.testing.assert_allclose(one, by_ipopt, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(F.jacobian()(at, 0), found[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MADE)
def test_through_a_map_over_threads(name: str):
    F, at = MADE[name]("hybrid")
    J = derivatives(F)(at)[0].full()
    t = ca.MX.sym("t", at.size)
    found = F.map(2, "thread")(ca.horzcat(t, t))
    both = ca.Function("J", [t], [ca.jacobian(ca.vec(found), t), ca.gradient(ca.sumsqr(found), t)])
    slopes, gradient = (part.full() for part in both(at))
    np.testing.assert_allclose(slopes, np.vstack([J, J]), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gradient, 4 * J.T @ F(at).full(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", sorted({*CASES} - {"free"}))
def test_the_cases_have_active_constraints(name: str):
    nlp, call, at = CASES[name]()
    found = nlpsol("s", "hybrid", nlp)(**call(ca.DM(at)))
    assert ca.norm_inf(ca.veccat(found["lam_x"], found["lam_g"])) > 1e-2


def test_in_closed_form():
    """min (x − p)² s.t. x ≤ b² is b² where it binds: Hessians of x and of the multiplier."""
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    solver = nlpsol("solver", "hybrid", {"x": x, "p": p, "f": (x - p) ** 4}, TIGHT)
    t = ca.MX.sym("t", 2)
    found = solver(p=t[0], ubx=t[1] ** 2)
    of_x, of_lam = (ca.hessian(found[key], t)[0] for key in ("x", "lam_x"))
    hessians = ca.Function("hessians", [t], [of_x, of_lam])([3.0, 1.2])
    # x = b², λ = 4(p − b²)³ with b = t₁.
    d, b = 3.0 - 1.44, 1.2
    np.testing.assert_allclose(hessians[0], [[0, 0], [0, 2]], atol=1e-7)
    expected = [[24 * d, -48 * b * d], [-48 * b * d, 96 * b**2 * d - 24 * d**2]]
    np.testing.assert_allclose(hessians[1], expected, rtol=1e-6)


def test_forward_and_reverse_over_reverse_agree():
    nlp, call, at = CASES["everything"]()
    solver = nlpsol("solver", "hybrid", nlp, TIGHT)
    t, seed = ca.MX.sym("t", len(at)), ca.MX.sym("seed", len(at))
    x = ca.sumsqr(solver(**call(t))["x"])
    slope = ca.gradient(x, t)
    products = [ca.jtimes(slope, t, seed), ca.jtimes(slope, t, seed, True)]
    forward, reverse = ca.Function("products", [t, seed], products)(at, [1, -2, 0.5, 3])
    np.testing.assert_allclose(forward, reverse, rtol=1e-8, atol=1e-10)


def test_equations_of_a_problem_and_compiled_functions():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    problem = Problem(
        x=x, f=ca.sumsqr(x - p), h={"circle": ca.sumsqr(x) - p}, g={"row": (None, x[0], 0.6)}, p=p
    )
    plain = {"x": x, "p": p, "f": problem.f, "g": ca.vertcat(ca.sumsqr(x) - p, x[0])}
    t = ca.MX.sym("t")

    def hessian(solver: NlpSolver, **call: object) -> float:
        found = solver(p=t, x0=[0.5, 1], **call)
        made = ca.Function("h", [t], [ca.hessian(found["x"][1] + found["lam_g"][0], t)[0]])
        return float(made(1.3))

    expected = hessian(nlpsol("s", "hybrid", plain, TIGHT), lbg=[0, -np.inf], ubg=[0, 0.6])
    assert abs(expected) > 0.1
    assert hessian(nlpsol("s", "hybrid", problem, TIGHT)) == pytest.approx(expected, rel=1e-6)
    compiled = nlpsol("s", "hybrid", plain, {**TIGHT, "jit": True})
    found = hessian(compiled, lbg=[0, -np.inf], ubg=[0, 0.6])
    assert found == pytest.approx(expected, rel=1e-6)
