"""Traps of optimal control: costs of the wrong sign, goals and gates out of reach.

Direct multiple shooting; the unknowns are the states at all nodes and the inputs of all intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, pi
from typing import Any

import casadi as ca
import numpy as np

from problems.hopeless_base import Row, Trap, both_ways, trap

Objective = tuple[Any, list[Row]]
Rate = Callable[[Any, Any], Any]


def double_integrator(x: Any, u: Any) -> Any:
    """Position and speed under an acceleration."""
    return ca.vertcat(x[1], u)


def pendulum(x: Any, u: Any) -> Any:
    """Angle from the upright and its speed under a torque."""
    return ca.vertcat(x[1], ca.sin(x[0]) + u)


def unicycle(x: Any, u: Any) -> Any:
    """Place and heading under a speed and a turn rate."""
    return ca.vertcat(u[0] * ca.cos(x[2]), u[0] * ca.sin(x[2]), u[1])


def car(x: Any, u: Any) -> Any:
    """Kinematic bicycle: rear axle and heading under a speed and the tangent of the steering."""
    return ca.vertcat(u[0] * ca.cos(x[2]), u[0] * ca.sin(x[2]), u[0] * u[1] / 2.7)


def step(rate: Rate, x: Any, u: Any, dt: Any) -> Any:
    """One step of the Runge–Kutta method of order four."""
    a = rate(x, u)
    b = rate(x + dt / 2 * a, u)
    c = rate(x + dt / 2 * b, u)
    return x + dt / 6 * (a + 2 * b + 2 * c + rate(x + dt * c, u))


def shooting(rate: Rate, first: Sequence[float], z: Any, inputs: int, dt: Any) -> Any:
    """States, inputs and the defects of the dynamics, the initial state first."""
    n = len(first)
    N = (z.numel() - n) // (n + inputs)
    X = ca.reshape(z[: n * (N + 1)], n, N + 1)
    U = ca.reshape(z[n * (N + 1) : n * (N + 1) + inputs * N], inputs, N)
    defects = [X[:, 0] - ca.DM(list(first))]
    defects += [X[:, k + 1] - step(rate, X[:, k], U[:, k], dt) for k in range(N)]
    return X, U, ca.vertcat(*defects)


def regulator(
    rate: Rate, state: float, effort: float, final: float, twice: bool, z: Any
) -> Objective:
    """min Σ state·|x|² + effort·u² + final·x₀(end) from (1, 0), without limits."""
    X, U, defects = shooting(rate, (1, 0), z, 1, 0.1)
    f = state * ca.sumsqr(X) + effort * ca.sumsqr(U) + final * X[0, -1]
    return f, both_ways(defects) if twice else [(defects, 0.0, 0.0)]


def slalom_point(most: float, z: Any) -> Objective:
    """A point mass passes y = ±1 by turns every six steps with |a| ≤ most, least effort."""
    X, U, defects = shooting(double_integrator, (0, 0), z, 1, 0.1)
    rows = [(defects, 0.0, 0.0), (U, -most, most)]
    for k in range(6, X.shape[1], 6):
        low, high = (1.0, inf) if (k // 6) % 2 else (-inf, -1.0)
        rows.append((X[0, k], low, high))
    return ca.sumsqr(U) / 100, rows


def slalom_unicycle(speed: float, z: Any) -> Objective:
    """Places (1.2 j, ±1) in a gate's width of 0.2 at every sixth step, speed between 0 and most."""
    X, U, defects = shooting(unicycle, (0, 0, 0), z, 2, 0.25)
    rows = [(defects, 0.0, 0.0), (U[0, :], 0.0, speed), (U[1, :], -5.0, 5.0)]
    for k in range(6, X.shape[1], 6):
        j = k // 6
        side = 1.0 if j % 2 else -1.0
        rows.append((X[:2, k] - ca.DM([1.2 * j, side]), -0.1, 0.1))
    return ca.sumsqr(U[1, :]), rows


