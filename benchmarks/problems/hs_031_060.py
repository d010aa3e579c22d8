"""Problems 31 to 60 of Hock & Schittkowski; sources as in ``hs_001_030``."""

from __future__ import annotations

from math import asin, exp, inf, log, pi, sqrt

import casadi as ca

from problems.hs_001_030 import rosenbrock
from problems.hs_base import eq, ge, hs


@hs(
    31,
    x0=(1, 1, 1),
    f_star=6,
    x_star=(1 / sqrt(3), sqrt(3), 0),
    lbx=(-10, 1, -10),
    ubx=(10, 10, 1),
    f0=19,
    feasible=True,
)
def hs031(x1, x2, x3):
    return 9 * x1**2 + x2**2 + 9 * x3**2, [ge(x1 * x2 - 1)]


@hs(32, x0=(0.1, 0.7, 0.2), f_star=1, x_star=(0, 0, 1), lbx=0)
def hs032(x1, x2, x3):
    f = (x1 + 3 * x2 + x3) ** 2 + 4 * (x1 - x2) ** 2
    return f, [ge(6 * x2 + 4 * x3 - x1**3 - 3), eq(1 - x1 - x2 - x3)]


@hs(
    33,
    x0=(0, 0, 3),
    f_star=sqrt(2) - 6,
    x_star=(0, sqrt(2), sqrt(2)),
    lbx=0,
    ubx=(inf, inf, 5),
    f0=-3,
    feasible=True,
    note="(0, 0, 2), f = −4, satisfies the first-order conditions and is no minimum.",
)
def hs033(x1, x2, x3):
    f = (x1 - 1) * (x1 - 2) * (x1 - 3) + x3
    return f, [ge(x3**2 - x2**2 - x1**2), ge(x1**2 + x2**2 + x3**2 - 4)]


@hs(
    34,
    x0=(0, 1.05, 2.9),
    f_star=-log(log(10)),
    x_star=(log(log(10)), log(10), 10),
    lbx=0,
    ubx=(100, 100, 10),
    f0=0,
    feasible=True,
)
def hs034(x1, x2, x3):
    return -x1, [ge(x2 - ca.exp(x1)), ge(x3 - ca.exp(x2))]


@hs(
    35,
    x0=(0.5, 0.5, 0.5),
    f_star=1 / 9,
    x_star=(4 / 3, 7 / 9, 4 / 9),
    lbx=0,
    f0=2.25,
    feasible=True,
)
def hs035(x1, x2, x3):
    f = 9 - 8 * x1 - 6 * x2 - 4 * x3 + 2 * x1**2 + 2 * x2**2 + x3**2 + 2 * x1 * x2 + 2 * x1 * x3
    return f, [ge(3 - x1 - x2 - 2 * x3)]


@hs(
    36,
    x0=(10, 10, 10),
    f_star=-3300,
    x_star=(20, 11, 15),
    lbx=0,
    ubx=(20, 11, 42),
    f0=-1000,
    feasible=True,
)
def hs036(x1, x2, x3):
    return -x1 * x2 * x3, [ge(72 - x1 - 2 * x2 - 2 * x3)]


@hs(37, x0=(10, 10, 10), f_star=-3456, x_star=(24, 12, 12), lbx=0, ubx=42, f0=-1000, feasible=True)
def hs037(x1, x2, x3):
    return -x1 * x2 * x3, [ge(72 - x1 - 2 * x2 - 2 * x3), ge(x1 + 2 * x2 + 2 * x3)]


@hs(38, x0=(-3, -1, -3, -1), f_star=0, x_star=(1, 1, 1, 1), lbx=-10, ubx=10)
def hs038(x1, x2, x3, x4):
    f = 100 * (x2 - x1**2) ** 2 + (1 - x1) ** 2 + 90 * (x4 - x3**2) ** 2 + (1 - x3) ** 2
    return f + 10.1 * ((x2 - 1) ** 2 + (x4 - 1) ** 2) + 19.8 * (x2 - 1) * (x4 - 1), []


@hs(39, x0=(2, 2, 2, 2), f_star=-1, x_star=(1, 1, 0, 0))
def hs039(x1, x2, x3, x4):
    return -x1, [eq(x2 - x1**3 - x3**2), eq(x1**2 - x2 - x4**2)]


@hs(
    40,
    x0=(0.8, 0.8, 0.8, 0.8),
    f_star=-0.25,
    x_star=(2 ** (-1 / 3), 2 ** (-1 / 2), 2 ** (-11 / 12), 2 ** (-1 / 4)),
    note="Changing the signs of x3 and x4 gives the other minimizer.",
)
def hs040(x1, x2, x3, x4):
    return -x1 * x2 * x3 * x4, [eq(x1**3 + x2**2 - 1), eq(x1**2 * x4 - x3), eq(x4**2 - x2)]


