"""Scripts written for ``ca.nlpsol``, switched to this package by changing one line.

Direct multiple shooting as CasADi's documentation writes it, and a parametric program that is
solved again and again, are run with ``ca.nlpsol`` and with the switched line; the answers have to
agree.
"""

import warnings
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import CASES, OUTPUTS, PEER

from casadi_hybrid import nlpsol, verify
from casadi_hybrid.solver.options.foreign import NOT_USED, ONLY_OFF, WITHOUT_EFFECT

Make = Callable[..., Any]


def van_der_pol(h: float) -> ca.Function:
    """(x, u) → (x after h, integral of the cost), four steps of Runge-Kutta."""
    x, u = ca.MX.sym("x", 3), ca.MX.sym("u")
    cost = x[0] ** 2 + x[1] ** 2 + u**2
    rhs = ca.Function("f", [x, u], [ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u, x[0], cost)])
    X0, U = ca.MX.sym("X0", 2), ca.MX.sym("U")
    end = ca.simpleRK(rhs, 4)(ca.vertcat(X0, 0), U, h)
    return ca.Function("F", [X0, U], [end[:2], end[2]], ["x0", "p"], ["xf", "qf"])


def direct_multiple_shooting(make: Make, plugin: str) -> tuple[Any, Any]:
    N = 10
    F = van_der_pol(10 / N)
    w: list[Any] = []
    w0: list[Any] = []
    lbw: list[Any] = []
    ubw: list[Any] = []
    J: Any = 0
    g: list[Any] = []
    lbg: list[Any] = []
    ubg: list[Any] = []
    Xk = ca.MX.sym("X0", 2)
    w += [Xk]
    lbw += [0, 1]
    ubw += [0, 1]
    w0 += [0, 1]
    for k in range(N):
        Uk = ca.MX.sym("U_" + str(k))
        w += [Uk]
        lbw += [-1]
        ubw += [1]
        w0 += [0]
        Fk = F(x0=Xk, p=Uk)
        J = J + Fk["qf"]
        Xk = ca.MX.sym("X_" + str(k + 1), 2)
        w += [Xk]
        lbw += [-0.25, -ca.inf]
        ubw += [ca.inf, ca.inf]
        w0 += [0, 0]
        g += [Fk["xf"] - Xk]
        lbg += [0, 0]
        ubg += [0, 0]
    prob = {"f": J, "x": ca.vertcat(*w), "g": ca.vertcat(*g)}
    quiet = {"ipopt": {"print_level": 0, "sb": "yes"}, "print_time": 0}
    solver = make("solver", plugin, prob, quiet)
    sol = solver(x0=w0, lbx=lbw, ubx=ubw, lbg=lbg, ubg=ubg)
    return sol["x"].full().flatten(), solver.stats()


def parametric(make: Make, plugin: str) -> tuple[Any, Any]:
    """An MPC loop in the popular style: one solver, many parameters, warm-started by hand."""
    horizon, T = 8, 0.2
    X, U, P = ca.SX.sym("X", 2, horizon + 1), ca.SX.sym("U", 1, horizon), ca.SX.sym("P", 4)
    g, obj = [X[:, 0] - P[:2]], 0
    for k in range(horizon):
        obj = obj + ca.sumsqr(X[:, k] - P[2:]) + 0.1 * ca.sumsqr(U[:, k])
        g.append(X[:, k + 1] - (X[:, k] + T * ca.vertcat(X[1, k], U[0, k])))
    variables = ca.vertcat(ca.reshape(X, -1, 1), ca.reshape(U, -1, 1))
    nlp_prob = {"f": obj, "x": variables, "g": ca.vertcat(*g), "p": P}
    opts = {"ipopt": {"max_iter": 100, "print_level": 0, "acceptable_tol": 1e-8,
                      "acceptable_obj_change_tol": 1e-6, "sb": "yes"}, "print_time": 0}  # fmt: skip
    solver = make("solver", plugin, nlp_prob, opts)
    n = 2 * (horizon + 1)
    args = {"lbg": np.zeros((n, 1)), "ubg": np.zeros((n, 1)), "lbx": ca.DM.zeros(n + horizon, 1)}
    args["ubx"] = ca.DM.zeros(n + horizon, 1)
    args["lbx"][:n], args["ubx"][:n] = -ca.inf, ca.inf
    args["lbx"][n:], args["ubx"][n:] = -0.8, 0.8
    state, path = ca.DM([0, 0]), []
    guess = ca.DM.zeros(n + horizon, 1)
    for _ in range(6):
        sol = solver(x0=guess, p=ca.vertcat(state, 1, 0), **args)
        u = ca.reshape(sol["x"][n:], 1, horizon)
        state = state + T * ca.vertcat(state[1], u[0])
        guess = sol["x"]
        path.append(float(state[0]))
    return np.array(path), solver.stats()


