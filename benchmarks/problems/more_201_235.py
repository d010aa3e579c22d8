"""Problems 201–235 of Schittkowski's second collection; sources as in ``more_base``.

214 is left out: its objective is a fourth root, not differentiable at the minimizer.
"""

from __future__ import annotations

from functools import partial
from math import inf, log, sqrt

import casadi as ca

from problems.hs_base import eq, ge
from problems.more_base import squares, tp


@squares(201, x0=(8, 9), f_star=0, x_star=(5, 6))
def tp201(x1, x2):
    return 2 * (x1 - 5), x2 - 6


@squares(
    202,
    x0=(15, -2),
    f_star=0,
    x_star=(5, 4),
    lbx=(1, -5),
    ubx=(20, 5),
    note="Freudenstein & Roth. Within the bounds there is another minimum at x1 ≈ 11.41, "
    "f ≈ 48.98425.",
)
def tp202(x1, x2):
    return (x1 - 13 + x2 * (x2 * (5 - x2) - 2), x1 - 29 + x2 * (x2 * (1 + x2) - 14))


def _beale(x1, x2):
    targets = (1.5, 2.25, 2.625)
    return [c - x1 * (1 - x2 ** (i + 1)) for i, c in enumerate(targets)]


tp203 = squares(203, x0=(2, 0.2), f_star=0, x_star=(3, 0.5), note="Beale.")(_beale)


@squares(204, x0=(0.1, 0.1), f_star=0.183601, x_star=(0, 0))
def tp204(x1, x2):
    offsets = (0.13294, -0.244378, 0.325895)
    curvatures = (2.5074, -1.36401, 1.02282)
    slopes = ((-0.564255, 0.392417), (-0.404979, 0.927589), (-0.0735084, 0.535493))
    linear = [a * x1 + b * x2 for a, b in slopes]
    return [c + s + d * s**2 / 2 for c, d, s in zip(offsets, curvatures, linear, strict=True)]


tp205 = squares(205, x0=(0, 0), f_star=0, x_star=(3, 0.5), note="Problem 203, other start.")(_beale)


def _valley(steep, flat, power, x1, x2):
    return steep * (x2 - x1**power), flat * (1 - x1)


_VALLEY = {"x0": (-1.2, 1), "f_star": 0, "x_star": (1, 1)}
tp206 = squares(206, **_VALLEY)(partial(_valley, 1, 10, 2))
tp207 = squares(207, **_VALLEY)(partial(_valley, 1, 1, 2))
tp208 = squares(208, **_VALLEY, note="Rosenbrock.")(partial(_valley, 10, 1, 2))
tp209 = squares(209, **_VALLEY)(partial(_valley, 100, 1, 2))
tp210 = squares(210, **_VALLEY, note="The test programs divide f by 1E6.")(
    partial(_valley, 1000, 1, 2)
)
tp211 = squares(211, **_VALLEY)(partial(_valley, 10, 1, 3))


@squares(212, x0=(2, 0), f_star=0, x_star=(0, 0))
def tp212(x1, x2):
    first = 4 * (x1 + x2)
    return first, first + (x1 - x2) * ((x1 - 2) ** 2 + x2**2 - 1)


@squares(213, x0=(3, 1), f_star=0, x_star=(1, 1), note="All derivatives up to the 7th vanish.")
def tp213(x1, x2):
    return ((10 * (x1 - x2) ** 2 + (x1 - 1) ** 2) ** 2,)


@tp(215, x0=(1, 1), f_star=0, x_star=(0, 0), lbx=(0, -inf))
def tp215(x1, x2):
    return x2, [ge(x2 - x1**2)]


@tp(
    216,
    x0=(-1.2, 1),
    f_star=0.99937529,
    x_star=(1.9993752, 4.0000002),
    lbx=-3,
    ubx=10,
    note="Published: f = 1 at (2, 4) (the test programs print x1* = 20), which is not stationary. "
    "Here f* and x* are the least value IPOPT finds.",
)
def tp216(x1, x2):
    return 100 * (x1**2 - x2) ** 2 + (x1 - 1) ** 2, [eq(x1 * (x1 - 4) - 2 * x2 + 12)]


@tp(217, x0=(10, 10), f_star=-0.8, x_star=(0.6, 0.8), lbx=(0, -inf))
def tp217(x1, x2):
    return -x2, [ge(1 + x1 - 2 * x2), eq(x1**2 + x2**2, 1)]


@tp(218, x0=(9, 100), f_star=0, x_star=(0, 0), lbx=(-inf, 0))
def tp218(x1, x2):
    return x2, [ge(x2 - x1**2)]


@tp(219, x0=(10,) * 4, f_star=-1, x_star=(1, 1, 0, 0))
def tp219(x1, x2, x3, x4):
    return -x1, [eq(x2 - x1**3 - x3**2), eq(x1**2 - x2 - x4**2)]