def parking(gap: float, z: Any) -> Objective:
    """A car of 4.4 m parks in the middle of a gap; lines part it from the cars at both ends.

    The angles of the lines' normals are unknowns behind the states and inputs, the duration is
    the last; see ``scenarios/parking.py``.
    """
    N, first = 20, (gap + 1.5, 3.4, 0.0)
    last = ca.DM([gap / 2 - 1.3, 1.1, 0.0])
    X, U, defects = shooting(car, first, z[: 5 * N + 3], 2, z[-1] / N)
    rows = [(defects, 0.0, 0.0), (X[:, N] - last, 0.0, 0.0), (z[-1], 2.0, 60.0)]
    rows += [(U[0, :], -1.0, 1.0), (U[1, :], -0.68, 0.68)]
    body = ca.DM([[-0.9, 3.5, 3.5, -0.9], [-0.9, -0.9, 0.9, 0.9]])
    for k in range(N + 1):
        c, s = ca.cos(X[2, k]), ca.sin(X[2, k])
        turn = ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))
        corners = ca.repmat(X[:2, k], 1, 4) + ca.mtimes(turn, body)
        rows.append((corners[1, :], 0.0, 6.5))
        for which, place, low in ((0, 0.0, 0.0), (1, gap, pi / 2)):
            angle = z[5 * N + 3 + which * (N + 1) + k]
            rows.append((angle, low, low + pi / 2))
            normal = ca.horzcat(ca.cos(angle), ca.sin(angle))
            corner = ca.repmat(ca.DM([place, 2.0]), 1, 4)
            rows.append((ca.mtimes(normal, corners - corner), 0.05, inf))
    return z[-1] + ca.sumsqr(U[1, :]) / N, rows


def parking_start(gap: float) -> np.ndarray:
    """A straight line to the goal, slowly backwards, normals in the middle of their ranges."""
    ends = (gap + 1.5, 3.4, 0.0), (gap / 2 - 1.3, 1.1, 0.0)
    line = np.linspace(*ends, 21)
    inputs = np.tile((-0.7, 0.0), 20)
    angles = np.repeat((pi / 4, 3 * pi / 4), 21)
    return np.concatenate((line.ravel(), inputs, angles, (10.0,)))


def wrong_signs() -> tuple[Trap, ...]:
    """Costs of the wrong sign: unbounded below, since nothing limits the input."""
    rows = (
        ("sign-double-20", double_integrator, 20, (-1.0, -0.1, 0.0), "all weights negative"),
        ("sign-double-40", double_integrator, 40, (-1.0, 0.1, 0.0), "the state's weight negative"),
        ("sign-effort-30", double_integrator, 30, (1.0, -10.0, 0.0), "the input's negative"),
        ("sign-linear-20", double_integrator, 20, (0.0, 0.0, -1.0), "a linear program"),
        ("sign-pendulum-30", pendulum, 30, (-1.0, -0.1, 0.0), "all weights negative"),
        ("sign-pendulum-state-20", pendulum, 20, (-1.0, 0.01, 0.0), "the state's negative"),
    )
    return tuple(
        trap(name, partial(regulator, rate, *weights, False), (0,) * (2 * (N + 1) + N),
             "unbounded", known, symbol=ca.MX)
        for name, rate, N, weights, known in rows
    )  # fmt: skip


def equations_twice() -> tuple[Trap, ...]:
    """Regulators whose dynamics are written as two inequalities."""
    return tuple(
        trap(f"twice-{name}", partial(regulator, rate, 1.0, 0.1, 0.0, True), (0,) * 62,
             "solvable", "dynamics as two inequalities", symbol=ca.MX, f_star=f_star)
        for name, rate, f_star in (
            ("double-20", double_integrator, 12.7752253699),  # of the same with equations
            ("pendulum-20", pendulum, 13.9117582845),
        )
    )  # fmt: skip


def out_of_reach() -> tuple[Trap, ...]:
    """Parking and slaloms, each once out of reach and once with little room."""
    least = 19.513  # of a linear program: the least bound on |a| with which the gates are reached
    park = tuple(
        trap(f"parking-{gap}", partial(parking, gap), parking_start(gap), truth, known,
             symbol=ca.MX)
        for gap, truth, known in (
            (4.2, "infeasible", "the car is 4.4 m long"),
            (4.45, "infeasible", "5 cm of clearance need 4.5 m"),
            (6.2, "solvable", "tight"),
            (8.0, "solvable", "wide"),
        )
    )  # fmt: skip
    return (
        *park,
        trap("slalom-point-over", partial(slalom_point, 0.97 * least), (0,) * 110, "infeasible",
             "3% below the least bound on |a|", symbol=ca.MX),
        trap("slalom-point", partial(slalom_point, 1.03 * least), (0,) * 110, "solvable",
             "3% above it", symbol=ca.MX),
        trap("slalom-unicycle-over", partial(slalom_unicycle, 1.3), (0,) * 123, "infeasible",
             "gates at least 2.06 apart, 1.95 in reach", symbol=ca.MX),
        trap("slalom-unicycle", partial(slalom_unicycle, 2.0), (0,) * 123, "solvable",
             "3.0 in reach", symbol=ca.MX),
    )  # fmt: skip


def control_traps() -> tuple[Trap, ...]:
    """Return all of them."""
    return (*wrong_signs(), *equations_twice(), *out_of_reach())
