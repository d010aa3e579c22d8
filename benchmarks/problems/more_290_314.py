"""Problems 290–314 of Schittkowski's second collection; sources as in ``more_base``."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import casadi as ca

from problems.more_base import squares, tp


def _quartic(*x):
    return (sum(i * xi**2 for i, xi in enumerate(x, 1)),)


tp290, tp291, tp292, tp293 = (
    squares(
        number,
        x0=(1,) * n,
        f_star=0,
        x_star=(0,) * n,
        note="f = (Σ i x_i²)²: the Hessian vanishes at x*.",
    )(_quartic)
    for number, n in ((290, 2), (291, 10), (292, 30), (293, 50))
)


def _chain(*x):
    return [10 * (b - a**2) for a, b in pairwise(x)] + [1 - a for a in x[:-1]]


tp294, tp295, tp296, tp297, tp298, tp299 = (
    squares(
        number,
        x0=(-1.2, 1) * (n // 2),
        f_star=0,
        x_star=(1,) * n,
        note="Rosenbrock's valley in n variables, with another local minimum near x1 = −1, "
        "f ≈ 4. The test programs multiply f by 1E-4.",
    )(_chain)
    for number, n in ((294, 6), (295, 10), (296, 16), (297, 30), (298, 50), (299, 100))
)


def _tridiagonal(*x):
    f = x[0] ** 2 - 2 * x[0]
    return f + sum(2 * b**2 - 2 * a * b for a, b in pairwise(x)), []


tp300, tp301, tp302 = (
    tp(number, x0=(0,) * n, f_star=-n, x_star=range(n, 0, -1))(_tridiagonal)
    for number, n in ((300, 20), (301, 50), (302, 100))
)


def _rank_one(*x):
    s = sum(i * xi / 2 for i, xi in enumerate(x, 1))
    return sum(xi**2 for xi in x) + s**2 + s**4, []


tp303, tp304, tp305 = (
    tp(number, x0=(0.1,) * n, f_star=0, x_star=(0,) * n)(_rank_one)
    for number, n in ((303, 20), (304, 50), (305, 100))
)


@tp(
    306,
    x0=(1, 1),
    f_star=-inf,
    note="Published: f = −1.1036 at (0, 1), which is not stationary. f is not bounded below: "
    "x1 → −∞. Its stationary points are the maximum x = 0 and the saddle (1.2, 0.8).",
)
def tp306(x1, x2):
    return -ca.exp(-x1 - x2) * (2 * x1**2 + 3 * x2**2), []


@squares(
    307,
    x0=(0.3, 0.4),
    f_star=124.36218,
    x_star=(0.257825214, 0.257825214),
    lbx=0,
    note="Jennrich & Sampson. The test programs cut the exponents at 20, far from x*.",
)
def tp307(x1, x2):
    return [2 + 2 * i - ca.exp(i * x1) - ca.exp(i * x2) for i in range(1, 11)]


@squares(308, x0=(3, 0.1), f_star=0.77319906, x_star=(-0.15543724, 0.69456378))
def tp308(x1, x2):
    return x1**2 + x2**2 + x1 * x2, ca.sin(x1), ca.cos(x2)


@tp(309, x0=(0, 0), f_star=-3.9871708, x_star=(3.4826826, 3.9))
def tp309(x1, x2):
    quartic = (((1.41 * x1 - 12.76) * x1 + 39.91) * x1 - 51.93) * x1 + 24.37
    return quartic + (x2 - 3.9) ** 2, []


@squares(310, x0=(-1.2, 1), f_star=0, x_star=(0, 0), note="The zeros are curves through x*.")
def tp310(x1, x2):
    rest = 1 - x1
    return (x1 * x2 * rest * (rest - x2 * rest**5),)


@squares(
    311,
    x0=(1, 1),
    f_star=0,
    x_star=(3, 2),
    note="Himmelblau. There are four zeros, among them (3.58443, −1.84813).",
)
def tp311(x1, x2):
    return x1**2 + x2 - 11, x1 + x2**2 - 7


@squares(
    312,
    x0=(1, 1),
    f_star=0,
    x_star=(-21.02665226267, -36.76000878127),
    note="There is another local minimum near x0, f = 5.9225.",
)
def tp312(x1, x2):
    return x1**2 + 12 * x2 - 1, 49 * (x1**2 + x2**2) + 84 * x1 + 2324 * x2 - 681


@tp(313, x0=(0, -1), f_star=0.199786, x_star=(3, 2.850214))
def tp313(x1, x2):
    gap = x2 - x1
    return 1e-4 * (x1 - 3) ** 2 - gap + ca.exp(20 * gap), []


@tp(
    314,
    x0=(2, 2),
    f_star=0.1690427,
    x_star=(1.79540285, 1.37785978),
    lbx=1,
    note="The bounds of the test programs keep x off the pole x1²/4 + x2² = 1, inside of which "
    "there is a lower local minimum and no lower bound of f outside.",
)
def tp314(x1, x2):
    pole = 1 - x1**2 / 4 - x2**2
    f = (x1 - 2) ** 2 + (x2 - 1) ** 2 + 0.04 / pole
    return f + (x1 - 2 * x2 + 1) ** 2 / 0.2, []