@hs(41, x0=(2, 2, 2, 2), f_star=52 / 27, x_star=(2 / 3, 1 / 3, 1 / 3, 2), lbx=0, ubx=(1, 1, 1, 2))
def hs041(x1, x2, x3, x4):
    return 2 - x1 * x2 * x3, [eq(x1 + 2 * x2 + 2 * x3 - x4)]


@hs(42, x0=(1, 1, 1, 1), f_star=28 - 10 * sqrt(2), x_star=(2, 2, 0.6 * sqrt(2), 0.8 * sqrt(2)))
def hs042(x1, x2, x3, x4):
    f = (x1 - 1) ** 2 + (x2 - 2) ** 2 + (x3 - 3) ** 2 + (x4 - 4) ** 2
    return f, [eq(x1 - 2), eq(x3**2 + x4**2 - 2)]


@hs(43, x0=(0, 0, 0, 0), f_star=-44, x_star=(0, 1, 2, -1), f0=0, feasible=True)
def hs043(x1, x2, x3, x4):
    f = x1**2 + x2**2 + 2 * x3**2 + x4**2 - 5 * x1 - 5 * x2 - 21 * x3 + 7 * x4
    return f, [
        ge(8 - x1**2 - x2**2 - x3**2 - x4**2 - x1 + x2 - x3 + x4),
        ge(10 - x1**2 - 2 * x2**2 - x3**2 - 2 * x4**2 + x1 + x4),
        ge(5 - 2 * x1**2 - x2**2 - x3**2 - 2 * x1 + x2 + x4),
    ]


@hs(
    44,
    x0=(0, 0, 0, 0),
    f_star=-15,
    x_star=(0, 3, 0, 4),
    lbx=0,
    f0=0,
    feasible=True,
    note="Another local minimum is f = −13.",
)
def hs044(x1, x2, x3, x4):
    f = x1 - x2 - x3 - x1 * x3 + x1 * x4 + x2 * x3 - x2 * x4
    rows = (8 - x1 - 2 * x2, 12 - 4 * x1 - x2, 12 - 3 * x1 - 4 * x2)
    rows += (8 - 2 * x3 - x4, 8 - x3 - 2 * x4, 5 - x3 - x4)
    return f, [ge(row) for row in rows]


@hs(45, x0=(2, 2, 2, 2, 2), f_star=1, x_star=(1, 2, 3, 4, 5), lbx=0, ubx=(1, 2, 3, 4, 5))
def hs045(x1, x2, x3, x4, x5):
    return 2 - x1 * x2 * x3 * x4 * x5 / 120, []


@hs(46, x0=(sqrt(2) / 2, 1.75, 0.5, 2, 2), f_star=0, x_star=(1, 1, 1, 1, 1))
def hs046(x1, x2, x3, x4, x5):
    f = (x1 - x2) ** 2 + (x3 - 1) ** 2 + (x4 - 1) ** 4 + (x5 - 1) ** 6
    return f, [eq(x1**2 * x4 + ca.sin(x4 - x5) - 1), eq(x2 + x3**4 * x4**2 - 2)]


@hs(
    47,
    x0=(2, sqrt(2), -1, 2 - sqrt(2), 0.5),
    f_star=0,
    x_star=(1, 1, 1, 1, 1),
    f0=12.4954368,
    note="Misprint: the book has (x2 − x3)³, as CUTEst has, but its f(x0) and "
    "Schittkowski's test program belong to (x2 − x3)². With the cube x* is not a minimum.",
)
def hs047(x1, x2, x3, x4, x5):
    f = (x1 - x2) ** 2 + (x2 - x3) ** 2 + (x3 - x4) ** 4 + (x4 - x5) ** 4
    return f, [eq(x1 + x2**2 + x3**3 - 3), eq(x2 - x3**2 + x4 - 1), eq(x1 * x5 - 1)]


@hs(48, x0=(3, 5, -3, 2, -2), f_star=0, x_star=(1, 1, 1, 1, 1))
def hs048(x1, x2, x3, x4, x5):
    f = (x1 - 1) ** 2 + (x2 - x3) ** 2 + (x4 - x5) ** 2
    return f, [eq(x1 + x2 + x3 + x4 + x5 - 5), eq(x3 - 2 * (x4 + x5) + 3)]


@hs(49, x0=(10, 7, 2, -3, 0.8), f_star=0, x_star=(1, 1, 1, 1, 1))
def hs049(x1, x2, x3, x4, x5):
    f = (x1 - x2) ** 2 + (x3 - 1) ** 2 + (x4 - 1) ** 4 + (x5 - 1) ** 6
    return f, [eq(x1 + x2 + x3 + 4 * x4 - 7), eq(x3 + 5 * x5 - 6)]


