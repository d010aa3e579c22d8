"""Problems 379–395 of Schittkowski's second collection; sources as in ``more_base``.

390 has a file of its own. 392 is left out: the published f* is not the value of the published x*.
"""

from __future__ import annotations

from functools import partial
from math import inf, sqrt

import casadi as ca

from problems.hs_base import eq, ge
from problems.more_base import squares, tp
from problems.more_data import (
    BALLS_285,
    BALLS_COLUMNS,
    BALLS_LEVELS,
    FEED_COSTS,
    FEED_MEANS,
    FEED_VARIANCES,
    GASIFIERS,
    HALFSPACE_COLUMNS,
    OSBORNE,
    PLATES_A,
    PLATES_B,
    PLATES_C,
    REACTOR_C,
    REACTOR_POWERS,
)


def _dot(coefficients, x):
    return sum(c * xi for c, xi in zip(coefficients, x, strict=True))


@squares(
    379,
    x0=(1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5),
    f_star=0.0401377,
    x_star=(
        *(1.30997, 0.431554, 0.63366, 0.59943, 0.754183, 0.904286, 1.36581, 4.82369, 2.39868),
        *(4.56887, 5.67534),
    ),
    lbx=0,
    note="Osborne's second data.",
)
def tp379(*x):
    residuals = []
    for i, y in enumerate(OSBORNE):
        t = i / 10
        peaks = (x[1 + k] * ca.exp(-x[5 + k] * (t - x[8 + k]) ** 2) for k in range(3))
        residuals.append(y - x[0] * ca.exp(-x[4] * t) - sum(peaks))
    return residuals


@tp(
    380,
    x0=(4,) * 12,
    f_star=3.1682215,
    x_star=(
        *(2.51649096, 2.53723842, 7.65735544, 1.18488759, 7.70028557, 1.30205895, 4.2819435),
        *(2.787681, 1.738918, 1.9739654, 6.63468079, 6.5108232),
    ),
    lbx=0.1,
    ubx=100,
    note="The published x* has f = 3.1686; f* is right.",
)
def tp380(*x):
    c = iter(REACTOR_C)
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12 = x
    first = (x1, x2, x3, x4 * x5)
    second = (
        *(x1, x2, x3, x4 * x12, x5 / x12, x6 / x12, x7 * x12, x4 * x5, x2 * x5 / x12),
        *(x2 * x4 * x5, x2 * x5 / (x4 * x12**2), x10 / x12),
    )
    third = (
        *(x1, x2, x3, x4, x5, x6, x8, x4 * x5, x2 * x5, x2 * x4 * x5, x2 * x5 / x4, x9),
        *(x1 * x9, x11),
    )
    rows = [ge(1 - sum(next(c) * term for term in terms)) for terms in (first, second, third)]
    f = 1e5
    for xi, power in zip(x, REACTOR_POWERS, strict=False):
        f *= xi**power
    return f, rows


@tp(
    381,
    x0=(0.1,) * 13,
    f_star=1.0149,
    x_star=(0.785586005, 0, 0, 0, 0, 0.173917854, 0, 0, 0.0206429974, 0, 0, 0, 0.0198531438),
    lbx=0,
    note="A linear program. The published x* violates a row by 0.14; f* is right.",
)
def tp381(*x):
    rows = [ge(_dot(a, x), b) for a, b in zip(FEED_MEANS, (18, 1, 0.9), strict=True)]
    return _dot(FEED_COSTS, x), [*rows, eq(sum(x), 1)]


@tp(
    382,
    x0=(0.1,) * 13,
    f_star=1.03831,
    x_star=(0.132049338, 0, 0, 0, 0, 0.326269121, 0, 0, 0.51667794, 0, 0, 0, 0.0250036004),
    lbx=0,
    note="381 with the means met in 95 % of the cases. The published x* violates rows by 0.2; f* "
    "is right.",
)
def tp382(*x):
    rows = []
    for means, variances, level in zip(FEED_MEANS, FEED_VARIANCES, (18, 1, 0.9), strict=True):
        spread = ca.sqrt(_dot(variances, [xi**2 for xi in x]))
        rows.append(ge(_dot(means, x) - 1.645 * spread, level))
    return _dot(FEED_COSTS, x), [*rows, eq(sum(x), 1)]


