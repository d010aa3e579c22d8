"""Problems 261–289 of Schittkowski's second collection; sources as in ``more_base``.

281 is left out: its objective is a cube root, not differentiable at the minimizer.
"""

from __future__ import annotations

from functools import partial
from math import inf, sqrt

import casadi as ca

from problems.hs_base import eq, ge
from problems.more_base import squares, tp
from problems.more_data import (
    BALLS_284,
    BALLS_285,
    BALLS_COLUMNS,
    BALLS_LEVELS,
    INTEGER_CONSTANT,
    INTEGER_LEVELS,
    INTEGER_LINEAR,
    INTEGER_Q,
    INTEGER_ROWS,
    TEN_A,
    TEN_B,
    TEN_C,
    TEN_D,
)


def _dot(coefficients, x):
    return sum(c * xi for c, xi in zip(coefficients, x, strict=True))


@squares(261, x0=(0,) * 4, f_star=0, x_star=(0, 1, 1, 1), lbx=0, ubx=10, note="Cragg & Levy.")
def tp261(x1, x2, x3, x4):
    first = (ca.exp(x1) - x2) ** 2
    return first, 10 * (x2 - x3) ** 3, ca.tan(x3 - x4) ** 2, x1**4, x4 - 1


@tp(262, x0=(1,) * 4, f_star=-10, x_star=(0, 26 / 3, 0, 4 / 3), lbx=0)
def tp262(x1, x2, x3, x4):
    rows = [
        ge(10 - x1 - x2 - x3 - x4),
        ge(10 - 0.2 * x1 - 0.5 * x2 - x3 - 2 * x4),
        ge(10 - 2 * x1 - x2 - 0.5 * x3 - 0.2 * x4),
    ]
    return -0.5 * x1 - x2 - 0.5 * x3 - x4, [*rows, eq(x1 + x2 + x3 - 2 * x4, 6)]


@tp(
    263,
    x0=(10,) * 4,
    f_star=-1,
    x_star=(1, 1, 0, 0),
    note="The equations say what the inequalities say: four dependent rows at x*.",
)
def tp263(x1, x2, x3, x4):
    upper, lower = x2 - x1**3, x1**2 - x2
    return -x1, [ge(upper), ge(lower), eq(upper - x3**2), eq(lower - x4**2)]


@tp(
    264,
    x0=(0,) * 4,
    f_star=-44,
    x_star=(0, 1, 2, -1),
    note="Rosen & Suzuki with other coefficients.",
)
def tp264(x1, x2, x3, x4):
    f = x1**2 + x2**2 + 2 * x3**2 + x4**2 - 5 * x1 - 5 * x2 - 21 * x3 + 7 * x4
    rows = [
        ge(8 - x1**2 - x2**2 - x3**2 - x4**2 - x1 + x2 - x3 + x4),
        ge(9 - x1**2 - 2 * x2**2 - x3**2 - 2 * x4**2 + x1 + x4),
        ge(5 - 2 * x1**2 - x2**2 - x3**2 - 2 * x1 + x2 + x4),
    ]
    return f, rows


@tp(
    265,
    x0=(0,) * 4,
    f_star=0.97474658,
    x_star=(1, 0, 1, 0),
    lbx=0,
    note="(0, 1, 0, 1) is the same point with the pairs exchanged.",
)
def tp265(x1, x2, x3, x4):
    f = 2 - ca.exp(-10 * x1 * ca.exp(-x3)) - ca.exp(-10 * x2 * ca.exp(-x4))
    return f, [eq(x1 + x2, 1), eq(x3 + x4, 1)]


@squares(
    266,
    x0=(0.1,) * 5,
    f_star=0.99597447,
    x_star=(0, 0, 0.029297857, 0, 0),
    lbx=0,
    note="NLSProblems.jl has four other entries in the table, for which x* is not the minimizer.",
)
def tp266(*x):
    form = _dot(x, [_dot(row, x) for row in TEN_B])
    return [
        a + _dot(slopes, x) + d * form / 2 for a, d, slopes in zip(TEN_A, TEN_D, TEN_C, strict=True)
    ]


def _exponentials(t):
    return ca.exp(-t) - 5 * ca.exp(-10 * t) + 3 * ca.exp(-4 * t)


@squares(
    267,
    x0=(2,) * 5,
    f_star=0,
    x_star=(1, 10, 1, 5, 4),
    lbx=(0, 0, -inf, -inf, 0),
    ubx=15,
    note="Biggs. (10, 1, −5, −1, 4) is a minimizer too.",
)
def tp267(x1, x2, x3, x4, x5):
    times = [i / 10 for i in range(1, 12)]
    return [
        x3 * ca.exp(-x1 * t) - x4 * ca.exp(-x2 * t) + 3 * ca.exp(-x5 * t) - _exponentials(t)
        for t in times
    ]


@tp(268, x0=(1,) * 5, f_star=0, x_star=(1, 2, -1, 3, -4))
def tp268(*x):
    f = _dot(x, [_dot(row, x) for row in INTEGER_Q]) - 2 * _dot(INTEGER_LINEAR, x)
    rows = zip(INTEGER_ROWS, INTEGER_LEVELS, strict=True)
    return f + INTEGER_CONSTANT, [ge(_dot(row, x), level) for row, level in rows]


@tp(269, x0=(2,) * 5, f_star=176 / 43, x_star=(-33 / 43, 11 / 43, 27 / 43, -5 / 43, 11 / 43))
def tp269(x1, x2, x3, x4, x5):
    f = (x1 - x2) ** 2 + (x2 + x3 - 2) ** 2 + (x4 - 1) ** 2 + (x5 - 1) ** 2
    return f, [eq(x1 + 3 * x2), eq(x3 + x4 - 2 * x5), eq(x2 - x5)]


