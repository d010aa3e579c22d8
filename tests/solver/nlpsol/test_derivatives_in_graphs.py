"""First and second derivatives of a solution in a graph: differences, IPOPT, closed forms."""

import casadi as ca
import numpy as np
import pytest
from support.cases.derivatives import CASES
from support.cases.nlp import OUTPUTS, PEER

from casadi_hybrid import Opti, Problem, nlpsol

TIGHT = {"tol": 1e-12, "residual_tol": 1e-9}
# min_lam: else CasADi takes all that an interior-point method leaves positive for active.
QUIET = PEER | {"ipopt.tol": 1e-12, "min_lam": 1e-6}
QUIET |= {"ipopt.fixed_variable_treatment": "make_constraint"}


def of_nlp(name):
    """Return plugin → (θ → all outputs of a solve, the θ to look at)."""

    def make(plugin):
        nlp, call, theta = CASES[name]()
        make, options = (nlpsol, TIGHT) if plugin == "hybrid" else (ca.nlpsol, QUIET)
        t = ca.MX.sym("t", len(theta))
        solver = make("s", plugin, nlp, options)
        if plugin == "hybrid" and name != "free":  # the cases have active constraints
            answer = solver(**call(ca.DM(theta)))
            assert ca.norm_inf(ca.veccat(answer["lam_x"], answer["lam_g"])) > 1e-2
        answer = solver(**call(t))
        outputs = ca.veccat(*(answer[key] for key in OUTPUTS))
        return ca.Function("F", [t], [outputs]), np.array(theta)

    return make


def of_opti(rows):
    """Return plugin → (parameters → x and the multipliers of the first row, values)."""

    def make(plugin):
        ours = plugin == "hybrid"
        opti, options = (Opti(), TIGHT) if ours else (ca.Opti(), QUIET)
        x, q = opti.variable(3), opti.parameter(2)
        opti.minimize(ca.sumsqr(x - 2) + ca.exp(x[0] - x[1]) + 0.1 * x[2] ** 4)
        opti.set_initial(x, 0.3)
        constraints = rows(opti, x, q)
        opti.subject_to(constraints)
        opti.solver(plugin, options)
        outputs = ca.vertcat(x, ca.vec(opti.dual(constraints[0])))
        return opti.to_function("F", [q], [outputs]), np.array([0.9, 0.7])

    return make


MADE = {name: of_nlp(name) for name in CASES} | {
    "Opti, bounds": of_opti(lambda opti, x, q: [x[:2] <= q]),
    "Opti, a sum": of_opti(lambda opti, x, q: [ca.sum1(x) == q[0]]),
    "Opti, a row": of_opti(lambda opti, x, q: [x[0] + x[1] * x[2] <= q[0], opti.bounded(-9, x, 9)]),
}


def derivatives(F):
    """Jacobian, gradient and Hessian of a number made of all entries, and products in reverse."""
    t = ca.MX.sym("t", F.size1_in(0))
    outputs = F(t)
    weights = np.cos(np.arange(outputs.numel()))  # no two the same
    value = ca.dot(weights, outputs) + 0.1 * ca.dot(weights, outputs**2)
    reverse = ca.jtimes(outputs, t, ca.MX(weights), True)
    gradient = ca.gradient(value, t)
    twice = ca.jtimes(gradient, t, ca.MX(np.arange(1, t.numel() + 1)), True)
    parts = [ca.jacobian(outputs, t), gradient, ca.hessian(value, t)[0], reverse, twice]
    return ca.Function("d", [t], parts)


def slope(function, theta, step=1e-3):
    """Central differences of fourth order."""

    def difference(d):
        near = function(theta + d) - function(theta - d)
        return (8 * near - function(theta + 2 * d) + function(theta - 2 * d)) / (12 * step)

    return np.hstack([difference(d).full() for d in np.eye(theta.size) * step])


