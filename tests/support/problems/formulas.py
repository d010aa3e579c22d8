"""Published problems with functions that CasADi's reader of ``.nl`` files lacks: erf and if."""

from __future__ import annotations

from math import sqrt
from typing import Any

import casadi as ca


def inspection(x: Any, a: float, b: float, n: float) -> dict[str, Any]:
    """Cost-optimal inspection plan, problems 68 and 69."""

    def normal(z: Any) -> Any:
        return (1 + ca.erf(z / sqrt(2))) / 2

    x1, x2, x3, x4 = ca.vertsplit(x)
    growth = ca.exp(x1) - 1
    f = (a * n - (b * growth - x3) * x4 / (growth + x4)) / x1
    level = x4 - normal(sqrt(n) - x2) - normal(-sqrt(n) - x2)
    g = ca.vertcat(x3 - 2 * normal(-x2), level)
    bounds = {"lbx": [1e-4, 0.0, 0.0, 0.0], "ubx": [100.0, 100.0, 2.0, 2.0]}
    return {"f": f, "g": g, "lbg": [0.0] * 2, "ubg": [0.0] * 2, **bounds}


def network(x: Any) -> dict[str, Any]:
    """Electrical network with prices that jump, problem 87."""
    x1, x2, x3, x4, x5, x6 = ca.vertsplit(x)
    f1 = ca.if_else(x1 < 300, 30, 31) * x1
    f2 = ca.if_else(x2 < 100, 28, ca.if_else(x2 < 200, 29, 30)) * x2
    a, b, c, angle = 131.078, 1.48477, 0.90798, 1.47588
    g = ca.vertcat(
        300 - x3 * x4 / a * ca.cos(b - x6) + c * x3**2 / a * ca.cos(angle) - x1,
        -x3 * x4 / a * ca.cos(b + x6) + c * x4**2 / a * ca.cos(angle) - x2,
        -x3 * x4 / a * ca.sin(b + x6) + c * x4**2 / a * ca.sin(angle) - x5,
        200 - x3 * x4 / a * ca.sin(b - x6) + c * x3**2 / a * ca.sin(angle),
    )
    bounds = {
        "lbx": [0.0, 0.0, 340.0, 340.0, -1000.0, 0.0],
        "ubx": [400.0, 1000.0, 420.0, 420.0, 1000.0, 0.5236],
    }
    return {"f": f1 + f2, "g": g, "lbg": [0.0] * 4, "ubg": [0.0] * 4, **bounds}


FORMULAS = {
    "HS68": lambda x: inspection(x, 1e-4, 1.0, 24.0),
    "HS69": lambda x: inspection(x, 0.1, 1000.0, 4.0),
    "HS87": network,
}
