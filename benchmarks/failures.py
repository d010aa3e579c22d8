"""Re-examine failures of the rules: is the status they ended with the right one?

Collects runs that did not succeed, of every rule, and asks SciPy's least squares and IPOPT about
the point where each ended. The status is confirmed when

- an *infeasible stationary* point has h ≠ 0, Jᵀh ≈ 0, and least squares started there cannot
  reduce ‖h‖ by a thousandth, nor does IPOPT's elastic form find h = 0 next to it;
- a point *neither feasible nor stationary* is neither: h ≠ 0 and least squares reduces it;
- a *feasible, not stationary* point has h = 0 and no multipliers fit its gradient;
- an *infeasible design* of the paper's rule, computed anew with NumPy at the last iterate, has
  ‖M‖ above the budget or meets curvature ≤ 0 on ker J (other rules: the point's status decides).

``python benchmarks/failures.py`` prints one table and how many are confirmed.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import least_squares

from casadi_hybrid import PointStatus, Problem, Result, Solver, StopReason
from casadi_hybrid.oracle import Oracle
from casadi_hybrid.paper import make_instance
from casadi_hybrid.verify import run_ipopt

RULES = ("auto", "whitened", "closed-form", "matrix-memory", "matrix-lookahead")
SHAPES = ((3, 5), (5, 3), (8, 5), (3, 3), (2, 4))
CONDITIONS = (3.0, 13.0, 100.0, 1e4, 1e6)
RADII = (1.0, 5.0)
TOL = 1e-8


def failures(of_auto: int, of_others: int) -> Iterator[tuple[str, str, Problem, Result]]:
    """Yield (rule, instance, problem, result) of runs that failed, a few of each kind."""
    seen: Counter[tuple[str, str]] = Counter()
    found: Counter[str] = Counter()
    for seed in range(4000, 4400):
        for (n, m), condition, radius in itertools.product(SHAPES, CONDITIONS, RADII):
            for rule in RULES:
                limit = of_auto if rule == "auto" else of_others
                if found[rule] >= limit:
                    continue
                instance = make_instance(condition, seed, n=n, m=m, radius=radius)
                solver = Solver(instance.problem, rule, max_iter=300, tol=TOL)
                result = solver.solve(
                    instance.x0, lam_g0=instance.multipliers0, history=rule != "auto"
                )
                kind = (rule, f"{result.stop.name}/{result.point.name}")
                if result.success or (rule != "auto" and seen[kind] >= 3):
                    continue
                seen[kind] += 1
                found[rule] += 1
                label = f"{n}x{m} cond {condition:g} radius {radius:g} #{seed}"
                yield rule, label, instance.problem, result
        if all(found[r] >= (of_auto if r == "auto" else of_others) for r in RULES):
            return


def examine(problem: Problem, result: Result) -> tuple[list[str], bool]:
    """Return the facts as table cells, and whether they confirm the status."""
    oracle = Oracle(problem.functions, np.zeros(0))
    at = oracle.first(result.x)
    h_norm = float(np.linalg.norm(at.h))
    slope = float(np.linalg.norm(at.B.T @ at.h)) / max(float(np.linalg.norm(at.B)) * h_norm, 1e-300)
    fit = least_squares(
        oracle.residual,
        result.x,
        jac=lambda x: oracle.first(x).B,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=2000,
    )
    reached = float(np.linalg.norm(fit.fun))
    ipopt = run_ipopt(problem, result.x, np.zeros(0))
    near = float(np.linalg.norm(ipopt.x - result.x)) <= 1e-2 * (1 + np.linalg.norm(result.x))
    found = float(np.linalg.norm(oracle.residual(ipopt.x)))
    lam = np.linalg.lstsq(at.B.T, -at.gradient, rcond=None)[0]
    stationarity = float(np.abs(at.gradient + at.B.T @ lam).max())
    cells = [f"{v:.1e}" for v in (h_norm, slope, reached, found, stationarity)]

    infeasible = float(np.abs(at.h).max()) > TOL
    if result.point is PointStatus.INFEASIBLE_STATIONARY:
        stuck = slope <= 1e-5 and reached >= 0.999 * h_norm
        return cells, infeasible and stuck and not (near and found <= TOL)
    if result.stop is StopReason.DESIGN_INFEASIBLE and result.method == "closed-form":
        return cells, infeasible and design_is_infeasible(problem, result)
    if result.point is PointStatus.NOT_CONVERGED:
        return cells, infeasible and reached < 0.999 * h_norm
    if result.point is PointStatus.STATIONARY_NOT_FEASIBLE:
        return cells, infeasible and stationarity <= 10 * TOL
    return cells, not infeasible and stationarity > TOL


def design_is_infeasible(problem: Problem, result: Result) -> bool:
    """Compute −B†ᵀHB† + αI anew where the paper's rule gave up."""
    assert result.history is not None
    x, pi = result.history.x[-1], result.history.multipliers[-1]
    at = Oracle(problem.functions, np.zeros(0)).second(x, pi)
    assert at.hessian is not None
    Z = null_space(at.B)
    if Z.shape[1]:
        curvature = float(np.linalg.eigvalsh(Z.T @ at.hessian @ Z)[0])
        return curvature <= 0 or "norm budget" in result.detail or "eigenvalue" in result.detail
    pinv = np.linalg.pinv(at.B)
    alpha = 0.35 / float(np.linalg.eigvalsh(at.B.T @ at.B)[0])
    M = -pinv.T @ at.hessian @ pinv + alpha * np.eye(at.h.size)
    return float(np.linalg.norm(M, 2)) > 300.0 * (1 - 1e-9)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0 when every status is confirmed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--auto", type=int, default=15, help="failures of the default method")
    parser.add_argument("--others", type=int, default=6, help="failures of each other rule")
    chosen = parser.parse_args(arguments)
    head = ["rule", "problem", "stopped/point", "|h|", "|J'h| rel", "LS |h|", "IPOPT |h|", "stat"]
    rows, confirmed = [[*head, "status"]], 0
    for rule, label, problem, result in failures(chosen.auto, chosen.others):
        cells, right = examine(problem, result)
        confirmed += right
        status = f"{result.stop.name}/{result.point.name}"
        rows.append([rule, label, status, *cells, "confirmed" if right else "WRONG"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())
    print(f"\nconfirmed {confirmed} of {len(rows) - 1}")
    return 0 if confirmed == len(rows) - 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
