"""Swing-up of a torque-driven pendulum with a fixed end state and least control effort.

m l² θ'' = u − m g l sin θ − b θ',  θ(0) = θ_0, θ'(0) = 0,  θ(T) = π, θ'(T) = 0,  min ∫ ½u² dt.

Direct multiple shooting: N intervals of constant torque, one Runge–Kutta step of order four each.
The unknowns are θ_k, θ'_k and u_k in the units π rad, 2π/T rad/s and 5 N·m; the objective is the
effort in units of (5 N·m)²Δt, so its Hessian in the torques is I. The constraints are fewer than
the unknowns (64 against 92), so the end state alone does not fix the motion. Mass, length, gravity
and the initial angle are parameters of the problem: they change without building it anew.

The default method runs here beside the paper's family: look-ahead steps under a trust region, the
law with matrix steps, and the law with scalar primal steps and the correction M = α(BBᵀ)⁻¹, once
in each channel and half in both, which must give one and the same trajectory. The paper's
closed-form rule is local: it stops where the Lagrangian has negative curvature on ker J_h, and the
table says so. ``--tune`` runs the grid from which the steps of the first-order methods were taken.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from common import AUTO, LOOK_AHEAD, Method, Reference, Run, row_space_rule, solve, solve_with_peer
from matplotlib.figure import Figure
from reporting import Check, finish, parser
from scipy.integrate import solve_ivp
from solving import IPOPT, SLEQP

from casadi_hybrid import Problem
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.plotting import PALETTE, deviation, figure, legend_below, plot_convergence

NAME = "pendulum"
SUMMARY = "swing-up of a pendulum with a torque below gravity's: 92 variables, 64 constraints"

DAMPING = 0.1
"""b in N·m·s/rad."""
PARAMETERS = {"mass (kg)": 1.0, "length (m)": 0.5, "gravity (m/s²)": 9.81, "angle (rad)": 0.0}
SPLITS = {"50 : 50": 0.5, "pure augmented": 1.0, "pure optimistic": 0.0}


@dataclass(frozen=True)
class SwingUp:
    """The transcription: N intervals over T seconds, and the units of the unknowns."""

    intervals: int = 30
    duration: float = 2.0
    torque_unit: float = 5.0

    @property
    def step(self) -> float:
        """Δt in s."""
        return self.duration / self.intervals

    @property
    def units(self) -> tuple[float, float, float]:
        """Units of θ (rad), θ' (rad/s) and u (N·m)."""
        return float(np.pi), 2 * float(np.pi) / self.duration, self.torque_unit

    def problem(self) -> Problem:
        """Return the problem with p = (mass, length, gravity, initial angle)."""
        N, dt = self.intervals, self.step
        angle_unit, rate_unit, torque_unit = self.units
        angle, rate = ca.SX.sym("angle", N + 1), ca.SX.sym("rate", N + 1)
        torque, p = ca.SX.sym("torque", N), ca.SX.sym("p", len(PARAMETERS))
        unit = ca.DM([angle_unit, rate_unit])
        states = ca.horzcat(angle, rate).T

        def shoot(k: int) -> ca.SX:
            """Return the scaled state after interval k by one Runge–Kutta step."""
            s, u = states[:, k] * unit, torque[k] * torque_unit
            a = motion(s, u, p)
            b = motion(s + dt / 2 * a, u, p)
            c = motion(s + dt / 2 * b, u, p)
            d = motion(s + dt * c, u, p)
            return (s + dt / 6 * (a + 2 * b + 2 * c + d)) / unit

        stages = [ca.vertcat(states[:, k], torque[k]) for k in range(N)]
        return Problem(
            x=ca.vertcat(*stages, states[:, N]),
            p=p,
            f=0.5 * ca.sumsqr(torque),
            h={
                "initial state": states[:, 0] - ca.vertcat(p[3] / angle_unit, 0),
                "dynamics": ca.vertcat(*(states[:, k + 1] - shoot(k) for k in range(N))),
                "final state": states[:, N] - ca.vertcat(np.pi / angle_unit, 0),
            },
            name=NAME,
        )

    def start(self, p: Sequence[float]) -> np.ndarray:
        """Return θ rising at constant rate, without torque."""
        angle_unit, rate_unit, _ = self.units
        angles = np.linspace(p[3], np.pi, self.intervals + 1) / angle_unit
        rate = (np.pi - p[3]) / self.duration / rate_unit
        stages = np.column_stack((angles, np.full_like(angles, rate), np.zeros_like(angles)))
        return stages.ravel()[:-1]

    def trajectory(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return θ_k (rad), θ'_k (rad/s), k = 0 … N, and u_k (N·m), k = 0 … N−1."""
        stages = np.append(x, np.nan).reshape(-1, 3) * np.array(self.units)
        return stages[:, 0], stages[:, 1], stages[:-1, 2]


def motion(s: Any, u: Any, p: Any) -> Any:
    """Right-hand side of the equation of motion for s = (θ, θ')."""
    mass, length, gravity = p[0], p[1], p[2]
    pull = mass * gravity * length * ca.sin(s[0])
    return ca.vertcat(s[1], (u - pull - DAMPING * s[1]) / (mass * length**2))


def in_metric(label: str, theta: float, *, required: bool = False, **steps: float) -> Method:
    """Return the law with M = α(BBᵀ)⁻¹ and scalar primal steps as a row of the table."""
    rule = row_space_rule(theta=theta, **{"alpha": 10.0, "eta_x": 0.1, "eta_d": 1.0, **steps})
    return Method(label, Hybrid(rule, label=label), required=required)


def methods() -> list[Method]:
    """Return the rows of the table; the steps of the first-order methods come from ``--tune``."""
    return [
        Method(AUTO, "auto", required=True),
        Method(LOOK_AHEAD, "look-ahead", required=True),
        Method("hybrid: matrix steps", "matrix-lookahead", {"optimistic_share": 0.5}),
        *(
            in_metric(f"hybrid: metric, {label}", theta, required=True)
            for label, theta in SPLITS.items()
        ),
        Method("hybrid: closed form", "closed-form"),
        Method("hybrid: scalar M", "constant", {"Omega": 3.0, "eta_x": 0.01, "eta_d": 10.0}),
        Method("PDHG", "pdhg", {"tau": 0.005, "sigma": 20.0}),
        Method("linearized AL", "linearized-al", {"eta": 0.01, "penalty": 10.0}),
        Method("GDA", "gda", {"eta_x": 0.03, "eta_d": 0.003}),
    ]


# 25 to 27 settings a method, around the best of a coarser search. PDHG's grid is the finest, since
# a grid of half decades (down to 0.001 and up to 100) missed its best steps.
GRIDS: dict[str, tuple[Callable[..., Method], Mapping[str, Sequence[float]]]] = {
    "hybrid: metric, 50 : 50": (
        lambda **steps: in_metric("hybrid: metric, 50 : 50", 0.5, **steps),
        {"alpha": (5.0, 10.0, 20.0), "eta_x": (0.05, 0.1, 0.2), "eta_d": (1.0, 3.0, 10.0)},
    ),
    "hybrid: scalar M": (
        lambda **options: Method("hybrid: scalar M", "constant", options),
        {"Omega": (3.0, 10.0, 30.0), "eta_x": (0.003, 0.01, 0.03), "eta_d": (1.0, 3.0, 10.0)},
    ),
    "PDHG": (
        lambda **options: Method("PDHG", "pdhg", options),
        {"tau": (0.002, 0.005, 0.01, 0.02, 0.05), "sigma": (2.0, 5.0, 10.0, 20.0, 50.0)},
    ),
    "linearized AL": (
        lambda **options: Method("linearized AL", "linearized-al", options),
        {"eta": (0.001, 0.003, 0.01, 0.03, 0.1), "penalty": (1.0, 3.0, 10.0, 30.0, 100.0)},
    ),
    "GDA": (
        lambda **options: Method("GDA", "gda", options),
        {"eta_x": (0.003, 0.01, 0.03, 0.1, 0.3), "eta_d": (0.003, 0.01, 0.03, 0.1, 0.3)},
    ),
}


def tune(problem: Problem, x0: np.ndarray, p: Sequence[float], max_iter: int) -> None:
    """Print the best settings of each first-order method on its grid.

    Best is fewest iterations among settings that reach the tolerance, else the least KKT residual
    within the budget.
    """
    for label, (make, grid) in GRIDS.items():
        found = []
        for values in itertools.product(*grid.values()):
            options = dict(zip(grid, values, strict=True))
            result = solve(problem, make(**options), x0, p, max_iter=max_iter).result
            residual = max(result.residuals.feasibility, result.residuals.stationarity)
            found.append((not result.success, result.iterations, residual, options))
        found.sort(key=lambda entry: (entry[0], entry[2] if entry[0] else entry[1]))
        print(f"{label}: {len(found)} settings, {sum(not e[0] for e in found)} reach a KKT point")
        for failed, iterations, residual, options in found[:3]:
            end = f"residual {residual:.1e}" if failed else "KKT point"
            print(f"  {end} after {iterations} iterations: {options}", flush=True)


def draw(case: SwingUp, p: Sequence[float], ours: np.ndarray, ipopt: np.ndarray) -> Figure:
    """Plot angle, rate and torque over time, with IPOPT's as circles on top."""
    fig, axes = figure(3, 1, height=1.9, sharex=True)
    time = case.step * np.arange(case.intervals + 1)
    middle = time[:-1] + case.step / 2
    line = {"color": PALETTE[0], "linewidth": 1.6, "label": AUTO}
    circles = {"color": "#000000", "linestyle": "", "marker": "o", "markersize": 5}
    circles |= {"fillstyle": "none", "label": "IPOPT"}
    *states, torque = case.trajectory(ours)
    *states_ipopt, torque_ipopt = case.trajectory(ipopt)
    for ax, mine, other in zip(axes[:2, 0], states, states_ipopt, strict=True):
        ax.plot(time, mine, **line)
        ax.plot(time, other, **circles)
    axes[2, 0].stairs(torque, time, baseline=None, **line)
    axes[2, 0].plot(middle, torque_ipopt, **circles)
    labels = ("angle $\\theta$ (rad)", "rate $\\dot\\theta$ (rad/s)", "torque $u$ (N·m)")
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label)
    weight = p[0] * p[1] * p[2]
    levels = ((axes[0, 0], np.pi, "upright"), (axes[2, 0], weight, "$m g l$"))
    for ax, level, text in (*levels, (axes[2, 0], -weight, "")):
        ax.axhline(level, color="#000000", linewidth=0.9, linestyle=":")
        ax.annotate(text, (0, level), xytext=(3, -12), textcoords="offset points")
    axes[2, 0].set_xlabel("time (s)")
    legend_below(fig, axes[0, 0])
    return fig


