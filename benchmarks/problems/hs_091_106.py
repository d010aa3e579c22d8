"""Problems 91–106 of Hock & Schittkowski (the book has no 94). Sources as in ``hs_061_075``."""

from __future__ import annotations

from functools import partial
from math import pi, sqrt

import casadi as ca

from problems.hs_base import eq, ge, hs
from problems.hs_data import PRESSURES
from problems.hs_process import ascent, heat_conduction

hs091 = hs(
    91,
    x0=(0.5, -0.5, 0.5, -0.5, 0.5),
    f_star=1.36265681,
    x_star=(0.701892928031, 0, 0.813330836201, 0.456613707134, 0),
    f0=1.25,
)(heat_conduction)

hs092 = hs(
    92,
    x0=(0.5, -0.5, 0.5, -0.5, 0.5, -0.5),
    f_star=1.36265681,
    x_star=(0.494144465323, 0, 0.61495083955, 0, 0.729258528936, -0.456613099133),
    f0=1.5,
)(heat_conduction)


@hs(
    93,
    x0=(5.54, 4.4, 12.02, 11.82, 0.702, 0.852),
    f_star=135.075961,
    x_star=(
        *(5.33266639884, 4.65674439073, 10.4329901123),
        *(12.0823085893, 0.752607369745, 0.87865083685),
    ),
    lbx=0,
    f0=137.0664372,
)
def hs093(x1, x2, x3, x4, x5, x6):
    inner = x1 * x4 * (x1 + x2 + x3)
    outer = x2 * x3 * (x1 + 1.57 * x2 + x4)
    f = 0.0204 * inner + 0.0187 * outer + 0.0607 * inner * x5**2 + 0.0437 * outer * x6**2
    g1 = 0.001 * x1 * x2 * x3 * x4 * x5 * x6 - 2.07
    return f, [ge(g1), ge(1 - 0.00062 * inner * x5**2 - 0.00058 * outer * x6**2)]


def _dilution(b, x1, x2, x3, x4, x5, x6):
    f = 4.3 * x1 + 31.8 * x2 + 63.3 * x3 + 15.8 * x4 + 68.5 * x5 + 4.7 * x6
    g1 = 17.1 * x1 + 38.2 * x2 + 204.2 * x3 + 212.3 * x4 + 623.4 * x5 + 1495.5 * x6
    g1 -= 169 * x1 * x3 + 3580 * x3 * x5 + 3810 * x4 * x5 + 18500 * x4 * x6 + 24300 * x5 * x6
    g2 = 17.9 * x1 + 36.8 * x2 + 113.9 * x3 + 169.7 * x4 + 337.8 * x5 + 1385.2 * x6
    g2 -= 139 * x1 * x3 + 2450 * x4 * x5 + 16600 * x4 * x6 + 17200 * x5 * x6
    g3 = -273 * x2 - 70 * x4 - 819 * x5 + 26000 * x4 * x5
    g4 = 159.9 * x1 - 311 * x2 + 587 * x4 + 391 * x5 + 2198 * x6 - 14000 * x1 * x6
    return f, [ge(g, level) for g, level in zip((g1, g2, g3, g4), b, strict=True)]


_DILUTION = {
    "x0": (0, 0, 0, 0, 0, 0),
    "lbx": 0,
    "ubx": (0.31, 0.046, 0.068, 0.042, 0.028, 0.0134),
    "f0": 0,
}
_WEAK = {"f_star": 0.015619514, "x_star": (0, 0, 0, 0, 0, 0.00332330328254), **_DILUTION}
_STRONG = {
    "f_star": 3.1358091,
    "x_star": (0.268564912352, 0, 0, 0, 0.028, 0.0134),
    "note": "AMPL quotes x5* = 0.28, above the bound 0.028. Another local minimum is f = 4.0712.",
    **_DILUTION,
}

hs095 = hs(95, **_WEAK)(partial(_dilution, (4.97, -1.88, -29.08, -78.02)))
hs096 = hs(96, **_WEAK)(partial(_dilution, (4.97, -1.88, -69.08, -118.02)))
hs097 = hs(97, **_STRONG)(partial(_dilution, (32.97, 25.12, -29.08, -78.02)))
hs098 = hs(98, **_STRONG)(partial(_dilution, (32.97, 25.12, -124.08, -173.02)))


