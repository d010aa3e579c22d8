"""Problems 76–90 of Hock & Schittkowski (the book has no 82). Sources as in ``hs_061_075``."""

from __future__ import annotations

from math import sqrt

import casadi as ca

from problems.hs_base import eq, ge, hs, le
from problems.hs_data import (
    COLVILLE_A,
    COLVILLE_B,
    COLVILLE_C,
    COLVILLE_D,
    COLVILLE_E,
    PULP_HIGH,
    PULP_LOW,
)
from problems.hs_process import heat_conduction, pulp_mill


@hs(
    76,
    x0=(0.5, 0.5, 0.5, 0.5),
    f_star=-4.681818181,
    x_star=(3 / 11, 23 / 11, 0, 6 / 11),
    lbx=0,
    f0=-1.25,
)
def hs076(x1, x2, x3, x4):
    f = x1**2 + 0.5 * x2**2 + x3**2 + 0.5 * x4**2 - x1 * x3 + x3 * x4 - x1 - 3 * x2 + x3 - x4
    rows = [le(x1 + 2 * x2 + x3 + x4, 5), le(3 * x1 + x2 + 2 * x3 - x4, 4)]
    return f, [*rows, ge(x2 + 4 * x3, 1.5)]


@hs(
    77,
    x0=(2, 2, 2, 2, 2),
    f_star=0.24150513,
    x_star=(1.16617219726, 1.18211138813, 1.38025704044, 1.50603627961, 0.610920257517),
    f0=4,
)
def hs077(x1, x2, x3, x4, x5):
    f = (x1 - 1) ** 2 + (x1 - x2) ** 2 + (x3 - 1) ** 2 + (x4 - 1) ** 4 + (x5 - 1) ** 6
    h1 = x1**2 * x4 + ca.sin(x4 - x5)
    return f, [eq(h1, 2 * sqrt(2)), eq(x2 + x3**4 * x4**2, 8 + sqrt(2))]


def _powell(x1, x2, x3, x4, x5):
    h1 = x1**2 + x2**2 + x3**2 + x4**2 + x5**2
    return [eq(h1, 10), eq(x2 * x3 - 5 * x4 * x5), eq(x1**3 + x2**3, -1)]


@hs(
    78,
    x0=(-2, 1.5, 2, -1, -1),
    f_star=-2.91970041,
    x_star=(-1.7171423423, 1.59570826805, 1.82724803488, -0.7636429466, -0.763643482853),
    f0=-6,
)
def hs078(*x):
    return x[0] * x[1] * x[2] * x[3] * x[4], _powell(*x)


@hs(
    79,
    x0=(2, 2, 2, 2, 2),
    f_star=0.0787768209,
    x_star=(1.19112745626, 1.36260316492, 1.4728179315, 1.63501661894, 1.67908143619),
    f0=1,
)
def hs079(x1, x2, x3, x4, x5):
    f = (x1 - 1) ** 2 + (x1 - x2) ** 2 + (x2 - x3) ** 2 + (x3 - x4) ** 4 + (x4 - x5) ** 4
    h1 = x1 + x2**2 + x3**3
    return f, [eq(h1, 2 + 3 * sqrt(2)), eq(x2 - x3**2 + x4, 2 * sqrt(2) - 2), eq(x1 * x5, 2)]


_EXPONENTIAL = {
    "x0": (-2, 2, 2, -1, -1),
    "f_star": 0.0539498478,
    "lbx": (-2.3, -2.3, -3.2, -3.2, -3.2),
    "ubx": (2.3, 2.3, 3.2, 3.2, 3.2),
    "x_star": (-1.71714294417, 1.59570896503, 1.82724691654, -0.763641279311, -0.763645016315),
}


@hs(80, f0=0.0003354626279, **_EXPONENTIAL)
def hs080(*x):
    return ca.exp(x[0] * x[1] * x[2] * x[3] * x[4]), _powell(*x)


@hs(81, f0=-0.4996645374, **_EXPONENTIAL)
def hs081(*x):
    f = ca.exp(x[0] * x[1] * x[2] * x[3] * x[4]) - 0.5 * (x[0] ** 3 + x[1] ** 3 + 1) ** 2
    return f, _powell(*x)


@hs(
    83,
    x0=(78, 33, 27, 27, 27),
    f_star=-30665.53867,
    x_star=(78, 33, 29.9952560253, 45, 36.7758129081),
    lbx=(78, 33, 27, 27, 27),
    ubx=(102, 45, 45, 45, 45),
    f0=-32217.43104,
)
def hs083(x1, x2, x3, x4, x5):
    f = 5.3578547 * x3**2 + 0.8356891 * x1 * x5 + 37.293239 * x1 - 40792.141
    g1 = 85.334407 + 0.0056858 * x2 * x5 + 0.0006262 * x1 * x4 - 0.0022053 * x3 * x5
    g2 = 80.51249 + 0.0071317 * x2 * x5 + 0.0029955 * x1 * x2 + 0.0021813 * x3**2
    g3 = 9.300961 + 0.0047026 * x3 * x5 + 0.0012547 * x1 * x3 + 0.0019085 * x3 * x4
    return f, [(g1, 0, 92), (g2, 90, 110), (g3, 20, 25)]


