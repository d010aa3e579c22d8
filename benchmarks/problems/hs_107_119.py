"""Problems 107–119 of Hock & Schittkowski (no 115). Sources as in ``hs_061_075``."""

from __future__ import annotations

from math import exp, inf

import casadi as ca

from problems.hs_base import eq, ge, hs, le
from problems.hs_data import (
    CHEMICAL_C,
    COLVILLE_A,
    COLVILLE_B,
    COLVILLE_C,
    COLVILLE_D,
    COLVILLE_E,
    QUARTIC_LEVELS,
    QUARTIC_PAIRS,
    QUARTIC_ROWS,
)
from problems.hs_process import network, power_flow


@hs(
    107,
    x0=(0.8, 0.8, 0.2, 0.2, 1.0454, 1.0454, 1.0454, 0, 0),
    f_star=5055.011803,
    x_star=(
        *(0.667009506909, 1.02238816675, 0.228287932605, 0.184821729352, 1.0909, 1.0909),
        *(1.06903593236, 0.106612642267, -0.338786658776),
    ),
    lbx=(0, 0, -inf, -inf, 0.90909, 0.90909, 0.90909, -inf, -inf),
    ubx=(inf, inf, inf, inf, 1.0909, 1.0909, 1.0909, inf, inf),
    f0=4853.333504,
    note="The book gives eight numbers for x0; CUTEst and Schittkowski's program supply x7 = "
    "1.0454.",
)
def hs107(x1, x2, x3, x4, x5, x6, x7, x8, x9):
    f = 3000 * x1 + 1000 * x1**3 + 2000 * x2 + 666.667 * x2**3
    return f, [eq(h) for h in power_flow(x1, x2, x3, x4, x5, x6, x7, x8, x9)]


@hs(
    108,
    x0=(1,) * 9,
    f_star=-0.8660254038,
    x_star=(
        *(0.884129216724, 0.467242472598, 0.0374207573677, 0.99929959821, 0.884129216724),
        *(0.467242472594, 0.0374207573618, 0.99929959821, 0),
    ),
    lbx=(*(-inf,) * 8, 0),
    f0=0,
    note="The problem has other local minima, among them f = −0.6749814. Schittkowski's "
    "program has 0 ≤ x_i ≤ 1.",
)
def hs108(x1, x2, x3, x4, x5, x6, x7, x8, x9):
    f = -0.5 * (x1 * x4 - x2 * x3 + x3 * x9 - x5 * x9 + x5 * x8 - x6 * x7)
    distances = (
        *(x3**2 + x4**2, x9**2, x5**2 + x6**2, x1**2 + (x2 - x9) ** 2),
        *((x1 - x5) ** 2 + (x2 - x6) ** 2, (x1 - x7) ** 2 + (x2 - x8) ** 2),
        *((x3 - x5) ** 2 + (x4 - x6) ** 2, (x3 - x7) ** 2 + (x4 - x8) ** 2),
        x7**2 + (x8 - x9) ** 2,
    )
    areas = (x1 * x4 - x2 * x3, x3 * x9, -x5 * x9, x5 * x8 - x6 * x7)
    return f, [*(le(d, 1) for d in distances), *(ge(area) for area in areas)]


@hs(
    109,
    x0=(0,) * 9,
    f_star=5362.06928,
    x_star=(
        *(674.888100445, 1134.1703947, 0.133569060261, -0.371152592466, 252, 252),
        *(201.464535316, 426.660777226, 368.494083867),
    ),
    lbx=(0, 0, -0.55, -0.55, 196, 196, 196, -400, -400),
    ubx=(inf, inf, 0.55, 0.55, 252, 252, 252, 800, 800),
    f0=0,
    note="x0 is 0 in CUTEst and AMPL; Schittkowski's program has x5 = x6 = 250, x7 = 200. AMPL "
    "has +22.938 a in the last row, with which x* is not feasible.",
)
def hs109(x1, x2, x3, x4, x5, x6, x7, x8, x9):
    balances = network(x1, x2, x3, x4, x5, x6, x7, x8, x9)
    circles = [le(x1**2 + x8**2, 2250000), le(x2**2 + x9**2, 2250000)]
    rows = [ge(x4 - x3 + 0.55), ge(x3 - x4 + 0.55), *circles]
    f = 3 * x1 + 1e-6 * x1**3 + 2 * x2 + 0.522074e-6 * x2**3
    return f, [*rows, *(eq(h) for h in balances)]


@hs(
    110,
    x0=(9,) * 10,
    f_star=-45.77846971,
    x_star=(9.35025654733,) * 10,
    lbx=2.001,
    ubx=9.999,
    f0=-43.134337,
    note="Not in the copy of CUTEst compared with; f and x0 are as in AMPL, f0 is the value here.",
)
def hs110(*entries):
    x = ca.vertcat(*entries)
    f = ca.sum1(ca.log(x - 2) ** 2 + ca.log(10 - x) ** 2)
    return f - ca.exp(0.2 * ca.sum1(ca.log(x))), []


