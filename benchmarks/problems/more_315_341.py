"""Problems 315–341 of Schittkowski's second collection; sources as in ``more_base``."""

from __future__ import annotations

from functools import partial
from math import inf, pi, sqrt

import casadi as ca

from problems.hs_base import eq, ge, le
from problems.more_base import squares, tp
from problems.more_data import (
    CHLORINE_TIMES,
    CHLORINE_VALUES,
    DECAY_TIMES,
    DECAY_VALUES,
    RATIONAL_VALUES,
)


@tp(315, x0=(-0.1, -0.9), f_star=-0.8, x_star=(0.6, 0.8))
def tp315(x1, x2):
    return -x2, [ge(1 - 2 * x2 + x1), (x1**2 + x2**2, 0, 1)]


def _ellipse(square, x1, x2):
    return (x1 - 20) ** 2 + (x2 + 20) ** 2, [eq(x1**2 / 100 + x2**2 / square, 1)]


_ELLIPSES = (
    (316, 100, 334.31458, (7.0710678, -7.0710678)),
    (317, 64, 372.46661, (7.3519262, -5.422866)),
    (318, 36, 412.75005, (7.8091266, -3.7478414)),
    (319, 16, 452.4044, (8.4922857, -2.1121017)),
    (320, 4, 485.53146, (9.39592501, -0.684590188)),
    (321, 1, 496.11237, (9.8160292, -0.19093377)),
    (322, 0.01, 499.96001, (9.9980018, -0.0019990011)),
)
tp316, tp317, tp318, tp319, tp320, tp321, tp322 = (
    tp(
        number,
        x0=(1e-4, 1e-4) if number == 322 else (0, 0),
        f_star=f_star,
        x_star=x_star,
        note="" if number == 322 else "The row has no gradient at x0.",
    )(partial(_ellipse, square))
    for number, square, f_star, x_star in _ELLIPSES
)


@tp(323, x0=(0, 1), f_star=3.7989446, x_star=(0.55357378, 1.3064439), lbx=0)
def tp323(x1, x2):
    return (x1 - 2) ** 2 + x2**2, [ge(x1 - x2 + 2), ge(x2 - x1**2 - 1)]


@tp(324, x0=(2, 2), f_star=5, x_star=(15.811389, 1.5811387), lbx=(2, -inf))
def tp324(x1, x2):
    return 0.01 * x1**2 + x2**2, [ge(x1 * x2, 25), ge(x1**2 + x2**2, 25)]


@tp(325, x0=(-3, 0), f_star=3.7913414, x_star=(-2.3722813, -1.8363772))
def tp325(x1, x2):
    return x1**2 + x2, [ge(1 - x1 - x2), ge(1 - x1 - x2**2), eq(x1**2 + x2**2, 9)]


@tp(326, x0=(4, 3), f_star=-79.807821, x_star=(5.2396091, 3.7460378), lbx=0, ubx=10)
def tp326(x1, x2):
    f = x1**2 + x2**2 - 16 * x1 - 10 * x2
    return f, [ge(11 - x1**2 + 6 * x1 - 4 * x2), ge((x1 - 3) * x2 - ca.exp(x1 - 3) + 1)]


@tp(
    327,
    x0=(0.42, 5),
    f_star=0.02845967,
    x_star=(0.41995259, 1.2848442),
    lbx=0.4,
    note="(0.42190424, 5.0000526) with f = 0.030646306 is another local minimum.",
)
def tp327(x1, x2):
    pairs = zip(CHLORINE_TIMES, CHLORINE_VALUES, strict=True)
    f = sum((y - x1 - (0.49 - x1) * ca.exp(-x2 * (z - 8))) ** 2 for z, y in pairs)
    return f, [ge((0.49 - x1) * x2, 0.09)]


@tp(328, x0=(0.5, 0.5), f_star=1.744152, x_star=(1.743439, 2.0297056), lbx=0.1, ubx=3)
def tp328(x1, x2):
    product = (x1 * x2) ** 2
    return (12 + x1**2 + (1 + x2**2) / x1**2 + (product + 100) / product**2) / 10, []


@tp(329, x0=(14.35, 8.6), f_star=-6961.8139, x_star=(14.095, 0.84296079), lbx=(13, 0), ubx=(16, 15))
def tp329(x1, x2):
    rows = [ge((x1 - 5) ** 2 + (x2 - 5) ** 2, 100), ((x1 - 6) ** 2 + (x2 - 5) ** 2, 0, 82.81)]
    return (x1 - 10) ** 3 + (x2 - 20) ** 3, rows


@tp(330, x0=(2.5, 2.5), f_star=1.6205833, x_star=(1.2866773, 0.53046181), lbx=1e-5, ubx=5)
def tp330(x1, x2):
    return 0.044 * x1**3 / x2**2 + 1 / x1 + 0.0592 * x1 / x2**3, [ge(1 - 8.62 * x2**3 / x1)]