@hs(
    84,
    x0=(2.52, 2, 37.5, 9.25, 6.8),
    f_star=-5280335.1,
    x_star=(4.53743097466, 2.4, 60, 9.3, 7),
    lbx=(0, 1.2, 20, 9, 6.5),
    ubx=(1000, 2.4, 60, 9.3, 7),
    f0=-2351243.483,
)
def hs084(x1, x2, x3, x4, x5):
    def flow(a, b, c, d, e):
        return x1 * (a + b * x2 + c * x3 + d * x4 + e * x5)

    f = 24345 - flow(-8720288.849, 150512.5253, -156.6950325, 476470.3222, 729482.8271)
    g1 = flow(-145421.402, 2931.1506, -40.427932, 5106.192, 15711.36)
    g2 = flow(-155011.1084, 4360.53352, 12.9492344, 10236.884, 13176.786)
    g3 = flow(-326669.5104, 7390.68412, -27.8986976, 16643.076, 30988.146)
    return f, [(g1, 0, 294000), (g2, 0, 294000), (g3, 0, 277200)]


@hs(
    85,
    x0=(900, 80, 115, 267, 27),
    f_star=-1.90515526,
    x_star=(705.180328772, 68.6000529425, 102.900013236, 282.324998587, 37.5850413432),
    lbx=(704.4148, 68.6, 0, 193, 25),
    ubx=(906.3855, 288.88, 134.75, 287.0966, 84.1988),
    note="The book gives f* = −1.90513375, the value at its x*, which is not the least one: f* "
    "is that of Schittkowski's program (−1.9051553) with the digits IPOPT adds. AMPL has "
    "the same formulas; CUTEst has another objective and one inequality less.",
)
def hs085(x1, x2, x3, x4, x5):
    y, c = pulp_mill(x1, x2, x3, x4, x5)
    f = (
        -(5.843e-7 * y[16] - 1.17e-4 * y[13] - 0.1365 - 2.358e-5 * y[12] - 1.502e-6 * y[15])
        + 0.0321 * y[11] + 0.004324 * y[4] + 1e-4 * c[14] / c[15] + 37.48 * y[1] / c[11]
    )  # fmt: skip
    rows = [ge(1.5 * x2 - x3), *zip(y, PULP_LOW, PULP_HIGH, strict=True)]
    limits = [ge(y[3] - 0.28 / 0.72 * y[4]), ge(21 - 3496 * y[1] / c[11])]
    return f, [*rows, *limits, ge(62212 / c[16] - 110.6 - y[0])]


@hs(
    86,
    x0=(0, 0, 0, 0, 1),
    f_star=-32.34867897,
    x_star=(0.3, 0.333467606492, 0.4, 0.42831010474, 0.223964873676),
    lbx=0,
    f0=20,
    note="CUTEst and AMPL have a_24 = 4; here it is 0.4 as in Schittkowski's program. The row "
    "does not bind at x*: f* is the same.",
)
def hs086(*entries):
    x = ca.vertcat(*entries)
    f = ca.dot(COLVILLE_E, x) + x.T @ ca.DM(COLVILLE_C) @ x + ca.dot(COLVILLE_D, x**3)
    return f, [ge(ca.dot(a, x), b) for a, b in zip(COLVILLE_A, COLVILLE_B, strict=True)]


@hs(
    87,
    x0=(390, 1000, 419.5, 340.5, 198.175, 0.5),
    f_star=8927.5977,
    x_star=(107.811937779, 196.318606955, 373.830728516, 420, 21.3071293896, 0.153291953422),
    lbx=(0, 0, 340, 340, -1000, 0),
    ubx=(400, 1000, 420, 420, 1000, 0.5236),
    f0=42090,
    note="f jumps at x1 = 300 and x2 = 100, 200. Misprints, according to the AMPL model: the "
    "book has b = 1.48577 (as CUTEst), x5 ≤ 10000 and x5* = 213.07. AMPL has a continuous "
    "objective with f* = 8827.5977; CUTEst starts at x*: f0 is the value here.",
)
def hs087(x1, x2, x3, x4, x5, x6):
    f1 = ca.if_else(x1 < 300, 30, 31) * x1
    f2 = ca.if_else(x2 < 100, 28, ca.if_else(x2 < 200, 29, 30)) * x2
    a, b, c, angle = 131.078, 1.48477, 0.90798, 1.47588
    h1 = 300 - x3 * x4 / a * ca.cos(b - x6) + c * x3**2 / a * ca.cos(angle) - x1
    h2 = -x3 * x4 / a * ca.cos(b + x6) + c * x4**2 / a * ca.cos(angle) - x2
    h3 = -x3 * x4 / a * ca.sin(b + x6) + c * x4**2 / a * ca.sin(angle) - x5
    h4 = 200 - x3 * x4 / a * ca.sin(b - x6) + c * x3**2 / a * ca.sin(angle)
    return f1 + f2, [eq(h1), eq(h2), eq(h3), eq(h4)]


hs088 = hs(
    88,
    x0=(0.5, -0.5),
    f_star=1.36265681,
    x_star=(1.0743187294, -0.456613707247),
    f0=0.5,
    note="Problems 88 to 92 have one f*; signs of x_i do not matter. Schittkowski's program "
    "adds 0.1 ≤ x1 and −10 ≤ x_i ≤ 10.",
)(heat_conduction)

hs089 = hs(
    89, x0=(0.5, -0.5, 0.5), f_star=1.36265681, x_star=(1.07431872754, -0.456613706239, 0), f0=0.75
)(heat_conduction)

hs090 = hs(
    90,
    x0=(0.5, -0.5, 0.5, -0.5),
    f_star=1.36265681,
    x_star=(0.708479399007, 0, 0.807599939006, -0.456613723294),
    f0=1,
)(heat_conduction)