def _balances(y):
    h1 = y[0] + 2 * y[1] + 2 * y[2] + y[5] + y[9]
    h2 = y[3] + 2 * y[4] + y[5] + y[6]
    return [eq(h1, 2), eq(h2, 1), eq(y[2] + y[6] + y[7] + 2 * y[8] + y[9], 1)]


_X111 = (
    *(-3.20121253241, -1.91205959435, -0.244441308369, -6.53748856532, -0.723152425984),
    *(-7.26773826993, -3.59671064233, -4.01776873216, -3.28746169619, -2.33558183059),
)


@hs(
    111,
    x0=(-2.3,) * 10,
    f_star=-47.76109026,
    x_star=_X111,
    lbx=-100,
    ubx=100,
    f0=-21.01453948,
    note="CUTEst quotes −47.707579.",
)
def hs111(*x):
    y = [ca.exp(entry) for entry in x]
    total = ca.log(sum(y))
    terms = zip(y, CHEMICAL_C, x, strict=True)
    return sum(e * (c + entry - total) for e, c, entry in terms), _balances(y)


@hs(
    112,
    x0=(0.1,) * 10,
    f_star=-47.76109026,
    x_star=[exp(entry) for entry in _X111],
    lbx=1e-6,
    f0=-20.96028509,
    note="The problem is 111 with x for exp(x), and f* and x* are those of 111. CUTEst quotes "
    "−47.707579, the value at the x* of Schittkowski's program, which is no minimizer.",
)
def hs112(*x):
    total = sum(x)
    terms = zip(x, CHEMICAL_C, strict=True)
    return sum(entry * (c + ca.log(entry / total)) for entry, c in terms), _balances(x)


@hs(
    113,
    x0=(2, 3, 5, 5, 1, 2, 7, 3, 6, 10),
    f_star=24.3062091,
    x_star=(
        *(2.17199637118, 2.36368297378, 8.77392573847, 5.09598448797, 0.990654764992),
        *(1.43057397893, 1.32164420805, 9.82872580801, 8.28009167017, 8.37592666387),
    ),
    f0=753,
)
def hs113(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10):
    f = x1**2 + x2**2 + x1 * x2 - 14 * x1 - 16 * x2 + (x3 - 10) ** 2 + 4 * (x4 - 5) ** 2
    f += (x5 - 3) ** 2 + 2 * (x6 - 1) ** 2 + 5 * x7**2 + 7 * (x8 - 11) ** 2
    f += 2 * (x9 - 10) ** 2 + (x10 - 7) ** 2 + 45
    g1 = 105 - 4 * x1 - 5 * x2 + 3 * x7 - 9 * x8
    g2 = -10 * x1 + 8 * x2 + 17 * x7 - 2 * x8
    g3 = 8 * x1 - 2 * x2 - 5 * x9 + 2 * x10 + 12
    g4 = -3 * (x1 - 2) ** 2 - 4 * (x2 - 3) ** 2 - 2 * x3**2 + 7 * x4 + 120
    g5 = -5 * x1**2 - 8 * x2 - (x3 - 6) ** 2 + 2 * x4 + 40
    g6 = -0.5 * (x1 - 8) ** 2 - 2 * (x2 - 4) ** 2 - 3 * x5**2 + x6 + 30
    g7 = -(x1**2) - 2 * (x2 - 2) ** 2 + 2 * x1 * x2 - 14 * x5 + 6 * x6
    g8 = 3 * x1 - 6 * x2 - 12 * (x9 - 8) ** 2 + 7 * x10
    return f, [ge(g) for g in (g1, g2, g3, g4, g5, g6, g7, g8)]


@hs(
    114,
    x0=(1745, 12000, 110, 3048, 1974, 89.2, 92.8, 8, 3.6, 145),
    f_star=-1768.80696,
    x_star=(
        *(1698.09564792, 15818.7256985, 54.1022827849, 3031.22594099, 2000),
        *(90.1153669236, 95, 10.4933580864, 1.5616363638, 153.535353535),
    ),
    lbx=(1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 85, 90, 3, 1.2, 145),
    ubx=(2000, 16000, 120, 5000, 2000, 93, 95, 12, 4, 162),
    f0=-872.3872,
)
def hs114(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10):
    a, b = 0.99, 0.9
    f = 5.04 * x1 + 0.035 * x2 + 10 * x3 + 3.36 * x5 - 0.063 * x4 * x7
    octane = 57.425 + 1.098 * x8 - 0.038 * x8**2 + 0.325 * x6
    product = 1.12 * x1 + 0.13167 * x1 * x8 - 0.00667 * x1 * x8**2
    # Four balances within a tolerance: b y ≤ value ≤ y / b, with 1/0.9 or 1/0.99 to the right.
    balances = ((35.82 - 0.222 * x10, x9, b), (3 * x7 - 133, x10, a))
    balances += ((product, x4, a), (octane, x7, a))
    rows = [ge(value - c * y) for value, y, c in balances]
    rows += [ge(y / c - value) for value, y, c in balances]
    h1 = 1.22 * x4 - x1 - x5
    h2 = 98000 * x3 / (x4 * x9 + 1000 * x3) - x6
    return f, [*rows, eq(h1), eq(h2), eq((x2 + x5) / x1 - x8)]