@tp(
    383,
    x0=(0.01,) * 14,
    f_star=728593.65,
    x_star=(
        *(0.04, 0.0382097061, 0.0358126753, 0.0330719221, 0.0302882932, 0.0279136851, 0.02647647),
        *(0.0249202009, 0.0230417091, 0.0215796008, 0.0201726714, 0.0191827385, 0.0202935104),
        0.025311089,
    ),
    lbx=1e-4,
    ubx=[1 / b for b in PLATES_B],
    note="Published: f = 728566 at a point rounded to three digits.",
)
def tp383(*x):
    return sum(a / xi for a, xi in zip(PLATES_A, x, strict=True)), [eq(_dot(PLATES_C, x), 1)]


def _balls(entry, level, linear, outside, *x):
    """384–389: −c·x within ten ellipsoids, some of ``linear`` rows, and outside of a ball."""
    columns, levels = [list(column) for column in BALLS_COLUMNS], list(BALLS_LEVELS)
    for (i, j), value in entry.items():
        columns[j][i] = value
    for i, value in level.items():
        levels[i] = value
    squared = [xi**2 for xi in x]
    rows = [
        ge(b - _dot(row, squared))
        for row, b in zip(zip(*columns, strict=True), levels, strict=True)
    ]
    halfspaces = zip(zip(*HALFSPACE_COLUMNS, strict=True), (70, 361, 265, 395), strict=True)
    if linear:
        rows += [ge(b - _dot(row, x)) for row, b in halfspaces]
    if outside:
        rows.append(ge(sum(j * (xi - 2) ** 2 for j, xi in enumerate(x, 1)) / 2, outside))
    return -_dot(BALLS_285, x), rows


_BALLS = (
    (384, {(9, 2): 500}, {9: 860}, False, 0, -8310.259, (
        0.86095379, 0.91736139, 0.91973646, 0.89600562, 1.0372946, 0.97308908, 0.82243629,
        1.1987219, 1.156335, 1.1443868, 1.0305681, 0.90949479, 1.082045, 0.84682383, 1.172372,
    )),
    (385, {(8, 8): 500}, {8: 890}, False, 0, -8315.2859, (
        0.81347013, 1.1327964, 1.0861185, 0.99832982, 1.0754861, 1.0688758, 0.62781562, 1.0929981,
        0.91363214, 0.86191234, 1.0047312, 0.87742923, 0.98671497, 1.0411268, 1.1860997,
    )),
    (386, {}, {}, False, 70, -8164.3688, (
        1.0042725, 1.0871174, 1.10338, 1.0307192, 0.92857958, 1.2568055, 0.76058681, 0.85688931,
        1.089778, 0.98119425, 0.85106387, 0.96555941, 0.9064419, 0.83804049, 0.80932365,
    )),
    (387, {}, {}, False, 61, -8250.1417, (
        1.0125415, 1.0158505, 1.0309039, 0.99697018, 0.98528372, 1.0368532, 0.99349349, 0.9720116,
        0.99994095, 0.99547294, 0.9695385, 1.0080569, 0.98236999, 0.99057993, 0.97760168,
    )),
    (388, {}, {}, True, 193.121, -5821.0842, (
        0.62683876, 1.4330999, 1.4625963, 0.73133338, 0.7861424, 1.2048598, -1.1433978, 1.0611103,
        -0.13389293, 1.1820107, 0.96917757, -0.84501289, 0.48122454, -0.33986164, 0.68589012,
    )),
    (389, {}, {}, True, 200, -5809.7197, (
        0.67105172, 1.38854, 1.4676761, 0.76023633, 0.82935674, 1.1638523, -1.257829, 0.98193399,
        0.068416463, 1.1472773, 0.98662969, -0.88834924, 0.56465631, -0.58120082, 0.72096897,
    )),
)  # fmt: skip
tp384, tp385, tp386, tp387, tp388, tp389 = (
    tp(number, x0=(0,) * 15, f_star=f_star, x_star=x_star)(
        partial(_balls, entry, level, linear, outside)
    )
    for number, entry, level, linear, outside, f_star, x_star in _BALLS
)


def _waves(x):
    """Σ_{j≠i} w(√(x_j² + i/j)) for i = 1, …, n with w(r) = r (sin⁵ ln r + cos⁵ ln r)."""
    n = x.numel()
    ratios = ca.DM([[i / j for i in range(1, n + 1)] for j in range(1, n + 1)])
    root = ca.sqrt(ca.repmat(x**2, 1, n) + ratios)
    angle = ca.log(root)
    waves = root * (ca.sin(angle) ** 5 + ca.cos(angle) ** 5)
    return ca.sum1(waves).T - ca.diag(waves)


