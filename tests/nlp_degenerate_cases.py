"""Problems that have a KKT point, and degenerate constraints or functions with a small domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from nlp_judge import INF
from nlp_verdict_cases import FIVE, equations, rows

x, y, z = (ca.SX.sym("x", n) for n in (1, 2, 3))
w = ca.SX.sym("w", 5)
a, b = y[0], y[1]
c = ca.MX.sym("c", 2)
HALF = float(np.sqrt(0.5))


@dataclass(frozen=True)
class Solvable:
    """A problem that has to be solved.

    Attributes:
        nlp, call: CasADi's problem and the arguments of the call.
        f: objective values at its KKT points; any of them is right.
        x: the KKT point where there is only one. None where there are several.
        near: how close x has to come; sqrt(1e-6) where the violation or slope is quadratic there.
    """

    nlp: dict[str, Any]
    call: dict[str, Any] = field(default_factory=dict)
    f: tuple[float, ...] = (0.0,)
    x: Any = None
    near: float = 1e-5


CIRCLE = ca.sumsqr(y) - 1
TO_LINES = np.array([[1.0, 1.0], [1.0, -1.0], [2.0, 1.0], [0.0, 3.0], [-1.0, 4.0]])

RANK = {
    "more equations than unknowns": Solvable(
        {"x": y, "f": a, "g": ca.DM(FIVE) @ y}, equations(*(FIVE @ [2, -1]), x0=5), (2,), [2, -1]
    ),
    "more curves than unknowns": Solvable(
        {"x": y, "f": ca.exp(b), "g": rows(ca.sumsqr(y), a * b, a - b, a + b)},
        equations(5, 2, 1, 3, x0=[3, 0]), (np.e,), [2, 1],
    ),
    "three equations in one unknown": Solvable(
        {"x": x, "f": 0 * x, "g": rows(x**2, x**3, x)}, equations(4, 8, 2, x0=1), (0,), [2]
    ),
    "an equation twice": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": rows(a + b, a + b)}, equations(1, 1), (0.5,), [0.5, 0.5]
    ),
    "an equation twice with other signs and scales": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": rows(a + b, -3 * (a + b), 1e-2 * (a + b))},
        equations(1, -3, 1e-2), (0.5,), [0.5, 0.5],
    ),
    "a curve twice": Solvable(
        {"x": y, "f": a + b, "g": rows(CIRCLE, CIRCLE)}, equations(0, 0, x0=[1, -2]),
        (-2 * HALF,), [-HALF, -HALF],
    ),
    "a curve and its square": Solvable(
        {"x": y, "f": a + b, "g": rows(CIRCLE, CIRCLE**2)}, equations(0, 0, x0=[1, -2]),
        (-2 * HALF,), [-HALF, -HALF],
    ),
    "a row that is the sum of others": Solvable(
        {"x": z, "f": ca.sumsqr(z - 1), "g": ca.DM([[1, 1, 0], [0, 1, 1], [1, 2, 1]]) @ z},
        equations(1, 2, 3), (2 / 3,), [1 / 3, 2 / 3, 4 / 3],
    ),
    "inequality rows three times": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": rows(a + b, a + b, 2 * a + 2 * b)}, {"lbg": [1, 1, 2]},
        (0.5,), [0.5, 0.5],
    ),
    "an equation and the same as an inequality": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": rows(a + b, a + b)}, {"lbg": 1, "ubg": [1, INF]},
        (0.5,), [0.5, 0.5],
    ),
    "a bound as bound and row": Solvable(
        {"x": y, "f": a + b, "g": rows(a, b)}, {"lbx": 1, "lbg": 1}, (2,), [1, 1]
    ),
    "a vertex of five lines": Solvable(
        {"x": y, "f": -a - 2 * b, "g": ca.DM(TO_LINES) @ y},
        {"ubg": TO_LINES @ [1, 1], "x0": [-1, -1]}, (-3,), [1, 1],
    ),
    "a rank that falls at the solution": Solvable(
        {"x": y, "f": (a - 1) ** 2 + b, "g": rows((a - 1) ** 2, b)}, equations(0, 0, x0=3),
        (0,), [1, 0], 2e-3,
    ),
    "a row of zeros": Solvable(
        {"x": y, "f": ca.sumsqr(y - 1), "g": rows(0 * a, a)}, equations(0, 2), (1,), [2, 1]
    ),
}  # fmt: skip

NO_INTERIOR = {
    "two rows that meet": Solvable(
        {"x": x, "f": (x - 3) ** 2, "g": rows(x, x)}, {"lbg": [1, -INF], "ubg": [INF, 1]}, (4,), [1]
    ),
    "a row and a bound that meet": Solvable(
        {"x": y, "f": a - b, "g": a + b}, {"lbx": 1, "ubx": 5, "ubg": 2}, (0,), [1, 1]
    ),
    "equal limits": Solvable({"x": y, "f": ca.sumsqr(y), "g": a - b}, equations(2), (2,), [1, -1]),
    "almost equal limits": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": a - b}, {"lbg": 2, "ubg": 2 + 1e-9}, (2,), [1, -1]
    ),
    "a square at most zero": Solvable({"x": x, "f": x**2 + 1, "g": x**2}, {"ubg": 0, "x0": 2},
                                      (1,), [0], 2e-3),
    "a disc and its tangent": Solvable(
        {"x": y, "f": a, "g": ca.sumsqr(y)}, {"lbx": [1, -INF], "ubg": 1}, (1,), [1, 0], 2e-3
    ),
    "one point between lines": Solvable(
        {"x": y, "f": b, "g": rows(a + b, a - b)}, {"lbg": [2, -INF], "ubg": [INF, 0], "ubx": 1},
        (1,), [1, 1],
    ),
    "one variable fixed": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": a * b}, {"lbx": [2, -INF], "ubx": [2, INF], "lbg": 6},
        (13,), [2, 3],
    ),
    "everything fixed": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": a + b}, {"lbx": [1, 2], "ubx": [1, 2], "ubg": 4},
        (5,), [1, 2],
    ),
    "everything fixed, no rows": Solvable({"x": y, "f": a}, {"lbx": 3, "ubx": 3}, (3,), [3, 3]),
    "fixed by equations": Solvable(
        {"x": y, "f": ca.exp(a) * b, "g": rows(a, b)}, equations(0, 4), (4,), [0, 4]
    ),
    "almost fixed": Solvable(
        {"x": y, "f": -a + b**2}, {"lbx": [1, -1], "ubx": [1 + 1e-9, 1]}, (-1,), [1, 0]
    ),
}  # fmt: skip

# 0 ≤ a ⊥ b ≥ 0 written as a product: no constraint qualification holds at any feasible point.
# Named after the problems of MacMPEC (S. Leyffer) that have this form.
COMPLEMENTARITY = {
    "nearest point (scholtes3)": Solvable(
        {"x": y, "f": ca.sumsqr(y - 1) / 2, "g": a * b}, {"lbx": 0, "ubg": 0, "x0": 1}, (0.5,)
    ),
    "nearest point from the kink": Solvable(
        {"x": y, "f": ca.sumsqr(y - 1) / 2, "g": a * b}, {"lbx": 0, "ubg": 0, "x0": 0}, (0.5,)
    ),
    "nearest point, product as equation": Solvable(
        {"x": y, "f": ca.sumsqr(y - 1) / 2, "g": a * b},
        {"lbx": 0, "lbg": 0, "ubg": 0, "x0": [1, 0.9]}, (0.5,),
    ),
    "the kink itself (kth1)": Solvable(
        {"x": y, "f": a + b, "g": a * b}, {"lbx": 0, "ubg": 0, "x0": 1}, (0,), [0, 0]
    ),
    "the kink from the kink": Solvable(
        {"x": y, "f": a + b, "g": a * b}, {"lbx": 0, "ubg": 0, "x0": 0}, (0,), [0, 0]
    ),
    "one branch (kth2)": Solvable(
        {"x": y, "f": a + (b - 1) ** 2, "g": a * b}, {"lbx": 0, "ubg": 0, "x0": [1, 0.5]},
        (0,), [0, 1],
    ),
    "two branches (kth3)": Solvable(
        {"x": y, "f": a**2 / 2 + (b - 1) ** 2, "g": a * b}, {"lbx": 0, "ubg": 0, "x0": [0.3, 1]},
        (0, 1),
    ),
    "through an angle (jr1)": Solvable(
        {"x": y, "f": (a - 1) ** 2 + b**2, "g": rows(b - a, b * (b - a))},
        {"lbx": [-INF, 0], "lbg": [0, -INF], "ubg": [INF, 0], "x0": 1}, (0.5,), [0.5, 0.5],
    ),
    "through an angle (jr2)": Solvable(
        {"x": y, "f": a**2 + (b - 1) ** 2, "g": rows(b - a, b * (b - a))},
        {"lbx": [-INF, 0], "lbg": [0, -INF], "ubg": [INF, 0], "x0": 1}, (0.5,), [0.5, 0.5],
    ),
    "indefinite at the kink (ralph2)": Solvable(
        {"x": y, "f": ca.sumsqr(y) - 4 * a * b, "g": a * b}, {"lbx": 0, "ubg": 0, "x0": 1},
        (0,), [0, 0], 2e-3,
    ),
}  # fmt: skip

DOMAIN = {
    "a root from the edge of its domain": Solvable(
        {"x": x, "f": x - 2 * ca.sqrt(x)}, {"lbx": 0, "x0": 0}, (-1,), [1]
    ),
    "a logarithm from the edge of its domain": Solvable(
        {"x": x, "f": x - ca.log(x)}, {"lbx": 0, "x0": 0}, (1,), [1]
    ),
    "a pole at the start": Solvable({"x": x, "f": x + 1 / x}, {"lbx": 0, "x0": 0}, (2,), [1]),
    "a start outside the bounds and the domain": Solvable(
        {"x": x, "f": x - ca.log(x)}, {"lbx": 1e-3, "x0": -5}, (1,), [1]
    ),
    "a logarithm without bounds": Solvable({"x": x, "f": x - ca.log(x)}, {"x0": 5}, (1,), [1]),
    "a logarithm whose step leaves the domain": Solvable(
        {"x": x, "f": 1e3 * x - ca.log(x)}, {"x0": 0.9}, (1 + np.log(1e3),), [1e-3]
    ),
    "entropy": Solvable(
        {"x": z, "f": ca.dot(z, ca.log(z)), "g": ca.sum1(z)}, equations(1, x0=0.3),
        (-np.log(3.0),), [1 / 3] * 3,
    ),
    "entropy from a corner": Solvable(
        {"x": z, "f": ca.dot(z, ca.log(z)), "g": ca.sum1(z)},
        {**equations(1, x0=[1, 0, 0]), "lbx": 0}, (-np.log(3.0),), [1 / 3] * 3,
    ),
    "a dome": Solvable(
        {"x": y, "f": -ca.sqrt(1 - ca.sumsqr(y))}, {"x0": [0.9, -0.3]}, (-1,), [0, 0]
    ),
    "a row with a root": Solvable(
        {"x": y, "f": a + b, "g": ca.sqrt(a) + ca.sqrt(b)}, {"lbx": 0, "lbg": 2, "x0": 0},
        (2,), [1, 1],
    ),
    "a row with a pole": Solvable(
        {"x": y, "f": a + b, "g": 1 / a + 1 / b}, {"lbx": 0, "ubg": 1, "x0": 0}, (4,), [2, 2]
    ),
    "a row with a logarithm": Solvable(
        {"x": y, "f": a - b, "g": ca.log(a) - b}, {"lbg": 0, "ubg": 0, "x0": [0.1, 3]}, (1,), [1, 0]
    ),
    "an arc": Solvable({"x": x, "f": (ca.asin(x) - 0.5) ** 2}, {"x0": 0.99}, (0,), [np.sin(0.5)]),
    "powers": Solvable(
        {"x": y, "f": a**1.5 / 1.5 + b**2.5 / 2.5, "g": a + b}, {"lbx": 0, "lbg": 0.625, "x0": 0},
        (0.125**1.5 / 1.5 + 0.5**2.5 / 2.5,), [0.125, 0.5],
    ),
    "overflow beyond the start": Solvable({"x": x, "f": ca.exp(x) - x}, {"x0": 5}, (1,), [0]),
}  # fmt: skip
