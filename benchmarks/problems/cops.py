"""Problems of COPS from their published statements, with published least values.

E. D. Dolan, J. J. Moré, T. S. Munson, Benchmarking Optimization Software with COPS 3.0, Argonne
National Laboratory ANL/MCS-TM-273, 2004, and, where named, the sources of the values. Some stand
with the control problems and with the large ones. Starts are those of the report but for the
electrons, which lie on a spiral in the place of random points.
Values are those of the continuous problem or of one grid: on other grids they are met to 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, pi
from typing import Any

import casadi as ca
import numpy as np

from problems.control_base import Program, trapezoid
from problems.control_singular import catalyst, goddard
from problems.control_time import robot_arm
from problems.large import surface, torsion

Data = dict[str, Any]


def electrons(N: int) -> Data:
    """The least Coulomb energy of N electrons on a sphere (Thomson's problem)."""
    k = np.arange(N) + 0.5
    z, angle = 1 - 2 * k / N, pi * (1 + 5**0.5) * k
    spiral = np.array([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z])
    program = Program()
    X = program.variable("x", 3, N, start=spiral)
    program.rows(ca.sum1(X**2) - 1)
    for i in range(N - 1):
        apart = X[:, i + 1 :] - ca.repmat(X[:, i], 1, N - 1 - i)
        program.cost(ca.sum2(1 / ca.sqrt(ca.sum1(apart**2))))
    return program.build()


def chain(N: int) -> Data:
    """The least potential energy of a chain of length 4 between the heights 1 and 3."""
    t = np.linspace(0, 1, N + 1)
    program = Program()
    x = program.variable("x", 1, N + 1, start=[8 * t * (t / 2 - 0.25) + 1])
    u = program.variable("u", 1, N + 1, start=[8 * (t - 0.25)])
    stretch = ca.sqrt(1 + u**2)
    trapezoid(program, lambda _, slope: slope, x, u, 1 / N)
    program.rows(ca.sum2(stretch[:-1] + stretch[1:]) / (2 * N) - 4)
    program.rows(ca.vertcat(x[0] - 1, x[N] - 3))
    weight = x * stretch
    program.cost(ca.sum2(weight[:-1] + weight[1:]) / (2 * N))
    return program.build()


def polygon(N: int) -> Data:
    """The largest area of a polygon of N vertices whose diameter is at most one."""
    k = np.arange(1, N)
    program = Program()
    r = program.variable("r", N - 1, lower=0, upper=1, start=4 * k * (N + 1 - k) / (N + 1) ** 2)
    theta = program.variable("theta", N - 1, lower=0, upper=pi, start=pi * k / N)
    first, second = (part.tolist() for part in np.triu_indices(N - 1, 1))
    cosine = ca.cos(theta[second] - theta[first])
    squares = r[first] ** 2 + r[second] ** 2 - 2 * r[first] * r[second] * cosine
    program.rows(squares, -inf, 1.0)
    program.rows(theta[1:] - theta[:-1], 0.0, inf)
    program.cost(-0.5 * ca.sum1(r[1:] * r[:-1] * ca.sin(theta[1:] - theta[:-1])))
    return program.build()


def cam(N: int) -> Data:
    """The largest area of the valve's opening for one rotation of a convex cam."""
    angle = 2 * pi / (5 * (N + 1))
    program = Program()
    r = program.variable("r", N, lower=1.0, upper=2.0, start=1.5)
    around = ca.vertcat(1.0, 1.0, r, 2.0, r[N - 1])
    a, b, c = around[:-2], around[1:-1], around[2:]
    program.rows(2 * a * c * ca.cos(angle) - a * b - b * c, -inf, 0.0)
    steps = around[2 : N + 3] - around[1 : N + 2]
    program.rows(steps, -1.5 * angle, 1.5 * angle)
    program.cost(-pi / N * ca.sum1(r))
    return program.build()


def steering(N: int) -> Data:
    """The least time in which a particle steered by an angle reaches a state."""
    t = np.linspace(0, 1, N + 1)
    program = Program()
    X = program.variable("x", 4, N + 1, start=np.array([0 * t, 5 * t, 45 * t, 0 * t]))
    U = program.variable("u", 1, N + 1, lower=-pi / 2, upper=pi / 2)
    step = program.variable("step", 1, lower=0.0, start=1 / N)

    def right(x: Any, u: Any) -> Any:
        return ca.vertcat(x[2], x[3], 100 * ca.cos(u), 100 * ca.sin(u))

    trapezoid(program, right, X, U, step)
    program.rows(X[:, 0])
    program.rows(X[1:, N] - ca.DM([5, 45, 0]))
    program.cost(N * step)
    return program.build()


COPS: dict[str, tuple[Callable[[], Data], float]] = {
    f"{name}-{N}": (partial(build, N), f_star)
    for name, build, N, f_star in (
        ("electrons", electrons, 25, 243.8128),
        ("electrons", electrons, 50, 1055.182),
        ("chain", chain, 50, 5.07226),
        ("chain", chain, 400, 5.06862),
        # R. L. Graham 1975 and C. Audet, P. Hansen, F. Messine 2002 and 2013.
        ("polygon", polygon, 6, -0.674981),
        ("polygon", polygon, 8, -0.726868),
        ("polygon", polygon, 10, -0.749137),
        ("polygon", polygon, 50, -0.784016),
        ("cam", cam, 400, -4.27568),
        ("rocket", goddard, 400, -1.01283),
        ("robot", robot_arm, 200, 9.14138),
        ("catalyst", catalyst, 100, -0.0480556),
        ("steering", steering, 200, 0.554577),
        ("torsion", torsion, 50, -0.418087),
        ("surface", partial(surface, wide=True), 50, 2.51488),
    )
}
"""Builders and published least values by name and size."""
