"""Differential-algebraic systems of index one, by Radau collocation."""

from __future__ import annotations

from functools import cache
from math import inf, pi
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import fsolve

from problems.control_base import Program, radau

TRAYS, FEED_TRAY = 32, 16


def pendulum(N: int) -> dict[str, Any]:
    """Swing-up of a pendulum in Cartesian coordinates, with the pull of its rod as algebraic state.

    The constraint x² + y² = 1 is differentiated twice, so that it determines the pull: index one;
    Baumgarte's terms damp the drift from it. The end state is told by x and its rate alone (and
    y ≥ 0), as the rest follows from the invariants.

    Source: E. Hairer & G. Wanner, Solving Ordinary Differential Equations II, Springer, 1996,
    sections VII.1 and VII.2 (the pendulum, Baumgarte's stabilization); L. T. Biegler, Nonlinear
    Programming, SIAM, 2010, sections 8.3 and 10.2 (index reduction, Radau collocation). Mass and
    length 1; degree 3, a force along x constant on each of N intervals of three seconds together;
    start: a half turn at constant rate.
    """
    gravity, duration, force, degree = 9.81, 3.0, 8.0, 3
    damping, C = 10.0, radau(degree)[0]
    h, points = duration / N, ca.collocation_points(degree, "radau")
    t = np.concatenate([[0.0], *(k * h + h * np.array(points) for k in range(N))])
    turn = pi / duration
    sin, cos = np.sin(turn * t), np.cos(turn * t)
    start = np.array([sin, -cos, turn * cos, turn * sin])
    program = Program()
    X = program.variable("x", 4, degree * N + 1, start=start)
    Z = program.variable("pull", 1, degree * N, start=gravity)
    U = program.variable("u", 1, N, lower=-force, upper=force)
    for k in range(N):
        piece = X[:, degree * k : degree * (k + 1) + 1]
        slopes = piece @ C
        for j in range(degree):
            x, y, v, w = ca.vertsplit(piece[:, j + 1])
            pull = Z[degree * k + j]
            ax, ay = U[k] - pull * x, -gravity - pull * y
            program.rows(slopes[:, j] - h * ca.vertcat(v, w, ax, ay))
            length, rate = (x**2 + y**2 - 1) / 2, x * v + y * w
            program.rows(x * ax + y * ay + v**2 + w**2 + 2 * damping * rate + damping**2 * length)
    program.rows(X[:, 0] - ca.DM([0.0, -1.0, 0.0, 0.0]))
    program.rows(ca.vertcat(X[0, -1], X[2, -1]))
    program.rows(X[1, -1], 0.0, inf)
    program.cost(h * ca.sumsqr(U))
    return program.build()


def cart_pendulum(
    N: int, duration: float = 2.0, force: float = 10.0, track: float = 1.5, upright: bool = False
) -> dict[str, Any]:
    """Swing-up of a pendulum on a cart, its bob in Cartesian coordinates, the rod's pull algebraic.

    Cart s, bob (x, y), rod (x − s)² + y² = l² twice differentiated as in :func:`pendulum` (Hairer &
    Wanner, sections VII.1 and VII.2): index one. Cart of 1 kg, bob of 0.2 kg on 0.6 m, a force of
    at most 10 N constant on each of N intervals of two seconds together, a track of ± 1.5 m.
    Least: the distance of the bob from its highest place over the cart's middle, weighted with
    speeds and force at all points of the collocation of degree 3. Start: half a turn at a constant
    rate, the cart at rest, no pull. Where it is to be ``upright`` it ends at rest there, and the
    force starts at 1 N.
    """
    cart, bob, length, gravity, degree = 1.0, 0.2, 0.6, 9.81, 3
    h, C = duration / N, radau(degree)[0]
    points = ca.collocation_points(degree, "radau")
    t = np.concatenate([[0.0], *(k * h + h * np.array(points) for k in range(N))])
    turn, none = pi / duration, 0.0 * t
    sin, cos = length * np.sin(turn * t), length * np.cos(turn * t)
    program = Program()
    X = program.variable(
        "x", 6, degree * N + 1, start=np.array([none, none, sin, -cos, turn * cos, turn * sin]),
        lower=[-track, *[-inf] * 5], upper=[track, *[inf] * 5],
    )  # fmt: skip
    Z = program.variable("pull", 1, degree * N)
    U = program.variable("u", 1, N, lower=-force, upper=force, start=float(upright))
    for k in range(N):
        piece = X[:, degree * k : degree * (k + 1) + 1]
        slopes = piece @ C
        for j in range(degree):
            s, v, x, y, vx, vy = ca.vertsplit(piece[:, j + 1])
            pull, dx = Z[degree * k + j], x - s
            a, ax, ay = (U[k] + pull * dx) / cart, -pull * dx / bob, -pull * y / bob - gravity
            program.rows(slopes[:, j] - h * ca.vertcat(v, a, vx, vy, ax, ay))
            program.rows((vx - v) ** 2 + vy**2 + dx * (ax - a) + y * ay)
            away = (y - length) ** 2 + 0.1 * s**2 + 0.01 * v**2 + 1e-3 * (vx**2 + vy**2)
            program.cost(h / degree * away)
        program.cost(1e-3 * h * U[k] ** 2)
    program.rows(X[:, 0] - ca.DM([0.0, 0.0, 0.0, -length, 0.0, 0.0]))
    if upright:
        program.rows(ca.vertcat(X[0, -1], X[1, -1], X[2, -1], X[4, -1]))
        program.rows(X[3, -1], 0.0, inf)
    return program.build()