@pytest.mark.parametrize("script", [direct_multiple_shooting, parametric])
@pytest.mark.filterwarnings("ignore::casadi_hybrid.solver.options.foreign.OptionWarning")
def test_a_script_switches_by_one_line(script, capfd):
    expected, _ = script(ca.nlpsol, "ipopt")
    capfd.readouterr()
    found, stats = script(nlpsol, "hybrid")
    assert stats["success"], stats["detail"]
    np.testing.assert_allclose(np.array(found), np.array(expected), atol=2e-5)
    assert capfd.readouterr() == ("", "")  # print_level 0 and print_time 0 are understood


OFF = {
    "True or False": False, "a number": 0, "a text": "", "a dictionary": {}, "a list": [],
    "anything": None,
}  # fmt: skip


def test_the_listed_options_are_casadis_own():
    """Every name accepted for CasADi's sake is an option there, and harmless where it is off."""
    table = [line for line in str(ca.nlpsol.__doc__).splitlines() if "|" in line or "+" in line]
    # (long names are broken over several lines of their cell)
    cells = [line.split("|")[1].strip() if line.count("|") == 5 else "\n" for line in table]
    documented = {*"".join(cells).split(), *ca.nlpsol_options("ipopt")}
    off = {name: OFF[kind] for name, kind in WITHOUT_EFFECT.items()}
    off |= dict.fromkeys((*ONLY_OFF, *NOT_USED), False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlpsol("s", "hybrid", CASES["bounds"][0], off)
    assert set(off) <= documented


def test_a_start_outside_its_bounds_is_named_where_asked_for():
    nlp, call = CASES["bounds"]
    solver = nlpsol("s", "hybrid", nlp, {"warn_initial_bounds": True})
    with pytest.warns(UserWarning, match=r"x0 is outside its bounds at x\[0\]"):
        solver(**{**call, "x0": [3, 0]})
    solver(**call)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_rows_and_matrices_are_taken_in_casadis_shapes(kind: Any):
    x, p = kind.sym("x", 1, 3), kind.sym("p", 2, 3)
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p[0, :]), "g": x + p[1, :]}
    values = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    call = {"x0": 0, "p": values, "ubg": np.array([[1.0, 5.0, 1.5]])}
    found = nlpsol("s", "hybrid", nlp)(**call)
    expected = ca.nlpsol("s", "ipopt", nlp, PEER)(**call)
    for key in OUTPUTS:
        assert found[key].shape == expected[key].shape, key
        np.testing.assert_allclose(found[key].full(), expected[key].full(), atol=1e-6)
    flat = nlpsol("s", "hybrid", nlp)(**{**call, "p": values.ravel(order="F")})
    assert (flat["x"].full() == found["x"].full()).all()
    bounds = {"ubg": [1.0, 5.0, 1.5], "x0": 0}
    assert verify(nlp, found, p=values, **bounds).accepted
    moved = {**found, "x": found["x"] + 1e-3}
    assert not verify(nlp, moved, p=values, **bounds).accepted


@pytest.mark.parametrize("none", [[], ca.vertcat(), ca.SX()], ids=["list", "vertcat", "SX"])
def test_no_parameters_and_no_rows_as_scripts_write_them(none: Any):
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "p": none, "f": ca.sumsqr(x - 1), "g": none}
    found = nlpsol("s", "hybrid", nlp)(x0=0, p=none if isinstance(none, list) else [])
    assert float(found["f"]) == pytest.approx(0.0, abs=1e-12)
    assert found["g"].shape == found["lam_p"].shape == (0, 1)