@pytest.mark.parametrize("name", MADE)
def test_derivatives_match_differences_and_ipopt(name):
    F, theta = MADE[name]("hybrid")
    D, weights = derivatives(F), np.cos(np.arange(F.size1_out(0)))
    parts = [part.full() for part in D(theta)]
    assert np.abs(parts[0]).max() > 0.1
    J = slope(F, theta)
    gradient = J.T @ (weights * (1 + 0.2 * F(theta).full().ravel()))
    hessian = slope(lambda t: D(t)[1], theta)
    expected = J, gradient[:, None], hessian, J.T @ weights, hessian.T @ np.arange(1, len(J.T) + 1)
    for part, other in zip(parts, expected, strict=True):
        size = 1 + np.abs(other).max()
        np.testing.assert_allclose(part, other.reshape(part.shape), rtol=1e-6, atol=1e-6 * size)
    if name != "matrix of parameters":  # CasADi cannot differentiate its own solvers for a row x
        for part, by_ipopt in zip(parts, derivatives(MADE[name]("ipopt")[0])(theta), strict=True):
            np.testing.assert_allclose(part, by_ipopt, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(F.jacobian()(theta, 0), parts[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["everything", "matrix of parameters", "Opti, a row"])
def test_derivatives_through_maps_over_threads(name):
    F, theta = MADE[name]("hybrid")
    J = derivatives(F)(theta)[0].full()
    t = ca.MX.sym("t", theta.size)
    both = F.map(2, "thread")(ca.horzcat(t, t))
    outputs = [ca.jacobian(ca.vec(both), t), ca.gradient(ca.sumsqr(both), t)]
    slopes, gradient = (part.full() for part in ca.Function("J", [t], outputs)(theta))
    np.testing.assert_allclose(slopes, np.vstack([J, J]), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gradient, 4 * J.T @ F(theta).full(), rtol=1e-9, atol=1e-9)


def test_hessians_have_their_closed_form():
    """min (x − p)⁴ s.t. x ≤ b²: x = b² and λ = 4(p − b²)³ where the bound is active."""
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    solver = nlpsol("solver", "hybrid", {"x": x, "p": p, "f": (x - p) ** 4}, TIGHT)
    t = ca.MX.sym("t", 2)
    answer = solver(p=t[0], ubx=t[1] ** 2)
    of_x, of_lam = (ca.hessian(answer[key], t)[0] for key in ("x", "lam_x"))
    hessians = ca.Function("hessians", [t], [of_x, of_lam])([3.0, 1.2])
    d, b = 3.0 - 1.44, 1.2
    np.testing.assert_allclose(hessians[0], [[0, 0], [0, 2]], atol=1e-7)
    expected = [[24 * d, -48 * b * d], [-48 * b * d, 96 * b**2 * d - 24 * d**2]]
    np.testing.assert_allclose(hessians[1], expected, rtol=1e-6)


def test_problems_and_compiled_functions_agree():
    x, p, t = ca.SX.sym("x", 2), ca.SX.sym("p"), ca.MX.sym("t")
    rows = {"h": {"circle": ca.sumsqr(x) - p}, "g": {"row": (None, x[0], 0.6)}}
    problem = Problem(x=x, f=ca.sumsqr(x - p), p=p, **rows)
    plain = {"x": x, "p": p, "f": problem.f, "g": ca.vertcat(ca.sumsqr(x) - p, x[0])}
    bounds = {"lbg": [0, -np.inf], "ubg": [0, 0.6]}

    def hessian(nlp, bounds, **options):
        answer = nlpsol("s", "hybrid", nlp, {**TIGHT, **options})(p=t, x0=[0.5, 1], **bounds)
        value = answer["x"][1] + answer["lam_g"][0]
        return float(ca.Function("h", [t], [ca.hessian(value, t)[0]])(1.3))

    expected = hessian(plain, bounds)
    assert abs(expected) > 0.1
    assert hessian(problem, {}) == pytest.approx(expected, rel=1e-6)
    assert hessian(plain, bounds, jit=True) == pytest.approx(expected, rel=1e-6)
