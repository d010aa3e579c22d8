"""Problems 236–260 of Schittkowski's second collection; sources as in ``more_base``."""

from __future__ import annotations

from itertools import product
from math import inf, pi, sqrt

import casadi as ca

from problems.hs_base import eq, ge
from problems.more_base import squares, tp
from problems.more_data import FOUR_A, FOUR_B, FOUR_D, FOUR_G, SURFACE


def _surface(x1, x2):
    monomials = (
        *(1, x1, x1**2, x1**3, x1**4, x2, x1 * x2, x1**2 * x2, x1**3 * x2, x1**4 * x2),
        *(x2**2, x2**3, x2**4, 1 / (x2 + 1), x1**2 * x2**2, x1**3 * x2**2, x1**3 * x2**3),
        *(x1 * x2**2, x1 * x2**3, ca.exp(5e-4 * x1 * x2)),
    )
    return -sum(b * term for b, term in zip(SURFACE, monomials, strict=True))


def _surface_rows(x1, x2):
    rows = (ge(x1 * x2, 700), ge(x2 - 5 * (x1 / 25) ** 2))
    return (*rows, ge((x2 - 50) ** 2 - 5 * (x1 - 55)))


_CORNER = {"f_star": -58.903436, "x_star": (75, 65), "ubx": (75, 65)}


@tp(236, x0=(10, 10), **_CORNER, lbx=0)
def tp236(x1, x2):
    return _surface(x1, x2), _surface_rows(x1, x2)[:2]


@tp(237, x0=(65, 10), **_CORNER, lbx=(54, -inf))
def tp237(x1, x2):
    return _surface(x1, x2), _surface_rows(x1, x2)


@tp(238, x0=(10, 10), **_CORNER)
def tp238(x1, x2):
    return _surface(x1, x2), _surface_rows(x1, x2)


@tp(239, x0=(10, 10), **_CORNER, lbx=0)
def tp239(x1, x2):
    return _surface(x1, x2), _surface_rows(x1, x2)[:1]


@squares(240, x0=(100, -1, 2.5), f_star=0, x_star=(0, 0, 0))
def tp240(x1, x2, x3):
    return x1 - x2 + x3, -x1 + x2 + x3, x1 + x2 - x3


@squares(241, x0=(1, 2, 0), f_star=0, x_star=(0, 0, 1))
def tp241(x1, x2, x3):
    ball = x1**2 + x2**2 - 1
    return (
        *(ball + x3**2, ball + (x3 - 2) ** 2, x1 + x2 + x3 - 1, x1 + x2 - x3 + 1),
        x1**3 + 3 * x2**2 + (5 * x3 - x1 + 1) ** 2 - 36,
    )


def _box(x1, x2, x3):
    times = [i / 10 for i in range(1, 11)]
    return [ca.exp(-x1 * t) - ca.exp(-x2 * t) - x3 * (ca.exp(-t) - ca.exp(-10 * t)) for t in times]


_BOX = {"f_star": 0, "x_star": (1, 10, 1), "lbx": 0}
tp242 = squares(242, x0=(2.5, 10, 10), **_BOX, ubx=10, note="Box.")(_box)


@squares(
    243,
    x0=(0.1,) * 3,
    f_star=0.79657853,
    x_star=(0, 0, 0),
    note="The quadratic form is not symmetric in its last digit, as in the test programs.",
)
def tp243(*x):
    form = sum(FOUR_B[i][j] * x[i] * x[j] for i in range(3) for j in range(3))
    return [
        a + sum(s * xi for s, xi in zip(slopes, x, strict=True)) + d * form / 2
        for a, d, slopes in zip(FOUR_A, FOUR_D, FOUR_G, strict=True)
    ]


@squares(
    244,
    x0=(1, 2, 1),
    f_star=0,
    x_star=(1, 10, 5),
    lbx=0,
    ubx=10,
    note="The test programs sum only 8 of the 10 squares and have 1E10 for the upper bounds. The "
    "other local minimum has x2 → x1.",
)
def tp244(x1, x2, x3):
    times = [i / 10 for i in range(1, 11)]
    return [
        ca.exp(-x1 * z) - x3 * ca.exp(-x2 * z) - ca.exp(-z) + 5 * ca.exp(-10 * z) for z in times
    ]


tp245 = squares(
    245, x0=(0, 10, 20), **_BOX, ubx=(12, 12, 20), note="Problem 242, other start and bounds."
)(_box)


@squares(246, x0=(-1.2, 2, 0), f_star=0, x_star=(1, 1, 1))
def tp246(x1, x2, x3):
    return 10 * (x3 - ((x1 + x2) / 2) ** 2), 1 - x1, 1 - x2


@squares(
    247,
    x0=(0.1, 0, 0),
    f_star=0,
    x_star=(1, 0, 0),
    lbx=(0.1, -inf, -2.5),
    ubx=(inf, inf, 7.5),
    note="Fletcher & Powell's helix, on the half x1 ≥ 0.1 as in the test programs.",
)
def tp247(x1, x2, x3):
    turn = ca.atan(x2 / x1) / (2 * pi)
    return 10 * (x3 - 10 * turn), 10 * (ca.sqrt(x1**2 + x2**2) - 1), x3


