"""A tree of scenarios with softened limits, and a long single shooting; both in MX."""

from __future__ import annotations

from itertools import product
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from problems.control_base import Program, runge_kutta

UNIT = np.array([1.0, 1.0, 100.0, 100.0])


def reactor(x: Any, u: Any, alpha: Any, beta: Any) -> Any:
    """Derivatives (per hour) of C_A, C_B (mol/l), T_R, T_K (°C) under the feed F and the cooling Q.

    Source: K.-U. Klatt & S. Engell, Gain-scheduling trajectory control of a continuous stirred tank
    reactor, Computers & Chemical Engineering 22, 1998.
    """
    A, B, T, jacket = x[0], x[1], x[2], x[3]
    feed, cooling = u[0], u[1]
    kelvin = T + 273.15
    first = beta * 1.287e12 * ca.exp(-9758.3 / kelvin) * A
    second = 1.287e12 * ca.exp(-9758.3 / kelvin) * B
    side = 9.043e9 * ca.exp(-8560.0 * alpha / kelvin) * A**2
    heat, exchange = 0.9342 * 3.01, 4032.0 * 0.215
    reaction = 4.2 * first - 11.0 * second - 41.85 * side
    return ca.vertcat(
        feed * (5.1 - A) - first - side,
        -feed * B + first - second,
        -reaction / heat + feed * (130.0 - T) + exchange * (jacket - T) / (heat * 10.01),
        (cooling + exchange * (T - jacket)) / (5.0 * 2.0),
    )


def scenarios(N: int) -> dict[str, Any]:
    """Robust control of a stirred tank over nine scenarios that share their first control.

    The temperature of the reactor may exceed its limit at a price that is linear in the excess;
    everything else is a hard bound.

    Source: S. Lucia, T. Finkler, S. Engell, Multi-stage nonlinear model predictive control applied
    to a semi-batch polymerization reactor under uncertainty, Journal of Process Control 23, 2013;
    the tank, its limits, weights, initial state and scenarios as in the example "CSTR" of do-mpc
    (do-mpc.com). N intervals of 0.005 h, two Runge–Kutta steps each; the start keeps the initial
    state. States are in units of (1, 1, 100, 100), controls of (100, 2000).
    """
    initial, units = np.array([0.8, 0.5, 134.14, 130.0]) / UNIT, ca.DM([100.0, 2000.0])
    x, u, p = ca.MX.sym("x", 4), ca.MX.sym("u", 2), ca.MX.sym("p", 2)
    scale = ca.DM(UNIT)

    def right(x: Any, u: Any) -> Any:
        return reactor(x * scale, u * units, p[0], p[1]) / scale

    step = ca.Function("step", [x, u, p], [runge_kutta(right, x, u, 0.005, steps=2)])
    cases = list(product((1.0, 1.05, 0.95), (1.0, 1.1, 0.9)))
    program, shared = Program(ca.MX), None
    for s, case in enumerate(cases):
        X = program.variable(
            f"x{s}",
            4,
            N + 1,
            lower=np.array([0.1, 0.1, 50.0, 50.0]) / UNIT,
            upper=np.array([2.0, 2.0, inf, 140.0]) / UNIT,
            start=initial,
        )
        U = program.variable(
            f"u{s}", 2, N, lower=[0.05, -4.25], upper=[1.0, 0.0], start=[0.05, -4.25]
        )
        excess = program.variable(f"excess{s}", 1, N + 1, lower=0.0)
        program.rows(X[:, 0] - ca.DM(initial))
        program.rows(X[:, 1:] - step.map(N)(X[:, :-1], U, ca.repmat(ca.DM(case), 1, N)))
        program.rows(X[2, :] - 1.4 - excess, -inf, 0.0)
        if shared is None:
            shared = U[:, 0]
        else:
            program.rows(U[:, 0] - shared)
        moves = U[:, 1:] - U[:, :-1]
        program.cost(
            (
                ca.sumsqr(X[1, :] - 0.6)
                + 0.1 * ca.sumsqr(moves[0, :])
                + 1e-3 * ca.sumsqr(moves[1, :])
                + 1e2 * ca.sum2(excess)
            )
            / len(cases)
        )
    return program.build()


def van_der_pol(N: int) -> dict[str, Any]:
    """Van der Pol's oscillator brought to rest, by single shooting: the controls alone are free.

    Source: the examples ``direct_single_shooting.py`` and ``direct_multiple_shooting.py`` of CasADi
    (J. A. E. Andersson, J. Gillis, G. Horn, J. B. Rawlings, M. Diehl, Mathematical Programming
    Computation 11, 2019): ten seconds, −1 ≤ u ≤ 1, x₁ ≥ −0.25. N Runge–Kutta steps with a control
    each, one function called N times.
    """
    x, u = ca.MX.sym("x", 2), ca.MX.sym("u")

    def right(z: Any, u: Any) -> Any:
        first = (1 - z[1] ** 2) * z[0] - z[1] + u
        return ca.vertcat(first, z[0], z[0] ** 2 + z[1] ** 2 + u**2)

    end = runge_kutta(right, ca.vertcat(x, 0), u, 10.0 / N)
    step = ca.Function("step", [x, u], [end[:2], end[2]])
    program, state = Program(ca.MX), ca.MX(ca.DM([0.0, 1.0]))
    U = program.variable("u", N, lower=-1.0, upper=1.0)
    for k in range(N):
        state, cost = step(state, U[k])
        program.cost(cost)
        program.rows(state[0], -0.25, inf)
    return program.build()
