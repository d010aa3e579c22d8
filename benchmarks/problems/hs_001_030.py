"""Problems 1 to 30 of Hock & Schittkowski.

Each formula, start and optimum was held against the Fortran test programs Schittkowski gives away
for the collection and against a second transcription: the SIF files of CUTEst or the models of
APMonitor and their kin. Where these differ, the note says how. f(x0) and whether x0 is feasible
are given where a transcription quotes them from the book.
"""

from __future__ import annotations

from math import acos, cos, inf, pi, sqrt

import casadi as ca

from problems.hs_base import eq, ge, hs

_A2 = sqrt(598 / 1200)  # problem 2: x* = (2a cos(⅓ arccos(1/b)), 1.5) with b = 400a³
_A11 = (7.5 * sqrt(6) + sqrt(338.5)) ** (1 / 3)  # problem 11: x₁* = (a − 1/a)/√6, x₂* = x₁*²


def rosenbrock(x1: ca.SX, x2: ca.SX) -> ca.SX:
    """Return the function of problems 1, 2, 15–17, 20 and 58."""
    return 100 * (x2 - x1**2) ** 2 + (1 - x1) ** 2


@hs(1, x0=(-2, 1), f_star=0, x_star=(1, 1), lbx=(-inf, -1.5), f0=909, feasible=True)
def hs001(x1, x2):
    return rosenbrock(x1, x2), []


@hs(
    2,
    x0=(-2, 1),
    f_star=0.0504261879,
    x_star=(2 * _A2 * cos(acos(1 / (400 * _A2**3)) / 3), 1.5),
    lbx=(-inf, 1.5),
    note="Another local minimum is f = 4.941229.",
)
def hs002(x1, x2):
    return rosenbrock(x1, x2), []


@hs(3, x0=(10, 1), f_star=0, x_star=(0, 0), lbx=(-inf, 0))
def hs003(x1, x2):
    return x2 + 1e-5 * (x2 - x1) ** 2, []


@hs(4, x0=(1.125, 0.125), f_star=8 / 3, x_star=(1, 0), lbx=(1, 0))
def hs004(x1, x2):
    return (x1 + 1) ** 3 / 3 + x2, []


@hs(
    5,
    x0=(0, 0),
    f_star=-sqrt(3) / 2 - pi / 3,
    x_star=(0.5 - pi / 3, -0.5 - pi / 3),
    lbx=(-1.5, -3),
    ubx=(4, 3),
)
def hs005(x1, x2):
    return ca.sin(x1 + x2) + (x1 - x2) ** 2 - 1.5 * x1 + 2.5 * x2 + 1, []


@hs(6, x0=(-1.2, 1), f_star=0, x_star=(1, 1))
def hs006(x1, x2):
    return (1 - x1) ** 2, [eq(10 * (x2 - x1**2))]


@hs(7, x0=(2, 2), f_star=-sqrt(3), x_star=(0, sqrt(3)))
def hs007(x1, x2):
    return ca.log(1 + x1**2) - x2, [eq((1 + x1**2) ** 2 + x2**2 - 4)]


@hs(
    8,
    x0=(2, 1),
    f_star=-1,
    x_star=(sqrt((25 + sqrt(301)) / 2), 9 / sqrt((25 + sqrt(301)) / 2)),
    note="Only a system of two equations: f is constant. ±(a, 9/a), ±(b, 9/b) solve it.",
)
def hs008(x1, x2):
    return -1, [eq(x1**2 + x2**2 - 25), eq(x1 * x2 - 9)]


@hs(9, x0=(0, 0), f_star=-0.5, x_star=(-3, -4), note="Minimizers: (12k − 3, 16k − 4), k integer.")
def hs009(x1, x2):
    return ca.sin(pi * x1 / 12) * ca.cos(pi * x2 / 16), [eq(4 * x1 - 3 * x2)]


@hs(10, x0=(-10, 10), f_star=-1, x_star=(0, 1))
def hs010(x1, x2):
    return x1 - x2, [ge(-3 * x1**2 + 2 * x1 * x2 - x2**2 + 1)]


