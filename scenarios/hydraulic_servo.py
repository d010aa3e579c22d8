"""A hydraulic servo whose constraints are written in the units at hand: metres and kilopascals.

A linearized valve u moves a mass m with a hydraulic cylinder (area A, load pressure p, supply p_s)
from rest at 0 to rest at 0.2 m in half a second, with the least valve work:

    s' = v,    m v' = A p − d v,    p' = (β/V)(K u (1 − p/2p_s) − A v − c p),    min ∫ u² dt.

Multiple shooting, N intervals of constant u, three Runge–Kutta steps each. The unknowns are scaled
by their size, but the rows of h are not: a position error is in m, a pressure error in kPa, and the
rows of the Jacobian differ in size by 10⁴ and more. Nothing is wrong with such a model; a scalar
penalty cI cannot serve both kinds of rows, the correction M = α(BBᵀ)⁻¹ can, for any units. The
scenario measures the local spectral gap 1 − ρ(J_AL) that the best scalar penalty and the matrix
correction reach, each with its best steps, over the unit of the pressure rows (MPa … Pa), and then
runs the methods from a naive start: position rising at constant speed, no pressure, valve shut.
This is the paper's example "Stiffness of scalar augmentation" with a plant in place of a diagonal
matrix.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from common import AUTO, LOOK_AHEAD, Method, Run, row_space_rule, solve, solve_with_peer
from matplotlib.figure import Figure
from reporting import Check, finish, parser, table
from scipy.optimize import minimize
from solving import IPOPT, SLEQP
from transcription import runge_kutta

from casadi_hybrid import Problem
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.plotting import figure, legend_below, line_style
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle

NAME = "hydraulic_servo"
SUMMARY = "rows in metres beside rows in kilopascals: scalar penalty against matrix correction"
UNITS = {"MPa": 1e6, "bar": 1e5, "kPa": 1e3, "Pa": 1.0}
"""Units of the pressure rows in Pa."""


@dataclass(frozen=True)
class Servo:
    """The plant in SI units."""

    mass: float = 200.0
    area: float = 1e-3
    damping: float = 500.0
    supply: float = 1e7
    stiffness: float = 5e11
    flow: float = 1e-3
    leak: float = 2e-12
    stroke: float = 0.2
    duration: float = 0.5

    def dynamics(self, x: Any, u: Any) -> Any:
        """Return the derivative of (s, v, p) under the valve opening u."""
        speed, pressure = x[1], x[2]
        inflow = self.flow * u[0] * (1.0 - 0.5 * pressure / self.supply)
        used = self.area * speed + self.leak * pressure
        force = self.area * pressure - self.damping * speed
        return ca.vertcat(speed, force / self.mass, self.stiffness * (inflow - used))

    def problem(self, intervals: int, pressure_unit: float) -> Problem:
        """Return the motion with the pressure rows in the given unit (Pa)."""
        dt = self.duration / intervals
        z = ca.SX.sym("state", 3, intervals + 1)
        u = ca.SX.sym("valve", 1, intervals)
        X = z * ca.DM(np.outer([self.stroke, 1.0, 0.2 * self.supply], np.ones(intervals + 1)))
        step = runge_kutta(self.dynamics, dt, steps=3)
        ends = ca.horzcat(*(step(X[:, k], u[:, k]) for k in range(intervals)))
        defects = X[:, 1:] - ends
        goal = ca.vertcat(self.stroke, 0.0, 0.0)
        rows = ca.horzcat(X[:, 0], defects, X[:, intervals] - goal)
        stages = [ca.vertcat(z[:, k], u[:, k]) for k in range(intervals)]
        return Problem(
            x=ca.vertcat(*stages, z[:, intervals]),
            f=0.5 * ca.sumsqr(u),
            h={
                "position (m)": rows[0, :].T,
                "speed (m/s)": rows[1, :].T,
                "pressure": rows[2, :].T / pressure_unit,
            },
            name=NAME,
        )

    def start(self, intervals: int) -> np.ndarray:
        """Return the naive start."""
        stages = np.zeros((intervals + 1, 4))
        stages[:, 0] = np.linspace(0.0, 1.0, intervals + 1)
        stages[:, 1] = self.stroke / self.duration
        return stages.ravel()[:-1]


@dataclass(frozen=True)
class Best:
    """The largest local gap of a family and where it is: (penalty, η_x, η_d)."""

    gap: float
    penalty: float
    eta_x: float
    eta_d: float


def local_gap(at: Evaluation, R: np.ndarray, penalty: float, eta_x: float, eta_d: float) -> float:
    """Return 1 − ρ of the law with M = penalty·R and dual steps η_d R, linearized at the point."""
    H, B = at.hessian, at.B
    m, n = B.shape
    drive = eta_d * R @ B
    pull = eta_x * B.T
    upper = np.hstack((np.eye(n) - eta_x * H - pull @ (penalty * R @ B + drive), -pull))
    J = np.vstack((upper, np.hstack((drive, np.eye(m)))))
    return 1.0 - float(np.abs(np.linalg.eigvals(J)).max())


def best_gap(at: Evaluation, R: np.ndarray, evaluations: int) -> Best:
    """Search penalty and both steps by Nelder–Mead on their logarithms, from eight starts.

    The starts begin inside the region of stable steps; their penalties run from one that gives the
    strongest row unit curvature to one that gives it to the weakest.
    """
    curvatures = np.linalg.svd(at.B.T @ R @ at.B, compute_uv=False)[: at.h.size]
    size, spread = float(curvatures[0]), float(curvatures[0] / curvatures[-1])

    def loss(z: np.ndarray) -> float:
        gap = local_gap(at, R, *(10.0**z))
        return -np.log10(gap) if gap > 0 else 20.0 - gap

    found = []
    for curvature in (1.0, 10.0 * spread ** (1 / 3), 10.0 * spread ** (2 / 3), 10.0 * spread):
        for share in (0.1, 1.0):
            start = np.log10([curvature / size, 0.5 / (2.0 + curvature), share * curvature / size])
            options = {"maxfev": evaluations, "xatol": 1e-4, "fatol": 1e-6}
            found.append(minimize(loss, start, method="Nelder-Mead", options=options))
    best = min(found, key=lambda result: float(result.fun))
    penalty, eta_x, eta_d = (float(v) for v in 10.0**best.x)
    return Best(10.0 ** -float(best.fun), penalty, eta_x, eta_d)


def methods(scalar: Best, matrix: Best) -> list[Method]:
    """Return the rows of the table, both corrections with the best steps found."""
    m_rule = row_space_rule(matrix.penalty, matrix.eta_x, matrix.eta_d, theta=0.5)

    def scalar_law(label: str, penalty: float, memory: float) -> Method:
        options = {"C": penalty, "Omega": memory, "eta_x": scalar.eta_x, "eta_d": scalar.eta_d}
        return Method(label, "constant", options)

    return [
        Method(AUTO, "auto", required=True),
        Method(LOOK_AHEAD, "look-ahead", required=True),
        Method("hybrid: matrix steps", "matrix-lookahead"),
        Method("hybrid: matrix M, scalar primal step", Hybrid(m_rule, label="M"), required=True),
        scalar_law("augmented Lagrangian cI", scalar.penalty, 0.0),
        scalar_law("optimistic cI", 0.0, scalar.penalty),
    ]


def draw(ratios: Sequence[float], gaps: Sequence[tuple[Best, Best]], runs: Sequence[Run]) -> Figure:
    """Plot the best gaps over the anisotropy of the rows, and the course of the methods."""
    fig, axes = figure(1, 2, height=3.2)
    left, right = axes[0]
    names = ("matrix $M$", "scalar $cI$")
    for i, name in enumerate(names):
        values = [pair[1 - i].gap for pair in gaps]
        left.loglog(ratios, values, **line_style(i), marker="os"[i], label=name)
    left.set(xlabel="largest / smallest row of $J_h$", ylabel="best local gap $1-\\rho$")
    left.legend(fontsize=9, loc="lower left")
    # The two scalar channels have one trajectory, so one of them is drawn.
    for i, run in enumerate(runs[:-1]):
        worst = np.maximum(run.trace.feasibility, run.trace.stationarity)
        steps = np.arange(1, worst.size + 1)
        right.loglog(steps, np.maximum(worst, 1e-16), label=run.method.label, **line_style(i))
    right.axhline(1e-6, color="#7F7F7F", linewidth=0.9, linestyle=":")
    right.set(xlabel="iteration + 1", ylabel="largest KKT residual")
    legend_below(fig, right, columns=2)
    return fig


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the matrix correction solves it for any unit, else 1."""
    arguments = parser(NAME, SUMMARY, budget=True).parse_args(argv)
    plant, N = Servo(), 6
    budget = arguments.max_iter or (2_000 if arguments.short else 20_000)
    names = ("MPa", "kPa") if arguments.short else tuple(UNITS)
    rows: list[dict[str, Any]] = []
    gaps: list[tuple[Best, Best]] = []
    for name in names:
        problem = plant.problem(N, UNITS[name])
        run = solve(problem, Method(AUTO, "auto"), plant.start(N), [], max_iter=200)
        at = Oracle(problem.functions, np.zeros(0)).second(run.result.x, run.result.lam_g)
        gaps.append(
            tuple(
                best_gap(at, R, 60 if arguments.short else 200)
                for R in (np.eye(problem.m), np.linalg.inv(at.B @ at.B.T))
            )
        )
        sizes = np.linalg.norm(at.B, axis=1)
        rows.append(
            {
                "unit": name,
                "ratio": float(sizes.max() / sizes.min()),
                "scalar": gaps[-1][0].gap,
                "matrix": gaps[-1][1].gap,
            }
        )
    return _report(arguments, plant, N, budget, rows, gaps, names.index("kPa"))


