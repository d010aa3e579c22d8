"""Hydraulic servo with constraints in metres and kilopascals: scalar penalty against matrix.

A linearized valve u moves a mass m with a hydraulic cylinder (area A, load pressure p, supply p_s)
from rest at 0 to rest at 0.2 m in half a second, with the least valve work:

    s' = v,    m v' = A p − d v,    p' = (β/V)(K u (1 − p/2p_s) − A v − c p),    min ∫ u² dt.

Multiple shooting gives equations h = 0 whose rows are not scaled: rows of the Jacobian B differ in
size by 10⁴ and more. The local spectral gap 1 − ρ of the best scalar penalty cI depends on the unit
of the pressure rows; that of the paper's matrix M = α(BBᵀ)⁻¹ does not. M as augmentation, as
optimism or half of each gives one trajectory.
"""

import sys
from itertools import product

import casadi as ca
import numpy as np

from casadi_hybrid import Problem, Solver, verify
from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, RungeKutta
from casadi_hybrid.paper.claims.spectra import local_gap
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.paper.law import Correction
from casadi_hybrid.paper.rules import ScheduleRule
from casadi_hybrid.utils.output.plotting import plot_convergence

ALPHA, ETA_X, ETA_D = 10.0, 0.1, 1.0  # curvature that M adds, primal and dual step


def problem(unit: float = 1e3) -> Problem:
    """Return the servo as equations in m, m/s and, for the pressure, ``unit`` Pa."""
    plant = Model("hydraulic_servo")
    plant.state("s", scale=0.2, unit="m")
    v, p = plant.state("v", unit="m/s"), plant.state("p", scale=2e6, unit="Pa")
    u = plant.control("u")
    flow = 1e-3 * u * (1.0 - 0.5 * p / 1e7) - 1e-3 * v - 2e-12 * p
    plant.rates(s=v, v=(1e-3 * p - 500.0 * v) / 200.0, p=5e11 * flow)
    ocp = OptimalControl(plant, duration=0.5, intervals=6, method=MultipleShooting(RungeKutta(3)))
    ocp.initial(s=0, v=0, p=0)
    ocp.final(s=0.2, v=0, p=0)
    ocp.guess(v=0.4)
    ocp.minimize("valve work", sum=0.5 * u**2)
    program, rows = ocp.numbers(), {}
    h = ca.substitute(program.nlp["g"], program.nlp["p"], program.p)
    for name, block in program.constraints.items():
        states = "svp" if name == "dynamics" else name.split()[-1]
        factor = block.scale / [[unit if state == "p" else 1.0] for state in states]
        rows[name] = h[block.where.tolist()] * factor.ravel(order="F")
    return Problem(x=program.nlp["x"], f=program.nlp["f"], h=rows, x0=program.x0, name="servo")


def matrix_law(share: float) -> Hybrid:
    """Return the law with M = α(BBᵀ)⁻¹, of which ``share`` is augmentation, the rest optimism."""

    def correction(at, t):
        R = np.linalg.inv(at.B @ at.B.T)
        return Correction(share * ALPHA * R, (1 - share) * ALPHA * R, ETA_X, ETA_D * R)

    return Hybrid(ScheduleRule(correction))


def best_scalar(H: np.ndarray, B: np.ndarray) -> tuple[float, ...]:
    """Return the largest local gap of a scalar penalty c on a grid, c and the steps."""
    strong, weak = np.linalg.svd(B, compute_uv=False)[[0, -1]] ** 2
    sizes = product(np.geomspace(1 / strong, 10 / weak, 12), (0.3, 1.0, 1.6), (0.03, 0.1, 0.3, 1))
    grid = ((c, part / (1.0 + c * strong), share * c) for c, part, share in sizes)
    return max((local_gap(H, B, c * np.eye(len(B)), *steps), c, *steps) for c, *steps in grid)


def main() -> bool:
    """Solve, compare and draw; return True if the answers are accepted and the theorems hold."""
    right, gaps = True, []
    for unit in (1e6, 1e5, 1.0, 1e3):
        equations = problem(unit)
        result = Solver(equations).solve()
        report = verify(equations, result)
        x, (f, h) = equations.x, equations.graph(equations.x, [])
        curved = ca.hessian(f + ca.dot(result.lam_g, h), x)[0]
        parts = ca.Function("parts", [x], [curved, ca.jacobian(h, x)])
        H, B = (part.full() for part in parts(result.x))
        scalar, c, *steps = best_scalar(H, B)
        one, white = np.eye(len(B)), np.linalg.cholesky(np.linalg.inv(B @ B.T)).T @ B
        gaps.append(local_gap(H, white, ALPHA * one, ETA_X, ETA_D))  # M is scalar in white rows
        print(f"pressure in {unit:g} Pa: local gap {scalar:.0e} by cI, {gaps[-1]:.2e} by M")
        right = right and report.accepted and scalar < gaps[-1]
    print(f"\n{report}\n")
    laws = {f"M, {share:.0%} augmentation": matrix_law(share) for share in (1.0, 0.5, 0.0)}
    laws["best cI"] = Hybrid(ScheduleRule(lambda at, t: Correction(c * one, 0 * one, *steps)))
    solvers = {label: Solver(equations, law, max_iter=5000) for label, law in laws.items()}
    runs = {label: solver.solve(history=True) for label, solver in solvers.items()}
    first, *others, _ = (run.history.x for run in runs.values())
    apart = max(np.abs(other - first).max() for other in others)
    print(f"three splits of M: trajectories apart by {apart:.1e} in {len(first) - 1} steps")
    plot_convergence(runs, tol=1e-6, log_across=True).savefig("hydraulic_servo.png", dpi=150)
    return right and max(gaps) < 1.01 * min(gaps) and apart < 1e-9


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