@tp(
    270,
    x0=(1.1, 2.1, 3.1, 4.1, -1),
    f_star=-1,
    x_star=(1, 2, 3, 4, 2),
    lbx=(1, 2, 3, 4, -inf),
    note="The products factor into (x1 − 1)(x2 − 2)(x3 − 3)(x4 − 4). All five sides are active "
    "at x*, more than their gradients are independent.",
)
def tp270(x1, x2, x3, x4, x5):
    f = (x1 - 1) * (x2 - 2) * (x3 - 3) * (x4 - 4) + x5**2 * (1.5 * x5**2 - 5.75 * x5 + 5.25)
    return f, [ge(34 - x1**2 - x2**2 - x3**2 - x4**2 - x5**2)]


_ONES = {"x0": (0,) * 6, "f_star": 0, "x_star": (1,) * 6}


@squares(271, **_ONES)
def tp271(*x):
    return [sqrt(10 * (15 - i)) * (xi - 1) for i, xi in enumerate(x)]


@squares(272, x0=(1, 2, 1, 1, 1, 1), f_star=0, x_star=(1, 10, 4, 1, 5, 3), lbx=0, note="Biggs.")
def tp272(x1, x2, x3, x4, x5, x6):
    times = [i / 10 for i in range(1, 14)]
    return [
        x4 * ca.exp(-x1 * t) - x5 * ca.exp(-x2 * t) + x6 * ca.exp(-x3 * t) - _exponentials(t)
        for t in times
    ]


@tp(273, **_ONES)
def tp273(*x):
    h = sum((15 - i) * (xi - 1) ** 2 for i, xi in enumerate(x))
    return 10 * h * (1 + h), []


def _hilbert(n):
    return [[1 / (i + j + 1) for j in range(n)] for i in range(n)]


def _hilbert_form(*x):
    return _dot(x, [_dot(row, x) for row in _hilbert(len(x))]), []


tp274, tp275, tp276 = (
    tp(number, x0=[-4 / i for i in range(1, n + 1)], f_star=0, x_star=(0,) * n)(_hilbert_form)
    for number, n in ((274, 2), (275, 4), (276, 6))
)


def _hilbert_program(*x):
    rows = _hilbert(len(x))
    return sum(_dot(row, x) for row in rows), [ge(_dot(row, x), sum(row)) for row in rows]


tp277, tp278, tp279, tp280 = (
    tp(
        number,
        x0=(0,) * n,
        f_star=sum(map(sum, _hilbert(n))),
        x_star=(1,) * n,
        lbx=0,
        note="A linear program; the condition of the rows grows to 1E13 at n = 10.",
    )(_hilbert_program)
    for number, n in ((277, 4), (278, 6), (279, 8), (280, 10))
)


@squares(282, x0=(-1.2, *(0,) * 9), f_star=0, x_star=(1,) * 10)
def tp282(*x):
    chain = [sqrt(10 * (9 - i)) * (x[i] ** 2 - x[i + 1]) for i in range(9)]
    return x[0] - 1, x[9] - 1, *chain


@tp(283, x0=(0,) * 10, f_star=0, x_star=(1,) * 10, note="All derivatives up to the 5th vanish.")
def tp283(*x):
    return sum(i**3 * (xi - 1) ** 2 for i, xi in enumerate(x, 1)) ** 3, []


def _balls(costs, *x):
    squared = [xi**2 for xi in x]
    rows = [_dot(row, squared) for row in zip(*BALLS_COLUMNS, strict=True)]
    return -_dot(costs, x), [ge(level - row) for row, level in zip(rows, BALLS_LEVELS, strict=True)]


tp284, tp285 = (
    tp(number, x0=(0,) * 15, f_star=-sum(costs), x_star=(1,) * 15)(partial(_balls, costs))
    for number, costs in ((284, BALLS_284), (285, BALLS_285))
)


@squares(286, x0=(*(-1.2,) * 10, *(1,) * 10), f_star=0, x_star=(1,) * 20)
def tp286(*x):
    pairs = list(zip(x[:10], x[10:], strict=True))
    return [a - 1 for a, _ in pairs] + [10 * (a**2 - b) for a, b in pairs]


def _quadruples(x):
    return zip(x[:5], x[5:10], x[10:15], x[15:], strict=True)


@squares(
    287,
    x0=(*(-3,) * 5, *(-1,) * 5, *(-3,) * 5, *(-1,) * 5),
    f_star=0,
    x_star=(1,) * 20,
    note="Five copies of problem 258. The test programs multiply f by 1E-5.",
)
def tp287(*x):
    residuals = []
    for a, b, c, d in _quadruples(x):
        residuals += [10 * (b - a**2), a - 1, sqrt(90) * (d - c**2), c - 1]
        residuals += [sqrt(9.9) * (b + d - 2), sqrt(0.2) * (b - 1), sqrt(0.2) * (d - 1)]
    return residuals


@squares(
    288,
    x0=(*(3,) * 5, *(-1,) * 5, *(0,) * 5, *(1,) * 5),
    f_star=0,
    x_star=(0,) * 20,
    note="Five copies of problem 256.",
)
def tp288(*x):
    residuals = []
    for a, b, c, d in _quadruples(x):
        residuals += [a + 10 * b, sqrt(5) * (c - d), (b - 2 * c) ** 2, sqrt(10) * (a - d) ** 2]
    return residuals


@tp(289, x0=[(-1) ** i * (1 + i / 30) for i in range(1, 31)], f_star=0, x_star=(0,) * 30)
def tp289(*x):
    return 1 - ca.exp(-sum(xi**2 for xi in x) / 60), []
