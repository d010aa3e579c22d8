"""Scripts written for ``ca.nlpsol``, switched to this package by changing one line."""

import warnings

import casadi as ca
import numpy as np
import pytest
from support.cases.nlp import CASES, OUTPUTS, PEER

from casadi_hybrid import nlpsol, verify
from casadi_hybrid.solver.options.foreign import NOT_USED, ONLY_OFF, WITHOUT_EFFECT


def parametric(make, plugin):
    """An MPC loop in the popular style: one solver, many parameters, warm-started by hand."""
    horizon, T = 8, 0.2
    X, U, P = ca.SX.sym("X", 2, horizon + 1), ca.SX.sym("U", 1, horizon), ca.SX.sym("P", 4)
    g, obj = [X[:, 0] - P[:2]], 0
    for k in range(horizon):
        obj = obj + ca.sumsqr(X[:, k] - P[2:]) + 0.1 * ca.sumsqr(U[:, k])
        g.append(X[:, k + 1] - (X[:, k] + T * ca.vertcat(X[1, k], U[0, k])))
    variables = ca.vertcat(ca.reshape(X, -1, 1), ca.reshape(U, -1, 1))
    nlp_prob = {"f": obj, "x": variables, "g": ca.vertcat(*g), "p": P}
    ipopt = {"max_iter": 100, "print_level": 0, "acceptable_tol": 1e-8, "sb": "yes"}
    solver = make("solver", plugin, nlp_prob, {"ipopt": ipopt, "print_time": 0})
    n = 2 * (horizon + 1)
    args = {"lbg": np.zeros((n, 1)), "ubg": np.zeros((n, 1)), "lbx": ca.DM.zeros(n + horizon, 1)}
    args["ubx"] = ca.DM.zeros(n + horizon, 1)
    args["lbx"][:n], args["ubx"][:n] = -ca.inf, ca.inf
    args["lbx"][n:], args["ubx"][n:] = -0.8, 0.8
    state, path, guess = ca.DM([0, 0]), [], ca.DM.zeros(n + horizon, 1)
    for _ in range(6):
        sol = solver(x0=guess, p=ca.vertcat(state, 1, 0), **args)
        u = ca.reshape(sol["x"][n:], 1, horizon)
        state = state + T * ca.vertcat(state[1], u[0])
        guess = sol["x"]
        path.append(float(state[0]))
    return np.array(path), solver.stats()


@pytest.mark.filterwarnings("ignore::casadi_hybrid.solver.options.foreign.OptionWarning")
def test_script_switches_by_one_line(capfd):
    expected, _ = parametric(ca.nlpsol, "ipopt")
    capfd.readouterr()
    path, stats = parametric(nlpsol, "hybrid")
    assert stats["success"], stats["detail"]
    np.testing.assert_allclose(path, expected, atol=2e-5)
    assert capfd.readouterr() == ("", "")  # print_level 0 and print_time 0 are understood


OFF = {"True or False": False, "a number": 0, "a text": "", "a dictionary": {}, "a list": []}


def test_the_listed_options_are_casadis_own():
    """Every name accepted for CasADi's sake is an option there, and harmless where it is off."""
    table = [line for line in str(ca.nlpsol.__doc__).splitlines() if "|" in line or "+" in line]
    # (long names are broken over several lines of their cell)
    cells = [line.split("|")[1].strip() if line.count("|") == 5 else "\n" for line in table]
    documented = {*"".join(cells).split(), *ca.nlpsol_options("ipopt")}
    off = {name: OFF.get(kind) for name, kind in WITHOUT_EFFECT.items()}
    off |= dict.fromkeys((*ONLY_OFF, *NOT_USED), False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlpsol("s", "hybrid", CASES["bounds"][0], off)
    assert set(off) <= documented


def test_start_outside_bounds_warns_where_asked():
    nlp, call = CASES["bounds"]
    solver = nlpsol("s", "hybrid", nlp, {"warn_initial_bounds": True})
    with pytest.warns(UserWarning, match=r"x\[0\]"):
        solver(**{**call, "x0": [3, 0]})
    solver(**call)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_matrices_keep_casadis_shapes(kind):
    x, p = kind.sym("x", 1, 3), kind.sym("p", 2, 3)
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p[0, :]), "g": x + p[1, :]}
    values = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    call = {"x0": 0, "p": values, "ubg": np.array([[1.0, 5.0, 1.5]])}
    answer = nlpsol("s", "hybrid", nlp)(**call)
    expected = ca.nlpsol("s", "ipopt", nlp, PEER)(**call)
    for key in OUTPUTS:
        assert answer[key].shape == expected[key].shape, key
        np.testing.assert_allclose(answer[key].full(), expected[key].full(), atol=1e-6)
    flat = nlpsol("s", "hybrid", nlp)(**{**call, "p": values.ravel(order="F")})
    assert (flat["x"].full() == answer["x"].full()).all()
    bounds = {"ubg": [1.0, 5.0, 1.5], "x0": 0}
    assert verify(nlp, answer, p=values, **bounds).accepted
    moved = {**answer, "x": answer["x"] + 1e-3}
    assert not verify(nlp, moved, p=values, **bounds).accepted


@pytest.mark.parametrize("none", [[], ca.vertcat(), ca.SX()], ids=["list", "vertcat", "SX"])
def test_absent_parameters_and_rows_are_taken(none):
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "p": none, "f": ca.sumsqr(x - 1), "g": none}
    answer = nlpsol("s", "hybrid", nlp)(x0=0, p=none if isinstance(none, list) else [])
    assert float(answer["f"]) == pytest.approx(0.0, abs=1e-12)
    assert answer["g"].shape == answer["lam_p"].shape == (0, 1)
