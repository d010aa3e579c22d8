"""What IPOPT, SciPy and this package reach on every overdetermined system of the collection.

    python benchmarks/systems_peers.py [--only TEXT] [--starts] [--peers NAME ...]

Every number is recomputed from the problem's own functions at the returned point:
‖h‖_∞, and the relative gradient ‖J_hᵀh‖ / (‖J_h‖_F ‖h‖), which vanishes where no first-order step
reduces ‖h‖₂. The verdict of a row rests on these alone:

* root: ‖h‖_∞ ≤ 1e-8;
* least: the published least ‖h‖₂² to its printed digits, or, where none is published, the least
  that any of the peers reached;
* local: stationary for ‖h‖₂² (relative gradient ≤ 1e-6), but neither of these;
* no: none of these; refused: the solver returned no point.

IPOPT appears three times: on the system as it stands, which it refuses for m > n; on the elastic
form min ρ Σ(s⁺ + s⁻) subject to h = s⁺ − s⁻, s⁺, s⁻ ≥ 0; and on min ½‖r‖² subject to h = r. The
elastic form minimizes ‖h‖₁, which shares the roots with ‖h‖₂ but not the minima: on an
inconsistent system "no" in its column is no failure of IPOPT. With f = 0 the weight ρ only scales
the objective, so it is never raised.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from problems.published import SYSTEMS, System
from scipy.optimize import least_squares

from casadi_hybrid import Problem, Solver

Vector = NDArray[np.float64]
ROOT, STATIONARY, RHO = 1e-8, 1e-6, 10.0
IPOPT = {
    "print_time": False,
    "error_on_fail": False,
    "show_eval_warnings": False,
    "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-10, "max_iter": 3000},
}


@dataclass(frozen=True)
class Answer:
    """What a solver returned: the point (None when it refused), its own status, its iterations."""

    x: Vector | None
    status: str
    iterations: int | None


@dataclass(frozen=True)
class Score:
    """‖h‖_∞, ‖h‖₂² and the relative gradient at a point, from the problem's own functions."""

    largest: float
    norm2: float
    gradient: float


Peer = Callable[[Problem, Sequence[float]], Answer]


def score(problem: Problem, x: Vector) -> Score:
    """Evaluate a point. Values that are not finite give infinite scores."""
    with np.errstate(all="ignore"):
        _, _, h, jacobian = problem.functions.first(x, [])
        h, B = np.asarray(h.full()).ravel(), np.asarray(jacobian.full())
        norm = float(np.linalg.norm(h))
        scale = float(np.linalg.norm(B)) * norm
        gradient = float(np.linalg.norm(B.T @ h)) / scale if scale else 0.0
    if not np.isfinite([norm, gradient]).all():
        return Score(np.inf, np.inf, np.inf)
    return Score(float(np.abs(h).max()), norm**2, gradient)


def ipopt_plain(problem: Problem, x0: Sequence[float]) -> Answer:
    """IPOPT on min 0 subject to h(x) = 0, as it stands."""
    nlp = {"x": problem.x, "f": problem.f, "g": problem.h}
    return _ipopt(nlp, problem.n, x0=x0)


def ipopt_elastic(problem: Problem, x0: Sequence[float]) -> Answer:
    """IPOPT on the L1-elastic form, from the slacks that make the start feasible."""
    plus, minus = (type(problem.x).sym(name, problem.m) for name in ("plus", "minus"))
    nlp = {
        "x": ca.vertcat(problem.x, plus, minus),
        "f": problem.f + RHO * (ca.sum1(plus) + ca.sum1(minus)),
        "g": problem.h - plus + minus,
    }
    h = problem.functions.residual(x0, [])
    start = ca.vertcat(ca.DM(x0), ca.fmax(h, 0), ca.fmax(-h, 0))
    lower = ca.vertcat(-ca.inf * ca.DM.ones(problem.n), ca.DM.zeros(2 * problem.m))
    return _ipopt(nlp, problem.n, x0=start, lbx=lower)


def ipopt_squares(problem: Problem, x0: Sequence[float]) -> Answer:
    """IPOPT on min ½‖r‖² subject to h(x) = r, from a feasible start."""
    r = type(problem.x).sym("r", problem.m)
    nlp = {"x": ca.vertcat(problem.x, r), "f": 0.5 * ca.sumsqr(r), "g": problem.h - r}
    start = ca.vertcat(ca.DM(x0), problem.functions.residual(x0, []))
    return _ipopt(nlp, problem.n, x0=start)


def _ipopt(nlp: dict[str, Any], n: int, **start: Any) -> Answer:
    # CasADi warns of every overconstrained problem; the refusal itself is in the status.
    with redirect_stderr(io.StringIO()):
        solver = ca.nlpsol("peer", "ipopt", nlp, IPOPT)
        found = solver(lbg=0, ubg=0, **start)
    stats = solver.stats()
    status = str(stats["return_status"])
    if status == "Not_Enough_Degrees_Of_Freedom":
        return Answer(None, status, None)
    return Answer(found["x"].full().ravel()[:n], status, int(stats["iter_count"]))


