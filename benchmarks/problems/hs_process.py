"""The longer formulas of problems 67, 70, 85, 88–92, 99, 107, 109: models of plants and processes.

W. Hock & K. Schittkowski (1981); the problem number stands in every docstring. All take and return
CasADi expressions (floats work as well).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import cos, pi, sin
from typing import Any

import casadi as ca

from problems.hs_base import Row, le

# fmt: off
ROUTING_Y = (
    0.00189, 0.1038, 0.268, 0.506, 0.577, 0.604, 0.725, 0.898, 0.947, 0.845, 0.702, 0.528, 0.385,
    0.257, 0.159, 0.0869, 0.0453, 0.01509, 0.00189,
)
# fmt: on
ROUTING_C = (0.1, *range(1, 19))


def alkylation(x1: Any, x2: Any, x3: Any) -> tuple[Any, ...]:
    """Return y2, …, y8 of problem 67, the limits of the two fixed-point loops of the book.

    The first loop is a quadratic equation in y6, the second one in y4, so the limits are explicit:
    y6 is the positive root, y4 the smaller one. The second root is real only where its loop has a
    fixed point, which includes a neighbourhood of the start and of the solution.
    """
    linear = 1 / 1.22 - 0.13167
    constant = (1 - x2 / x1) / 1.22 - 1.12
    y6 = (ca.sqrt(linear**2 - 4 * 0.006667 * constant) - linear) / (2 * 0.006667)
    y2 = x1 * (1.12 + 0.13167 * y6 - 0.006667 * y6**2)
    y3 = 1.22 * y2 - x1
    # y5 = octane + 0.325 y4 and y7 = 65.346 − 0.666 y5 in y4 (y2 y7 + 1000 x3) = 98000 x3.
    octane = 57.425 + 1.098 * y6 - 0.038 * y6**2
    middle = y2 * (65.346 - 0.666 * octane) + 1000 * x3
    y4 = 2 * 98000 * x3 / (middle + ca.sqrt(middle**2 - 4 * 0.21645 * y2 * 98000 * x3))
    y5 = octane + 0.325 * y4
    y8 = 3 * y5 - 133
    return y2, y3, y4, y5, y6, 35.82 - 0.222 * y8, y8


def routing(x1: Any, x2: Any, x3: Any, x4: Any) -> list[Any]:
    """Return y_obs − y_cal of problem 70, the two-part water flow routing model."""
    b = x3 + (1 - x3) * x4

    def part(shape: Any, weight: Any, rate: Any, c: float) -> Any:
        gamma = weight * rate**shape * ca.sqrt(shape / 6.2832) / (1 + 1 / (12 * shape))
        return gamma * (c / 7.658) ** (shape - 1) * ca.exp(shape * (1 - rate * c / 7.658))

    return [
        y - part(x2, x3, b, c) - part(x1, 1 - x3, b / x4, c)
        for c, y in zip(ROUTING_C, ROUTING_Y, strict=True)
    ]


def pulp_mill(x1: Any, x2: Any, x3: Any, x4: Any, x5: Any) -> tuple[list[Any], list[Any]]:
    """Return (y1, …, y17) and (c1, …, c17) of problem 85."""
    y1 = x2 + x3 + 41.6
    c1 = 0.024 * x4 - 4.62
    y2 = 12.5 / c1 + 12
    c2 = 0.0003535 * x1**2 + 0.5311 * x1 + 0.08705 * y2 * x1
    c3 = 0.052 * x1 + 78 + 0.002377 * y2 * x1
    y3 = c2 / c3
    y4 = 19 * y3
    c4 = 0.04782 * (x1 - y3) + 0.1956 * (x1 - y3) ** 2 / x2 + 0.6376 * y4 + 1.594 * y3
    c5 = 100 * x2
    c6 = x1 - y3 - y4
    c7 = 0.95 - c4 / c5
    y5 = c6 * c7
    y6 = x1 - y5 - y4 - y3
    c8 = (y5 + y4) * 0.995
    y7 = c8 / y1
    y8 = c8 / 3798
    c9 = y7 - 0.0663 * y7 / y8 - 0.3153
    y9 = 96.82 / c9 + 0.321 * y1
    y10 = 1.29 * y5 + 1.258 * y4 + 2.29 * y3 + 1.71 * y6
    y11 = 1.71 * x1 - 0.452 * y4 + 0.58 * y3
    c10 = 12.3 / 752.3
    c11 = 1.75 * y2 * 0.995 * x1
    c12 = 0.995 * y10 + 1998
    y12 = c10 * x1 + c11 / c12
    y13 = c12 - 1.75 * y2
    y14 = 3623 + 64.4 * x2 + 58.4 * x3 + 146312 / (y9 + x5)
    c13 = 0.995 * y10 + 60.8 * x2 + 48 * x4 - 0.1121 * y14 - 5095
    y15 = y13 / c13
    y16 = 148000 - 331000 * y15 + 40 * y13 - 61 * y15 * y13
    c14 = 2324 * y10 - 28740000 * y2
    y17 = 14130000 - 1328 * y10 - 531 * y11 + c14 / c12
    c15 = y13 / y15 - y13 / 0.52
    c16 = 1.104 - 0.72 * y15
    c17 = y9 + x5
    y = [y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17]
    return y, [c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17]


def heat_conduction(*x: Any) -> tuple[Any, list[Row]]:
    """Return the formula shared by problems 88–92."""
    return sum(entry**2 for entry in x), [le(heating_error(x), 1e-4)]


def heating_error(x: Sequence[Any]) -> Any:
    """Return the squared distance of problems 88–92 to the wanted temperature profile.

    Heat conduction in a rod whose boundary control switches between −1 and 1 after times x_i²; the
    profile is a series in the roots μ of μ tan μ = 1, of which the book takes 30.
    """
    tails = list(accumulate(entry**2 for entry in reversed(x)))[::-1]
    n = len(x)
    total: Any = 2 / 15
    for mu in heating_modes(30):
        weight = 2 * sin(mu) / (mu + sin(mu) * cos(mu))
        profile = (sin(mu) / mu - cos(mu)) / mu**2
        switches = sum(2 * (-1) ** k * ca.exp(-(mu**2) * tails[k]) for k in range(1, n))
        rho = -(ca.exp(-(mu**2) * tails[0]) + switches + (-1) ** n) / mu**2
        total = total + mu**2 * weight * rho * (mu * sin(mu) * rho - 2 * profile)
    return total


def heating_modes(count: int) -> list[float]:
    """Return the first positive roots of μ tan μ = 1, by Newton's method on μ sin μ − cos μ."""
    roots = []
    for j in range(count):
        mu = j * pi + 1 / (j * pi + 1)
        for _ in range(20):
            mu -= (mu * sin(mu) - cos(mu)) / (2 * sin(mu) + mu * cos(mu))
        roots.append(mu)
    return roots


