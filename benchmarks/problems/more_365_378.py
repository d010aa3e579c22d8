"""Problems 365–378 of Schittkowski's second collection; sources as in ``more_base``.

Left out: 362–364 (defined by a simulation with events, a shooting method, and a mechanism with
|·| under roots).
"""

from __future__ import annotations

from math import cos, inf, pi, sin

import casadi as ca

from problems.hs_base import eq, ge
from problems.hs_data import CHEMICAL_C
from problems.more_base import squares, tp
from problems.more_data import ALKYLATION, EXPONENTIAL_LEVELS


@tp(
    365,
    x0=(3, 0, 2, -1.5, 1.5, 5, 0),
    f_star=23.313708,
    x_star=(4.8284266, 4.7529555e-6, 4.8284276, 1.0000024, 2.4142144, 2.4142151, 1),
    lbx=(0, -inf, 0, -inf, 1, -inf, 1),
    note="A triangle of least area around two discs; x7 = 0 of the start is below its bound.",
)
def tp365(x1, x2, x3, x4, x5, x6, x7):
    p, q = ca.sqrt(x2**2 + x3**2), ca.sqrt(x3**2 + (x2 - x1) ** 2)
    rows = [
        ge((x4 - x6) ** 2 + (x5 - x7) ** 2, 4),
        ge((x3 * x4 - x2 * x5) / p, 1),
        ge((x3 * x6 - x2 * x7) / p, 1),
        ge((x1 * x3 + (x2 - x1) * x5 - x3 * x4) / q, 1),
        ge((x1 * x3 + (x2 - x1) * x7 - x3 * x6) / q, 1),
    ]
    return x1 * x3, rows


@tp(
    366,
    x0=(1745, 110, 3048, 89, 92.8, 8, 145),
    f_star=704.3056,
    x_star=(905.40351, 36.394998, 2381.4783, 88.987691, 95, 12, 153.53535),
    lbx=(1, 1, 1, 85, 90, 3, 145),
    ubx=(2000, 120, 5000, 93, 95, 12, 162),
)
def tp366(x1, x2, x3, x4, x5, x6, x7):
    terms = (
        *(x6**2, x3 / x1, x6, x1 / x3, x1 / x3 * x6, x1 / x3 * x6**2, x6**2, x5, x4, x6, 1 / x5),
        *(x6 / x5, x4 / x5, x6**2 / x5, x7, x2 / x3 / x4, x2 / x3, 1 / x7, x2 / x3 / x7),
        *(x2 / x3 / x4 / x7, 1 / x5, x7 / x5, x5, x7, x3, x1, x1 / x3, 1 / x3, x2 / x3 / x4),
        *(x2 / x3, x4, x3 * x4 / x2, x1 * x6, x1, x3, x3 / x1, 1 / x1, x6),
    )
    weighted = iter(c * term for c, term in zip(ALKYLATION, terms, strict=True))
    sizes = (3, 3, 4, 4, 3, 3, 2, 2, 2, 2, 2, 2, 3, 3)
    f = 1.715 * x1 + 0.035 * x1 * x6 + 4.0565 * x3 + 10 * x2 + 3000 - 0.063 * x3 * x5
    return f, [ge(1 - sum(next(weighted) for _ in range(size))) for size in sizes]


@tp(
    367,
    x0=(0.1,) * 7,
    f_star=-37.41296,
    x_star=(1.4688103, 1.9839711, 0.35187754, 1.1953411, 0.56940029, 0.78474478, 1.4121216),
    lbx=0,
)
def tp367(x1, x2, x3, x4, x5, x6, x7):
    f = -5 * x1 - 5 * x2 - 4 * x3 - x1 * x3 - 6 * x4 - 5 * x5 / (1 + x5) - 8 * x6 / (1 + x6)
    rows = [
        ge(10 - x1 - x2 - x3 - x4 - x5 - x6 - x7),
        ge(5 - x1 - x2 - x3 - x4),
        ge(5 - x1 - x3 - x5 - x6**2 - x7**2),
        eq(2 * x4 + x5 + 0.8 * x6 + x7, 5),
        eq(x2**2 + x3**2 + x5**2 + x6**2, 5),
    ]
    return f - 10 * (1 - ca.exp(-x7)) ** 2, rows


@tp(
    368,
    x0=(0, 1 / 2, 2 / 3, 3 / 4, 4 / 5, 5 / 6, 0.7, 0.7),
    f_star=-1,
    x_star=(1, 0.5, 0.5, 1, 1, 1, 0.5, 0.5),
    lbx=0,
    ubx=1,
    note="Not convex, with many local minima: a vertex of k ones and 8 − k halves has f = "
    "−k(8 − k)/16. x* and −1 are of k = 4; also published are −0.75 and −0.74997564.",
)
def tp368(*x):
    second, third, fourth = (sum(xi**power for xi in x) for power in (2, 3, 4))
    return third**2 - second * fourth, []