def _report(
    arguments: argparse.Namespace,
    plant: Servo,
    N: int,
    budget: int,
    rows: Sequence[dict[str, Any]],
    gaps: Sequence[tuple[Best, Best]],
    shown: int,
) -> int:
    problem, start = plant.problem(N, UNITS["kPa"]), plant.start(N)
    runs = [solve(problem, m, start, [], max_iter=budget) for m in methods(*gaps[shown])]
    peers = [solve_with_peer(problem, start, [], peer) for peer in (IPOPT, SLEQP)]
    matrix = [row["matrix"] for row in rows]
    return finish(
        arguments,
        NAME,
        (problem.n, problem.m),
        [*(run.row() for run in runs), *(peer.row for peer in peers)],
        {run.method.label: run.report for run in runs if run.method.required},
        checks=[
            peers[0].bar_for(runs[0]),
            Check("spread of the matrix gap over the units, relative",
                  max(matrix) / min(matrix) - 1.0, 1e-2),
            Check("scalar gap over matrix gap in kPa",
                  gaps[shown][0].gap / gaps[shown][1].gap, 1e-2),
        ],
        tables={
            "best local gap 1 - rho over penalty and steps, by the unit of the pressure rows":
                table(rows, GAP_COLUMNS)
        },
        facts={"gaps": list(rows)},
        figures={"anisotropy": draw([row["ratio"] for row in rows], gaps, runs)},
    )  # fmt: skip


GAP_COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("unit", "pressure in", str),
    ("ratio", "row ratio", "{:.1e}".format),
    ("scalar", "scalar cI", "{:.2e}".format),
    ("matrix", "matrix M", "{:.2e}".format),
)


if __name__ == "__main__":
    sys.exit(main())
