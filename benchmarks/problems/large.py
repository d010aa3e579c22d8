"""Large problems of any size: equations in two and three dimensions, long horizons, networks."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi
from typing import Any

import casadi as ca
import numpy as np

from problems.control_base import Program, trapezoid
from problems.control_pde import elliptic


def distributed(N: int) -> dict[str, Any]:
    """A semilinear elliptic equation on the unit square, controlled everywhere, the state bounded.

    −Δy + y³ − y = u, y = 0 on the edge, y ≤ 0.371, −8 ≤ u ≤ 9; least ½‖y − y_d‖² + 0.005 ‖u‖² with
    y_d = 1 + 2 (x₁(x₁ − 1) + x₂(x₂ − 1)). Finite differences on N × N inner points: 2N² variables.

    Source: the class of H. Maurer & H. D. Mittelmann, Optimization techniques for solving elliptic
    control problems with control and state constraints, part 2: distributed control, Computational
    Optimization and Applications 18, 2001; weights and bounds are this file's.
    """
    h = 1.0 / (N + 1)
    program = Program()
    Y = program.variable("y", N, N, upper=0.371)
    U = program.variable("u", N, N, lower=-8.0, upper=9.0)
    wide = ca.blockcat([[ca.SX(1, 1), ca.SX(1, N), ca.SX(1, 1)], [ca.SX(N, 1), Y, ca.SX(N, 1)],
                        [ca.SX(1, 1), ca.SX(1, N), ca.SX(1, 1)]])  # fmt: skip
    beside = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    program.rows(4 * Y - beside + h**2 * (Y**3 - Y - U))
    t = np.linspace(0.0, 1.0, N + 2)[1:-1]
    bow = t * (t - 1)
    target = 1 + 2 * (bow[:, None] + bow[None, :])
    program.cost(0.5 * h**2 * ca.sumsqr(Y - ca.DM(target)) + 0.005 * h**2 * ca.sumsqr(U))
    return program.build()


def cube(N: int) -> dict[str, Any]:
    """:func:`distributed` on the unit cube: N³ inner points, 2N³ variables.

    y_d = 1 + 2 Σ xᵢ(xᵢ − 1), the other numbers as there.
    """
    h, count = 1.0 / (N + 1), N**3
    at = np.arange(count).reshape(N, N, N)
    pairs = [np.moveaxis(at, axis, 0) for axis in range(3)]
    one = np.concatenate([a[1:].ravel() for a in pairs])
    other = np.concatenate([a[:-1].ravel() for a in pairs])
    places = np.concatenate((one, other)).tolist(), np.concatenate((other, one)).tolist()
    neighbours = ca.DM(ca.Sparsity.triplet(count, count, *places), 1.0)
    program = Program()
    y = program.variable("y", count, upper=0.371)
    u = program.variable("u", count, lower=-8.0, upper=9.0)
    program.rows(6 * y - ca.mtimes(neighbours, y) + h**2 * (y**3 - y - u))
    t = np.linspace(0.0, 1.0, N + 2)[1:-1]
    bow = t * (t - 1)
    target = 1 + 2 * (bow[:, None, None] + bow[None, :, None] + bow[None, None, :])
    misfit = ca.sumsqr(y - ca.DM(target.ravel()))
    program.cost(0.5 * h**3 * misfit + 0.005 * h**3 * ca.sumsqr(u))
    return program.build()


def parabolic(N: int) -> dict[str, Any]:
    """A rod that is heated at one end, with a radiating flux, along a profile at the final time.

    y_t = y_xx on (0, 1) × (0, 1.58), y(x, 0) = 0, y_x(0, t) = 0, y_x(1, t) = u − y − y⁴ / 20,
    |u| ≤ 1, y ≤ 0.7; least ½‖y(·, T) − (1 − x²) / 2‖² + 0.0005 ‖u‖². Crank–Nicolson with N steps
    on N + 1 points of a rod: N² + 3N + 1 variables. Start: zero.

    Source: the boundary control of the heat equation of H. D. Mittelmann & F. Tröltzsch, Sufficient
    optimality in a parabolic control problem, 2002, with Stefan–Boltzmann's flux as in their
    section on nonlinear boundary conditions; the state's bound is this file's.
    """
    dx, dt = 1.0 / N, 1.58 / N
    program = Program()
    Y = program.variable("y", N + 1, N + 1, upper=0.7)
    U = program.variable("u", N, lower=-1.0, upper=1.0)
    program.rows(Y[:, 0])

    def bends(y: Any, u: Any) -> Any:
        end = y[N]
        flux = u - end - end**4 / 20
        mirrored = ca.vertcat(y[1], y, y[N - 1] + 2 * dx * flux)
        return (mirrored[:-2] - 2 * mirrored[1:-1] + mirrored[2:]) / dx**2

    for k in range(N):
        both = bends(Y[:, k], U[k]) + bends(Y[:, k + 1], U[k])
        program.rows(Y[:, k + 1] - Y[:, k] - dt / 2 * both)
    x = np.linspace(0.0, 1.0, N + 1)
    program.cost(0.5 * dx * ca.sumsqr(Y[:, N] - ca.DM((1 - x**2) / 2)))
    program.cost(0.0005 * dt * ca.sumsqr(U))
    return program.build()


def torsion(N: int) -> dict[str, Any]:
    """Elastic–plastic torsion of a square bar: a quadratic program with bounds alone.

    Least ½∫‖∇v‖² − 5∫v with |v| ≤ the distance to the edge, v = 0 on it, on N × N inner points.

    Source: COPS 3.0 (E. D. Dolan, J. J. Moré, T. S. Munson, Argonne National Laboratory
    ANL/MCS-TM-273, 2004), problem "Elastic-plastic torsion", by differences.
    """
    h, force = 1.0 / (N + 1), 5.0
    t = np.linspace(0.0, 1.0, N + 2)[1:-1]
    edge = np.minimum(t, 1 - t)
    distance = np.minimum(edge[:, None], edge[None, :])
    program = Program()
    v = program.variable("v", N, N, lower=-distance, upper=distance, start=distance)
    for one in (v, v.T):
        program.cost(0.5 * (ca.sumsqr(one[1:, :] - one[:-1, :]) + ca.sumsqr(one[[0, N - 1], :])))
    program.cost(-force * h**2 * ca.sum1(ca.vec(v)))
    return program.build()


def surface(N: int, wide: bool = False) -> dict[str, Any]:
    """The least surface over an obstacle: bounds alone, an objective of roots of squares.

    On the unit square, the edge at 1 − (2x − 1)² along x and at 0 along y, the surface at least 1
    on the middle half of the square, or on the ``wide`` one of the report, whose nodes begin before
    and end after; triangles on N × N inner points.

    Source: COPS 3.0, problem "Minimal surface with obstacle", by linear elements.
    """
    h = 1.0 / (N + 1)
    t = np.linspace(0.0, 1.0, N + 2)
    height = np.where(np.isin(t, (0.0, 1.0))[None, :], (1 - (2 * t - 1) ** 2)[:, None], 0.0)
    reach = 0.5 - (N + 1) // 4 * h + 1e-12 if wide else 0.25
    inner = (np.abs(t - 0.5) <= reach)[1:-1]
    low = np.where(inner[:, None] & inner[None, :], 1.0, 0.0)
    start = np.maximum(low, (1 - (2 * t[1:-1] - 1) ** 2)[:, None] + 0 * low)
    program = Program()
    v = program.variable("v", N, N, lower=low, start=start)
    wide = ca.SX(ca.DM(height))
    wide[1:-1, 1:-1] = v
    along, across = (wide[1:, :] - wide[:-1, :]) / h, (wide[:, 1:] - wide[:, :-1]) / h
    for x, y in ((along[:, :-1], across[:-1, :]), (along[:, 1:], across[1:, :])):
        program.cost(h**2 / 2 * ca.sum1(ca.vec(ca.sqrt(1 + x**2 + y**2))))
    return program.build()


def horizon(N: int) -> dict[str, Any]:
    """Van der Pol's oscillator, held at rest for a long time: N intervals of 0.05.

    Trapezoidal rule, |u| ≤ 0.75, x₁ ≥ −0.4; 3N + 3 variables, the structure of every long horizon.
    """

    def right(x: Any, u: Any) -> Any:
        return ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u, x[0])

    program = Program()
    X = program.variable("x", 2, N + 1, lower=[-0.4, -inf])
    U = program.variable("u", 1, N + 1, lower=-0.75, upper=0.75)
    trapezoid(program, right, X, U, 0.05)
    program.rows(X[:, 0] - ca.DM([0.0, 1.0]))
    push = 0.02 * np.sin(2 * pi * np.arange(N + 1) / 400)
    program.cost(0.05 * (ca.sumsqr(X) + ca.sumsqr(U - ca.DM(push).T)))
    return program.build()


def network(nodes: int) -> dict[str, Any]:
    """A water network of so many nodes: pumps lift as little as the demands at the nodes allow.

    Nodes lie at random in the unit square, each is joined to one or two near ones of those before
    it, a tenth of the pipes has a pump. Heads h, flows q, lifts s of the pumps: a balance
    Σ ± q = demand at every node but the reservoir, hᵢ − hⱼ + s = r q √(q² + ε²) along every pipe
    from i to j, h with the height of the ground; 20 ≤ h ≤ 90, 0 ≤ s ≤ 40; least Σ s √(q² + ε²) of
    the pumps, whose valleys are many.

    Source: the equations of flow of every text on networks (L. A. Rossman, EPANET 2 Users Manual,
    EPA/600/R-00/057, 2000, appendix D, with the exponent 2 of Darcy & Weisbach); topology and data
    are this file's.
    """
    rng = np.random.default_rng(nodes)
    places = rng.random((nodes, 2))
    height = 10 * rng.random(nodes)
    joined: set[tuple[int, int]] = set()
    for i in range(1, nodes):  # each to the nearest before it, and some to another
        distance = np.linalg.norm(places[:i] - places[i], axis=1)
        nearest = np.argsort(distance)[: 2 if rng.random() < 0.3 else 1]
        joined |= {(int(j), i) for j in nearest}
    pipes = np.array(sorted(joined))
    count = len(pipes)
    length = np.linalg.norm(places[pipes[:, 0]] - places[pipes[:, 1]], axis=1)
    demand = rng.random(nodes) / nodes
    downstream = np.ones(nodes)  # wider pipes where more passes
    for j, i in pipes[np.argsort(-pipes[:, 1])]:
        downstream[j] += downstream[i]
    wide = downstream[pipes[:, 1]] / nodes
    friction = 100.0 * (0.1 + length) / (wide + 1.0 / nodes) ** 2
    pumped = np.sort(rng.choice(count, max(1, count // 10), replace=False))
    program = Program()
    H = program.variable("h", nodes, lower=20.0, upper=90.0, start=50.0)
    Q = program.variable("q", count, start=1.0 / nodes)
    S = program.variable("s", pumped.size, lower=0.0, upper=40.0, start=1.0)
    tail, head = pipes[:, 0].tolist(), pipes[:, 1].tolist()
    into: list[Any] = [0.0] * nodes
    for k in range(count):
        into[tail[k]] -= Q[k]
        into[head[k]] += Q[k]
    program.rows(ca.vertcat(*into)[1:] * nodes - ca.DM(demand[1:] * nodes))
    lift = ca.SX(count, 1)
    lift[pumped.tolist()] = S
    loss = ca.DM(friction) * Q * ca.sqrt(Q**2 + (1e-2 / nodes) ** 2)
    program.rows(H[tail] + ca.DM(height[tail] - height[head]) - H[head] + lift - loss)
    program.rows(H[0] - 40.0)
    flow = Q[pumped.tolist()]
    program.cost(ca.dot(S, ca.sqrt(flow**2 + (1e-2 / nodes) ** 2)))
    return program.build()


LARGE: dict[str, Callable[[int], dict[str, Any]]] = {
    "distributed": distributed,
    "cube": cube,
    "boundary": elliptic,
    "parabolic": parabolic,
    "torsion": torsion,
    "surface": surface,
    "horizon": horizon,
    "network": network,
}

LARGE_SIZES = (
    ("distributed", 200), ("boundary", 200), ("parabolic", 200), ("torsion", 300),
    ("surface", 100), ("horizon", 20000), ("network", 500), ("network", 2000),
)  # fmt: skip
"""Families and sizes of a comparison, where none are named."""