@hs(
    11,
    x0=(4.9, 0.1),
    f_star=-8.498464223,
    x_star=((_A11 - 1 / _A11) / sqrt(6), (_A11 - 1 / _A11) ** 2 / 6),
)
def hs011(x1, x2):
    return (x1 - 5) ** 2 + x2**2 - 25, [ge(-(x1**2) + x2)]


@hs(12, x0=(0, 0), f_star=-30, x_star=(2, 3), f0=0, feasible=True)
def hs012(x1, x2):
    f = 0.5 * x1**2 + x2**2 - x1 * x2 - 7 * x1 - 7 * x2
    return f, [ge(25 - 4 * x1**2 - x2**2)]


@hs(
    13,
    x0=(-2, -2),
    f_star=1,
    x_star=(1, 0),
    lbx=0,
    feasible=False,
    note="No multipliers exist at x*: the constraint qualification fails.",
)
def hs013(x1, x2):
    return (x1 - 2) ** 2 + x2**2, [ge((1 - x1) ** 3 - x2)]


@hs(
    14,
    x0=(2, 2),
    f_star=9 - 23 * sqrt(7) / 8,
    x_star=((sqrt(7) - 1) / 2, (sqrt(7) + 1) / 4),
    note="The SIF file of CUTEst quotes f = 1.42322464; f* is 9 − 23√7/8 = 1.39346498.",
)
def hs014(x1, x2):
    return (x1 - 2) ** 2 + (x2 - 1) ** 2, [ge(-(x1**2) / 4 - x2**2 + 1), eq(x1 - 2 * x2 + 1)]


@hs(
    15,
    x0=(-2, 1),
    f_star=306.5,
    x_star=(0.5, 2),
    ubx=(0.5, inf),
    feasible=False,
    note="Another local minimum, at (−0.7921, −1.2624), is f = 360.3798.",
)
def hs015(x1, x2):
    return rosenbrock(x1, x2), [ge(x1 * x2 - 1), ge(x1 + x2**2)]


# Where two transcriptions of 16 and 17 differ.
_HALF = "Schittkowski's test program has −2 ≤ x1; CUTEst has −1/2 ≤ x1. "


@hs(
    16,
    x0=(-2, 1),
    f_star=0.25,
    x_star=(0.5, 0.25),
    lbx=(-0.5, -inf),
    ubx=(0.5, 1),
    feasible=False,
    note=_HALF + "Another local minimum is f = 23.1447.",
)
def hs016(x1, x2):
    return rosenbrock(x1, x2), [ge(x1 + x2**2), ge(x1**2 + x2)]


@hs(17, x0=(-2, 1), f_star=1, x_star=(0, 0), lbx=(-0.5, -inf), ubx=(0.5, 1), note=_HALF.strip())
def hs017(x1, x2):
    return rosenbrock(x1, x2), [ge(x2**2 - x1), ge(x1**2 - x2)]


@hs(18, x0=(2, 2), f_star=5, x_star=(sqrt(250), sqrt(2.5)), lbx=(2, 0), ubx=50, feasible=False)
def hs018(x1, x2):
    return 0.01 * x1**2 + x2**2, [ge(x1 * x2 - 25), ge(x1**2 + x2**2 - 25)]


@hs(
    19,
    x0=(20.1, 5.84),
    f_star=-6961.81381,
    x_star=(14.095, 0.84296079),
    lbx=(13, 0),
    ubx=100,
    feasible=False,
)
def hs019(x1, x2):
    return (x1 - 10) ** 3 + (x2 - 20) ** 3, [
        ge((x1 - 5) ** 2 + (x2 - 5) ** 2 - 100),
        ge(-((x2 - 5) ** 2) - (x1 - 6) ** 2 + 82.81),
    ]


@hs(
    20,
    x0=(-2, 1),
    f_star=81.5 - 25 * sqrt(3),
    x_star=(0.5, sqrt(3) / 2),
    lbx=(-0.5, -inf),
    ubx=(0.5, inf),
    feasible=False,
    note="Another local minimum, at (−1/2, √3/2), is f = 40.1987, the value CUTEst quotes; "
    "Schittkowski's test program starts at (1, 1).",
)
def hs020(x1, x2):
    return rosenbrock(x1, x2), [ge(x1 + x2**2), ge(x1**2 + x2), ge(x1**2 + x2**2 - 1)]