@tp(248, x0=(-0.1, -1, 0.1), f_star=-0.8, x_star=(0.6, 0.8, 0))
def tp248(x1, x2, x3):
    return -x2, [ge(1 - 2 * x2 + x1), eq(x1**2 + x2**2 + x3**2, 1)]


@tp(249, x0=(1, 1, 1), f_star=1, x_star=(1, 0, 0), lbx=(1, -inf, -inf))
def tp249(x1, x2, x3):
    return x1**2 + x2**2 + x3**2, [ge(x1**2 + x2**2, 1)]


@tp(250, x0=(10,) * 3, f_star=-3300, x_star=(20, 11, 15), lbx=0, ubx=(20, 11, 42))
def tp250(x1, x2, x3):
    return -x1 * x2 * x3, [(x1 + 2 * x2 + 2 * x3, 0, 72)]


@tp(251, x0=(10,) * 3, f_star=-3456, x_star=(24, 12, 12), lbx=0, ubx=42)
def tp251(x1, x2, x3):
    return -x1 * x2 * x3, [ge(72 - x1 - 2 * x2 - 2 * x3)]


@tp(
    252,
    x0=(-1, 2, 2),
    f_star=0.04,
    x_star=(-1, 1, 0),
    ubx=(-1, inf, inf),
    note="Problem 235 with a bound, other start.",
)
def tp252(x1, x2, x3):
    return 0.01 * (x1 - 1) ** 2 + (x2 - x1**2) ** 2, [eq(x1 + x3**2, -1)]


@tp(253, x0=(0, 2, 0), f_star=69.282032, x_star=(5, 5, 5), lbx=0)
def tp253(x1, x2, x3):
    corners = product((0, 10), repeat=3)
    f = sum(ca.sqrt((a - x1) ** 2 + (b - x2) ** 2 + (c - x3) ** 2) for a, b, c in corners)
    return f, [ge(30 - 3 * x1 - 3 * x3)]


@tp(254, x0=(1, 1, 1), f_star=-sqrt(3), x_star=(0, sqrt(3), 1), lbx=(-inf, -inf, 1))
def tp254(x1, x2, x3):
    return ca.log10(x3) - x2, [eq(x2**2 + x3**2, 4), eq(x3 - 1 - x1**2)]


def _wood(x1, x2, x3, x4):
    return (
        *(10 * (x2 - x1**2), 1 - x1, sqrt(90) * (x4 - x3**2), 1 - x3),
        *(sqrt(9.9) * (x2 + x4 - 2), sqrt(0.2) * (x2 - 1), sqrt(0.2) * (x4 - 1)),
    )


@tp(
    255,
    x0=(-3, 1, -3, 1),
    f_star=0,
    x_star=(1, 1, 1, 1),
    lbx=-10,
    ubx=10,
    note="Half the square of one function: every zero of it is a minimizer. Without the square, "
    "as first published, f is not bounded below but by the bounds.",
)
def tp255(x1, x2, x3, x4):
    inner = 100 * (x2 - x1**2) + (1 - x1) ** 2 + 90 * (x4 - x3**2) + (1 - x3) ** 2
    inner += 10.1 * ((x2 - 1) ** 2 + (x4 - 1) ** 2) + 19.8 * (x2 - 1) * (x4 - 1)
    return inner**2 / 2, []


def _powell(x1, x2, x3, x4):
    return x1 + 10 * x2, sqrt(5) * (x3 - x4), (x2 - 2 * x3) ** 2, sqrt(10) * (x1 - x4) ** 2


tp256 = squares(
    256, x0=(3, -1, 0, 1), f_star=0, x_star=(0,) * 4, note="Powell; the Hessian at x* has rank 2."
)(_powell)


@tp(257, x0=(0,) * 4, f_star=0, x_star=(1,) * 4, lbx=0)
def tp257(x1, x2, x3, x4):
    f = 100 * (x1**2 - x2) ** 2 + (x1 - 1) ** 2 + 90 * (x3**2 - x4) ** 2 + (x3 - 1) ** 2
    f += 10.1 * ((x2 - 1) ** 2 + (x4 - 1) ** 2)
    return f + 19.8 * (x1 - 1) * (x4 - 1), []


tp258 = squares(258, x0=(-3, -1, -3, -1), f_star=0, x_star=(1,) * 4, note="Colville, Wood.")(_wood)


@tp(
    259,
    x0=(0,) * 4,
    f_star=-8.544621,
    x_star=(1.43584191, 2.06315971, 0.0689745106, -0.0999682161),
    ubx=(inf, inf, inf, 1),
    note="(1, 1, 1, 1) with f = 0 is stationary too.",
)
def tp259(x1, x2, x3, x4):
    f = 100 * (x2 - x1**2) ** 2 + (1 - x1) ** 2 + 90 * (x4 - x3**2) ** 2 + (1 - x3) ** 3
    f += 10.1 * (x2 - 1) ** 2 + (x4 - 1) ** 2
    return f + 19.8 * (x2 - 1) * (x4 - 1), []


tp260 = squares(260, x0=(-3, -1, -3, -1), f_star=0, x_star=(1,) * 4, note="Problem 258 once more.")(
    _wood
)
