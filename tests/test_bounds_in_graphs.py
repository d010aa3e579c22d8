"""Derivatives of a solver in a graph whose parameters stand in its bounds: in part, or all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

from casadi_hybrid import Opti, nlpsol

TIGHT = {"tol": 1e-12, "residual_tol": 1e-9}
# min_lam: else CasADi takes all that an interior-point method leaves positive for active.
QUIET = {
    "print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-12,
    "ipopt.bound_relax_factor": 0.0, "ipopt.fixed_variable_treatment": "make_constraint",
    "min_lam": 1e-6,
}  # fmt: skip
Case = Callable[[str], ca.Function]


def _function(name: str, nlp: dict[str, Any], bounds: Callable[[Any], dict[str, Any]]) -> Any:
    """t → x, f, g and multipliers of a solve with p and bounds made of t."""
    solver = (
        nlpsol("s", "hybrid", nlp, TIGHT)
        if name == "hybrid"
        else ca.nlpsol("s", "ipopt", nlp, QUIET)
    )
    t = ca.MX.sym("t", 2)
    found = solver(x0=0.3, **bounds(t))
    outputs = [found[key] for key in ("x", "f", "g", "lam_x", "lam_g")]
    return ca.Function("F", [t], [ca.veccat(*outputs)])


def _rows() -> tuple[Any, Any, Any, Any]:
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 2)
    f = ca.sumsqr(x - 2) + ca.exp(x[0] - x[1]) + 0.1 * x[2] ** 4
    return x, p, f, ca.vertcat(x[0] + x[1] * x[2], x[1] - x[2])


def p_absent(name: str) -> ca.Function:
    x, p, f, g = _rows()
    inf, nlp = ca.inf, {"x": x, "p": p, "f": f, "g": g}

    def bounds(t: Any) -> dict[str, Any]:
        return {"p": t, "ubg": ca.vertcat(t[0], inf), "ubx": ca.vertcat(inf, inf, t[1])}

    return _function(name, nlp, bounds)


def p_in_part(name: str) -> ca.Function:
    x, p, f, g = _rows()
    nlp = {"x": x, "p": p, "f": f + p[0] * x[1], "g": g}
    return _function(name, nlp, lambda t: {"p": t, "ubg": ca.vertcat(t[1], ca.inf)})


def a_row_that_is_p(name: str) -> ca.Function:
    x, p, f, g = _rows()
    nlp = {"x": x, "p": p, "f": f, "g": ca.vertcat(g, p[0] - 5, 3)}
    return _function(name, nlp, lambda t: {"p": t, "ubg": ca.vertcat(t[1], ca.inf, ca.inf, ca.inf)})


def no_p(name: str) -> ca.Function:
    x, _, f, g = _rows()
    return _function(name, {"x": x, "f": f, "g": g}, lambda t: {"lbg": t - 1, "ubg": t - 1})


def _opti(name: str, rows: Callable[[Any, Any, Any], Any]) -> ca.Function:
    opti = Opti() if name == "hybrid" else ca.Opti()
    x, q = opti.variable(3), opti.parameter(2)
    opti.minimize(ca.sumsqr(x - 2) + ca.exp(x[0] - x[1]) + 0.1 * x[2] ** 4)
    opti.set_initial(x, 0.3)
    row = rows(opti, x, q)
    if name == "hybrid":
        opti.solver("hybrid", TIGHT)
    else:
        opti.solver("ipopt", QUIET)
    return opti.to_function("F", [q], [ca.vertcat(x, ca.vec(opti.dual(row)))])


def opti_bound(name: str) -> ca.Function:
    def rows(opti: Any, x: Any, q: Any) -> Any:
        row = x[:2] <= q
        opti.subject_to(row)
        return row

    return _opti(name, rows)


def opti_sum(name: str) -> ca.Function:
    def rows(opti: Any, x: Any, q: Any) -> Any:
        row = ca.sum1(x) == q[0]
        opti.subject_to(row)
        return row

    return _opti(name, rows)


def opti_row(name: str) -> ca.Function:
    def rows(opti: Any, x: Any, q: Any) -> Any:
        row = x[0] + x[1] * x[2] <= q[0]
        opti.subject_to([row, opti.bounded(-9, x, 9)])
        return row

    return _opti(name, rows)


def opti_mpc(name: str) -> ca.Function:
    """The usual law: where the state is measured is all that changes."""
    opti = Opti() if name == "hybrid" else ca.Opti()
    X, U, x0 = opti.variable(2, 7), opti.variable(1, 6), opti.parameter(2)
    opti.minimize(ca.sumsqr(X) + ca.sumsqr(U))
    for k in range(6):
        step = ca.vertcat(X[1, k], U[k] - ca.sin(X[0, k]))
        opti.subject_to(X[:, k + 1] == X[:, k] + 0.2 * step)
    opti.subject_to(X[:, 0] == x0)
    opti.subject_to(opti.bounded(-0.1, U, 1))
    opti.solver(*(("hybrid", TIGHT) if name == "hybrid" else ("ipopt", QUIET)))
    return opti.to_function("law", [x0], [ca.vec(U)])


CASES = {
    made.__name__: made
    for made in (
        p_absent, p_in_part, a_row_that_is_p, no_p, opti_bound, opti_sum, opti_row, opti_mpc,
    )
}  # fmt: skip
AT = np.array([0.9, 0.7])


def derivatives(F: ca.Function) -> list[np.ndarray]:
    """Gradient, Hessian and a product in reverse of a number made of all, and the Jacobian."""
    t, seed = ca.MX.sym("t", 2), ca.MX.sym("seed", F.size1_out(0))
    found = F(t)
    weights = np.cos(np.arange(F.size1_out(0)))  # no two the same
    value = ca.dot(weights, found) + 0.1 * ca.sumsqr(found)
    reverse = ca.jtimes(found, t, seed, True)
    shown = [ca.jacobian(found, t), ca.gradient(value, t), ca.hessian(value, t)[0], reverse]
    return [part.full() for part in ca.Function("d", [t, seed], shown)(AT, weights)]


def differences(F: ca.Function) -> list[np.ndarray]:
    """The same by central differences of fourth order of values, and of those for the Hessian."""
    weights = np.cos(np.arange(F.size1_out(0)))

    def values(at: Any) -> Any:
        return F(at).full().ravel()

    def gradient(at: Any) -> Any:
        return slope(values, at, 1e-3).T @ (weights + 0.2 * values(at))

    def slope(of: Callable[[Any], Any], at: Any, step: float) -> Any:
        return np.transpose(
            [
                (8 * (of(at + d) - of(at - d)) - of(at + 2 * d) + of(at - 2 * d)) / (12 * step)
                for d in np.eye(2) * step
            ]
        )

    J = slope(values, AT, 1e-3)
    return [J, gradient(AT)[:, None], slope(gradient, AT, 1e-2), (J.T @ weights)[:, None]]


@pytest.mark.parametrize("name", list(CASES))
def test_against_differences_and_ipopt(name: str) -> None:
    ours, theirs = CASES[name]("hybrid"), CASES[name]("ipopt")
    found = derivatives(ours)
    assert np.abs(found[0]).max() > 0.1
    for one, other, by_ipopt in zip(found, differences(ours), derivatives(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(one, by_ipopt, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours.jacobian()(AT, 0), found[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", list(CASES))
def test_through_a_map_over_threads(name: str) -> None:
    F = CASES[name]("hybrid")
    J = derivatives(F)[0]
    t = ca.MX.sym("t", 2)
    found = F.map(2, "thread")(ca.horzcat(t, t))
    both = ca.Function("J", [t], [ca.jacobian(ca.vec(found), t), ca.gradient(ca.sumsqr(found), t)])
    slopes, gradient = (part.full() for part in both(AT))
    np.testing.assert_allclose(slopes, np.vstack([J, J]), rtol=1e-9, atol=1e-9)
    expected = 4 * J.T @ F(AT).full()
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9)