def scipy_least_squares(problem: Problem, x0: Sequence[float]) -> Answer:
    """MINPACK's Levenberg–Marquardt through SciPy; its trust region where that leaves the domain.

    Tolerances are at rounding. MINPACK does not survive values that are not finite; the
    trust-region method rejects such steps.
    """
    residual, first = problem.functions.residual, problem.functions.first

    def h(x: Vector) -> Vector:
        return np.asarray(residual(x, []).full()).ravel()

    def jacobian(x: Vector) -> Vector:
        return np.asarray(first(x, [])[3].full())

    start = np.asarray(x0, dtype=np.float64)
    tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "x_scale": "jac"}
    for method, limit in (("lm", 4000), ("trf", 1000)):
        try:
            with np.errstate(all="ignore"):
                found = least_squares(h, start, jacobian, method=method, max_nfev=limit, **tight)
        except (ValueError, np.linalg.LinAlgError) as error:
            answer = Answer(None, f"{method}: {error}", None)
            continue
        answer = Answer(found.x, f"{method}: {found.message}", int(found.nfev))
        if np.isfinite(found.x).all() and np.isfinite(found.cost):
            return answer
    return answer


def package_method(name: str) -> Peer:
    """A method of this package, as a user calls it."""

    def solve(problem: Problem, x0: Sequence[float]) -> Answer:
        result = Solver(problem, name).solve(x0)
        return Answer(result.x, result.stop.name, result.iterations)

    return solve


PEERS: dict[str, Peer] = {
    "IPOPT": ipopt_plain,
    "IPOPT L1-elastic": ipopt_elastic,
    "IPOPT squares": ipopt_squares,
    "SciPy": scipy_least_squares,
    "auto": package_method("auto"),
}


def verdict(system: System, reached: Score | None, best: float) -> str:
    """Name what a point is; ``best`` is the least ‖h‖₂² of all peers at this start."""
    if reached is None:
        return "refused"
    if reached.largest <= ROOT:
        return "root"
    known, slack = system.known_norm2, max(10.0 ** (1 - system.digits), 1e-6)
    least = best if known is None else known
    if not system.consistent and reached.norm2 <= least * (1 + slack):
        return "least"
    return "local" if reached.gradient <= STATIONARY else "no"


def compare(
    system: System, x0: Sequence[float], peers: Iterable[str]
) -> dict[str, tuple[Answer, Score | None, str]]:
    """Run the named peers from one start and judge their points."""
    problem = system.build()
    answers = {name: PEERS[name](problem, x0) for name in peers}
    scores = {
        name: None if answer.x is None else score(problem, answer.x)
        for name, answer in answers.items()
    }
    best = min((found.norm2 for found in scores.values() if found is not None), default=np.inf)
    return {
        name: (answers[name], scores[name], verdict(system, scores[name], best)) for name in answers
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


def report(systems: Sequence[System], peers: Sequence[str], every_start: bool) -> str:
    """Return the table, with a count of the verdicts below it."""
    rows = [["system", "n", "m", "kind", "least ‖h‖²"]]
    rows[0] += [part for _ in peers for part in ("‖h‖∞", "gradient", "it.", "verdict")]
    counts: dict[str, dict[str, dict[str, int]]] = {name: {} for name in peers}
    for system in systems:
        for k, start in enumerate(system.starts if every_start else system.starts[:1]):
            kind = "consistent" if system.consistent else "inconsistent"
            known = "" if system.known_norm2 is None else f"{system.known_norm2:.5g}"
            row = [f"{system.name} [{k}]" if every_start else system.name]
            row += [str(system.n), str(system.m), kind[:4], known]
            for name, (answer, found, word) in compare(system, start, peers).items():
                tally = counts[name].setdefault(kind, {})
                tally[word] = tally.get(word, 0) + 1
                numbers = ["–", "–"]
                if found is not None:
                    numbers = [f"{found.largest:.1e}", f"{found.gradient:.1e}"]
                row += [*numbers, str(answer.iterations or "–"), word]
            rows.append(row)
    lines = [f"columns of four, from left to right: {', '.join(peers)}", align(rows), ""]
    for name in peers:
        for kind, tally in counts[name].items():
            words = ", ".join(f"{count} {word}" for word, count in sorted(tally.items()))
            lines.append(f"{name}, {kind}: {words}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="systems whose name contains this text")
    parser.add_argument("--starts", action="store_true", help="every published start")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    chosen = parser.parse_args(arguments)
    systems = [system for system in SYSTEMS if chosen.only in system.name]
    print(report(systems, chosen.peers, chosen.starts))


if __name__ == "__main__":
    main()
