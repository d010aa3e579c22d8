"""This package's ``nlpsol`` and IPOPT on the problems of Hock & Schittkowski, side by side.

    python benchmarks/hs_peers.py [--only NUMBER ...] [--repeat K]

Both start at the standard start with CasADi's derivatives. Every residual is recomputed here from
the problem's own graph at the returned point and multipliers, unscaled, the same way for both:

* residual: the largest of the violation of a bound on x or g, ‖∇f + J_gᵀλ_g + λ_x‖_∞, and
  |λ|·(distance to the bound its sign points to);
* solved: residual ≤ 1e-6, whatever the solver says of itself. IPOPT relaxes its bounds by 1e-8
  and scales its residuals, so for this comparison its bounds are not relaxed
  (``bound_relax_factor`` 0), and it runs twice: with its own scaling and ``tol`` 1e-8, and without
  scaling and with ``tol`` 1e-9, which serves this judge best;
* f ok: solved, and f ≤ f* + 1e-5·max(1, |f*|), the published optimum or better;
* Hess.: evaluations of the Hessian. This package tries to guess the active set between
  iterations; a guess that fails is no iteration, but its Hessians are counted here.

Wall time is that of the call alone, the least of K repeats.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from problems.published import HS, NLP

from casadi_hybrid import nlpsol

Vector = NDArray[np.float64]
SOLVED, OPTIMAL = 1e-6, 1e-5


def ipopt_options(**options: Any) -> dict[str, Any]:
    """Options of CasADi's IPOPT: silent, bounds as they are."""
    ipopt = {"print_level": 0, "sb": "yes", "bound_relax_factor": 0.0, **options}
    return {
        "print_time": False,
        "error_on_fail": False,
        "show_eval_warnings": False,
        "ipopt": ipopt,
    }


@dataclass(frozen=True)
class Answer:
    """What a solver returned, and what the recomputation says of it."""

    status: str
    iterations: int
    hessians: int
    f: float
    residual: float
    optimal: bool
    wall: float

    @property
    def solved(self) -> bool:
        """Whether the recomputed residual is within 1e-6."""
        return self.residual <= SOLVED