@tp(
    220,
    x0=(25000, 25000),
    f_star=1,
    x_star=(1, 0),
    lbx=(1, 0),
    note="The row has no gradient along x1 at x*; x1 ≥ 1 holds the minimizer.",
)
def tp220(x1, x2):
    return x1, [ge((x1 - 1) ** 3 - x2)]


@tp(
    221,
    x0=(0.25, 0.25),
    f_star=-1,
    x_star=(1, 0),
    lbx=0,
    ubx=1,
    note="Without x1 ≤ 1 there are no multipliers at x*.",
)
def tp221(x1, x2):
    return -x1, [ge(-((x1 - 1) ** 3) - x2)]


@tp(222, x0=(1.3, 0.2), f_star=-1.5, x_star=(1.5, 0), lbx=0)
def tp222(x1, x2):
    return -x1, [ge(0.125 - (x1 - 1) ** 3 - x2)]


@tp(
    223,
    x0=(0.1, 3.3),
    f_star=-log(log(10)),
    x_star=(log(log(10)), 10),
    lbx=0,
    ubx=(1, 10),
    note="The book has x1 ≤ 10; the test programs have x1 ≤ 1.",
)
def tp223(x1, x2):
    tower = ca.exp(ca.exp(x1))
    return -x1, [ge(tower), ge(x2 - tower)]


@tp(224, x0=(0.1, 0.1), f_star=-304, x_star=(4, 4), lbx=0, ubx=6)
def tp224(x1, x2):
    f = 2 * x1**2 + x2**2 - 48 * x1 - 40 * x2
    return f, [(x1 + 3 * x2, 0, 18), (x1 + x2, 0, 8)]


@tp(225, x0=(3, 1), f_star=2, x_star=(1, 1))
def tp225(x1, x2):
    rows = [ge(x1 + x2, 1), ge(x1**2 + x2**2, 1), ge(9 * x1**2 + x2**2, 9)]
    return x1**2 + x2**2, [*rows, ge(x1**2 - x2), ge(x2**2 - x1)]


@tp(226, x0=(0.8, 0.05), f_star=-0.5, x_star=(sqrt(0.5), sqrt(0.5)), lbx=0)
def tp226(x1, x2):
    return -x1 * x2, [(x1**2 + x2**2, 0, 1)]


@tp(227, x0=(0.5, 0.5), f_star=1, x_star=(1, 1))
def tp227(x1, x2):
    return (x1 - 2) ** 2 + (x2 - 1) ** 2, [ge(x2 - x1**2), ge(x1 - x2**2)]


@tp(228, x0=(0, 0), f_star=-3, x_star=(0, -3))
def tp228(x1, x2):
    return x1**2 + x2, [ge(1 - x1 - x2), ge(9 - x1**2 - x2**2)]


tp229 = squares(229, **_VALLEY, lbx=-2, ubx=2)(partial(_valley, 10, 1, 2))


@tp(230, x0=(0, 0), f_star=0.375, x_star=(0.5, 0.375))
def tp230(x1, x2):
    def row(z):
        return x2 - 2 * z**2 + z**3

    return x2, [ge(row(x1)), ge(row(1 - x1))]


@tp(231, **_VALLEY)
def tp231(x1, x2):
    f = 100 * (x2 - x1**2) ** 2 + (1 - x1) ** 2
    return f, [ge(x2 + x1 / 3, -0.1), ge(x2 - x1 / 3, -0.1)]


@tp(232, x0=(2, 0.5), f_star=-1, x_star=(3, sqrt(3)), lbx=0)
def tp232(x1, x2):
    f = -(9 - (x1 - 3) ** 2) * x2**3 / (27 * sqrt(3))
    return f, [ge(x1 / sqrt(3) - x2), (x1 + sqrt(3) * x2, 0, 6)]


@tp(233, x0=(1.2, 1), f_star=0, x_star=(1, 1))
def tp233(x1, x2):
    return 100 * (x2 - x1**2) ** 2 + (1 - x1) ** 2, [ge(x1**2 + x2**2, 0.25)]


@tp(234, x0=(1, 1), f_star=-0.8, x_star=(0.2, 0.2), lbx=0.2, ubx=2)
def tp234(x1, x2):
    return (x2 - x1) ** 4 - (1 - x1), [ge(1 - x1**2 - x2**2)]


@tp(
    235,
    x0=(-2, 3, 1),
    f_star=0.04,
    x_star=(-1, 1, 0),
    note="x3² = −1 − x1 keeps x1 ≤ −1: x* is where the row has no gradient along x3.",
)
def tp235(x1, x2, x3):
    return (x2 - x1**2) ** 2 + 0.01 * (x1 - 1) ** 2, [eq(x1 + x3**2, -1)]