@hs(
    99,
    x0=(0.5,) * 7,
    f_star=-831079891.5,
    x_star=(
        *(0.542460319142, 0.529015870015, 0.508450583169, 0.480269265187),
        *(0.451235157238, 0.409187805755, 0.352784693565),
    ),
    lbx=0,
    ubx=1.58,
    f0=-776360496.6,
)
def hs099(*x):
    r, q, s = ascent(x)
    return -(r**2), [eq(q, 100000), eq(s, 1000)]


@hs(
    100,
    x0=(1, 2, 0, 4, 0, 1, 1),
    f_star=680.6300573,
    x_star=(
        *(2.33049937431, 1.95137237315, -0.477541392625, 4.36572623462),
        *(-0.624486970475, 1.03813101881, 1.59422671137),
    ),
    f0=714,
)
def hs100(x1, x2, x3, x4, x5, x6, x7):
    f = (x1 - 10) ** 2 + 5 * (x2 - 12) ** 2 + x3**4 + 3 * (x4 - 11) ** 2 + 10 * x5**6
    f += 7 * x6**2 + x7**4 - 4 * x6 * x7 - 10 * x6 - 8 * x7
    g1 = 127 - 2 * x1**2 - 3 * x2**4 - x3 - 4 * x4**2 - 5 * x5
    g2 = 282 - 7 * x1 - 3 * x2 - 10 * x3**2 - x4 + x5
    g3 = 196 - 23 * x1 - x2**2 - 6 * x6**2 + 8 * x7
    g4 = -4 * x1**2 - x2**2 + 3 * x1 * x2 - 2 * x3**2 - 5 * x6 + 11 * x7
    return f, [ge(g1), ge(g2), ge(g3), ge(g4)]


def _geometric(a, x1, x2, x3, x4, x5, x6, x7):
    f = (
        10 * x1 * x4**2 * x7**a / (x2 * x6**3)
        + 15 * x3 * x4 / (x1 * x2**2 * x5 * x7**0.5)
        + 20 * x2 * x6 / (x1**2 * x4 * x5**2)
        + 25 * x1**2 * x2**2 * x5**0.5 * x7 / (x3 * x6**2)
    )
    g1 = 1 - 0.5 * x1**0.5 * x7 / (x3 * x6**2) - 0.7 * x1**3 * x2 * x6 * x7**0.5 / x3**2
    g1 -= 0.2 * x3 * x6 ** (2 / 3) * x7**0.25 / (x2 * x4**0.5)
    g2 = 1 - 1.3 * x2 * x6 / (x1**0.5 * x3 * x5) - 0.8 * x3 * x6**2 / (x4 * x5)
    g2 -= 3.1 * x2**0.5 * x6 ** (1 / 3) / (x1 * x4**2 * x5)
    g3 = 1 - 2 * x1 * x5 * x7 ** (1 / 3) / (x3**1.5 * x6) - x2 * x3**0.5 * x5 / x1
    g3 -= 0.1 * x2 * x5 / (x3**0.5 * x6 * x7**0.5) + 0.65 * x3 * x5 * x7 / (x2**2 * x6)
    g4 = 1 - 0.2 * x2 * x5**0.5 * x7 ** (1 / 3) / (x1**2 * x4) - 0.5 * x4 * x7**0.5 / x3**2
    g4 -= 0.3 * x1**0.5 * x2**2 * x3 * x4 ** (1 / 3) * x7**0.25 / x5 ** (2 / 3)
    g4 -= 0.4 * x3 * x5 * x7**0.75 / (x1**3 * x2**2)
    return f, [ge(g1), ge(g2), ge(g3), ge(g4), (f, 100, 3000)]


_GEOMETRIC = {"x0": (6,) * 7, "lbx": (*(0.1,) * 6, 0.01), "ubx": 10}

hs101 = hs(
    101,
    f_star=1809.76476,
    x_star=(
        *(2.85615855584, 0.610823030755, 2.15081256203, 4.71287370945),
        *(0.999487540961, 1.34750750498, 0.0316527664991),
    ),
    f0=2205.86837,
    **_GEOMETRIC,
    note="CUTEst has no row f ≤ 3000 in problems 101 to 103.",
)(partial(_geometric, -0.25))

hs102 = hs(
    102,
    f_star=911.880571,
    x_star=(
        *(3.89625319099, 0.809358760118, 2.66438599373, 4.30091287458),
        *(0.853554935267, 1.09528744459, 0.0273104596581),
    ),
    f0=2206.88852,
    **_GEOMETRIC,
    note="CUTEst quotes the optimum of problem 101.",
)(partial(_geometric, 0.125))

