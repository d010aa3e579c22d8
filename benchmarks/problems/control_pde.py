"""Boundary control of an elliptic equation, with bounds on the control and on the state."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from problems.control_base import Program


def elliptic(N: int) -> dict[str, Any]:
    """Laplace's equation on the unit square with a nonlinear flux that is controlled at the edge.

    −Δy = 0, ∂y/∂ν = u − y² on the edge, 3.7 ≤ u ≤ 4.5, y ≤ 2.071; least ½‖y − y_d‖² + 0.005 ‖u‖²,
    y_d = 2 − 2 (x₁(x₁ − 1) + x₂(x₂ − 1)). Finite differences on N × N inner points: N² + 8N
    variables. Feasible: y = 2 with u = 4. Start: y = 1, u in the middle of its bounds.

    Source: H. Maurer & H. D. Mittelmann, Optimization techniques for solving elliptic control
    problems with control and state constraints, part 1: boundary control, Computational
    Optimization and Applications 16, 2000, the examples with this flux and target.
    """
    h, weight, high = 1.0 / (N + 1), 0.01, 2.071
    low, most = 3.7, 4.5
    program = Program()
    Y = program.variable("y", N, N, upper=high, start=1.0)
    edges = [program.variable(f"edge{s}", N, upper=high, start=1.0) for s in range(4)]
    controls = [
        program.variable(f"u{s}", N, lower=low, upper=most, start=(low + most) / 2)
        for s in range(4)
    ]
    inner = [Y[0, :].T, Y[N - 1, :].T, Y[:, 0], Y[:, N - 1]]
    for edge, beside, u in zip(edges, inner, controls, strict=True):
        program.rows(edge - beside - h * (u - edge**2))
        program.cost(0.5 * weight * h * ca.sumsqr(u))
    above = ca.vertcat(edges[0].T, Y[:-1, :])
    below = ca.vertcat(Y[1:, :], edges[1].T)
    left, right = ca.horzcat(edges[2], Y[:, :-1]), ca.horzcat(Y[:, 1:], edges[3])
    program.rows(4 * Y - above - below - left - right)
    t = np.linspace(0.0, 1.0, N + 2)[1:-1]
    bow = t * (t - 1)
    target = 2 - 2 * (bow[:, None] + bow[None, :])
    program.cost(0.5 * h**2 * ca.sumsqr(Y - ca.DM(target)))
    return program.build()
