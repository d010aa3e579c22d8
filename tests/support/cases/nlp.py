"""Small problems of every kind, and IPOPT as the peer."""

from typing import Any

import casadi as ca
from support.judges.kkt import INF
from support.problems.published import hs_problem

from casadi_hybrid import nlpsol

PEER = {"print_time": False, "error_on_fail": False, "show_eval_warnings": False}
PEER |= {"ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-10}
PEER |= {"ipopt.bound_relax_factor": 0.0}
OUTPUTS = ("x", "f", "g", "lam_x", "lam_g", "lam_p")


def cases() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    x, p, y = ca.SX.sym("x", 2), ca.SX.sym("p", 2), ca.SX.sym("y")
    rosen = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    a, b, q = ca.MX.sym("a"), ca.MX.sym("b", 2), ca.MX.sym("q")
    z = ca.SX.sym("z", 4)
    near = ca.sumsqr(x - p)
    return {
        "no constraints": ({"x": x, "f": rosen}, {"x0": [-1.2, 1]}),
        "one variable": ({"x": y, "f": (y - 3) ** 2}, {"ubx": 1}),
        "bounds": ({"x": x, "f": rosen}, {"x0": 0, "ubx": [0.5, INF], "lbx": [-INF, -1]}),
        "equation": ({"x": x, "f": x[0] + x[1], "g": ca.sumsqr(x)}, {"x0": -1, "lbg": 2, "ubg": 2}),
        "upper row": ({"x": x, "f": -x[0] * x[1], "g": ca.sum1(x)}, {"x0": 0.4, "ubg": 1}),
        "lower row": ({"x": x, "f": ca.sumsqr(x), "g": ca.sum1(x)}, {"lbg": 1}),
        "two-sided row": ({"x": x, "f": x[0], "g": ca.sumsqr(x)}, {"x0": 1, "lbg": 1, "ubg": 4}),
        "free row": (
            {"x": x, "f": ca.sumsqr(x - 1), "g": ca.vertcat(x[0], x[1])},
            {"lbg": [2, -INF], "ubg": INF},
        ),
        "fixed variable": (
            {"x": z, "f": ca.sumsqr(z - 2), "g": ca.sum1(z)},
            {"lbx": [1, 0, 0, -INF], "ubx": [1, INF, 1, INF], "lbg": 5, "ubg": 5},
        ),
        "parameters": (
            {"x": x, "p": p, "f": near, "g": x[0] + p[1] * x[1]},
            {"p": [2, 3], "x0": 1, "ubg": 1, "lbx": [-5, -4]},
        ),
        "MX": (
            {"x": ca.vertcat(a, b), "p": q, "f": (a - q) ** 2 + ca.sumsqr(b), "g": a * b[0] - b[1]},
            {"x0": 1, "p": 0.5, "lbg": 1},
        ),
        "square system": (
            {"x": x, "f": 0 * x[0], "g": ca.vertcat(ca.sumsqr(x) - 5, x[0] - 1)},
            {"x0": 3, "lbg": 0, "ubg": 0},
        ),
        "mixed": (
            {"x": z, "f": z[0] * z[3] * ca.sum1(z[:3]) + z[2], "g": [ca.dot(z, z), -z[0] * z[1]]},
            {"x0": [1, 5, 5, 1], "lbx": 1, "ubx": 5, "lbg": [40, -INF], "ubg": [40, -2]},
        ),
    }


CASES = cases()


def solved(nlp, options=None, **call):
    """A solver that has solved."""
    solver = nlpsol("s", "hybrid", nlp, options)
    solver(**call)
    return solver


def parts(made):
    """A problem of a collection as CasADi takes it, and its bounds; its start where it has one."""
    call = {key: made[key] for key in ("x0", "lbx", "ubx", "lbg", "ubg") if key in made}
    return {key: made[key] for key in "xfg"}, call


def hock_schittkowski(number):
    """A problem of the book as CasADi takes it, and the numbers of its call."""
    problem = hs_problem(number)
    nlp, bounds = parts(problem.build())
    return nlp, {"x0": problem.x0, **bounds}