@tp(
    331,
    x0=(0.5, 0.1),
    f_star=4.2583847,
    x_star=(0.618955151, 0.103558221),
    lbx=(0.3, 0.1),
    ubx=(0.7, 0.2),
)
def tp331(x1, x2):
    return ca.log(2 * ca.log(x2) / ca.log(x1 + x2)) / x1, [le(x1 + x2, 1)]


@tp(
    332,
    x0=(0.75, 0.75),
    f_star=114.95015,
    x_star=(0.91139872, 0.029280207),
    lbx=0,
    ubx=1.5,
    note="The book bounds the largest of 100 angles atan|a/b| by 30°. As b > 0 within the bounds "
    "on x, these are 200 linear rows |a| ≤ b tan 30°.",
)
def tp332(x1, x2):
    f, rows = 0, []
    for i in range(100):
        t = pi * (1 / 3 + i / 180)
        a, b = 1 / t - x1, ca.log(t) + x2
        f += pi / 3.6 * (b**2 + x1**2)
        rows += [ge(b / sqrt(3) - a), ge(b / sqrt(3) + a)]
    return f, rows


@squares(
    333,
    x0=(30, 0.04, 3),
    f_star=0.04327035,
    x_star=(89.9019929, 0.0669920435, 0.478085201),
    lbx=(-inf, 0, -inf),
    ubx=(inf, 0.07, inf),
)
def tp333(x1, x2, x3):
    pairs = zip(DECAY_TIMES, DECAY_VALUES, strict=True)
    return [(y - x1 * ca.exp(-x2 * a) - x3) / y for a, y in pairs]


@squares(
    334, x0=(1, 1, 1), f_star=0.0082148773, x_star=(0.082410544, 1.1330358, 2.3436955), note="Bard."
)
def tp334(x1, x2, x3):
    return [
        y - x1 - i / (x2 * (16 - i) + x3 * min(i, 16 - i)) for i, y in enumerate(RATIONAL_VALUES, 1)
    ]


@tp(335, x0=(1, 1, 1), f_star=-0.004472137, x_star=(2.0309475e-6, 0.0044721349, 0.0020000032))
def tp335(x1, x2, x3):
    rows = [eq(1000 * x1**2 + 100 * x2**2 - x3), eq(100 * x1**2 + 400 * x2**2 + x3, 0.01)]
    return -(0.001 * x1 + x2), rows


@tp(336, x0=(0,) * 3, f_star=-0.33789573, x_star=(0.53459441, 0.53397092, -0.21905778))
def tp336(x1, x2, x3):
    rows = [eq(5 * x1 + 5 * x2 - 3 * x3, 6), eq(x1**2 + 2 * x2**2 + 3 * x3**2, 1)]
    return 7 * x1 - 6 * x2 + 4 * x3, rows


@tp(
    337,
    x0=(1, 1, 1),
    f_star=6,
    x_star=(1 / sqrt(3), sqrt(3), 0),
    lbx=(-inf, 1, -inf),
    ubx=(inf, inf, 1),
)
def tp337(x1, x2, x3):
    return 9 * x1**2 + x2**2 + 9 * x3**2, [ge(x1 * x2, 1)]


@tp(
    338,
    x0=(0,) * 3,
    f_star=-10.992806,
    x_star=(-0.36653028, -1.6620759, 2.845341),
    note="(0.36689438, 2.2437202, −1.4271674) with f = −7.2056984 is another local minimum.",
)
def tp338(x1, x2, x3):
    rows = [eq(x1 / 2 + x2 + x3, 1), eq(x1**2 + 2 / 3 * x2**2 + x3**2 / 4, 4)]
    return -(x1**2 + x2**2 + x3**2), rows


@tp(339, x0=(1, 1, 1), f_star=3.3616797, x_star=(2.3797626, 0.31622787, 1.9429359), lbx=0.01)
def tp339(x1, x2, x3):
    return 0.2 / (x1 * x2 * x3) + 4 / x1 + 3 / x3, [ge(10 - 2 * x1 * x3 - x1 * x2)]


@tp(340, x0=(1, 1, 1), f_star=-0.054, x_star=(0.6, 0.3, 0.3), lbx=0, ubx=(1, inf, inf))
def tp340(x1, x2, x3):
    return -x1 * x2 * x3, [ge(1.8 - x1 - 2 * x2 - 2 * x3)]


@tp(
    341,
    x0=(1, 1, 1),
    f_star=-16 * sqrt(2),
    x_star=(4, 2 * sqrt(2), 2),
    lbx=0,
    note="342 is the same problem.",
)
def tp341(x1, x2, x3):
    return -x1 * x2 * x3, [ge(48 - x1**2 - 2 * x2**2 - 4 * x3**2)]