def end_error(case: SwingUp, p: Sequence[float], x: np.ndarray) -> float:
    """Return |θ(T) − π| in rad when the torques drive the exact equation of motion."""
    _, _, torque = case.trajectory(x)
    s = np.array([p[3], 0.0])
    for u in torque:
        exact = solve_ivp(
            lambda _, s, u=u: motion(ca.DM(s), u, p).full().ravel(),
            (0.0, case.step),
            s,
            rtol=1e-8,
            atol=1e-10,
        )
        s = exact.y[:, -1]
    return abs(float(s[0]) - np.pi)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when every required answer and every check holds, else 1."""
    options = parser(NAME, SUMMARY, budget=True)
    options.add_argument("--tune", action="store_true", help="search the steps of the methods")
    arguments = options.parse_args(argv)
    case = SwingUp(intervals=10, duration=1.0) if arguments.short else SwingUp()
    max_iter = arguments.max_iter or (500 if arguments.short else 20_000)
    p = list(PARAMETERS.values())
    problem, x0 = case.problem(), case.start(p)
    if arguments.tune:
        tune(problem, x0, p, max_iter)
        return 0
    runs = [
        solve(problem, method, x0, p, max_iter=max_iter, keep_points="metric" in method.label)
        for method in methods()
    ]
    peers = [solve_with_peer(problem, x0, p, peer) for peer in (IPOPT, SLEQP)]
    return _report(arguments, case, problem, p, runs, peers)


def _report(
    arguments: argparse.Namespace,
    case: SwingUp,
    problem: Problem,
    p: Sequence[float],
    runs: Sequence[Run],
    peers: Sequence[Reference],
) -> int:
    default, ipopt = runs[0].result, peers[0]
    _, _, torque = case.trajectory(default.x)
    metric = [np.array(run.trace.points) for run in runs if run.trace.points]
    apart = max(float(deviation(points, metric[0]).max()) for points in metric[1:])
    drawn = {run.method.label: run.trace for run in runs if run.method.label not in _SAME}
    return finish(
        arguments,
        NAME,
        (problem.n, problem.m),
        [*(run.row() for run in runs), *(peer.row for peer in peers)],
        {run.method.label: run.report for run in runs if run.method.required},
        checks=[
            ipopt.bar_for(runs[0]),
            Check("largest difference of x_t between the three splits", apart, 1e-9),
        ],
        facts={
            "effort (N²m²s)": default.f * case.torque_unit**2 * case.step,
            "largest torque (N·m)": float(np.abs(torque).max()),
            "torque of gravity m g l (N·m)": p[0] * p[1] * p[2],
            "distance to IPOPT's point": float(np.abs(default.x - ipopt.x).max()),
            "end angle error in the exact motion (rad)": end_error(case, p, default.x),
        },
        figures={
            "trajectory": draw(case, p, default.x, ipopt.x),
            "convergence": plot_convergence(drawn, tol=1e-6, log_across=True),
        },
    )


_SAME = ("hybrid: metric, pure augmented", "hybrid: metric, pure optimistic", "hybrid: closed form")
"""Curves left out of the figure: two that lie on a third, and one that has no step."""

if __name__ == "__main__":
    sys.exit(main())