def ascent(angles: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Return r8, q8, s8 of problem 99: horizontal speed, height and vertical speed at t = 380."""
    thrust = (50, 50, 75, 75, 75, 100, 100)
    times = (0, 25, 50, 100, 150, 200, 290, 380)
    r: Any = 0
    q: Any = 0
    s: Any = 0
    for a, angle, start, end in zip(thrust, angles, times[:-1], times[1:], strict=True):
        dt = end - start
        lift = a * ca.sin(angle) - 32
        q = q + dt * s + 0.5 * dt**2 * lift
        s = s + dt * lift
        r = r + dt * a * ca.cos(angle)
    return r, q, s


def network(
    x1: Any, x2: Any, x3: Any, x4: Any, x5: Any, x6: Any, x7: Any, x8: Any, x9: Any
) -> tuple[Any, ...]:
    """Return the six balances of problem 109: active and reactive power at three nodes."""
    a, b, c, k = 50.176, sin(0.25), cos(0.25), 0.7533e-3
    angles = {(1, 2): -x3, (1, 3): -x4, (2, 1): x3, (2, 3): x3 - x4, (3, 1): x4, (3, 2): x4 - x3}
    s = {pair: ca.sin(angle - 0.25) for pair, angle in angles.items()}
    r = {pair: ca.cos(angle - 0.25) for pair, angle in angles.items()}
    return (
        x5 * x6 * s[1, 2] + x5 * x7 * s[1, 3] + 2 * b * x5**2 - a * x1 + 400 * a,
        x5 * x6 * s[2, 1] + x6 * x7 * s[2, 3] + 2 * b * x6**2 - a * x2 + 400 * a,
        x5 * x7 * s[3, 1] + x6 * x7 * s[3, 2] + 2 * b * x7**2 + 881.779 * a,
        a * x8 + x5 * x6 * r[1, 2] + x5 * x7 * r[1, 3] - 200 * a - 2 * c * x5**2 + k * a * x5**2,
        a * x9 + x5 * x6 * r[2, 1] + x6 * x7 * r[2, 3] - 200 * a - 2 * c * x6**2 + k * a * x6**2,
        x5 * x7 * r[3, 1] + x6 * x7 * r[3, 2] - 22.938 * a - 2 * c * x7**2 + k * a * x7**2,
    )


def power_flow(
    x1: Any, x2: Any, x3: Any, x4: Any, x5: Any, x6: Any, x7: Any, x8: Any, x9: Any
) -> tuple[Any, ...]:
    """Return the six balances of problem 107: active and reactive power at three buses."""
    c, d = 48.4 / 50.176 * sin(0.25), 48.4 / 50.176 * cos(0.25)
    y1, y2, y3, y4 = ca.sin(x8), ca.cos(x8), ca.sin(x9), ca.cos(x9)
    y5, y6 = ca.sin(x8 - x9), ca.cos(x8 - x9)
    h1 = 0.4 - x1 + 2 * c * x5**2 - x5 * x6 * (d * y1 + c * y2) - x5 * x7 * (d * y3 + c * y4)
    h2 = 0.4 - x2 + 2 * c * x6**2 + x5 * x6 * (d * y1 - c * y2) + x6 * x7 * (d * y5 - c * y6)
    h3 = 0.8 + 2 * c * x7**2 + x5 * x7 * (d * y3 - c * y4) - x6 * x7 * (d * y5 + c * y6)
    h4 = 0.2 - x3 + 2 * d * x5**2 + x5 * x6 * (c * y1 - d * y2) + x5 * x7 * (c * y3 - d * y4)
    h5 = 0.2 - x4 + 2 * d * x6**2 - x5 * x6 * (c * y1 + d * y2) - x6 * x7 * (c * y5 + d * y6)
    h6 = 2 * d * x7**2 - 0.337 - x5 * x7 * (c * y3 + d * y4) + x6 * x7 * (c * y5 - d * y6)
    return h1, h2, h3, h4, h5, h6
