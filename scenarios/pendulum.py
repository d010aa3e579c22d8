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

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from common import (
    AUTO,
    LOOK_AHEAD,
    Method,
    apart,
    conclude,
    equations,
    named,
    references,
    row_space_rule,
    solve,
)
from drawing import compare, panels, relabelled
from matplotlib.figure import Figure
from reporting import TOL, Check, parser
from solving import Named

from casadi_hybrid import Problem
from casadi_hybrid.control import Model, OptimalControl
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.plotting import PALETTE, plot_convergence
from casadi_hybrid.study import sweep

NAME = "pendulum"
SUMMARY = "swing-up of a pendulum with a torque below gravity's: 92 variables, 64 constraints"

SPLITS = {"50 : 50": 0.5, "pure augmented": 1.0, "pure optimistic": 0.0}
UNIT = 5.0
"""Of the torque, N·m."""


def swing_up(intervals: int = 30, duration: float = 2.0) -> OptimalControl:
    """Return the swing-up in SI units; the weight is a parameter."""
    plant = Model(NAME)
    angle = plant.state("theta", scale=np.pi, unit="rad")
    rate = plant.state("omega", scale=2 * np.pi / duration, unit="rad/s")
    u = plant.control("u", scale=UNIT, unit="N·m")
    values = {"mass": 1.0, "length": 0.5, "gravity": 9.81}
    m, length, g = (plant.parameter(*pair) for pair in values.items())
    torque = u - m * g * length * ca.sin(angle) - 0.1 * rate
    plant.rates(theta=rate, omega=torque / (m * length**2))
    ocp = OptimalControl(plant, duration=duration, intervals=intervals)
    ocp.initial(theta=0, omega=0)
    ocp.final(theta=np.pi, omega=0)
    ocp.guess(omega=np.pi / duration)
    ocp.minimize("effort", sum=0.5 * (u / UNIT) ** 2)
    return ocp


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
        *(in_metric(f"hybrid: metric, {k}", theta, required=True) for k, theta in SPLITS.items()),
        Method("hybrid: closed form", "closed-form"),
        Method("hybrid: scalar M", "constant", {"C_opt": 3.0, "eta_x": 0.01, "eta_d": 10.0}),
        Method("PDHG", "pdhg", {"tau": 0.005, "sigma": 20.0}),
        Method("linearized AL", "linearized-al", {"eta": 0.01, "penalty": 10.0}),
        Method("GDA", "gda", {"eta_x": 0.03, "eta_d": 0.003}),
    ]


# 25 to 27 settings a method, around the best of a coarser search. PDHG's grid is the finest, since
# a grid of half decades (down to 0.001 and up to 100) missed its best steps.
HALVES = (0.003, 0.01, 0.03, 0.1, 0.3)
GRIDS = {
    "metric": {"alpha": (5.0, 10.0, 20.0), "eta_x": (0.05, 0.1, 0.2), "eta_d": (1.0, 3.0, 10.0)},
    "constant": {"C_opt": (3.0, 10.0, 30.0), "eta_x": HALVES[:3], "eta_d": (1.0, 3.0, 10.0)},
    "pdhg": {"tau": (0.002, 0.005, 0.01, 0.02, 0.05), "sigma": (2.0, 5.0, 10.0, 20.0, 50.0)},
    "linearized-al": {"eta": (0.001, *HALVES[:4]), "penalty": (1.0, 3.0, 10.0, 30.0, 100.0)},
    "gda": {"eta_x": HALVES, "eta_d": HALVES},
}


def tune(problem: Problem, x0: np.ndarray, p: np.ndarray, max_iter: int) -> None:
    """Print the best settings of each first-order method on its grid.

    Best is fewest iterations among settings that reach the tolerance, else the least KKT residual
    within the budget.
    """

    def one(label: str, **options: float) -> dict[str, float]:
        metric = label == "metric"
        method = in_metric(label, 0.5, **options) if metric else Method(label, label, options)
        result = solve(problem, method, x0, p, max_iter=max_iter).result
        residual = max(result.residuals.feasibility, result.residuals.stationarity)
        return {"iterations": result.iterations, "residual": residual}

    def rank(row: Mapping[str, Any]) -> tuple[bool, float]:
        failed = not row["residual"] <= TOL
        return failed, row["residual" if failed else "iterations"]

    for label, grid in GRIDS.items():
        found = sweep(partial(one, label), grid, ["iterations", "residual"], workers=1)
        print(label, replace(found, rows=sorted(found.rows, key=rank)[:3]), sep="\n", flush=True)


def draw(ours: Named, ipopt: Named, weight: float) -> Figure:
    """Plot angle, rate and torque over time, the last beside ± m g l, IPOPT's as circles."""
    fig = compare(ours, ipopt, ("theta", "omega", "u"), targets={"theta": np.pi})
    look, axes = {"color": PALETTE[6], "linewidth": 0.9, "linestyle": "-."}, panels(fig)
    for sign in (-1, 1):
        axes["u"].axhline(sign * weight, **look)
    axes["theta"].plot([], [], **look, label="torque of gravity")
    return relabelled(fig, axes["theta"])


def main(argv: list[str] | None = None) -> int:
    """Run the scenario; 0 when every required answer and every check holds, else 1."""
    options = parser(NAME, SUMMARY, budget=True)
    options.add_argument("--tune", action="store_true", help="search the steps of the methods")
    arguments = options.parse_args(argv)
    ocp = swing_up(10, 1.0) if arguments.short else swing_up()
    max_iter = arguments.max_iter or (500 if arguments.short else 20_000)
    problem, x0, p = equations(ocp), ocp.numbers().x0, ocp.program.p
    if arguments.tune:
        tune(problem, x0, p, max_iter)
        return 0
    runs = [
        solve(problem, method, x0, p, max_iter=max_iter, keep_points="metric" in method.label)
        for method in methods()
    ]
    peers, splits = references(problem, x0, p), apart(run.trace.points for run in runs)
    default, ipopt, weight = runs[0].result, peers[0], 9.81 * 0.5
    ours, theirs = named(ocp, AUTO, default.x), named(ocp, "IPOPT", ipopt.report.x)
    dt = ours.times[1]
    drawn = {run.method.label: run.trace for run in runs if run.method.label not in _SAME}
    shown = (
        f"{len(drawn)} of {len(runs)} methods: two splits of the metric lie on the third, "
        "the closed form takes no step"
    )
    return conclude(
        arguments,
        problem,
        runs,
        peers,
        checks=[Check("largest difference of x_t between the three splits", splits, 1e-9)],
        facts={
            "effort (N²m²s)": default.f * UNIT**2 * dt,
            "largest torque (N·m)": float(np.abs(ours["u"]).max()),
            "torque of gravity m g l (N·m)": weight,
            "distance to IPOPT's point": float(np.abs(default.x - ipopt.report.x).max()),
            "largest angle error in the exact motion (rad)": float(
                ours.solution.error(whole=True)["theta"].max()
            ),
        },
        figures={
            "trajectory": draw(ours, theirs, weight),
            "convergence": plot_convergence(drawn, tol=1e-6, log_across=True, title=shown),
        },
    )


_SAME = ("hybrid: metric, pure augmented", "hybrid: metric, pure optimistic", "hybrid: closed form")
"""Curves left out of the figure: two that lie on a third, and one that has no step."""

if __name__ == "__main__":
    sys.exit(main())