@hs(21, x0=(-1, -1), f_star=-99.96, x_star=(2, 0), lbx=(2, -50), ubx=50)
def hs021(x1, x2):
    return 0.01 * x1**2 + x2**2 - 100, [ge(10 * x1 - x2 - 10)]


@hs(22, x0=(2, 2), f_star=1, x_star=(1, 1))
def hs022(x1, x2):
    return (x1 - 2) ** 2 + (x2 - 1) ** 2, [ge(-x1 - x2 + 2), ge(-(x1**2) + x2)]


@hs(23, x0=(3, 1), f_star=2, x_star=(1, 1), lbx=-50, ubx=50)
def hs023(x1, x2):
    return x1**2 + x2**2, [
        ge(x1 + x2 - 1),
        ge(x1**2 + x2**2 - 1),
        ge(9 * x1**2 + x2**2 - 9),
        ge(x1**2 - x2),
        ge(x2**2 - x1),
    ]


@hs(24, x0=(1, 0.5), f_star=-1, x_star=(3, sqrt(3)), lbx=0, f0=-0.01336459, feasible=True)
def hs024(x1, x2):
    f = ((x1 - 3) ** 2 - 9) * x2**3 / (27 * sqrt(3))
    return f, [ge(x1 / sqrt(3) - x2), ge(x1 + sqrt(3) * x2), ge(-x1 - sqrt(3) * x2 + 6)]


@hs(
    25,
    x0=(100, 12.5, 3),
    f_star=0,
    x_star=(50, 25, 1.5),
    lbx=(0.1, 0, 0),
    ubx=(100, 25.6, 5),
    note="f is flat at x0: f = 32.835, ‖∇f‖ = 2E-8, so that a loose tolerance stops there. x3* = 3 "
    "in Schittkowski's test program is wrong: f(50, 25, 3) = 20.2.",
)
def hs025(x1, x2, x3):
    f = 0
    for i in range(1, 100):
        u = 25 + (-50 * ca.log(0.01 * i)) ** (2 / 3)
        f += (-0.01 * i + ca.exp(-((u - x2) ** x3) / x1)) ** 2
    return f, []


@hs(
    26,
    x0=(-2.6, 2, 2),
    f_star=0,
    x_star=(1, 1, 1),
    note="(a, a, a) with a = ∛(α − β) − ∛(α + β) − 2/3, α = √(139/108), β = 61/54, is the other.",
)
def hs026(x1, x2, x3):
    return (x1 - x2) ** 2 + (x2 - x3) ** 4, [eq((1 + x2**2) * x1 + x3**4 - 3)]


@hs(27, x0=(2, 2, 2), f_star=0.04, x_star=(-1, 1, 0))
def hs027(x1, x2, x3):
    return 0.01 * (x1 - 1) ** 2 + (x2 - x1**2) ** 2, [eq(x1 + x3**2 + 1)]


@hs(28, x0=(-4, 1, 1), f_star=0, x_star=(0.5, -0.5, 0.5))
def hs028(x1, x2, x3):
    return (x1 + x2) ** 2 + (x2 + x3) ** 2, [eq(x1 + 2 * x2 + 3 * x3 - 1)]


@hs(
    29,
    x0=(1, 1, 1),
    f_star=-16 * sqrt(2),
    x_star=(4, 2 * sqrt(2), 2),
    f0=-1,
    feasible=True,
    note="Changing two signs of x* gives the other three minimizers.",
)
def hs029(x1, x2, x3):
    return -x1 * x2 * x3, [ge(-(x1**2) - 2 * x2**2 - 4 * x3**2 + 48)]


@hs(30, x0=(1, 1, 1), f_star=1, x_star=(1, 0, 0), lbx=(1, -10, -10), ubx=10, f0=3, feasible=True)
def hs030(x1, x2, x3):
    return x1**2 + x2**2 + x3**2, [ge(x1**2 + x2**2 - 1)]