@hs(
    50,
    x0=(35, -31, 11, 5, -5),
    f_star=0,
    x_star=(1, 1, 1, 1, 1),
    note="Schittkowski's test program has (x4 − x5)⁴, CUTEst and APMonitor (x4 − x5)². x* "
    "and f* are the same for both.",
)
def hs050(x1, x2, x3, x4, x5):
    f = (x1 - x2) ** 2 + (x2 - x3) ** 2 + (x3 - x4) ** 4 + (x4 - x5) ** 2
    return f, [
        eq(x1 + 2 * x2 + 3 * x3 - 6),
        eq(x2 + 2 * x3 + 3 * x4 - 6),
        eq(x3 + 2 * x4 + 3 * x5 - 6),
    ]


@hs(51, x0=(2.5, 0.5, 2, -1, 0.5), f_star=0, x_star=(1, 1, 1, 1, 1))
def hs051(x1, x2, x3, x4, x5):
    f = (x1 - x2) ** 2 + (x2 + x3 - 2) ** 2 + (x4 - 1) ** 2 + (x5 - 1) ** 2
    return f, [eq(x1 + 3 * x2 - 4), eq(x3 + x4 - 2 * x5), eq(x2 - x5)]


@hs(
    52,
    x0=(2, 2, 2, 2, 2),
    f_star=1859 / 349,
    x_star=(-33 / 349, 11 / 349, 180 / 349, -158 / 349, 11 / 349),
)
def hs052(x1, x2, x3, x4, x5):
    f = (4 * x1 - x2) ** 2 + (x2 + x3 - 2) ** 2 + (x4 - 1) ** 2 + (x5 - 1) ** 2
    return f, [eq(x1 + 3 * x2), eq(x3 + x4 - 2 * x5), eq(x2 - x5)]


@hs(
    53,
    x0=(2, 2, 2, 2, 2),
    f_star=176 / 43,
    x_star=(-33 / 43, 11 / 43, 27 / 43, -5 / 43, 11 / 43),
    lbx=-10,
    ubx=10,
)
def hs053(x1, x2, x3, x4, x5):
    f = (x1 - x2) ** 2 + (x2 + x3 - 2) ** 2 + (x4 - 1) ** 2 + (x5 - 1) ** 2
    return f, [eq(x1 + 3 * x2), eq(x3 + x4 - 2 * x5), eq(x2 - x5)]


@hs(
    54,
    x0=(6e3, 1.5, 4e6, 2, 3e-3, 5e7),
    f_star=-exp(-27 / 280),
    x_star=(91600 / 7, 79 / 70, 2e6, 10, 1e-3, 1e8),
    lbx=(0, -10, 0, 0, -1, 0),
    ubx=(2e4, 10, 1e7, 20, 1, 2e8),
    note="Misprint: the book has (x1 − 1E6)² in place of (x1 − 1E4)² and multiplies the terms of "
    "x1, x2 by that of x3. The quadratic form is that of Betts, JOTA 21, 1977, problem 11.7, as in "
    "CUTEst, and has the published f*. x2* is quoted as 179/70, which is infeasible: 79/70.",
)
def hs054(x1, x2, x3, x4, x5, x6):
    h = ((x1 - 1e4) ** 2 / 6.4e7 + (x1 - 1e4) * (x2 - 1) / 2e4 + (x2 - 1) ** 2) / 0.96
    h += (x3 - 2e6) ** 2 / 4.9e13 + (x4 - 10) ** 2 / 2.5e3
    h += (x5 - 1e-3) ** 2 / 2.5e-3 + (x6 - 1e8) ** 2 / 2.5e17
    return -ca.exp(-h / 2), [eq(x1 + 4e3 * x2 - 1.76e4)]


@hs(
    55,
    x0=(1, 2, 0, 0, 0, 2),
    f_star=19 / 3,
    x_star=(0, 4 / 3, 5 / 3, 1, 2 / 3, 1 / 3),
    lbx=0,
    ubx=(1, inf, inf, 1, inf, inf),
    note="CUTEst quotes the local minimum f = 20/3.",
)
def hs055(x1, x2, x3, x4, x5, x6):
    sums = (x1 + 2 * x2 + 5 * x5 - 6, x1 + x2 + x3 - 3, x4 + x5 + x6 - 2)
    sums += (x1 + x4 - 1, x2 + x5 - 2, x3 + x6 - 2)
    return x1 + 2 * x2 + 4 * x5 + ca.exp(x1 * x4), [eq(row) for row in sums]


_ALPHA, _BETA = asin(sqrt(1 / 4.2)), asin(sqrt(5 / 7.2))