_CUBES = ca.DM([(i - 15) ** 3 for i in range(1, 31)])


@squares(
    391,
    x0=(-2.8742711 * (_CUBES + _waves(ca.DM.zeros(30)))).full().ravel().tolist(),
    f_star=0,
    x_star=(
        *(6.444902227771, 5.137920024352, 4.013561400326, 3.059662047667, 2.26460390593),
        *(1.615149746824, 1.095696922278, 0.690595324021, 0.3855246202514, 0.1665121960506),
        *(0.0193185652171, -0.07041427263739, -0.1170344904991, -0.1348663550543),
        *(-0.1382213419033, -0.1414055698976, -0.1587220923676, -0.2044692698126),
        *(-0.2929377361992, -0.4384175846558, -0.6552468948823, -0.957899284041),
        *(-1.360841558441, -1.877855596963, -2.521916831027, -3.306769381347),
        *(-4.248086700136, -5.362374614876, -6.665237125142, -8.171013184124),
    ),
)
def tp391(*x):
    column = ca.vertcat(*x)
    return ca.vertsplit(420 * column + _CUBES + _waves(column))


def _gas(x):
    """What 393 requires of the outflow: gasifiers in two tiers, methanators in two."""
    outflow = list(x[:6])
    for tier in (0, 6):
        for i in range(tier, tier + 6):
            heat, steam = x[24 + i], x[12 + i]
            coal = x[42 + i % 6]
            reacted = heat**2 * GASIFIERS[i] * 2 * coal / (1 + coal) * steam
            inflow = x[i] if tier == 0 else x[i] + outflow[i - 6]
            outflow[i % 6] = inflow**2 / (inflow + reacted)
    pairs = [outflow[2 * k] + outflow[2 * k + 1] for k in range(3)]
    for tier in (12, 15):
        for k in range(3):
            reacted = x[24 + tier + k] ** 2 * GASIFIERS[tier + k]
            pairs[k] = pairs[k] ** 2 / (pairs[k] + reacted)
    return sum(pairs)


@tp(
    393,
    x0=(*(1,) * 24, *(1.3,) * 6, *(1,) * 18),
    f_star=0.86337998,
    x_star=(
        *(2, 0.002, 2, 0.0339797, 0.01657455, 2, 1.8945347, 0.002, 2, 0.03424074, 0.016670308, 2),
        *(2, 0.002, 2, 0.002, 0.002, 1.988, 2, 0.002, 2, 0.002, 0.002, 2),
        *(1.0159886, 0.002, 1.003163, 0.002, 0.002, 0.999691944, 1.11272844, 0.002, 1.1024463),
        *(0.002, 0.002, 1.1030764, 0.92326572, 0.9343325, 0.92947437, 0.91383802, 0.90517162),
        *(0.89452569, 1.174573, 0.002, 1.12080408, 0.002, 0.002, 1.1163321536),
    ),
    lbx=0.002,
    ubx=(*(2,) * 24, *(inf,) * 24),
)
def tp393(*x):
    def cost(xi):
        c = xi - 1
        return (0.1 + 2 * c * (c + ca.sqrt(0.1 + c**2))) / 4

    f = sum(10 * (1 - xi) ** 2 for xi in x[:12]) + 1000 * sum(map(cost, x[24:36]))
    f += 2000 * sum(map(cost, x[36:42])) + 100 * sum(x[42:])
    return f / 1000, [ge(1.5 - _gas(x)), eq(sum(x[:12]), 12), eq(sum(x[12:24]), 12)]


def _weighted(*x):
    f = sum(i * (xi**2 + xi**4) for i, xi in enumerate(x, 1))
    return f, [eq(sum(xi**2 for xi in x), 1)]


tp394, tp395 = (
    tp(
        number,
        x0=(2,) * n,
        f_star=23 / 12,
        x_star=(sqrt(5 / 6), sqrt(1 / 6), *(0,) * (n - 2)),
        note="Published x* as found; this is where x3 = … = 0.",
    )(_weighted)
    for number, n in ((394, 20), (395, 50))
)
