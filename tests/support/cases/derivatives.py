"""Problems whose solution is twice differentiable: θ → arguments of a solve, and where to look."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

INF = float("inf")
Case = tuple[dict[str, Any], Callable[[Any], dict[str, Any]], list[float]]


def _free() -> Case:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    f = ca.exp(x[0] - p[0]) - x[0] * p[1] + (x[1] - p[0] * x[0]) ** 2 + x[1] ** 4
    return {"x": x, "p": p, "f": f}, lambda t: {"p": t, "x0": 0.5}, [0.3, 1.4]


def _level_of_an_equation() -> Case:
    x, p = ca.MX.sym("x", 3), ca.MX.sym("p")
    nlp = {"x": x, "p": p, "f": ca.sumsqr(x - p) + x[0] ** 4, "g": ca.sumsqr(x) + x[0] * x[1]}
    return nlp, lambda t: {"p": t[0], "x0": 1, "lbg": t[1], "ubg": t[1]}, [0.9, 2.5]


def _upper_row() -> Case:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    f = (x[0] - 2) ** 2 + p[1] * (x[1] - 1) ** 4 + x[0] * x[1]
    g = ca.vertcat(x[0] ** 2 + p[1] * x[1] ** 2 - p[0], x[0] - x[1])
    limits = {"x0": 0.5, "lbg": [-INF, -5], "ubg": [0, 5]}
    return {"x": x, "p": p, "f": f, "g": g}, lambda t: {"p": t, **limits}, [1.5, 0.8]


def _lower_row_that_moves() -> Case:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    nlp = {"x": x, "p": p, "f": ca.cosh(x[0]) + p * ca.sumsqr(x), "g": x[0] * ca.exp(x[1])}
    return nlp, lambda t: {"p": t[0], "x0": 1, "lbg": t[1]}, [0.8, 2.0]


def _bound_that_moves() -> Case:
    x, p = ca.MX.sym("x", 2), ca.MX.sym("p")
    f = (x[0] - 3) ** 2 + x[0] * x[1] ** 2 * p + ca.sin(x[1] + p)
    nlp = {"x": x, "p": p, "f": f}
    return nlp, lambda t: {"p": t[0], "x0": 1, "ubx": ca.vertcat(t[1], INF)}, [0.6, 1.2]


def _fixed_variable() -> Case:
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 2)
    f = ca.sumsqr(x - ca.vertcat(p[0], 2 * p[1], 1)) + 0.3 * x[0] * x[1] * x[2] * p[0]

    def call(t: Any) -> dict[str, Any]:
        lbx, ubx = ca.vertcat(-1, -1, t[2]), ca.vertcat(5, 0.8, t[2])
        return {"p": t[:2], "x0": 0.5, "lbx": lbx, "ubx": ubx}

    return {"x": x, "p": p, "f": f}, call, [0.9, 1.1, 0.2]


def _everything() -> Case:
    x, p = ca.SX.sym("x", 4), ca.SX.sym("p", 3)
    f = ca.sumsqr(x - p[0]) + ca.cos(x[0] * p[1]) + 0.1 * x[3] ** 4
    g = ca.vertcat(ca.sum1(x) - p[2], x[0] * x[1] - p[1] * x[2], ca.exp(x[3]) - 50)
    nlp = {"x": x, "p": p, "f": f, "g": g}
    limits = {"x0": 1, "ubx": 4, "lbg": [0, 0.4, -INF], "ubg": [0, 3, 0]}

    def call(t: Any) -> dict[str, Any]:
        return {"p": t[:3], "lbx": ca.vertcat(-2, -2, t[3], -2), **limits}

    return nlp, call, [0.5, 1.2, 3.0, 0.9]


def _matrix_of_parameters() -> Case:
    x, p = ca.SX.sym("x", 1, 2), ca.SX.sym("p", 2, 2)
    f = ca.sumsqr(x) + ca.sum2(ca.sin(x @ p)) + ca.exp(x[0])
    nlp = {"x": x, "p": p, "f": f, "g": x @ p @ x.T}
    limits = {"x0": 1, "lbg": 1.5}
    return nlp, lambda t: {"p": ca.reshape(t, 2, 2), **limits}, [1.1, 0.2, 0.3, 1.4]


def _pendulum() -> Case:
    steps = 8
    flat, p = ca.MX.sym("x", 3 * steps + 2), ca.MX.sym("p", 3)
    X, U = ca.reshape(flat[: 2 * steps + 2], 2, steps + 1), flat[2 * steps + 2 :]
    g = [X[:, 0] - p[:2]]
    for k in range(steps):
        slope = ca.vertcat(X[1, k], -p[2] * ca.sin(X[0, k]) + U[k])
        g.append(X[:, k + 1] - X[:, k] - 0.2 * slope)
    nlp = {"x": flat, "p": p, "f": 10 * ca.sumsqr(X) + ca.sumsqr(U), "g": ca.vertcat(*g)}
    limit = np.concatenate((np.full(2 * steps + 2, INF), np.full(steps, 1.0)))
    limits = {"x0": 0, "lbx": -limit, "ubx": limit, "lbg": 0, "ubg": 0}
    return nlp, lambda t: {"p": t, **limits}, [1.0, 0.3, 1.1]


def _rows() -> dict[str, Any]:
    x = ca.SX.sym("x", 3)
    f = ca.sumsqr(x - 2) + ca.exp(x[0] - x[1]) + 0.1 * x[2] ** 4
    return {"x": x, "f": f, "g": ca.vertcat(x[0] + x[1] * x[2], x[1] - x[2])}


def _p_absent() -> Case:
    nlp = {**_rows(), "p": ca.SX.sym("p", 2)}

    def call(t: Any) -> dict[str, Any]:
        ubg, ubx = ca.vertcat(t[0], INF), ca.vertcat(INF, INF, t[1])
        return {"p": t, "x0": 0.3, "ubg": ubg, "ubx": ubx}

    return nlp, call, [0.9, 0.7]


def _p_in_part() -> Case:
    nlp, p = _rows(), ca.SX.sym("p", 2)
    nlp = {**nlp, "p": p, "f": nlp["f"] + p[0] * nlp["x"][1]}
    return nlp, lambda t: {"p": t, "x0": 0.3, "ubg": ca.vertcat(t[1], INF)}, [0.9, 0.7]


def _a_row_that_is_p() -> Case:
    nlp, p = _rows(), ca.SX.sym("p", 2)
    nlp = {**nlp, "p": p, "g": ca.vertcat(nlp["g"], p[0] - 5, 3)}
    return nlp, lambda t: {"p": t, "x0": 0.3, "ubg": ca.vertcat(t[1], INF, INF, INF)}, [0.9, 0.7]


def _no_p() -> Case:
    return _rows(), lambda t: {"x0": 0.3, "lbg": t - 1, "ubg": t - 1}, [0.9, 0.7]


ROWS = _free, _level_of_an_equation, _upper_row, _lower_row_that_moves
BOUNDS = _bound_that_moves, _fixed_variable, _everything, _pendulum
PARAMETERS = _matrix_of_parameters, _p_absent, _p_in_part
CASES: dict[str, Callable[[], Case]] = {
    case.__name__.strip("_").replace("_", " "): case
    for case in (*ROWS, *BOUNDS, *PARAMETERS, _a_row_that_is_p, _no_p)
}