@hs(
    56,
    x0=(1, 1, 1, _ALPHA, _ALPHA, _ALPHA, _BETA),
    f_star=-3.456,
    x_star=(2.4, 1.2, 1.2, asin(sqrt(4 / 7)), asin(sqrt(2 / 7)), asin(sqrt(2 / 7)), pi / 2),
    note="Misprint in x0: the book has 0.050973968 and 0.098511078, the decimal point one place "
    "too far left. Minimizers repeat with period π in x4, …, x7.",
)
def hs056(x1, x2, x3, x4, x5, x6, x7):
    rows = [eq(x - 4.2 * ca.sin(y) ** 2) for x, y in ((x1, x4), (x2, x5), (x3, x6))]
    return -x1 * x2 * x3, [*rows, eq(x1 + 2 * x2 + 2 * x3 - 7.2 * ca.sin(x7) ** 2)]


# Problem 57: the levels a with the measurements b at each.
_DATA_57 = {
    8: (0.49, 0.49),
    10: (0.48, 0.47, 0.48, 0.47),
    12: (0.46, 0.46, 0.45, 0.43),
    14: (0.45, 0.43, 0.43),
    16: (0.44, 0.43, 0.43),
    18: (0.46, 0.45),
    20: (0.42, 0.42, 0.43),
    22: (0.41, 0.41, 0.40),
    24: (0.42, 0.40, 0.40),
    26: (0.41, 0.40, 0.41),
    28: (0.41, 0.40),
    30: (0.40, 0.40, 0.38),
    32: (0.41, 0.40),
    34: (0.40,),
    36: (0.41, 0.38),
    38: (0.40, 0.40),
    40: (0.39,),
    42: (0.39,),
}


@hs(
    57,
    x0=(0.42, 5),
    f_star=0.02845966972,
    x_star=(0.419952675, 1.284845629),
    lbx=(0.4, -4),
    feasible=True,
    note="f falls to the limit 0.0306476 along x1 = 0.4219, x2 → ∞, where solvers end from x0.",
)
def hs057(x1, x2):
    measured = [(a, b) for a, values in _DATA_57.items() for b in values]
    f = sum((b - x1 - (0.49 - x1) * ca.exp(-x2 * (a - 8))) ** 2 for a, b in measured)
    return f, [ge(0.49 * x2 - x1 * x2 - 0.09)]


@hs(
    58,
    x0=(-2, 1),
    f_star=3.19033354957,
    x_star=(-0.786150483331, 0.618034533851),
    lbx=(-2, -inf),
    ubx=(0.5, inf),
    source="K. Schittkowski's Fortran test programs for the collection, TP58",
    note="Not in the book, which goes from 57 to 59, nor in CUTEst. The program has −1/2 ≤ x1, "
    "which excludes its own x*; −2 ≤ x1 is the bound of the APMonitor model.",
)
def hs058(x1, x2):
    rows = (x2**2 - x1, x1**2 - x2, x1**2 + x2**2 - 1)
    return rosenbrock(x1, x2), [ge(row) for row in rows]


@hs(
    59,
    x0=(90, 10),
    f_star=-7.804226324,
    x_star=(13.55010424, 51.66018129),
    lbx=0,
    ubx=(75, 65),
    f0=86.878639,
    feasible=False,
    note="Misprint: the book lacks the term −0.12694 x1², which CUTEst puts in, and has −3.405E-4 "
    "for the coefficient −3.4054E-4 of Schittkowski's test program: f(x0) and f* need both. x* is "
    "8E-4 inside x1 x2 ≥ 700; on it f = −7.80423595.",
)
def hs059(x1, x2):
    f = -75.196 + 3.8112 * x1 - 0.12694 * x1**2 + 2.0567e-3 * x1**3 - 1.0345e-5 * x1**4
    f += 6.8306 * x2 - 0.25645 * x2**2 + 3.4604e-3 * x2**3 - 1.3514e-5 * x2**4
    f += x1 * x2 * (-0.030234 + 1.28134e-3 * x1 - 3.5256e-5 * x1**2 + 2.266e-7 * x1**3)
    f += x1 * x2**2 * (-3.4054e-4 + 1.6638e-6 * x2 + 5.2375e-6 * x1)
    f += x1**3 * x2**2 * (6.3e-8 - 7e-10 * x2)
    f += 28.106 / (x2 + 1) + 2.8673 * ca.exp(5e-4 * x1 * x2)
    return f, [ge(x1 * x2 - 700), ge(x2 - x1**2 / 125), ge((x2 - 50) ** 2 - 5 * (x1 - 55))]


@hs(
    60,
    x0=(2, 2, 2),
    f_star=0.03256820025,
    x_star=(1.104859024, 1.196674194, 1.535262257),
    lbx=-10,
    ubx=10,
)
def hs060(x1, x2, x3):
    f = (x1 - 1) ** 2 + (x1 - x2) ** 2 + (x2 - x3) ** 4
    return f, [eq(x1 * (1 + x2**2) + x3**4 - 4 - 3 * sqrt(2))]
