"""Two problems whose optimal controls have singular arcs."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from problems.control_base import Program, runge_kutta, trapezoid


def goddard(N: int) -> dict[str, Any]:
    """Goddard's rocket: the thrust that carries it highest, full, then singular, then none.

    Source: E. D. Dolan, J. J. Moré, T. S. Munson, Benchmarking Optimization Software with COPS
    3.0, Argonne National Laboratory ANL/MCS-TM-273, 2004, problem "Goddard rocket", with its data,
    its trapezoidal rule and its start; also J. T. Betts, Practical Methods for Optimal Control
    Using Nonlinear Programming, SIAM, 2010, section 4.14.
    """
    gravity, height, mass, thrust = 1.0, 1.0, 1.0, 3.5
    decay, empty = 500.0, 0.6
    exhaust, drag = 0.5 * np.sqrt(gravity * height), 0.5 * 620.0 * mass / gravity

    def right(x: Any, u: Any) -> Any:
        h, v, m = x[0], x[1], x[2]
        D = drag * v**2 * ca.exp(-decay * (h - height) / height)
        return ca.vertcat(v, (u - D) / m - gravity * (height / h) ** 2, -u / exhaust)

    t = np.linspace(0.0, 1.0, N + 1)
    start = np.array([np.full(N + 1, height), t * (1 - t), mass * (1 - (1 - empty) * t)])
    program = Program()
    X = program.variable(
        "x", 3, N + 1, lower=[height, 0.0, empty * mass], upper=[np.inf, np.inf, mass], start=start
    )
    U = program.variable("u", 1, N + 1, lower=0.0, upper=thrust, start=thrust / 2)
    T = program.variable("T", 1, lower=0.0, start=1.0)
    trapezoid(program, right, X, U, T / N)
    program.rows(X[:, 0] - ca.DM([height, 0.0, mass]))
    program.rows(X[2, N] - empty * mass)
    program.cost(-X[0, N])
    return program.build()


def catalyst(N: int) -> dict[str, Any]:
    """Mixing of two catalysts along a tubular reactor: one, a singular mixture, the other.

    Source: COPS 3.0 (see :func:`goddard`), problem "Catalyst mixing"; S. A. Dadebo & K. B. McAuley,
    Dynamic optimization of constrained chemical engineering problems using dynamic programming,
    Computers & Chemical Engineering 19, 1995. Data and start are those of COPS; multiple shooting
    with one mapped Runge–Kutta step an interval, in MX.
    """
    x, u = ca.MX.sym("x", 2), ca.MX.sym("u")

    def right(x: Any, u: Any) -> Any:
        forward = u * (10 * x[1] - x[0])
        return ca.vertcat(forward, -forward - (1 - u) * x[1])

    step = ca.Function("step", [x, u], [runge_kutta(right, x, u, 1.0 / N)])
    program = Program(ca.MX)
    X = program.variable("x", 2, N + 1, start=[1.0, 0.0])
    U = program.variable("u", 1, N, lower=0.0, upper=1.0)
    program.rows(X[:, 1:] - step.map(N)(X[:, :-1], U))
    program.rows(X[:, 0] - ca.DM([1.0, 0.0]))
    program.cost(-1 + X[0, N] + X[1, N])
    return program.build()
