"""Problems without a solution: infeasible, unbounded, undefined, or with a minimum no KKT point."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from nlp_judge import INF

x, y, z = (ca.SX.sym("x", n) for n in (1, 2, 3))
w, big = ca.SX.sym("w", 5), ca.SX.sym("big", 20)
a, b = y[0], y[1]
c = ca.MX.sym("c", 2)


@dataclass(frozen=True)
class Case:
    """A problem and what is known of it.

    Attributes:
        nlp, call: CasADi's problem and the arguments of the call.
        least: values ‖v‖₂ may have at a stationary point v of the (weighted) violation; empty
            where that is not known in closed form.
        weights: of the rows in v. A row whose gradient exceeds 100 at the start is scaled to 100
            by the solver, which its documentation says.
        ray: (point, direction): point + t·direction is feasible and f falls without bound for
            t → ∞. None where only a curve has that.
    """

    nlp: dict[str, Any]
    call: dict[str, Any] = field(default_factory=dict)
    least: tuple[float, ...] = ()
    weights: Any = 1.0
    ray: tuple[Any, Any] | None = None


def rows(*entries: Any) -> Any:
    return ca.vertcat(*entries)


def equations(*values: float, **call: Any) -> dict[str, Any]:
    return {"lbg": list(values), "ubg": list(values), **call}


FIVE = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5], [-2.0, 1.0], [1.0, 1.0]])
FIVE_B = np.array([1.0, 2.0, -1.0, 0.5, 3.0])
FIVE_LEAST = float(np.sqrt(np.linalg.lstsq(FIVE, FIVE_B, rcond=None)[1][0]))
ROOT2, RINGS = float(np.sqrt(2.0)), float(np.sqrt(4.5))

INFEASIBLE = {
    "two rows": Case(
        {"x": x, "f": x**2, "g": rows(x, x)}, {"lbg": [1, -INF], "ubg": [INF, -1]}, (ROOT2,)
    ),
    "row against box": Case(
        {"x": y, "f": a - b, "g": a + b}, {"lbx": 0, "ubx": 1, "lbg": 5}, (3.0,)
    ),
    "two-sided row against box": Case(
        {"x": y, "f": ca.sumsqr(y), "g": a + b}, {"ubx": 0, "lbg": 1, "ubg": 2}, (1.0,)
    ),
    "parallel equations": Case(
        {"x": y, "f": ca.sumsqr(y), "g": rows(a + b, a + b)}, equations(0, 1), (ROOT2 / 2,)
    ),
    "parallel half-planes": Case(
        {"x": y, "f": a, "g": rows(a - 2 * b, a - 2 * b)}, {"lbg": [2, -INF], "ubg": [INF, 1]},
        (ROOT2 / 2,),
    ),
    "rank-deficient equations": Case(
        {"x": y, "f": a, "g": rows(a + b, 2 * a + 2 * b)}, equations(1, 3), (1 / np.sqrt(5),)
    ),
    "more equations than unknowns": Case(
        {"x": y, "f": 0, "g": ca.DM(FIVE) @ y}, equations(*FIVE_B, x0=1), (FIVE_LEAST,)
    ),
    "more equations than unknowns, nonlinear objective": Case(
        {"x": y, "f": ca.exp(a) + b**2, "g": ca.DM(FIVE) @ y}, equations(*FIVE_B), (FIVE_LEAST,)
    ),
    "three values of one unknown": Case(
        {"x": x, "f": -x, "g": rows(x, x, x)}, equations(1, 2, 3), (ROOT2,)
    ),
    "a cycle of strict orders": Case(
        {"x": z, "f": ca.sumsqr(z), "g": rows(z[0] - z[1], z[1] - z[2], z[2] - z[0])},
        {"lbg": 1, "x0": [1, 2, 4]}, (float(np.sqrt(3.0)),),
    ),
    "a square below -1": Case({"x": x, "f": x, "g": x**2}, {"ubg": -1, "x0": 2}, (1.0,)),
    "a square below -1 from its minimum": Case({"x": x, "f": x, "g": x**2}, {"ubg": -1}, (1.0,)),
    "a square equal to -1": Case({"x": x, "f": x, "g": x**2}, equations(-1, x0=3), (1.0,)),
    "a norm equal to -1": Case(
        {"x": z, "f": ca.sum1(z), "g": ca.sumsqr(z)}, equations(-1, x0=[1, -2, 3]), (1.0,)
    ),
    "concentric rings": Case(
        {"x": y, "f": a, "g": rows(ca.sumsqr(y), ca.sumsqr(y))},
        {"lbg": [-INF, 4], "ubg": [1, INF], "x0": [1, 0.5]}, (RINGS,),
    ),
    "concentric spheres": Case(
        {"x": z, "f": z[0], "g": rows(ca.sumsqr(z), ca.sumsqr(z))}, equations(1, 4, x0=[1, 1, 0]),
        (RINGS,),
    ),
    "discs apart": Case(
        {"x": y, "f": b, "g": rows((a - 3) ** 2 + b**2, (a + 3) ** 2 + b**2)},
        {"ubg": 1, "x0": [0.5, 2]}, (8 * ROOT2,),
    ),
    "disc and half-plane": Case(
        {"x": y, "f": ca.sumsqr(y - 1), "g": rows(ca.sumsqr(y), a + b)},
        {"lbg": [-INF, 3], "ubg": [1, INF]},
    ),
    "sine of two": Case(
        # Every extremum of the sine is stationary; a descent method stays at a maximum, v = 1.
        {"x": x, "f": x**2, "g": ca.sin(x)}, {"lbg": 2, "x0": 0.3}, (1.0,)
    ),
    "an asymptote": Case(
        # exp(x) = -1: the violation falls to 1 for x → −∞ and is nowhere stationary.
        {"x": x, "f": x**2, "g": ca.exp(x)}, equations(-1), (1.0,)
    ),
    "a cubic from its wrong side": Case(
        # x³ − 3x = 5 has the root 2.28; from −2 the violation is 3 at its local minimum x = −1.
        {"x": x, "f": 0 * x, "g": x**3 - 3 * x}, {**equations(5, x0=-2), "ubx": 0}, (3.0,)
    ),
    "an integer at one half": Case(
        {"x": x, "f": x, "g": rows(x * (1 - x), x)}, equations(0, 0.5, x0=0.1), (0.25,)
    ),
    "a fixed variable": Case(
        {"x": y, "f": b, "g": a + b}, {"lbx": [1, -INF], "ubx": [1, 2], **equations(5)}, (2.0,)
    ),
    "everything fixed": Case(
        {"x": y, "f": ca.sumsqr(y), "g": a + b}, {"lbx": [1, 2], "ubx": [1, 2], "ubg": 2}, (1.0,)
    ),
    "a constant row": Case({"x": x, "f": x**2, "g": ca.SX(3)}, {"ubg": 2, "x0": 1}, (1.0,)),
    "a constant equation": Case(
        {"x": y, "f": a, "g": rows(a + b, 4)}, equations(1, 3), (1.0,)
    ),
    "complementarity away from it": Case(
        {"x": y, "f": a + b, "g": a * b}, {"lbx": 1, "ubg": 0}, (1.0,)
    ),
    "outside the reach of a logarithm": Case(
        {"x": x, "f": x, "g": ca.log(x)}, {"lbx": 0, "ubx": 2, "lbg": 1, "x0": 1},
        (1 - np.log(2.0),),
    ),
    "a negative root": Case(
        {"x": x, "f": x**2, "g": ca.sqrt(x)}, {"lbx": 0, **equations(-1), "x0": 1}, (1.0,)
    ),
    "an objective that falls without bound": Case(
        # Infeasible first: nothing is said of an objective where there is no feasible point.
        {"x": y, "f": -a, "g": rows(b, b)}, equations(0, 1), (ROOT2 / 2,)
    ),
    "twenty variables": Case(
        {"x": big, "f": ca.sumsqr(big), "g": ca.sum1(big)}, {"lbx": -1, "ubx": 1, "lbg": 100},
        (80.0,),
    ),
    "large numbers": Case({"x": x, "f": x, "g": x}, {"ubx": 0, "lbg": 1e6, "x0": -1}, (1e6,)),
    "small numbers": Case(
        {"x": x, "f": x, "g": rows(x, x)}, equations(1e-3, -1e-3, x0=1), (ROOT2 * 1e-3,)
    ),
    "a steep row": Case(
        # 1e4·x ≥ 1e4 is scaled by 1e-2 to 100·x ≥ 100: v = (100(1 − x), x) is least at 0.9999.
        {"x": x, "f": x, "g": rows(1e4 * x, x)}, {"lbg": [1e4, -INF], "ubg": [INF, 0]},
        (100 / np.sqrt(10001.0),), [1e-2, 1.0],
    ),
    "MX": Case(
        {"x": c, "f": ca.sumsqr(c), "g": ca.vertcat(ca.norm_2(c) ** 2, c[0] - c[1])},
        {"lbg": [-2, 0], "ubg": [-1, 0], "x0": [1, 0.5]}, (1.0,),
    ),
}  # fmt: skip

UNBOUNDED = {
    "linear": Case({"x": x, "f": x}, ray=(0, -1)),
    "linear from far": Case({"x": x, "f": -2 * x}, {"x0": 1e3}, ray=(0, 1)),
    "tiny slope": Case({"x": x, "f": 1e-3 * x}, ray=(0, -1)),
    "linear program": Case(
        {"x": y, "f": -a - 2 * b, "g": a - b}, {"lbx": 0, "lbg": -1, "ubg": 1}, ray=([1, 1], [1, 1])
    ),
    "half-bounded": Case({"x": y, "f": a + b}, {"lbx": [0, -INF], "ubx": 5, "x0": 1},
                         ray=([0, 0], [0, -1])),
    "cone": Case(
        {"x": z, "f": -z[2], "g": z[2] ** 2 - z[0] ** 2 - z[1] ** 2},
        {"lbg": 0, "lbx": [-INF, -INF, 0], "x0": [0.1, 0.1, 1]}, ray=([0, 0, 1], [0, 0, 1]),
    ),
    "on a plane": Case({"x": y, "f": a, "g": a + b}, equations(1), ray=([0, 1], [-1, 1])),
    "between two planes": Case(
        {"x": y, "f": -a - b, "g": a - b}, {"lbg": 0, "ubg": 1}, ray=([0, 0], [1, 1])
    ),
    "five variables": Case(
        {"x": w, "f": ca.sum1(w), "g": rows(w[0] - w[1], w[2] + w[3])}, {"lbg": [0, -5], "ubg": 5},
        ray=(np.zeros(5), [-1, -1, 0, 0, 0]),
    ),
    "concave": Case({"x": x, "f": -(x**2)}, {"x0": 1}, ray=(0, 1)),
    "concave in a half-space": Case(
        {"x": x, "f": -(x**2)}, {"ubx": 5, "x0": -1}, ray=(0, -1)
    ),
    "indefinite": Case({"x": y, "f": a**2 - b**2 + a}, {"x0": [1, 1]}, ray=([0, 0], [0, 1])),
    "indefinite on a plane": Case(
        {"x": z, "f": z[0] * z[1] + z[2] ** 2, "g": z[0] + z[1]}, equations(1, x0=[2, 1, 1]),
        ray=([1, 0, 0], [1, -1, 0]),
    ),
    "bilinear": Case({"x": y, "f": a * b}, {"x0": [1, 0.9]}, ray=([0, 0], [1, -1])),
    "cubic": Case({"x": x, "f": x**3}, {"x0": -1}, ray=(-1, -1)),
    "cubic with a bound": Case({"x": x, "f": x**3}, {"ubx": 4, "x0": -1}, ray=(-1, -1)),
    "quartic": Case({"x": y, "f": -ca.sum1(y**4)}, {"x0": [1, 2]}, ray=([1, 1], [1, 1])),
    "exponential": Case({"x": x, "f": -ca.exp(x)}, ray=(0, 1)),
    "square root": Case({"x": x, "f": -ca.sqrt(x)}, {"lbx": 1, "x0": 2}, ray=(1, 1)),
    "almost linear": Case({"x": x, "f": -ca.sqrt(1 + x**2) - x}, ray=(0, 1)),
    "with a fixed variable": Case(
        {"x": y, "f": a * b, "g": a + b}, {"lbx": [-INF, 2], "ubx": [INF, 2], "ubg": 7},
        ray=([0, 2], [-1, 0]),
    ),
    "with a parameter": Case(
        {"x": y, "p": z, "f": z[0] * a + b**2}, {"p": [1, 2, 3]}, ray=([0, 0], [-1, 0])
    ),
    "large numbers": Case({"x": y, "f": 1e6 * (a - b)}, ray=([0, 0], [-1, 1])),
    "MX": Case(
        {"x": c, "f": c[0] - c[1], "g": c[0] - 3 * c[1]}, {"lbg": 0}, ray=([0, 0], [-3, -1])
    ),
}  # fmt: skip

# No value of the objective or of a row at the start, nor just inside the bounds.
UNDEFINED = {
    "logarithm of a negative number": Case({"x": x, "f": ca.log(x)}, {"x0": -1}),
    "root of a negative number": Case({"x": y, "f": a, "g": ca.sqrt(b)}, {"x0": [1, -1], "lbg": 1}),
    "division by zero": Case({"x": x, "f": 1 / x}),
    "row divides by zero": Case({"x": y, "f": a, "g": a / b}, {"lbg": 1}),
    "nowhere defined": Case({"x": x, "f": ca.log(-1 - x**2)}, {"x0": 2}),
    "row nowhere defined": Case({"x": y, "f": a, "g": ca.sqrt(-1 - a**2)}, {"ubg": 1}),
    "undefined by the parameter": Case({"x": x, "p": y, "f": x**2 + ca.log(a)}, {"p": [-1, 0]}),
    "overflow": Case({"x": x, "f": ca.exp(x)}, {"x0": 1000}),
    "only the gradient": Case({"x": y, "f": ca.norm_2(y)}),
    "fixed outside the domain": Case({"x": y, "f": b**2 + ca.log(a)}, {"lbx": -1, "ubx": [-1, 1]}),
}  # fmt: skip
