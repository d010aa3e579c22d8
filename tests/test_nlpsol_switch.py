"""Scripts written for ``ca.nlpsol`` and Opti, switched to this package by changing one line.

Each script is written the way CasADi's documentation and its public examples write it: the
Rosenbrock problem, direct multiple shooting of the van der Pol oscillator,
a race car, and a parametric program that is solved again and again. Every script is run with
``ca.nlpsol`` and with the switched line; the answers have to agree.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from nlp_cases import CASES, OUTPUTS, numbers

from casadi_hybrid import InputError, Opti, nlpsol, verify
from casadi_hybrid.casadi_api.foreign import (
    NOT_USED,
    ONLY_OFF,
    WITHOUT_EFFECT,
    OptionWarning,
)

Make = Callable[..., Any]
QUIET = {"ipopt.print_level": 0, "print_time": 0, "ipopt.sb": "yes"}


def rosenbrock(make: Make, plugin: str) -> tuple[Any, Any]:
    x, y, z = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("z")
    nlp = {"x": ca.vertcat(x, y, z), "f": x**2 + 100 * z**2, "g": z + (1 - x) ** 2 - y}
    solver = make("S", plugin, nlp, QUIET)
    r = solver(x0=[2.5, 3.0, 0.75], lbg=0, ubg=0)
    return r["x"], solver.stats()


def van_der_pol(h: float) -> ca.Function:
    """(x, u) → (x after h, integral of the cost), four steps of Runge-Kutta."""
    x, u = ca.MX.sym("x", 2), ca.MX.sym("u")
    xdot = ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u, x[0])
    rhs = ca.Function("f", [x, u], [xdot, x[0] ** 2 + x[1] ** 2 + u**2])
    X0, U = ca.MX.sym("X0", 2), ca.MX.sym("U")
    X, Q, dt = X0, 0, h / 4
    for _ in range(4):
        k1, q1 = rhs(X, U)
        k2, q2 = rhs(X + dt / 2 * k1, U)
        k3, q3 = rhs(X + dt / 2 * k2, U)
        k4, q4 = rhs(X + dt * k3, U)
        X, Q = X + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), Q + dt / 6 * (q1 + 2 * q2 + 2 * q3 + q4)
    return ca.Function("F", [X0, U], [X, Q], ["x0", "p"], ["xf", "qf"])


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
    solver = make(
        "solver", plugin, prob, {"ipopt": {"print_level": 0, "sb": "yes"}, "print_time": 0}
    )
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


SCRIPTS = [rosenbrock, direct_multiple_shooting, parametric]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
@pytest.mark.filterwarnings("ignore::casadi_hybrid.casadi_api.foreign.OptionWarning")
def test_a_script_switches_by_one_line(
    script: Callable[..., tuple[Any, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    expected, _ = script(ca.nlpsol, "ipopt")
    capfd.readouterr()
    found, stats = script(nlpsol, "hybrid")
    assert stats["success"], stats["detail"]
    np.testing.assert_allclose(np.array(found), np.array(expected), atol=2e-5)
    assert capfd.readouterr() == ("", "")  # print_level 0 and print_time 0 are understood


def race_car(kind: type[ca.Opti], solver: str) -> tuple[Any, Any, Any]:
    """CasADi's Opti example: a car in minimum time around a limited track."""
    N = 20
    opti = kind()
    X, U, T = opti.variable(2, N + 1), opti.variable(1, N), opti.variable()
    pos, speed = X[0, :], X[1, :]
    opti.minimize(T)
    f = lambda x, u: ca.vertcat(x[1], u - x[1])  # noqa: E731
    dt = T / N
    for k in range(N):
        k1 = f(X[:, k], U[:, k])
        k2 = f(X[:, k] + dt / 2 * k1, U[:, k])
        k3 = f(X[:, k] + dt / 2 * k2, U[:, k])
        k4 = f(X[:, k] + dt * k3, U[:, k])
        opti.subject_to(X[:, k + 1] == X[:, k] + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    limit = lambda pos: 1 - ca.sin(2 * ca.pi * pos) / 2  # noqa: E731
    opti.subject_to(speed <= limit(pos))
    opti.subject_to(opti.bounded(0, U, 1))
    opti.subject_to(pos[0] == 0)
    opti.subject_to(speed[0] == 0)
    opti.subject_to(pos[-1] == 1)
    opti.subject_to(T >= 0)
    opti.set_initial(speed, 1)
    opti.set_initial(T, 1)
    opti.solver(solver, {"print_time": False}, {"print_level": 0, "sb": "yes"})
    sol = opti.solve()
    return sol.value(T), sol.value(speed), sol.stats()


def test_the_race_car_switches_by_one_line() -> None:
    expected = race_car(ca.Opti, "ipopt")
    found = race_car(Opti, "hybrid")
    assert found[2]["success"]
    assert found[0] == pytest.approx(expected[0], rel=1e-6)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-4)


# --- the calling convention ---------------------------------------------------------------------


def test_call_takes_a_dictionary_or_a_list() -> None:
    nlp, call = CASES["parameters"]
    solver = nlpsol("s", "hybrid", nlp)
    expected = solver(**call)
    assert list(expected) == list(OUTPUTS)
    by_name = solver.call(call)
    inf = np.full(2, np.inf)
    in_order = solver.call([call["x0"], call["p"], call["lbx"], inf, -np.inf, call["ubg"], 0, 0])
    for i, key in enumerate(OUTPUTS):
        assert (numbers(by_name[key]) == numbers(expected[key])).all()
        assert (numbers(in_order[i]) == numbers(expected[key])).all()
    with pytest.raises(InputError, match="a dictionary or a list of x0, p"):
        solver.call([1, 2])


