"""The problems: judged ones, and others on which settings may be tuned.

What is judged was fixed before any of it was measured, and nothing is tuned on it: settings of
solvers, ours included, are chosen on ``TUNING``. Plant and model agree but for a noise that is
added to the state after every interval, 1 % of the size of each of its entries.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from warm.stages import Family, runge_kutta

GRAVITY = 9.81
FREE = np.inf


def van_der_pol() -> Family:
    """An oscillator brought to rest with a bounded input and a bound on its speed."""

    def slope(x: Any, u: Any) -> Any:
        return ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u[0], x[0])

    return Family(
        "van_der_pol", runge_kutta(slope, 0.2),
        cost=lambda x, u, t: ca.sumsqr(x) + ca.sumsqr(u),
        final=lambda x, t: 10 * ca.sumsqr(x),
        start=(0.0, 1.0), scale=(0.5, 1.0), lower=(-1.0,), upper=(1.0,), dt=0.2, horizons=(50,),
        floor=(-0.25, -FREE), roof=(FREE, FREE),
    )  # fmt: skip


def bicycle() -> Family:
    """A kinematic bicycle along a road, past discs that stand in its way."""
    places = ((6.0, 0.3), (13.0, -0.4), (20.0, 0.2), (27.0, -0.3))

    def slope(x: Any, u: Any) -> Any:  # place (2), heading, speed; acceleration, steering
        return ca.vertcat(x[3] * ca.cos(x[2]), x[3] * ca.sin(x[2]), x[3] / 2.5 * ca.tan(u[1]), u[0])

    def rows(x: Any, t: Any) -> Any:  # 1.2 m from the middle of each disc
        return ca.vertcat(*(((x[0] - a) ** 2 + (x[1] - b) ** 2) / 1.2**2 - 1 for a, b in places))

    return Family(
        "bicycle", runge_kutta(slope, 0.1),
        cost=lambda x, u, t: (
            x[1] ** 2 + x[2] ** 2 + (x[3] - 5) ** 2 + 0.1 * u[0] ** 2 + 5 * u[1] ** 2
        ),
        final=lambda x, t: 5 * (x[1] ** 2 + x[2] ** 2) + (x[3] - 5) ** 2,
        start=(0.0, 0.0, 0.0, 4.0), scale=(1.0, 1.0, 0.5, 5.0), lower=(-3.0, -0.5),
        upper=(2.0, 0.5), dt=0.1, horizons=(40,), rows=rows,
    )  # fmt: skip


def quadrotor() -> Family:
    """A planar quadrotor that follows a point on a circle, its tilt limited."""
    mass, inertia, arm = 0.6, 0.01, 0.2
    hover = mass * GRAVITY / 2

    def slope(x: Any, u: Any) -> Any:  # place (2), tilt, and their rates; two thrusts
        thrust = (u[0] + u[1]) / mass
        return ca.vertcat(
            x[3], x[4], x[5], -thrust * ca.sin(x[2]), thrust * ca.cos(x[2]) - GRAVITY,
            arm * (u[1] - u[0]) / inertia,
        )  # fmt: skip

    def away(x: Any, t: Any) -> Any:
        goal = ca.vertcat(ca.cos(2 * t), ca.sin(2 * t))
        return 20 * ca.sumsqr(x[:2] - goal) + 0.2 * ca.sumsqr(x[2:])

    return Family(
        "quadrotor", runge_kutta(slope, 0.05),
        cost=lambda x, u, t: away(x, t) + 0.05 * ca.sumsqr(u - hover),
        final=away,
        start=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), scale=(1.0, 1.0, 0.5, 2.0, 2.0, 2.0),
        lower=(0.5, 0.5), upper=(5.0, 5.0), dt=0.05, horizons=(20, 40),
        rows=lambda x, t: ca.vertcat(0.6 - x[2], 0.6 + x[2]), rest=(hover, hover),
    )  # fmt: skip


def cart_pole() -> Family:
    """A pole on a cart swung up and held, with limited force on a short track."""
    cart, pole, length = 1.0, 0.3, 0.5

    def slope(x: Any, u: Any) -> Any:  # place, angle from hanging, and their rates; force
        sin, cos = ca.sin(x[1]), ca.cos(x[1])
        push = u[0] + pole * sin * (length * x[3] ** 2 + GRAVITY * cos)
        acceleration = push / (cart + pole * sin**2)
        return ca.vertcat(x[2], x[3], acceleration, -(acceleration * cos + GRAVITY * sin) / length)

    def away(x: Any) -> Any:
        return 10 * (1 + ca.cos(x[1])) + 10 * x[0] ** 2 + 0.1 * (x[2] ** 2 + x[3] ** 2)

    return Family(
        "cart_pole", runge_kutta(slope, 0.05, 2),
        cost=lambda x, u, t: away(x) + 0.01 * u[0] ** 2,
        final=lambda x, t: away(x),
        start=(0.0, 0.0, 0.0, 0.0), scale=(0.2, 0.5, 1.0, 2.0), lower=(-10.0,), upper=(10.0,),
        dt=0.05, horizons=(50,),
        rows=lambda x, t: ca.vertcat(0.5 - x[0], 0.5 + x[0]),
    )  # fmt: skip


def chain() -> Family:
    """Three masses on springs beside a wall, brought to rest by moving the end.

    After L. Wirsching, H. G. Bock, M. Diehl, "Fast NMPC of a chain of masses connected by
    springs", IEEE Conference on Control Applications, 2006.
    """
    masses, weight, stiffness, rest, wall = 3, 0.033, 1.0, 0.033, -0.02
    last = slice(3 * masses, 3 * masses + 3)

    def slope(x: Any, u: Any) -> Any:  # places of the masses and of the end, velocities
        places = [ca.DM.zeros(3), *(x[3 * i : 3 * i + 3] for i in range(masses + 1))]
        pulls = [stiffness * (1 - rest / ca.norm_2(b - a)) * (b - a) for a, b in pairwise(places)]
        forces = ca.vertcat(*(b - a for a, b in pairwise(pulls))) / weight
        return ca.vertcat(x[last.stop :], u, forces - ca.repmat(ca.DM([0, 0, GRAVITY]), masses, 1))

    def away(x: Any) -> Any:
        return 25 * ca.sumsqr(x[last] - ca.DM([1, 0, 0])) + ca.sumsqr(x[last.stop :])

    # Roughly how the chain hangs between the ends, the end pulled to one side.
    along = np.linspace(0, 1, masses + 2)[1:]
    hanging = [v for a in along for v in (0.6 * a, 0.4 * a, 0.3 * a - 1.6 * a * (1 - a))]
    return Family(
        "chain", runge_kutta(slope, 0.2, 2),
        cost=lambda x, u, t: away(x) + 0.01 * ca.sumsqr(u),
        final=lambda x, t: away(x),
        start=(*hanging, *(0.0,) * (3 * masses)),
        scale=(0.5,) * (3 * masses + 3) + (0.5,) * (3 * masses),
        lower=(-1.0,) * 3, upper=(1.0,) * 3, dt=0.2, horizons=(20,),
        rows=lambda x, t: x[1 : last.stop : 3] - wall,
    )  # fmt: skip


def linear() -> Family:
    """Three masses between walls, joined by springs, pushed by two actuators: a convex QP.

    After Y. Wang, S. Boyd, "Fast model predictive control using online optimization", IEEE
    Transactions on Control Systems Technology 18(2), 2010.
    """
    springs = np.array([[-2.0, 1, 0], [1, -2, 1], [0, 1, -2]])
    push = np.array([[1.0, 0], [-1, 1], [0, -1]])

    def step(x: Any, u: Any) -> Any:
        A, B = _sampled(springs, push, 0.5)
        return ca.mtimes(A, x) + ca.mtimes(B, u)

    return Family(
        "linear", step,
        cost=lambda x, u, t: ca.sumsqr(x) + ca.sumsqr(u),
        final=lambda x, t: 5 * ca.sumsqr(x),
        start=(1.0, -1.0, 1.5, 0.0, 0.0, 0.0), scale=(2.0, 2.0, 2.0, 2.0, 2.0, 2.0),
        lower=(-0.5, -0.5), upper=(0.5, 0.5), dt=0.5, horizons=(30,),
        floor=(-4.0,) * 6, roof=(4.0,) * 6,
    )  # fmt: skip


def pendulum() -> Family:
    """A pendulum swung up by a torque too small to lift it at once (tuning)."""

    def slope(x: Any, u: Any) -> Any:
        return ca.vertcat(x[1], -GRAVITY * ca.sin(x[0]) + u[0])

    return Family(
        "pendulum", runge_kutta(slope, 0.08, 2),
        cost=lambda x, u, t: 5 * (1 + ca.cos(x[0])) + 0.1 * x[1] ** 2 + 0.05 * u[0] ** 2,
        final=lambda x, t: 20 * (1 + ca.cos(x[0])) + x[1] ** 2,
        start=(0.0, 0.0), scale=(0.5, 2.0), lower=(-5.0,), upper=(5.0,), dt=0.08, horizons=(40,),
        floor=(-FREE, -12.0), roof=(FREE, 12.0),
    )  # fmt: skip


def unicycle() -> Family:
    """A unicycle to the origin, past one disc (tuning)."""

    def slope(x: Any, u: Any) -> Any:
        return ca.vertcat(u[0] * ca.cos(x[2]), u[0] * ca.sin(x[2]), u[1])

    return Family(
        "unicycle", runge_kutta(slope, 0.15),
        cost=lambda x, u, t: ca.sumsqr(x[:2]) + 0.1 * x[2] ** 2 + 0.1 * ca.sumsqr(u),
        final=lambda x, t: 5 * ca.sumsqr(x),
        start=(-4.0, -2.0, 0.0), scale=(1.0, 1.0, 0.5), lower=(-0.5, -1.5), upper=(1.0, 1.5),
        dt=0.15, horizons=(30,),
        rows=lambda x, t: (x[0] + 2) ** 2 + (x[1] + 0.8) ** 2 - 0.25,
    )  # fmt: skip


def tanks() -> Family:
    """Two tanks in a row, the second one's level to follow a wave (tuning)."""

    def slope(x: Any, u: Any) -> Any:
        out = [0.5 * ca.sqrt(x[i] + 0.01) for i in range(2)]
        return ca.vertcat(u[0] - out[0], out[0] - out[1])

    def away(x: Any, t: Any) -> Any:
        return 10 * (x[1] - 1 - 0.5 * ca.sin(0.3 * t)) ** 2

    return Family(
        "tanks", runge_kutta(slope, 0.5),
        cost=lambda x, u, t: away(x, t) + 0.01 * u[0] ** 2, final=away,
        start=(1.0, 1.0), scale=(1.0, 1.0), lower=(0.0,), upper=(1.0,), dt=0.5, horizons=(30,),
        floor=(0.05, 0.05), roof=(1.8, 3.0),
    )  # fmt: skip


def _sampled(springs: Any, push: Any, dt: float) -> tuple[Any, Any]:
    """x⁺ = A x + B u of q'' = springs q + push u with u held over dt."""
    from scipy.linalg import expm  # noqa: PLC0415 - for a step, not for `casadi-hybrid --help`

    n, m = push.shape
    slope = np.zeros((2 * n + m, 2 * n + m))
    slope[:n, n : 2 * n] = np.eye(n)
    slope[n : 2 * n, :n], slope[n : 2 * n, 2 * n :] = springs, push
    found = expm(dt * slope)
    return ca.DM(found[: 2 * n, : 2 * n]), ca.DM(found[: 2 * n, 2 * n :])


JUDGED = {one.name: one for one in (van_der_pol(), bicycle(), quadrotor(), cart_pole(), chain())}
TUNING = {one.name: one for one in (pendulum(), unicycle(), tanks())}
FAMILIES = {**JUDGED, "linear": linear(), **TUNING}
HORIZONS = {
    "linear": (10, 20, 50, 100, 200, 400, 800),
    "van_der_pol": (20, 50, 100, 200, 400, 800, 1600, 3200, 6400),
}
"""The horizons of the study of time against horizon; dt stays, so more is foreseen."""
