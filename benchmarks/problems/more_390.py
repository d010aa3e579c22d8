"""Problem 390 of Schittkowski's second collection; sources as in ``more_base``."""

from __future__ import annotations

import casadi as ca

from problems.hs_base import eq, ge
from problems.more_base import tp


@tp(
    390,
    x0=(
        *(0.02, 4, 100, 100, 15, 15, 100, 1000, 1000, 1000, 9000, 0.001, 0.001, 1, 0.001, 0.001),
        *(0.1, 8000, 0.001),
    ),
    f_star=243841.815,
    x_star=(
        *(6.442815148e-05, 3.438442563, 54.79078621, 89.19851403, 15.29041143, 15.29041143),
        *(6809.655276, 12750.32395, 12759.41447, 12759.41447, 100000, 1.000005148e-05),
        *(1.394448209e-05, 0.9999859816, 1e-05, 1.000664013e-05, 0.1564320967, 8349.76515),
        1.00142168e-05,
    ),
    lbx=1e-5,
    ubx=(50, 50, *(100,) * 4, *(1e5,) * 5, *(1,) * 4, 50, 50, 1e5, 1e5),
    note="Waste water treatment: balances of water and of solids around settlers and a reactor. "
    "Published: f = 244724.654 at a point that is not stationary, as x11 is short of its bound; f* "
    "and x* are the least value IPOPT finds.",
)
def tp390(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18, x19):
    f = 25 * (2268 * x16 * x1) ** 0.827 + 1.75e5 * x17 + 3.65e4 * x17**0.182 + 12.6 * x18
    f += 5.35 * 10**3.378 / x18**0.126 + 10950
    f += 1150 * (x1 * (x13 - x14) + x2 * (1 + x12) - 3 * (1 - x19))
    settled = x3 * ca.exp(-0.0259 * 25 / 20**0.656 * x16)
    inert = x7 + (x3 - settled) / 2
    growth = x17 * 0.48 * x5 * x9 / (100 + x5)
    bypass, reactor = x1 * (1 - x13 - x14), x2 * (1 - x12)
    outflow = bypass + reactor
    carried = ca.exp(-7.4 * 2 * 1.2**4 / 2.31e4 * x18 / outflow)
    balances = [
        x1 * x3 - x1 * x13 * settled - 300 * x19 - x2 * x5 * x12,
        x1 * x7 - x1 * x13 * inert - x2 * x9 * x12,
        (3 * x6 - 300) * (1 - x19) + x1 * x14 * (x6 - settled) + x2 * (x4 - x6),
        3 * x11 * (1 - x19) + x1 * x14 * (x11 - inert) + x2 * (x8 - x11),
        x2 * (x4 - x5) - 2 * growth,
        x2 * (x8 - x9) + growth - 0.048 * x9 * x17,
        x6 * outflow - bypass * settled - x5 * reactor,
        x10 * outflow - bypass * inert - x9 * reactor,
        6 * (1 - x15) * (20 - x6) + x11 * (x2 - 3 * (1 - x15) - x1 * x14 + 3 * x19) - x10 * outflow,
        2 * (20 - x6) - 2.1 * ca.sqrt(x10) * carried,
        (1 - x13) * x1 - x12 * x2 - 3 * x19,
    ]
    return 1.4 * f, [ge(1 - x13 - x14), *(eq(balance) for balance in balances)]