def test_stacks_of_matrix_symbols_are_variables() -> None:
    X = ca.MX.sym("X", 2, 3)
    nlp = {"x": ca.vec(X), "f": ca.sumsqr(X - 1), "g": ca.vec(X[:, 0] + X[:, 1])}
    found = nlpsol("s", "hybrid", nlp)(x0=ca.DM.ones(6), lbg=0, ubg=[0, 1])
    expected = ca.nlpsol("s", "ipopt", nlp, QUIET)(x0=ca.DM.ones(6), lbg=0, ubg=[0, 1])
    np.testing.assert_allclose(numbers(found["x"]), numbers(expected["x"]), atol=1e-6)


def test_statistics_have_the_keys_of_casadis_ipopt() -> None:
    nlp, call = CASES["mixed"]
    peer = ca.nlpsol("s", "ipopt", {**nlp, "g": ca.vertcat(*nlp["g"])}, QUIET)
    peer(**call)
    solver = nlpsol("s", "hybrid", nlp)
    solver(**call)
    ours, theirs = solver.stats(), peer.stats()
    assert set(theirs) <= set(ours)
    spent = sum(value for key, value in ours.items() if key.startswith("t_wall_nlp_"))
    assert 0 < spent < ours["t_wall_total"]
    assert set(theirs["iterations"]) <= set(ours["iterations"])
    assert {len(numbers) for numbers in ours["iterations"].values()} == {ours["iter_count"] + 1}


# --- options ------------------------------------------------------------------------------------


def test_options_of_ipopt_are_translated() -> None:
    nlp, _ = CASES["mixed"]
    options = {"ipopt.tol": 1e-9, "ipopt": {"max_iter": 7, "max_cpu_time": 3.5, "print_level": 5}}
    chosen = nlpsol("s", "hybrid", nlp, options).options
    assert (chosen.tol, chosen.max_iter, chosen.max_time, chosen.log) == (1e-9, 7, 3.5, 1)
    with pytest.warns(OptionWarning, match="linear_solver, mu_strategy") as caught:
        nlpsol("s", "hybrid", nlp, {"ipopt.mu_strategy": "adaptive", "ipopt.linear_solver": "ma27"})
    assert caught[0].filename == __file__


OFF = {
    "True or False": False, "a number": 0, "a text": "", "a dictionary": {}, "a list": [],
    "anything": None,
}  # fmt: skip


def test_the_listed_options_are_casadis_own() -> None:
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


def test_a_start_outside_its_bounds_is_named_where_asked_for() -> None:
    nlp, call = CASES["bounds"]
    solver = nlpsol("s", "hybrid", nlp, {"warn_initial_bounds": True})
    with pytest.warns(UserWarning, match=r"x0 is outside its bounds at x\[0\]"):
        solver(**{**call, "x0": [3, 0]})
    solver(**call)


def test_jit_gives_the_same_answer_and_travels(compiler: str) -> None:
    nlp, call = CASES["MX"]
    plain, compiled = (nlpsol("s", "hybrid", nlp, {"jit": jit}) for jit in (False, True))
    expected, found = plain(**call), compiled(**call)
    again = pickle.loads(pickle.dumps(compiled))(**call)
    for key in OUTPUTS:
        np.testing.assert_allclose(numbers(found[key]), numbers(expected[key]), atol=1e-8)
        assert (numbers(again[key]) == numbers(found[key])).all()


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_rows_and_matrices_are_taken_in_casadis_shapes(kind: Any) -> None:
    x, p = kind.sym("x", 1, 3), kind.sym("p", 2, 3)
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p[0, :]), "g": x + p[1, :]}
    values = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    call = {"x0": 0, "p": values, "ubg": np.array([[1.0, 5.0, 1.5]])}
    found = nlpsol("s", "hybrid", nlp)(**call)
    expected = ca.nlpsol("s", "ipopt", nlp, QUIET)(**call)
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
def test_no_parameters_and_no_rows_as_scripts_write_them(none: Any) -> None:
    x = ca.SX.sym("x", 2)
    nlp = {"x": x, "p": none, "f": ca.sumsqr(x - 1), "g": none}
    found = nlpsol("s", "hybrid", nlp)(x0=0, p=none if isinstance(none, list) else [])
    assert float(found["f"]) == pytest.approx(0.0, abs=1e-12)
    assert found["g"].shape == found["lam_p"].shape == (0, 1)


def test_arguments_may_come_by_position() -> None:
    nlp, call = CASES["parameters"]
    solver = nlpsol("s", "hybrid", nlp)
    expected = solver(**call)
    inf = np.full(2, np.inf)
    found = solver(call["x0"], call["p"], call["lbx"], inf, -np.inf, call["ubg"], 0, 0)
    assert isinstance(found, tuple)
    for value, key in zip(found, OUTPUTS, strict=True):
        assert (numbers(value) == numbers(expected[key])).all()
    with pytest.raises(InputError, match="name the arguments to leave some out"):
        solver(call["x0"], call["p"])


def test_options_of_ipopt_are_checked() -> None:
    nlp, _ = CASES["parameters"]
    assert nlpsol("s", "hybrid", nlp, {"ipopt.max_iter": 1e2}).options.max_iter == 100
    with pytest.raises(InputError, match=r"ipopt\.print_level must be a whole number"):
        nlpsol("s", "hybrid", nlp, {"ipopt.print_level": "5"})
    with pytest.warns(OptionWarning, match=r"max_itr \(did you mean 'max_iter'\?\)"):
        nlpsol("s", "hybrid", nlp, {"ipopt.max_itr": 3})
