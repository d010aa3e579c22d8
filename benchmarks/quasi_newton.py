"""Without second derivatives: this package's ``nlpsol`` and IPOPT, both with limited memory.

    python benchmarks/quasi_newton.py [--only NUMBER ...] [--black-box NAME ...] [--no-hs]

Two tables. The first is of Hock & Schittkowski's problems, whose exact Hessians neither solver is
given (``hessian_approximation = "limited-memory"``); the last column is this package's with them.
The second is of control problems whose dynamics are a black box with first derivatives alone
(``problems/black_box.py``): there this package finds by itself that it has to learn the curvature,
and IPOPT is told.

* residual: the largest of the violation of a bound on x or g, ‖∇f + J_gᵀλ_g + λ_x‖_∞, and
  |λ|·(distance to the bound its sign points to), unscaled, recomputed from the problem's graph at
  the returned point and multipliers, the same way for both;
* solved: residual ≤ 1e-6, whatever the solver says of itself;
* eval.: evaluations of f, g and their derivatives; of IPOPT, those of ∇f.

IPOPT does not relax its bounds (``bound_relax_factor`` 0) and has its own ``tol`` of 1e-8. Each
solve may take two minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from hs_peers import SOLVED, align, ipopt_options, mean_ratio, recomputed
from problems.black_box import PROBLEMS
from problems.published import HS, NLP

from casadi_hybrid import nlpsol

SECONDS = 120.0
LEARN = {"hessian_approximation": "limited-memory"}


@dataclass(frozen=True)
class Answer:
    """What a solver returned, and what the recomputation says of it."""

    status: str
    hessian: str
    iterations: int
    evaluations: int
    f: float
    residual: float
    wall: float

    @property
    def solved(self) -> bool:
        """Whether the recomputed residual is within 1e-6."""
        return self.residual <= SOLVED

    @property
    def cells(self) -> list[str]:
        """Status, iterations, evaluations, f, residual and whether it is solved."""
        return [
            self.status[:24],
            str(self.iterations),
            str(self.evaluations),
            f"{self.f:.6g}",
            f"{self.residual:.0e}",
            "yes" if self.solved else "no",
        ]


CELLS = ("status", "it.", "eval.", "f", "residual", "solved")


def run(solver: Any, data: Mapping[str, Any], x0: Any) -> Answer:
    """Solve and judge."""
    began = time.perf_counter()
    found = solver(x0=x0, **{key: data[key] for key in ("lbx", "ubx", "lbg", "ubg")})
    wall = time.perf_counter() - began
    stats = solver.stats()
    f, residual = recomputed(data, found)
    return Answer(
        str(stats["return_status"]),
        str(stats.get("hessian", "limited-memory")),
        int(stats["iter_count"]),
        int(stats["n_call_nlp_grad_f"]),
        f,
        residual,
        wall,
    )


def ours(nlp: Mapping[str, Any], **options: Any) -> Any:
    """This package's solver."""
    return nlpsol("ours", "hybrid", nlp, {"max_time": SECONDS, **options})


def ipopt(nlp: dict[str, Any]) -> Any:
    """IPOPT with limited memory."""
    return ca.nlpsol("peer", "ipopt", nlp, ipopt_options(tol=1e-8, max_wall_time=SECONDS, **LEARN))


def totals(label: str, answers: Sequence[Answer]) -> str:
    """How many it solved, and in how many iterations."""
    return (
        f"{label}: solved {sum(a.solved for a in answers)} of {len(answers)}, "
        f"{sum(a.iterations for a in answers)} iterations, "
        f"{sum(a.evaluations for a in answers)} evaluations, {sum(a.wall for a in answers):.2f} s"
    )


def compared(mine: Sequence[Answer], theirs: Sequence[Answer]) -> str:
    """Iterations and evaluations where both solve."""
    both = [(a, b) for a, b in zip(mine, theirs, strict=True) if a.solved and b.solved]
    if not both:
        return "no problem is solved by both"
    iterations = mean_ratio([(a.iterations, b.iterations) for a, b in both])
    evaluations = mean_ratio([(a.evaluations, b.evaluations) for a, b in both])
    return (
        f"hybrid / IPOPT where both solve ({len(both)}): iterations {iterations:.3f}, evaluations "
        f"{evaluations:.3f} (geometric means)"
    )


def hock_schittkowski(problems: Sequence[NLP]) -> str:
    """The first table."""
    rows = [["problem", "n", "m", *CELLS, *CELLS, "it. exact"]]
    mine, theirs, exact = [], [], []
    for problem in problems:
        data = problem.build()
        nlp = {key: data[key] for key in ("x", "f", "g")}
        mine.append(run(ours(nlp, **LEARN), data, problem.x0))
        theirs.append(run(ipopt(nlp), data, problem.x0))
        exact.append(run(ours(nlp), data, problem.x0))
        row = [problem.name, str(data["x"].numel()), str(data["g"].numel())]
        rows.append([*row, *mine[-1].cells, *theirs[-1].cells, str(exact[-1].iterations)])
    lines = ["columns of six, from left to right: hybrid, IPOPT, limited memory both", align(rows)]
    lines += ["", totals("hybrid", mine), totals("IPOPT", theirs)]
    lines += [totals("hybrid with exact Hessians", exact), compared(mine, theirs)]
    return "\n".join(lines)


def black_boxes(names: Sequence[str]) -> str:
    """The second table."""
    rows = [["black box", "n", "m", "Hessian", *CELLS, "s", *CELLS, "s"]]
    mine, theirs = [], []
    for name in names:
        problem = PROBLEMS[name]()
        data = {**problem.nlp, **problem.bounds}
        mine.append(run(ours(problem.nlp), data, problem.x0))
        theirs.append(run(ipopt(problem.nlp), data, problem.x0))
        row = [problem.name, str(np.size(problem.x0)), str(data["g"].numel()), mine[-1].hessian]
        for answer in (mine[-1], theirs[-1]):
            row += [*answer.cells, f"{answer.wall:.2f}"]
        rows.append(row)
    lines = ["columns of seven, from left to right: hybrid, IPOPT", align(rows)]
    lines += ["", totals("hybrid", mine), totals("IPOPT", theirs), compared(mine, theirs)]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", type=int, default=None, help="numbers in the book")
    parser.add_argument("--no-hs", action="store_true", help="without the first table")
    parser.add_argument(
        "--black-box", nargs="*", choices=list(PROBLEMS), default=list(PROBLEMS), help="which"
    )
    chosen = parser.parse_args(arguments)
    tables = []
    if not chosen.no_hs:
        problems = [p for p in HS if chosen.only is None or p.number in chosen.only]
        tables.append(hock_schittkowski(problems))
    if chosen.black_box:
        tables.append(black_boxes(chosen.black_box))
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
