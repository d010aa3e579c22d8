"""Problems of least time: a robot arm, a cart with a pole, and CasADi's race car."""

from __future__ import annotations

from math import inf, pi
from typing import Any

import casadi as ca
import numpy as np

from problems.control_base import Program, line, runge_kutta, trapezoid


def robot_arm(N: int) -> dict[str, Any]:
    """A robot arm that turns and stretches between two points in the least time.

    Source: COPS 3.0 (E. D. Dolan, J. J. Moré, T. S. Munson, Argonne National Laboratory
    ANL/MCS-TM-273, 2004), problem "Robot arm", with its data, its trapezoidal rule and its start;
    states ρ, θ, φ and their rates.
    """
    length, turn = 5.0, 2 * pi / 3

    def right(x: Any, u: Any) -> Any:
        rho, phi = x[0], x[2]
        inertia = ((length - rho) ** 3 + rho**3) / 3
        return ca.vertcat(x[3:], u[0] / length, u[1] / (inertia * ca.sin(phi) ** 2), u[2] / inertia)

    t, ones, zeros = np.linspace(0.0, 1.0, N + 1), np.ones(N + 1), np.zeros(N + 1)
    start = np.array([4.5 * ones, turn * t**2, pi / 4 * ones, zeros, 2 * turn * t, zeros])
    program = Program()
    X = program.variable(
        "x",
        6,
        N + 1,
        lower=[0.0, -pi, 0.0, -inf, -inf, -inf],
        upper=[length, pi, pi, inf, inf, inf],
        start=start,
    )
    U = program.variable("u", 3, N + 1, lower=-1.0, upper=1.0)
    T = program.variable("T", 1, lower=0.0, start=1.0)
    trapezoid(program, right, X, U, T / N)
    program.rows(X[:, 0] - ca.DM([4.5, 0.0, pi / 4, 0.0, 0.0, 0.0]))
    program.rows(X[:, N] - ca.DM([4.5, turn, pi / 4, 0.0, 0.0, 0.0]))
    program.cost(T)
    return program.build()


def cart_pole(N: int) -> dict[str, Any]:
    """Swing-up of a pole on a cart in the least time, the cart one metre further at the end.

    Source: M. Kelly, An Introduction to Trajectory Optimization: How to Do Your Own Direct
    Collocation, SIAM Review 59, 2017, section 6, with its plant, limits and start (a straight line
    over two seconds, no force); there with the least effort. Multiple shooting.
    """
    cart, pole, length, gravity, force, track = 1.0, 0.3, 0.5, 9.81, 20.0, 2.0

    def right(x: Any, u: Any) -> Any:
        angle, speed, rate = x[1], x[2], x[3]
        sin, cos = ca.sin(angle), ca.cos(angle)
        mass = cart + pole * sin**2
        push = u + pole * length * sin * rate**2
        return ca.vertcat(
            speed,
            rate,
            (push + pole * gravity * cos * sin) / mass,
            -(push * cos + (cart + pole) * gravity * sin) / (length * mass),
        )

    first, last = [0.0, 0.0, 0.0, 0.0], [1.0, pi, 0.0, 0.0]
    program = Program()
    box = np.array([track, inf, inf, inf])
    X = program.variable("x", 4, N + 1, lower=-box, upper=box, start=line(first, last, N + 1))
    U = program.variable("u", 1, N, lower=-force, upper=force)
    T = program.variable("T", 1, lower=0.0, start=2.0)
    for k in range(N):
        program.rows(X[:, k + 1] - runge_kutta(right, X[:, k], U[:, k], T / N))
    program.rows(X[:, 0] - ca.DM(first))
    program.rows(X[:, N] - ca.DM(last))
    program.cost(T)
    return program.build()


def race_car(N: int) -> dict[str, Any]:
    """A car along a track with a speed limit in the least time.

    Source: the example ``race_car.py`` of CasADi (J. A. E. Andersson, J. Gillis, G. Horn, J. B.
    Rawlings, M. Diehl, CasADi, Mathematical Programming Computation 11, 2019), which has N = 100.
    As ``ca.Opti`` states it, every limit is a row and no variable has bounds.
    """
    program = Program()
    X = program.variable("x", 2, N + 1, start=[0.0, 1.0])
    U = program.variable("u", 1, N)
    T = program.variable("T", 1, start=1.0)
    for k in range(N):
        end = runge_kutta(lambda x, u: ca.vertcat(x[1], u - x[1]), X[:, k], U[:, k], T / N)
        program.rows(X[:, k + 1] - end)
    program.rows(X[1, :] - 1 + ca.sin(2 * pi * X[0, :]) / 2, -inf, 0.0)
    program.rows(U, 0.0, 1.0)
    program.rows(X[:, 0])
    program.rows(X[0, N] - 1)
    program.rows(T, 0.0, inf)
    program.cost(T)
    return program.build()