@tp(
    369,
    x0=(5000, 5000, 5000, 200, 350, 150, 225, 425),
    f_star=7049.248,
    x_star=(579.30657, 1359.9705, 5109.9709, 182.01769, 295.60116, 217.98231, 286.41653, 395.60116),
    lbx=(100, 1000, 1000, 10, 10, 10, 10, 10),
    ubx=(10000, 10000, 10000, 1000, 1000, 1000, 1000, 1000),
    note="Heat exchangers, problem 106 of the first collection with rows divided by variables.",
)
def tp369(x1, x2, x3, x4, x5, x6, x7, x8):
    rows = [
        ge(1 - 0.0025 * (x4 + x6)),
        ge(1 - 0.0025 * (x5 + x7 - x4)),
        ge(1 - 0.01 * (x8 - x5)),
        ge(1 - 833.33252 * x4 / (x1 * x6) - 100 / x6 + 83333.333 / (x1 * x6)),
        ge(1 - 1250 * x5 / (x2 * x7) - x4 / x7 + 1250 * x4 / (x2 * x7)),
        ge(1 - 1250000 / (x3 * x8) - x5 / x8 + 2500 * x5 / (x3 * x8)),
    ]
    return x1 + x2 + x3, rows


def _watson(*x):
    residuals = [x[0], x[1] - x[0] ** 2 - 1]
    for i in range(1, 30):
        t = i / 29
        value = sum(xi * t**k for k, xi in enumerate(x))
        slope = sum(k * xi * t ** (k - 1) for k, xi in enumerate(x) if k)
        residuals.append(slope - value**2 - 1)
    return residuals


tp370 = squares(
    370,
    x0=(0,) * 6,
    f_star=0.00228767005355,
    x_star=(-0.0157250864, 1.01243487, -0.232991626, 1.26043009, -1.51372892, 0.992996432),
    note="Watson.",
)(_watson)
tp371 = squares(
    371,
    x0=(0,) * 9,
    f_star=1.3997601e-6,
    x_star=(
        *(-1.53070365e-05, 0.999789704, 0.0147639637, 0.146342328, 1.0008211, -2.61773114),
        *(4.10440316, -3.14361228, 1.05262641),
    ),
    note="Watson.",
)(_watson)


def _exponential_rows(x1, x2, x3):
    rates = (-5, -3, -1, 1, 3, 5)
    return [
        x1 + x2 * ca.exp(rate * x3) - level
        for rate, level in zip(rates, EXPONENTIAL_LEVELS, strict=True)
    ]


_FIT = (523.30555, -156.94787, -0.19966457)
_DEVIATIONS = (29.608067, 86.615521, 47.326718, 26.235604, 22.915985, 39.470742)


@tp(
    372,
    x0=(300, -100, -0.1997, 127, 151, 379, 421, 460, 426),
    f_star=13390.093,
    x_star=(*_FIT, *_DEVIATIONS),
    lbx=(-inf, -inf, -1, *(0,) * 6),
    ubx=(inf, inf, 0, *(inf,) * 6),
    note="Least squares by bounds on the deviations.",
)
def tp372(x1, x2, x3, *deviations):
    values = _exponential_rows(x1, x2, x3)
    rows = [ge(d + value) for d, value in zip(deviations, values, strict=True)]
    rows += [ge(d - value) for d, value in zip(deviations, values, strict=True)]
    return sum(d**2 for d in deviations), rows


@tp(
    373,
    x0=(300, -100, -0.1997, -127, -151, 379, 421, 460, 426),
    f_star=13390.093,
    x_star=(*_FIT, *(s * d for s, d in zip((1, -1, 1, 1, 1, -1), _DEVIATIONS, strict=True))),
    lbx=(-inf, -inf, -1, *(-inf,) * 6),
    ubx=(inf, inf, 0, *(inf,) * 6),
    note="Least squares by equations for the deviations.",
)
def tp373(x1, x2, x3, *deviations):
    values = _exponential_rows(x1, x2, x3)
    f = sum(d**2 for d in deviations)
    return f, [eq(d + value) for d, value in zip(deviations, values, strict=True)]


