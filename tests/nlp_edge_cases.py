"""Problems where several answers are right, and why: no multipliers, minimizer or derivative."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
from nlp_judge import INF
from nlp_verdict_cases import equations, rows

x, y, z = (ca.SX.sym("x", n) for n in (1, 2, 3))
a, b = y[0], y[1]


@dataclass(frozen=True)
class Edge:
    """A problem whose infimum is no KKT point.

    Attributes:
        nlp, call: CasADi's problem and the arguments of the call.
        x: where the returned point has to be, within ``near``; None where that is open.
        solved: whether a point within tolerance of the KKT conditions exists at all.
    """

    nlp: dict[str, Any]
    call: dict[str, Any] = field(default_factory=dict)
    x: Any = None
    near: float = 2e-2
    solved: bool = True


# The constraints admit no multipliers at the minimizer, but beside it, within the tolerance on the
# violation, they do, and large ones: a KKT point within tolerance and a Fritz-John point are right.
NO_MULTIPLIERS = {
    "a norm of zero": Edge(
        {"x": z, "f": z[0], "g": ca.sumsqr(z)}, equations(0, x0=[1, 2, -1]), [0, 0, 0]
    ),
    "a norm of at most zero": Edge(
        {"x": y, "f": a + b, "g": ca.sumsqr(y)}, {"ubg": 0, "x0": [1, 2]}, [0, 0]
    ),
    "a square of zero": Edge({"x": x, "f": x, "g": x**2}, equations(0, x0=1), [0]),
    "a square of zero from it": Edge({"x": x, "f": x, "g": x**2}, equations(0), [0]),
    "a cube of zero": Edge({"x": x, "f": x, "g": x**3}, equations(0, x0=1), [0]),
    "a disc and its tangent": Edge(
        {"x": y, "f": b, "g": ca.sumsqr(y)}, {"lbx": [1, -INF], "ubg": 1, "x0": [2, 2]}, [1, 0]
    ),
    "two discs that touch": Edge(
        {"x": y, "f": b, "g": rows((a - 1) ** 2 + b**2, (a + 1) ** 2 + b**2)},
        {"ubg": 1, "x0": [1, 1]}, [0, 0],
    ),
    "a cusp": Edge(
        {"x": y, "f": -a, "g": rows(b - a**3, -b - a**3)}, {"lbg": 0, "x0": [-1, 0.5]}, [0, 0]
    ),
    "a branch without multipliers (ralph1)": Edge(
        {"x": y, "f": 2 * a - b, "g": rows(b - a, b * (b - a))},
        {"lbx": 0, "lbg": [0, -INF], "ubg": [INF, 0], "x0": 1}, [0, 0],
    ),
}  # fmt: skip

# The objective has a largest lower bound but no minimizer: far out every residual is within
# tolerance, so a success is right, and so is a failure; only UNBOUNDED would be wrong.
NO_MINIMIZER = {
    "a falling exponential": Edge({"x": x, "f": ca.exp(-x)}),
    "an inverse": Edge({"x": x, "f": 1 / x}, {"lbx": 1}),
    "an arc tangent": Edge({"x": x, "f": ca.atan(x)}),
    "a fraction": Edge({"x": y, "f": -(a**2) / (1 + a**2) + b**2}, {"x0": [1, 1]}),
    "along a hyperbola": Edge(
        {"x": y, "f": a, "g": a * b}, {"lbx": 0, "lbg": 1, "ubg": 1, "x0": 1}
    ),
    "an exponential equation": Edge({"x": x, "f": 0, "g": ca.exp(x)}, equations(0)),
    "a product and a zero": Edge({"x": y, "f": 0, "g": rows(a * b, a)}, equations(1, 0, x0=1)),
}  # fmt: skip

# The infimum lies on the edge of the domain, where the slope is infinite.
ON_THE_EDGE = {
    "a root that ends": Edge(
        {"x": x, "f": -x + ca.sqrt(1 - x) / 10}, {"x0": 0}, [1], 1e-3, solved=False
    ),
    "a root that ends at a bound": Edge(
        {"x": x, "f": -x + ca.sqrt(1 - x) / 10}, {"x0": 0, "ubx": 1}, [1], 1e-3
    ),
    "an arc": Edge({"x": x, "f": ca.acos(x)}, {"lbx": -1, "ubx": 1}, [1], 1e-3),
    "a root at its bound": Edge({"x": x, "f": ca.sqrt(x)}, {"lbx": 0, "x0": 1}, [0], 1e-3),
    "a corner": Edge({"x": x, "f": ca.fabs(x - 0.3)}, {"x0": 1}, [0.3], 1e-3),
    "a corner of a norm": Edge({"x": y, "f": ca.norm_2(y)}, {"x0": [1, 2]}, [0, 0], 1e-3),
    "a corner in a row": Edge(
        {"x": y, "f": a + b, "g": ca.fabs(a) + ca.fabs(b)}, {"ubg": 1, "x0": [0.2, 0.1]}
    ),
}  # fmt: skip

# f → −∞ at a finite point.
POLES = {
    "a logarithm": Edge({"x": x, "f": ca.log(x)}, {"lbx": 0, "x0": 1}, [0], 1e-3, solved=False),
    "a free logarithm": Edge({"x": x, "f": ca.log(x)}, {"x0": 1}, [0], 1e-3, solved=False),
    "an inverse": Edge({"x": x, "f": -1 / x}, {"lbx": 0, "x0": 1}, [0], 1e-3, solved=False),
    "an inverse square": Edge({"x": x, "f": -1 / x**2}, {"x0": 1}, [0], 1e-3, solved=False),
}  # fmt: skip

# Only the second derivative does not exist at the start, where the first two say to move on.
NO_CURVATURE = {
    "a power at its centre": Edge(
        {"x": y, "f": (a**2) ** 1.25 / 2.5 - a + b**2}, {"x0": [0, 1]}, None
    ),
    "in a row": Edge({"x": y, "f": b, "g": b - (a**2) ** 1.25 - a}, {"lbg": 0, "x0": [0, 1]}, None),
}  # fmt: skip

ALL = {
    f"{group}: {label}": edge
    for group, cases in (
        ("no multipliers", NO_MULTIPLIERS),
        ("no minimizer", NO_MINIMIZER),
        ("edge", ON_THE_EDGE),
        ("pole", POLES),
        ("no curvature", NO_CURVATURE),
    )
    for label, edge in cases.items()
}
