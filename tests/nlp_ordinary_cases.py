"""Problems with parts left out, starts at stationary points, extreme scales, one variable."""

from __future__ import annotations

import casadi as ca
import numpy as np
from nlp_degenerate_cases import Solvable
from nlp_judge import INF
from nlp_verdict_cases import equations, rows

x, y, z = (ca.SX.sym("x", n) for n in (1, 2, 3))
w, p = ca.SX.sym("w", 5), ca.SX.sym("p", 2)
a, b = y[0], y[1]
c = ca.MX.sym("c", 2)
ROSEN = 100 * (b - a**2) ** 2 + (1 - a) ** 2
KLEE = np.tril(2.0 ** (1 + np.subtract.outer(np.arange(5), np.arange(5))), -1) + np.eye(5)

PARTS = {
    "no objective": Solvable({"x": y, "g": rows(ca.sumsqr(y), a - b)}, equations(5, 1, x0=3),
                             (0,), [2, 1]),
    "no objective, inequalities": Solvable({"x": y, "g": rows(a * b, a + b)},
                                           {"lbg": [1, -INF], "ubg": [INF, 3], "x0": [3, 3]}),
    "nothing but bounds": Solvable({"x": y}, {"lbx": 1, "ubx": 2, "x0": 5}),
    "nothing at all": Solvable({"x": y}, {"x0": [3, -4]}),
    "constant objective": Solvable({"x": y, "f": 5, "g": a + b}, {"lbg": 1}, (5,)),
    "constant objective alone": Solvable({"x": y, "f": ca.SX(5)}, {}, (5,)),
    "constant rows": Solvable(
        {"x": y, "f": ca.sumsqr(y - 1), "g": rows(3, -1)}, {"lbg": [2, -1], "ubg": [4, -1]},
        (0,), [1, 1],
    ),
    "constant row at its bound": Solvable(
        {"x": y, "f": ca.sumsqr(y - 1), "g": ca.SX(3)}, {"lbg": 3}, (0,), [1, 1]
    ),
    "free rows": Solvable(
        {"x": y, "f": ca.sumsqr(y - 1), "g": rows(a * b, ca.exp(a))}, {"x0": 3}, (0,), [1, 1]
    ),
    "free rows among others": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": rows(a**3, a + b, b**2)},
        {"lbg": [-INF, 2, -INF], "x0": [3, 1]}, (2,), [1, 1],
    ),
    "a variable that is nowhere": Solvable({"x": z, "f": z[0] ** 2 + z[2] ** 2}, {"x0": 1}),
    "a parameter that is nowhere": Solvable(
        {"x": y, "p": p, "f": ca.sumsqr(y - p[0])}, {"p": [2, 7]}, (0,), [2, 2]
    ),
    "no constraints": Solvable({"x": y, "f": ROSEN}, {"x0": [-1.2, 1]}, (0,), [1, 1]),
    "more minima than one": Solvable(
        {"x": y, "f": a, "g": a + 0 * b}, {"lbg": 1, "x0": 3}, (1,)
    ),
    "MX without rows": Solvable({"x": c, "f": ca.sumsqr(c - 1)}, {}, (0,), [1, 1]),
}  # fmt: skip

STARTS = {
    # First-order methods may stay at a stationary point: the start is a KKT point itself.
    "at a maximum": Solvable({"x": x, "f": -(x**2)}, {"lbx": -1, "ubx": 2}, (0, -1, -4)),
    "at a maximum of a cosine": Solvable({"x": x, "f": ca.cos(x)}, {}, (1, -1)),
    "at a saddle": Solvable({"x": y, "f": a**2 - b**2}, {"lbx": -1, "ubx": 1}, (0, -1)),
    "at a saddle of a quartic": Solvable({"x": y, "f": a**2 - b**2 + b**4}, {}, (0, -0.25)),
    # These starts are next to one and no KKT point: they have to be left.
    "near a maximum": Solvable({"x": x, "f": -(x**2)}, {"lbx": -1, "ubx": 2, "x0": 0.3}, (-1, -4)),
    "near a saddle": Solvable(
        {"x": y, "f": a**2 - b**2}, {"lbx": -1, "ubx": 1, "x0": [0.5, 1e-3]}, (-1,)
    ),
    "near a saddle of a quartic": Solvable(
        {"x": y, "f": a**2 - b**2 + b**4}, {"x0": [1, 1e-3]}, (-0.25,)
    ),
    "at the maximum of a row": Solvable(
        {"x": y, "f": a**2 + b, "g": 1 - a**2 - b**2}, {"lbg": 0, "ubg": 0, "x0": [0.1, 0]}, (-1,)
    ),
    "at the solution": Solvable(
        {"x": y, "f": ROSEN, "g": a * b}, {"x0": 1, "ubg": 4}, (0,), [1, 1]
    ),
    "at a bound that is left": Solvable(
        {"x": x, "f": (x - 1) ** 2}, {"lbx": 0, "x0": 0}, (0,), [1]
    ),
    "in the wrong corner": Solvable(
        {"x": y, "f": -a - b}, {"lbx": 0, "ubx": 1, "x0": 0}, (-2,), [1, 1]
    ),
    "far away": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": a + b}, {"x0": 1e6, "lbg": 2}, (2,), [1, 1]
    ),
    "a step that lengthens the violation (Maratos)": Solvable(
        {"x": y, "f": 2 * (ca.sumsqr(y) - 1) - a, "g": ca.sumsqr(y)}, equations(1, x0=[0.8, 0.6]),
        (-1,), [1, 0],
    ),
}  # fmt: skip