@hs(
    116,
    x0=(0.5, 0.8, 0.9, 0.1, 0.14, 0.5, 489, 80, 650, 450, 150, 150, 150),
    f_star=97.5875096,
    x_star=(
        *(0.803770278595, 0.89998603367, 0.970972419495, 0.0999995162129, 0.190815447786),
        *(0.460571745738, 574.080310673, 74.0804261398, 500.016155317, 0.1),
        *(20.2341325935, 77.3475459898, 0.00673039736648),
    ),
    lbx=(0.1, 0.1, 0.1, 1e-4, 0.1, 0.1, 0.1, 0.1, 500, 0.1, 1, 1e-4, 1e-4),
    ubx=(1, 1, 1, 0.1, 0.9, 0.9, 1000, 1000, 1000, 500, 150, 150, 150),
    f0=450,
    note="The book gives f* = 97.588409, the value at x*; IPOPT finds f = 97.5875096.",
)
def hs116(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13):
    def separation(x, y):
        return ge(y - 0.03475 * x - 0.975 * x * y + 0.00975 * x**2)

    def power(x, flow, y):
        return ge(y - 1.262626 * flow + 1.231059 * x * flow)

    f = x11 + x12 + x13
    g9 = x5 * x7 - x1 * x8 - x4 * x7 + x4 * x8
    g10 = 1 - 0.002 * (x2 * x9 + x5 * x8 - x1 * x8 - x6 * x9) - x5 - x6
    g11 = x2 * x9 - x3 * x10 - x6 * x9 - 500 * x2 + 500 * x6 + x2 * x10
    g12 = x2 - 0.9 - 0.002 * (x2 * x10 - x3 * x10)
    rows = [ge(x3 - x2), ge(x2 - x1), ge(1 - 0.002 * (x7 - x8)), (f, 50, 250), power(x3, x10, x13)]
    rows += [separation(x2, x5), separation(x3, x6), ge(g9), ge(g10), ge(g11), ge(g12)]
    return f, [*rows, separation(x1, x4), power(x1, x8, x11), power(x2, x9, x12)]


@hs(
    117,
    x0=(*(0.001,) * 6, 60, *(0.001,) * 8),
    f_star=32.34867897,
    x_star=(
        *(0, 0, 5.1741363068, 0, 3.06109271525, 11.839676029, 0, 0, 0.103907059194, 0),
        *(0.299992902601, 0.333470928832, 0.399990975915, 0.428314541579, 0.223960749729),
    ),
    lbx=0,
    f0=2400.10530006,
    note="The dual of problem 86; for a_24 see there.",
)
def hs117(*x):
    dual, y = ca.vertcat(*x[:10]), ca.vertcat(*x[10:])
    c, d = ca.DM(COLVILLE_C), ca.DM(COLVILLE_D)
    f = -ca.dot(COLVILLE_B, dual) + y.T @ c @ y + 2 * ca.dot(d, y**3)
    g = 2 * c @ y + 3 * d * y**2 + ca.DM(COLVILLE_E) - ca.DM(COLVILLE_A).T @ dual
    return f, [ge(row) for row in ca.vertsplit(g)]


@hs(
    118,
    x0=(20, 55, 15, *(20, 60, 20) * 4),
    f_star=664.82045,
    x_star=(8, 49, 3, 1, 56, 0, 1, 63, 6, 3, 70, 12, 5, 77, 18),
    lbx=(8, 43, 3, *(0, 0, 0) * 4),
    ubx=(21, 57, 16, *(90, 120, 60) * 4),
    f0=942.71625,
)
def hs118(*x):
    f = sum(2.3 * v + 1e-4 * v**2 for v in x[0::3]) + sum(1.7 * v + 1e-4 * v**2 for v in x[1::3])
    f += sum(2.2 * v + 1.5e-4 * v**2 for v in x[2::3])
    steps = ((0, 13), (0, 14), (0, 13))
    rows = [(x[k + 3] - x[k] + 7, *steps[k % 3]) for k in range(12)]
    demands = zip(range(0, 15, 3), (60, 50, 70, 85, 100), strict=True)
    return f, [*rows, *(ge(x[k] + x[k + 1] + x[k + 2], demand) for k, demand in demands)]


@hs(
    119,
    x0=(10,) * 16,
    f_star=244.899698,
    x_star=(
        *(0.0398473514099, 0.791983155694, 0.202870330224, 0.844357916347, 1.26990645286),
        *(0.934738707827, 1.68196196924, 0.15530087749, 1.56787033356, 0, 0, 0),
        *(0.660204066, 0, 0.674255926901, 0),
    ),
    lbx=0,
    ubx=5,
    f0=566766,
)
def hs119(*x):
    y = [entry**2 + entry + 1 for entry in x]
    f = sum(entry**2 for entry in y) + sum(y[i - 1] * y[j - 1] for i, j in QUARTIC_PAIRS)
    rows = [ca.dot(b, ca.vertcat(*x)) for b in QUARTIC_ROWS]
    return f, [eq(row, c) for row, c in zip(rows, QUARTIC_LEVELS, strict=True)]