hs103 = hs(
    103,
    f_star=543.667958,
    x_star=(
        *(4.39410451026, 0.854468738817, 2.8432303138, 3.39997866779),
        *(0.722926133025, 0.87040638184, 0.0246388263302),
    ),
    f0=2208.885947,
    **_GEOMETRIC,
    note="CUTEst quotes the optimum of problem 101.",
)(partial(_geometric, 0.5))


@hs(
    104,
    x0=(6, 3, 0.4, 0.2, 6, 6, 1, 0.5),
    f_star=3.9511634396,
    x_star=(
        *(6.46511402796, 2.23270864907, 0.667397491303, 0.595756422907),
        *(5.93267567811, 5.52723456506, 1.01332200907, 0.400668229166),
    ),
    lbx=0.1,
    ubx=10,
    f0=3.657365698,
)
def hs104(x1, x2, x3, x4, x5, x6, x7, x8):
    f = 0.4 * (x1 / x7) ** 0.67 + 0.4 * (x2 / x8) ** 0.67 + 10 - x1 - x2
    g1 = 1 - 0.0588 * x5 * x7 - 0.1 * x1
    g2 = 1 - 0.0588 * x6 * x8 - 0.1 * x1 - 0.1 * x2
    g3 = 1 - 4 * x3 / x5 - 2 * x3**-0.71 / x5 - 0.0588 * x3**-1.3 * x7
    g4 = 1 - 4 * x4 / x6 - 2 * x4**-0.71 / x6 - 0.0588 * x4**-1.3 * x8
    return f, [ge(g1), ge(g2), ge(g3), ge(g4), (f, 1, 4.2)]


@hs(
    105,
    x0=(0.1, 0.2, 100, 125, 175, 11.2, 13.2, 15.8),
    f_star=1138.410664,
    x_star=(
        *(0.412892753597, 0.403352658261, 131.261311486, 164.313514476),
        *(217.422221771, 12.2801780396, 15.7716989473, 20.7468249193),
    ),
    lbx=(0.001, 0.001, 100, 130, 170, 5, 5, 5),
    ubx=(0.499, 0.499, 180, 210, 240, 25, 25, 25),
    f0=1297.6693,
    note="The book gives f* = 1138.41624, the value at x*; the least value IPOPT finds is "
    "4.9E-6 less. CUTEst and AMPL have 250 for the last two pressures, which are 260 in "
    "Schittkowski's program and in f*: a misprint, it seems. f0 is the value here.",
)
def hs105(x1, x2, x3, x4, x5, x6, x7, x8):
    def normal(y, mean, deviation):
        return ca.exp(-((y - mean) ** 2) / (2 * deviation**2)) / (deviation * sqrt(2 * pi))

    f = 0
    for y, count in PRESSURES.items():
        mixture = x1 * normal(y, x3, x6) + x2 * normal(y, x4, x7)
        f -= count * ca.log(mixture + (1 - x1 - x2) * normal(y, x5, x8))
    return f, [ge(1 - x1 - x2)]


@hs(
    106,
    x0=(5000, 5000, 5000, 200, 350, 150, 225, 425),
    f_star=7049.248021,
    x_star=(579.30668, 1359.9707, 5109.9707, 182.0177, 295.60117, 217.9823, 286.41653, 395.60117),
    lbx=(100, 1000, 1000, 10, 10, 10, 10, 10),
    ubx=(10000, 10000, 10000, 1000, 1000, 1000, 1000, 1000),
    f0=15000,
    note="The book gives f* = 7049.330923; f* is that of Schittkowski's program (7049.2480) "
    "with the digits IPOPT adds. x* has 8 digits and violates a row by 5E-3 (terms of "
    "1E5).",
)
def hs106(x1, x2, x3, x4, x5, x6, x7, x8):
    g1 = 1 - 0.0025 * (x4 + x6)
    g2 = 1 - 0.0025 * (x5 + x7 - x4)
    g4 = x1 * x6 - 833.33252 * x4 - 100 * x1 + 83333.333
    g5 = x2 * x7 - 1250 * x5 - x2 * x4 + 1250 * x4
    g6 = x3 * x8 - 1250000 - x3 * x5 + 2500 * x5
    return x1 + x2 + x3, [ge(g1), ge(g2), ge(1 - 0.01 * (x8 - x5)), ge(g4), ge(g5), ge(g6)]