SCALES = {
    "large objective": Solvable({"x": y, "f": 1e6 * ca.sumsqr(y - 1)}, {"x0": 3}, (0,), [1, 1]),
    "small objective": Solvable(
        # Slopes below the tolerance 1e-6 are no slopes: only the KKT point is asked for.
        {"x": y, "f": 1e-6 * ca.sumsqr(y - 1)}, {"x0": 3}, (0,), None
    ),
    "steep row": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": 1e6 * (a + b)}, {"lbg": 1e6}, (0.5,), [0.5, 0.5]
    ),
    "flat row": Solvable(
        {"x": y, "f": ca.sumsqr(y), "g": 1e-4 * (a + b)}, {"lbg": 1e-4}, (0.5,), [0.5, 0.5], 1e-2
    ),
    "steep and flat rows": Solvable(
        {"x": y, "f": ca.sumsqr(y - 2), "g": rows(1e5 * a, 1e-3 * b)}, {"ubg": [1e5, 1e-3]},
        (2,), [1, 1], 1e-2,
    ),
    "large variables": Solvable(
        {"x": y, "f": ca.sumsqr(y / 1e6 - 1), "g": a - b}, {"lbg": 1e6, "x0": 1}, (0.5,),
        [1.5e6, 0.5e6], 10.0,
    ),
    "small variables": Solvable(
        {"x": y, "f": ca.sumsqr(1e4 * y - 1)}, {"x0": 1e-3}, (0,), [1e-4, 1e-4]
    ),
    "variables of all sizes": Solvable(
        {"x": z, "f": (1e3 * z[0] - 1) ** 2 + (z[1] - 1) ** 2 + (1e-3 * z[2] - 1) ** 2,
         "g": 1e3 * z[0] + z[1] + 1e-3 * z[2]},
        {"lbg": 6, "x0": 0}, (3,), [2e-3, 2, 2e3], 1.0,
    ),
    "wide bounds": Solvable(
        {"x": y, "f": ROSEN}, {"lbx": -1e9, "ubx": 1e9, "x0": [-1.2, 1]}, (0,), [1, 1]
    ),
    "bounds far from zero": Solvable(
        {"x": y, "f": a + b}, {"lbx": 1e6, "ubx": 1e6 + 1, "x0": 0}, (2e6,), [1e6, 1e6], 1e-2
    ),
    "narrow bounds": Solvable(
        {"x": y, "f": a - b}, {"lbx": 0, "ubx": 1e-6}, (-1e-6,), [0, 1e-6]
    ),
    "Rosenbrock in other units": Solvable(
        {"x": y, "f": 100 * (b / 1e3 - (a * 1e3) ** 2) ** 2 + (1 - a * 1e3) ** 2},
        {"x0": [-1.2e-3, 1e3]}, (0,), [1e-3, 1e3], 1.0,
    ),
}  # fmt: skip

ONE = {
    "parabola": Solvable({"x": x, "f": (x - 3) ** 2}, {}, (0,), [3]),
    "parabola and a bound": Solvable({"x": x, "f": (x - 3) ** 2}, {"ubx": 1}, (4,), [1]),
    "parabola and a row": Solvable({"x": x, "f": (x - 3) ** 2, "g": x**2}, {"ubg": 4}, (1,), [2]),
    "parabola on an equation": Solvable({"x": x, "f": (x - 3) ** 2, "g": x**3}, equations(8, x0=1),
                                        (1,), [2]),
    "a line and a bound": Solvable({"x": x, "f": 2 * x}, {"lbx": -4}, (-8,), [-4]),
    "a line and both bounds": Solvable({"x": x, "f": -x}, {"lbx": 0, "ubx": 7}, (-7,), [7]),
    "a quartic": Solvable({"x": x, "f": (x - 1) ** 4}, {"x0": 3}, (0,), [1], 1e-2),
    "a bound that hardly acts": Solvable({"x": x, "f": x**2}, {"lbx": 0, "x0": 1}, (0,), [0]),
    "a row that hardly acts": Solvable({"x": x, "f": x**2, "g": x}, {"lbg": 0, "x0": 1}, (0,), [0],
                                       1e-3),
    "two minima": Solvable({"x": x, "f": (x**2 - 1) ** 2}, {"x0": 0.2}, (0,)),
    "one root": Solvable({"x": x, "f": 0, "g": ca.exp(x) - 2}, equations(0), (0,), [np.log(2.0)]),
    "an interval with a gap": Solvable(
        {"x": x, "f": (x - 0.2) ** 2, "g": x**2}, {"lbg": 1, "x0": 2}, (0.64, 1.44)
    ),
    "a square root of its slope": Solvable({"x": x, "f": x**1.5}, {"lbx": 0, "x0": 1}, (0,), [0]),
    "a linear program (Klee and Minty)": Solvable(
        {"x": w, "f": -ca.dot(ca.DM(2.0 ** np.arange(4, -1, -1)), w), "g": ca.DM(KLEE) @ w},
        {"lbx": 0, "ubg": 5.0 ** np.arange(1, 6)}, (-(5.0**5),), [0, 0, 0, 0, 5.0**5], 1e-2,
    ),
}  # fmt: skip