def recomputed(data: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[float, float]:
    """Return f and the largest KKT residual at the returned point, from the problem's graph."""
    x, f, g = data["x"], data["f"], data["g"]
    values = ca.Function("values", [x], [f, ca.gradient(f, x), g, ca.jacobian(g, x)])(found["x"])
    objective, gradient, rows = (np.asarray(part.full()).ravel() for part in values[:3])
    lam_g, lam_x = (np.asarray(found[key].full()).ravel() for key in ("lam_g", "lam_x"))
    slope = gradient + values[3].full().T @ lam_g + lam_x
    parts = [float(np.abs(slope).max())]
    point = np.asarray(found["x"].full()).ravel()
    for value, lam, kind in ((point, lam_x, "x"), (rows, lam_g, "g")):
        low, high = np.array(data[f"lb{kind}"]), np.array(data[f"ub{kind}"])
        for v, multiplier, a, b in zip(value, lam, low, high, strict=True):
            parts.append(max(a - v, v - b, 0.0))
            bound = b if multiplier > 0 else a
            if a < b:
                distance = abs(bound - v) if np.isfinite(bound) else 1.0
                parts.append(abs(multiplier) * distance)
    residual = max(parts) if np.isfinite(parts).all() else np.inf
    return float(objective[0]), float(residual)


def run(problem: NLP, make: Callable[[dict[str, Any]], Any], repeat: int) -> Answer:
    """Solve and judge."""
    data = problem.build()
    solver = make({key: data[key] for key in ("x", "f", "g")})
    bounds = {key: data[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    walls = []
    for _ in range(repeat):
        began = time.perf_counter()
        found = solver(x0=problem.x0, **bounds)
        walls.append(time.perf_counter() - began)
    stats = solver.stats()
    f, residual = recomputed(data, found)
    optimal = residual <= SOLVED and f <= problem.f_star + OPTIMAL * max(1.0, abs(problem.f_star))
    hessians = int(stats["n_call_nlp_hess_l"])
    status = str(stats["return_status"])
    return Answer(status, int(stats["iter_count"]), hessians, f, residual, optimal, min(walls))


MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "hybrid": lambda nlp: nlpsol("ours", "hybrid", nlp),
    "IPOPT": lambda nlp: ca.nlpsol("peer", "ipopt", nlp, ipopt_options(tol=1e-8)),
    "IPOPT unscaled": lambda nlp: ca.nlpsol(
        "peer", "ipopt", nlp, ipopt_options(tol=1e-9, nlp_scaling_method="none")
    ),
}


def align(rows: Sequence[Sequence[str]]) -> str:
    """Set rows of cells into columns; the first column to the left, the rest to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def mean_ratio(pairs: Sequence[tuple[int, int]]) -> float:
    """Geometric mean of the ratios; zeros count as one."""
    return float(np.exp(np.mean([np.log(max(a, 1) / max(b, 1)) for a, b in pairs])))


def report(problems: Sequence[NLP], repeat: int = 1) -> str:
    """Return the table, with totals below it."""
    rows = [["problem", "n", "m", "f*"]]
    rows[0] += [p for _ in MAKERS for p in ("status", "it.", "Hess.", "f", "residual", "f ok")]
    answers: dict[str, list[Answer]] = {name: [] for name in MAKERS}
    for problem in problems:
        data = problem.build()
        row = [problem.name, str(data["x"].numel()), str(data["g"].numel())]
        row.append(f"{problem.f_star:.6g}")
        for name, make in MAKERS.items():
            answer = run(problem, make, repeat)
            answers[name].append(answer)
            row += [answer.status[:22], str(answer.iterations), str(answer.hessians)]
            row += [f"{answer.f:.6g}", f"{answer.residual:.0e}", "yes" if answer.optimal else "no"]
        rows.append(row)
    names = list(MAKERS)
    lines = [f"columns of six, from left to right: {', '.join(names)}", align(rows), ""]
    for name, found in answers.items():
        solved, optimal = sum(a.solved for a in found), sum(a.optimal for a in found)
        lines.append(
            f"{name}: solved {solved} of {len(found)}, published optimum or better {optimal}, "
            f"{sum(a.iterations for a in found)} iterations, {sum(a.hessians for a in found)} "
            f"Hessians, {sum(a.wall for a in found):.2f} s"
        )
    for name in names[1:]:
        pairs = zip(answers[names[0]], answers[name], strict=True)
        both = [(a, b) for a, b in pairs if a.solved and b.solved]
        if not both:
            continue
        iterations = mean_ratio([(a.iterations, b.iterations) for a, b in both])
        hessians = mean_ratio([(a.hessians, b.hessians) for a, b in both])
        wall = sum(a.wall for a, _ in both) / sum(b.wall for _, b in both)
        times = np.array([a.wall / b.wall for a, b in both])
        low, middle, high = np.quantile(times, (0.25, 0.5, 0.75))
        lines.append(
            f"{names[0]} / {name} where both solve ({len(both)}): iterations {iterations:.3f}, "
            f"Hessians {hessians:.3f}, wall time {np.exp(np.mean(np.log(times))):.2f} (geometric "
            f"means; quartiles of the time {low:.2f}, {middle:.2f}, {high:.2f}; largest "
            f"{times.max():.1f}; of the sums {wall:.1f})"
        )
    return "\n".join(lines)


def noisy(problem: NLP, noise: float, seed: int) -> NLP:
    """The problem from x0 + noise·max(1, |x0|)·(standard normal), the same in every run."""
    x0 = np.array(problem.x0, dtype=float)
    draws = np.random.default_rng(1000 * problem.number + seed).standard_normal(x0.size)
    moved = x0 + noise * np.maximum(1.0, np.abs(x0)) * draws
    return replace(problem, name=f"{problem.name} #{seed}", x0=tuple(moved))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", type=int, default=None, help="numbers in the book")
    parser.add_argument("--repeat", type=int, default=1, help="solve each this often")
    parser.add_argument("--noise", type=float, default=0.0, help="relative noise of the starts")
    parser.add_argument("--seeds", type=int, default=4, help="noisy starts of each problem")
    chosen = parser.parse_args(arguments)
    problems = [p for p in HS if chosen.only is None or p.number in chosen.only]
    if chosen.noise > 0:
        problems = [noisy(p, chosen.noise, s) for p in problems for s in range(chosen.seeds)]
    print(report(problems, max(1, chosen.repeat)))


if __name__ == "__main__":
    main()