def cart_swing(N: int) -> dict[str, Any]:
    """:func:`cart_pendulum` that ends upright; duration, force and track differ with N."""
    duration, force, track = 1.8 + N % 5 / 5, 10.0 + N % 7, 1.1 + N % 4 / 5
    return cart_pendulum(N, duration, force, track, upright=True)


def column(x: Any, y: Any, reflux: Any) -> Any:
    """Derivatives of the liquid compositions of a binary distillation column.

    Source: A. Benallou, D. E. Seborg, D. A. Mellichamp, Dynamic compartmental models for separation
    processes, AIChE Journal 32, 1986; data as in J. Hahn & T. F. Edgar, An improved method for
    nonlinear model reduction using balancing of empirical gramians, Computers & Chemical
    Engineering 26, 2002: condenser, 30 trays, reboiler; minutes and moles.
    """
    feed, composition, tray, condenser, reboiler = 0.4, 0.5, 0.25, 0.5, 1.0
    distillate = 0.5 * feed
    liquid = reflux * distillate
    vapour = liquid + distillate
    rates = [vapour * (y[1] - x[0]) / condenser]
    for i in range(1, TRAYS - 1):
        inflow = liquid if i <= FEED_TRAY else feed + liquid
        outflow = liquid if i < FEED_TRAY else feed + liquid
        source = feed * composition if i == FEED_TRAY else 0.0
        rates.append(
            (source + inflow * x[i - 1] - outflow * x[i] - vapour * (y[i] - y[i + 1])) / tray
        )
    last = TRAYS - 1
    bottom = (feed + liquid) * x[last - 1] - (feed - distillate) * x[last] - vapour * y[last]
    return [*rates, bottom / reboiler]


def equilibrium(x: Any, y: Any) -> Any:
    """Zero where the vapour is in equilibrium with the liquid: relative volatility 1.6."""
    return y * (1 + 0.6 * x) - 1.6 * x


@cache
def steady(reflux: float) -> tuple[float, ...]:
    """The compositions of the liquid that stay under a constant reflux ratio."""

    def rates(x: Any) -> Any:
        return column(x, 1.6 * x / (1 + 0.6 * x), reflux)

    return tuple(fsolve(rates, np.linspace(0.9, 0.1, TRAYS), xtol=1e-13).tolist())


def distillation(N: int) -> dict[str, Any]:
    """A binary distillation column brought to a purer distillate by its reflux ratio.

    Source: :func:`column`; from the steady state of the reflux ratio 0.7 to the distillate of the
    ratio 3, with limited moves of the ratio, in 40 minutes. Radau collocation of degree 2, the
    interval's equations one MX function that is called N times; start: the steady state kept.
    """
    degree, duration, before, after = 2, 40.0, 0.7, 3.0
    h, (C, weights) = duration / N, radau(degree)
    initial, target = steady(before), steady(after)[0]
    x, xs = ca.MX.sym("x", TRAYS), ca.MX.sym("xs", TRAYS, degree)
    ys, u = ca.MX.sym("ys", TRAYS, degree), ca.MX.sym("u")
    slopes = ca.horzcat(x, xs) @ C
    right = [ca.vertcat(*column(xs[:, j], ys[:, j], u)) for j in range(degree)]
    equations = ca.Function(
        "equations",
        [x, xs, ys, u],
        [
            ca.vertcat(ca.vec(slopes - h * ca.horzcat(*right)), ca.vec(equilibrium(xs, ys))),
            h * (100 * (xs[0, :] - target) ** 2 @ weights + 0.01 * (u - after) ** 2),
        ],
    )
    program = Program(ca.MX)
    liquid = np.array(initial)
    X0 = program.variable("x0", TRAYS, lower=0.0, upper=1.0, start=liquid)
    program.rows(X0 - ca.DM(initial))
    last, ratio = X0, before
    for k in range(N):
        X = program.variable(f"x{k + 1}", TRAYS, degree, lower=0.0, upper=1.0, start=liquid)
        Y = program.variable(
            f"y{k}", TRAYS, degree, lower=0.0, upper=1.0, start=1.6 * liquid / (1 + 0.6 * liquid)
        )
        U = program.variable(f"u{k}", 1, lower=0.5, upper=5.0, start=before)
        rows, cost = equations(last, X, Y, U)
        program.rows(rows)
        program.rows(U - ratio, -8.0 / N, 8.0 / N)
        program.cost(cost)
        last, ratio = X[:, -1], U
    return program.build()
