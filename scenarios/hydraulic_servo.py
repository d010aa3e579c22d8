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

import sys

import numpy as np
from common import AUTO, Method, equations, references, row_space_rule, solve
from reporting import Check, finish, no_worse_than, parser, table
from scipy.optimize import minimize

from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, RungeKutta
from casadi_hybrid.paper.claims.spectra import local_jacobian, spectral_gap
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.utils.output.plotting import plot_convergence

NAME = "hydraulic_servo"
SUMMARY = "rows in metres beside rows in kilopascals: scalar penalty against matrix correction"
UNITS = {"MPa": 1e6, "bar": 1e5, "kPa": 1e3, "Pa": 1.0}
"""Units of the pressure rows in Pa."""
GAP_COLUMNS = (
    ("unit", "pressure in", str),
    ("ratio", "row ratio", "{:.1e}".format),
    ("scalar", "scalar cI", "{:.2e}".format),
    ("matrix", "matrix M", "{:.2e}".format),
)


def servo(intervals: int) -> OptimalControl:
    """Return the motion of the plant in SI units."""
    mass, area, supply, stroke, duration = 200.0, 1e-3, 1e7, 0.2, 0.5
    plant = Model(NAME)
    plant.state("s", scale=stroke, unit="m")
    v, p = plant.state("v", unit="m/s"), plant.state("p", scale=0.2 * supply, unit="Pa")
    u = plant.control("u")
    inflow = 1e-3 * u * (1.0 - 0.5 * p / supply)
    force = area * p - 500.0 * v
    plant.rates(s=v, v=force / mass, p=5e11 * (inflow - area * v - 2e-12 * p))
    method = MultipleShooting(RungeKutta(3))
    ocp = OptimalControl(plant, duration=duration, intervals=intervals, method=method)
    ocp.initial(s=0, v=0, p=0)
    ocp.final(s=stroke, v=0, p=0)
    ocp.guess(v=stroke / duration)
    ocp.minimize("valve work", sum=0.5 * u**2)
    return ocp


def best_gap(H: np.ndarray, B: np.ndarray, evaluations: int) -> tuple[float, np.ndarray]:
    """Return the largest local gap of a family and where it is: penalty, η_x, η_d.

    Searched by Nelder–Mead on their logarithms, from eight starts inside the region of stable
    steps, with penalties from one that gives the strongest row unit curvature to one that gives it
    to the weakest.
    """
    one, curvatures = np.eye(len(B)), np.linalg.svd(B, compute_uv=False) ** 2
    size, spread = float(curvatures[0]), float(curvatures[0] / curvatures[-1])

    def loss(z: np.ndarray) -> float:
        penalty, eta_x, eta_d = 10.0**z
        gap = spectral_gap(local_jacobian(H, B, penalty * one, eta_x, eta_d))
        return -np.log10(gap) if gap > 0 else 20.0 - gap

    options = {"maxfev": evaluations, "xatol": 1e-4, "fatol": 1e-6}
    starts = [
        np.log10([curvature / size, 0.5 / (2.0 + curvature), share * curvature / size])
        for curvature in (1.0, *(10.0 * spread**power for power in (1 / 3, 2 / 3, 1.0)))
        for share in (0.1, 1.0)
    ]
    found = [minimize(loss, z, method="Nelder-Mead", options=options) for z in starts]
    best = min(found, key=lambda result: float(result.fun))
    return 10.0 ** -float(best.fun), 10.0**best.x


def methods(scalar: np.ndarray, matrix: np.ndarray) -> list[Method]:
    """Return the rows of the table, both corrections with the best penalty and steps found."""
    penalty, steps = scalar[0], {"eta_x": scalar[1], "eta_d": scalar[2]}
    m_rule = row_space_rule(*matrix, theta=0.5)
    return [
        Method(AUTO, "auto", required=True),
        Method("hybrid: matrix steps", "matrix-lookahead"),
        Method("hybrid: matrix M, scalar primal step", Hybrid(m_rule, label="M"), required=True),
        Method("augmented Lagrangian cI", "constant", {"C_aug": penalty, "C_opt": 0.0, **steps}),
        Method("optimistic cI", "constant", {"C_aug": 0.0, "C_opt": penalty, **steps}),
    ]


def main(argv: list[str] | None = None) -> int:
    """Run the scenario; 0 when the matrix correction solves it for any unit, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    ocp, short = servo(6), arguments.short
    start, p = ocp.numbers().x0, ocp.program.p
    problems = {name: equations(ocp, {"s": 1.0, "v": 1.0, "p": unit})
                for name, unit in UNITS.items() if not short or name in ("MPa", "kPa")}  # fmt: skip
    rows, best = [], {}
    for name, problem in problems.items():
        found = solve(problem, Method(AUTO, "auto"), start, p, max_iter=200).solution
        at = Oracle(problem.functions, p).second(found.x, found.lam_g)
        # In coordinates in which its metric (BBᵀ)⁻¹ is the identity M is a scalar penalty too.
        white = np.linalg.solve(np.linalg.cholesky(at.B @ at.B.T), at.B)
        tried = [best_gap(at.hessian, B, 60 if short else 200) for B in (at.B, white)]
        (scalar, matrix), best[name] = zip(*tried, strict=True)
        sizes = np.linalg.norm(at.B, axis=1)
        ratio = float(sizes.max() / sizes.min())
        rows.append({"unit": name, "ratio": ratio, "scalar": scalar, "matrix": matrix})
    problem, budget = problems["kPa"], 2_000 if short else 20_000
    runs = [solve(problem, m, start, p, max_iter=budget) for m in methods(*best["kPa"])]
    peers, drawn = references(problem, start, p), {run.label: run.course for run in runs[:-1]}
    gaps, in_kPa = [row["matrix"] for row in rows], rows[list(problems).index("kPa")]
    spread, share = max(gaps) / min(gaps) - 1.0, in_kPa["scalar"] / in_kPa["matrix"]
    title = "best local gap 1 - rho over penalty and steps, by the unit of the pressure rows"
    return finish(
        arguments,
        (problem.n, problem.m),
        [*runs, *peers],
        checks=[
            no_worse_than(runs[0], peers[0]),
            Check("spread of the matrix gap over the units, relative", spread, 1e-2),
            Check("scalar gap over matrix gap in kPa", share, 1e-2),
        ],
        tables={title: table(rows, GAP_COLUMNS)},
        # The two scalar channels have one trajectory, so one of them is drawn.
        figures={"convergence": plot_convergence(drawn, tol=1e-6, log_across=True)},
    )


if __name__ == "__main__":
    sys.exit(main())
