"""Residuals and data of the overdetermined problems of Moré, Garbow & Hillstrom (1981).

J. J. Moré, B. S. Garbow, K. E. Hillstrom, "Testing Unconstrained Optimization Software", ACM
Trans. Math. Softw. 7(1), 1981, 17–41. Each function takes the list of scalar unknowns and returns
the residuals in the order of that paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import Any

import casadi as ca

BARD_Y = (0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39)
GAUSS_Y = (0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989)
# fmt: off
MEYER_Y = (34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427,
           3820, 3307, 2872)
KOWALIK_Y = (0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246)
KOWALIK_U = (4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625)
OSBORNE1_Y = (
    0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718, 0.685,
    0.658, 0.628, 0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467, 0.457, 0.448,
    0.438, 0.431, 0.424, 0.420, 0.414, 0.411, 0.406,
)
OSBORNE2_Y = (
    1.366, 1.191, 1.112, 1.013, 0.991, 0.885, 0.831, 0.847, 0.786, 0.725, 0.746, 0.679, 0.608,
    0.655, 0.616, 0.606, 0.602, 0.626, 0.651, 0.724, 0.649, 0.649, 0.694, 0.644, 0.624, 0.661,
    0.612, 0.558, 0.533, 0.495, 0.500, 0.423, 0.395, 0.375, 0.372, 0.391, 0.396, 0.405, 0.428,
    0.429, 0.523, 0.562, 0.607, 0.653, 0.672, 0.708, 0.633, 0.668, 0.645, 0.632, 0.591, 0.559,
    0.597, 0.625, 0.739, 0.710, 0.729, 0.720, 0.636, 0.581, 0.428, 0.292, 0.162, 0.098, 0.054,
)
# fmt: on


def brown_badly_scaled(x: list[Any]) -> Sequence[Any]:
    return x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2


def beale(x: list[Any]) -> Sequence[Any]:
    return [y - x[0] * (1 - x[1] ** i) for i, y in enumerate((1.5, 2.25, 2.625), 1)]


def jennrich_sampson(x: list[Any]) -> Sequence[Any]:
    return [2 + 2 * i - (ca.exp(i * x[0]) + ca.exp(i * x[1])) for i in range(1, 11)]


def bard(x: list[Any]) -> Sequence[Any]:
    return [
        y - (x[0] + i / ((16 - i) * x[1] + min(i, 16 - i) * x[2])) for i, y in enumerate(BARD_Y, 1)
    ]


def gaussian(x: list[Any]) -> Sequence[Any]:
    data = [*GAUSS_Y, *GAUSS_Y[-2::-1]]
    return [x[0] * ca.exp(-x[1] * ((8 - i) / 2 - x[2]) ** 2 / 2) - y for i, y in enumerate(data, 1)]


def meyer(x: list[Any]) -> Sequence[Any]:
    return [x[0] * ca.exp(x[1] / (45 + 5 * i + x[2])) - y for i, y in enumerate(MEYER_Y, 1)]


def gulf(x: list[Any]) -> Sequence[Any]:
    t = [i / 100 for i in range(1, 100)]
    y = [25 + (-50 * log(ti)) ** (2 / 3) for ti in t]
    return [ca.exp(-(ca.fabs(yi - x[1]) ** x[2]) / x[0]) - ti for ti, yi in zip(t, y, strict=True)]


def box(x: list[Any]) -> Sequence[Any]:
    return [
        ca.exp(-i / 10 * x[0]) - ca.exp(-i / 10 * x[1]) - x[2] * (exp(-i / 10) - exp(-i))
        for i in range(1, 11)
    ]


def wood(x: list[Any]) -> Sequence[Any]:
    return (
        10 * (x[1] - x[0] ** 2),
        1 - x[0],
        sqrt(90) * (x[3] - x[2] ** 2),
        1 - x[2],
        sqrt(10) * (x[1] + x[3] - 2),
        (x[1] - x[3]) / sqrt(10),
    )


def kowalik_osborne(x: list[Any]) -> Sequence[Any]:
    return [
        y - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])
        for y, u in zip(KOWALIK_Y, KOWALIK_U, strict=True)
    ]


def brown_dennis(x: list[Any]) -> Sequence[Any]:
    return [
        (x[0] + t * x[1] - ca.exp(t)) ** 2 + (x[2] + x[3] * ca.sin(t) - ca.cos(t)) ** 2
        for t in (i / 5 for i in range(1, 21))
    ]


def osborne1(x: list[Any]) -> Sequence[Any]:
    return [
        y - (x[0] + x[1] * ca.exp(-10 * i * x[3]) + x[2] * ca.exp(-10 * i * x[4]))
        for i, y in enumerate(OSBORNE1_Y)
    ]


def biggs_exp6(x: list[Any]) -> Sequence[Any]:
    return [
        x[2] * ca.exp(-t * x[0])
        - x[3] * ca.exp(-t * x[1])
        + x[5] * ca.exp(-t * x[4])
        - (exp(-t) - 5 * exp(-10 * t) + 3 * exp(-4 * t))
        for t in (i / 10 for i in range(1, 14))
    ]


def osborne2(x: list[Any]) -> Sequence[Any]:
    def model(t: float) -> Any:
        peaks = [x[k] * ca.exp(-x[k + 4] * (t - x[k + 7]) ** 2) for k in (1, 2, 3)]
        return x[0] * ca.exp(-t * x[4]) + sum(peaks)

    return [y - model(i / 10) for i, y in enumerate(OSBORNE2_Y)]


def watson(x: list[Any]) -> Sequence[Any]:
    def row(t: float) -> Any:
        slope = sum(j * xj * t ** (j - 1) for j, xj in enumerate(x) if j)
        return slope - sum(xj * t**j for j, xj in enumerate(x)) ** 2 - 1

    return [*(row(i / 29) for i in range(1, 30)), x[0], x[1] - x[0] ** 2 - 1]


def penalty1(x: list[Any]) -> Sequence[Any]:
    return [*(sqrt(1e-5) * (xi - 1) for xi in x), sum(xi**2 for xi in x) - 0.25]


def penalty2(x: list[Any]) -> Sequence[Any]:
    n, a = len(x), sqrt(1e-5)
    return [
        x[0] - 0.2,
        *(
            a * (ca.exp(x[i] / 10) + ca.exp(x[i - 1] / 10) - exp((i + 1) / 10) - exp(i / 10))
            for i in range(1, n)
        ),
        *(a * (ca.exp(xi / 10) - exp(-0.1)) for xi in x[1:]),
        sum((n - i) * xi**2 for i, xi in enumerate(x)) - 1,
    ]


def variably_dimensioned(x: list[Any]) -> Sequence[Any]:
    moment = sum(i * (xi - 1) for i, xi in enumerate(x, 1))
    return [*(xi - 1 for xi in x), moment, moment**2]


def linear_full_rank(m: int, x: list[Any]) -> Sequence[Any]:
    common = -2 / m * sum(x) - 1
    return [(x[i] if i < len(x) else 0) + common for i in range(m)]


def linear_rank_one(m: int, x: list[Any]) -> Sequence[Any]:
    total = sum(j * xj for j, xj in enumerate(x, 1))
    return [i * total - 1 for i in range(1, m + 1)]


def linear_rank_one_zeros(m: int, x: list[Any]) -> Sequence[Any]:
    total = sum(j * xj for j, xj in enumerate(x[1:-1], 2))
    return [-1, *((i - 1) * total - 1 for i in range(2, m)), -1]


def chebyquad(m: int, x: list[Any]) -> Sequence[Any]:
    def column(xj: Any) -> list[Any]:
        shifted = 2 * xj - 1
        values = [1, shifted]
        while len(values) <= m:
            values.append(2 * shifted * values[-1] - values[-2])
        return values

    columns = [column(xj) for xj in x]
    means = [sum(values[i] for values in columns) / len(x) for i in range(1, m + 1)]
    return [mean + (1 / (i * i - 1) if i % 2 == 0 else 0) for i, mean in enumerate(means, 1)]
