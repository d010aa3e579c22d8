"""Residuals and data of overdetermined systems from textbooks, papers and CUTEst.

Each function takes the list of scalar unknowns and returns the residuals. The sources are named
where the systems are listed, in :mod:`problems.systems_classic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, exp, log, pow, sin, tanh
from typing import Any

import casadi as ca

# fmt: off
HIMMELBLAU_A = (0.0, 0.000428, 0.001, 0.00161, 0.00209, 0.00348, 0.00525)
HIMMELBLAU_B = (7.391, 11.18, 16.44, 16.20, 22.20, 24.02, 31.32)
GROWTH_N = (8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 25)
GROWTH_G = (8.0, 8.4305, 9.5294, 10.4627, 12.0, 13.0205, 14.5949, 16.1078, 18.0596, 20.4569, 24.25,
            32.9863)
HATFLDD = ((0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9),
           (1.751, 1.561, 1.391, 1.239, 1.103, 0.981, 0.925, 0.8721, 0.8221, 0.7748))
HATFLDE = (tuple(0.3 + 0.05 * i for i in range(21)),
           (1.561, 1.473, 1.391, 1.313, 1.239, 1.169, 1.103, 1.04, 0.981, 0.925, 0.8721, 0.8221,
            0.7748, 0.73, 0.6877, 0.6477, 0.6099, 0.5741, 0.5403, 0.5084, 0.4782))
GANDER = ((1, 7), (2, 6), (5, 8), (7, 7), (9, 5), (3, 7))
Rows = tuple[tuple[float, ...], ...]
MCKEOWN: dict[int, tuple[Rows, Rows, Rows]] = {
    1: (
        ((0.13294, -0.244378, 0.325895), (2.5074, -1.36401, 1.02282)),
        ((-0.564255, 0.392417), (-0.404979, 0.927589), (-0.0735084, 0.535493)),
        ((5.66598, 2.77141), (2.77141, 2.12413)),
    ),
    2: (
        ((0.14272, -0.184918, -0.521869, -0.685306), (1.75168, -1.35195, -0.479048, -0.3648)),
        ((-0.564255, 0.392417, -0.404979), (0.927589, -0.0735083, 0.535493),
         (0.658799, -0.636666, -0.681091), (-0.869487, 0.586387, 0.289826)),
        ((2.95137, 4.87407, -2.0506), (4.87407, 9.39321, -3.93189), (-2.0506, -3.93189, 2.64745)),
    ),
    3: (
        ((0.0426149, 0.0352053, 0.0878058, 0.0330812, 0.0580924, 0.649704, 0.344144, -0.627443,
          0.001828, -0.224783),
         (2.34659, 2.84048, 1.13888, 3.02286, 1.72139, 0.153917, 0.290577, -0.159378, 54.6910,
          -0.444873)),
        ((-0.564255, 0.392417, -0.404979, 0.927589, -0.0735083),
         (0.535493, 0.658799, -0.636666, -0.681091, -0.869487),
         (0.586387, 0.289826, 0.854402, 0.789312, 0.949721),
         (0.608734, 0.984915, 0.375699, 0.239547, 0.463136),
         (0.774227, 0.325421, -0.151719, 0.448051, 0.149926),
         (-0.435033, -0.688583, 0.222278, -0.524653, 0.413248),
         (0.759468, -0.627795, 0.0403142, 0.724666, -0.0182537),
         (-0.152448, -0.546437, 0.484134, 0.353951, 0.887866),
         (-0.821772, -0.53412, -0.798498, -0.658572, 0.662362),
         (0.819831, -0.910632, -0.480344, -0.871758, -0.978666)),
        ((0.354033, -0.0230349, -0.211938, -0.0554288, 0.220429),
         (-0.0230349, 0.291350, -0.00180333, -0.111141, 0.0485461),
         (-0.211938, -0.00180333, 0.815808, -0.133538, -0.380670),
         (-0.0554288, -0.111141, -0.133538, 0.389198, -0.131586),
         (0.220429, 0.0485461, -0.380670, -0.131586, 0.534706)),
    ),
}
# fmt: on


def dennis_exponential(last: float, x: list[Any]) -> Sequence[Any]:
    return [ca.exp(t * x[0]) - y for t, y in ((1, 2), (2, 4), (3, last))]


def denschna(x: list[Any]) -> Sequence[Any]:
    return x[0] ** 2, x[0] + x[1], ca.exp(x[1]) - 1


def denschnb(x: list[Any]) -> Sequence[Any]:
    return x[0] - 2, (x[0] - 2) * x[1], x[1] + 1


def engval2(x: list[Any]) -> Sequence[Any]:
    return (
        x[0] ** 2 + x[1] ** 2 + x[2] ** 2 - 1,
        x[0] ** 2 + x[1] ** 2 + (x[2] - 2) ** 2 - 1,
        x[0] + x[1] + x[2] - 1,
        x[0] + x[1] - x[2] + 1,
        3 * x[1] ** 2 + x[0] ** 3 + (5 * x[2] - x[0] + 1) ** 2 - 36,
    )


def himmelblau(x: list[Any]) -> Sequence[Any]:
    return [
        100 * ((x[0] ** 2 + a * x[1] ** 2 + a**2 * x[2] ** 2) / (b * (1 + a * x[3] ** 2)) - 1)
        for a, b in zip(HIMMELBLAU_A, HIMMELBLAU_B, strict=True)
    ]


def growth(x: list[Any]) -> Sequence[Any]:
    return [
        x[0] * ca.exp(log(k) * (x[1] + log(k) * x[2])) - g
        for k, g in zip(GROWTH_N, GROWTH_G, strict=True)
    ]


def hatfield(data: tuple[tuple[float, ...], tuple[float, ...]], x: list[Any]) -> Sequence[Any]:
    return [ca.exp(t * x[2]) - x[0] * ca.exp(t * x[1]) + z for t, z in zip(*data, strict=True)]


def glasser1(x: list[Any]) -> Sequence[Any]:
    return [
        x[0] * x[1] ** t * ca.sin(t * x[2] + x[3]) - 60.137 * 1.371**t * sin(3.112 * t + 1.761)
        for t in (i / 10 for i in range(24))
    ]


def glasser2(x: list[Any]) -> Sequence[Any]:
    def data(t: float) -> float:
        return 53.81 * pow(1.27, t) * tanh(3.012 * t + sin(2.13 * t)) * cos(t * exp(0.507))

    return [
        x[0] * x[1] ** t * ca.tanh(t * x[2] + ca.sin(t * x[3])) * ca.cos(t * ca.exp(x[4])) - data(t)
        for t in (i / 10 for i in range(16))
    ]


def circle(x: list[Any]) -> Sequence[Any]:
    return [ca.sqrt((x[0] - p) ** 2 + (x[1] - q) ** 2) - x[2] for p, q in GANDER]


def madsen(x: list[Any]) -> Sequence[Any]:
    return x[0] ** 2 + x[1] ** 2 + x[0] * x[1], ca.sin(x[0]), ca.cos(x[1])


def mckeown(data: tuple[Rows, Rows, Rows], x: list[Any]) -> Sequence[Any]:
    """Return a + Cx + ½(xᵀBx)d; the rows of ``data`` are (a, d), C and B."""
    ends, slopes, curvature = data
    bent = sum(
        entry * xi * xj
        for xi, row in zip(x, curvature, strict=True)
        for xj, entry in zip(x, row, strict=True)
    )
    return [
        a + sum(c * xi for c, xi in zip(row, x, strict=True)) + 0.5 * d * bent
        for a, d, row in zip(*ends, slopes, strict=True)
    ]