@tp(
    374,
    x0=(0.1,) * 10,
    f_star=0.233264,
    x_star=(
        *(0.218212, 0.23264, 0.278457, 0.268125, 0.21201, 0.125918, 0.034102, -0.026136),
        *(-0.142233, 0.233264),
    ),
    note="A filter; the coefficients in reverse order are a minimizer too.",
)
def tp374(*x):
    def gain(z):
        real = sum(xi * cos(k * z) for k, xi in enumerate(x[:9], 1))
        return real**2 + sum(xi * sin(k * z) for k, xi in enumerate(x[:9], 1)) ** 2

    passed = [gain(pi / 4 * i / 10) for i in range(10)]
    stopped = [gain(pi / 4 * (1.2 + i / 5)) for i in range(15)]
    rows = [ge(value - (1 - x[9]) ** 2) for value in passed]
    rows += [ge((1 + x[9]) ** 2 - value) for value in passed]
    return x[9], rows + [ge(x[9] ** 2 - value) for value in stopped]


@tp(375, x0=(1,) * 10, f_star=-15.161, x_star=(*(0.1064812,) * 8, 2.8438742, -2.6424832))
def tp375(*x):
    rows = [eq(sum(x) - x[j] / 2, 1) for j in range(8)]
    rows.append(eq(sum(xi**2 / (1 + i / 3) for i, xi in enumerate(x)), 4))
    return -sum(xi**2 for xi in x), rows


@tp(
    376,
    x0=(1, 0.005, 0.0081, 100, 0.0017, 0.0013, 0.0027, 0.002, 0.15, 0.105),
    f_star=-4430.0879,
    x_star=(
        *(0.14727222, 0.1, 0.0081, 628.71731, 0.0017, 0.0011816143, 0.0027, 0.00135),
        *(0.15740741, 0.097592593),
    ),
    lbx=(0, 0, 5e-5, 10, *(0.001,) * 6),
    ubx=(10, 0.1, 0.0081, 1000, 0.0017, 0.0013, 0.0027, 0.002, 1, 1),
)
def tp376(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10):
    f = -20000 * (0.15 * x1 + 14 * x2 - 0.06) / (0.002 + x1 + 60 * x2)
    wear = (
        *(0.00131 * x9 * x5**0.666 * x4**1.5, 0.001038 * x10 * x6**1.6 * x4**3),
        *(0.000223 * x7**0.666 * x4**1.5, 7.6e-5 * x8**3.55 * x4**5.66, 0.000698 * x3**1.2 * x4**2),
        *(5e-5 * x3**1.6 * x4**3, 6.54e-6 * x3**2.42 * x4**4.17, 0.000257 * x3**0.666 * x4**1.5),
    )
    times = (
        *(0.75 / x3 / x4, x9 / x5 / x4, x10 / x6 / x4 + 10 / x4),
        *(0.19 / x7 / x4 + 10 / x4, 0.125 / x8 / x4),
    )
    power = 2.003 * x5 * x4 + 1.885 * x6 * x4 + 0.184 * x8 * x4 + 2 * x3**0.803 * x4
    rows = [ge(x1 - t) for t in times] + [ge(10000 * x2 - w) for w in wear]
    return f, [*rows, ge(30 - power), eq(x9 + x10, 0.255)]


@tp(
    377,
    x0=(0.1,) * 10,
    f_star=-794.99037,
    x_star=(10, 9.99955, 0.9995, 10, 9.50005, 10, *(1e-4,) * 4),
    lbx=1e-4,
    ubx=10,
    note="Problem 112 of the first collection with two signs changed. Published: f = −795.001 at "
    "a rounded point.",
)
def tp377(*x):
    total = sum(x)
    f = sum(xi * (c + ca.log(xi / total)) for xi, c in zip(x, CHEMICAL_C, strict=True))
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = x
    rows = [eq(x1 - 2 * x2 + 2 * x3 + x6 + x10, 2), eq(x4 - 2 * x5 + x6 + x7, 1)]
    return f, [*rows, eq(x3 + x7 + x8 + 2 * x9 + x10, 1)]


@tp(
    378,
    x0=(-2.3,) * 10,
    f_star=-47.761091,
    x_star=(
        *(-3.20231159, -1.9123666, -0.244426748, -6.56117727, -0.723097963, -7.27423228),
        *(-3.59723742, -4.02031673, -3.28837688, -2.33437174),
    ),
    lbx=-16,
    ubx=-0.1,
)
def tp378(*x):
    powers = [ca.exp(xi) for xi in x]
    common = ca.log(sum(powers))
    pairs = zip(x, powers, CHEMICAL_C, strict=True)
    e1, e2, e3, e4, e5, e6, e7, e8, e9, e10 = powers
    rows = [eq(e1 + 2 * e2 + 2 * e3 + e6 + e10, 2), eq(e4 + 2 * e5 + e6 + e7, 1)]
    rows.append(eq(e3 + e7 + e8 + 2 * e9 + e10, 1))
    return sum(power * (c + xi - common) for xi, power, c in pairs), rows
