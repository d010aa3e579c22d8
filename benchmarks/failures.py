"""Failures of every rule, and whether the status each ended with is right.

    python benchmarks/failures.py [--guarded 20] [--others 40] [--per-kind 3] [--seeds 40]

Runs the default method where it is under stress (far starts,
condition numbers to 1e6, Jacobians that lose rank, systems from 100 times their published start,
problems without a solution) and the rules without safeguards on the paper's class, keeps what did
not succeed, at most ``--per-kind`` of each rule and status, and prints one table. Its last column
is the verdict of ``reexamine.py``, where it stands what confirms what.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any

import casadi as ca
import numpy as np
from problems.published import SYSTEMS
from problems.rank_deficient import KINDS, admits, make_rank_deficient
from reexamine import confirmed, facts

from casadi_hybrid import Problem, Progress, Result, Solver
from casadi_hybrid.paper.experiment import make_instance

GUARDED = ("auto",)
OTHERS = ("closed-form", "whitened", "matrix-memory", "matrix-lookahead")
SHAPES = ((3, 5), (5, 3), (8, 5), (4, 4), (3, 3))
Run = tuple[str, Problem, Result, Progress | None]


def run(rule: str, problem: Problem, x0: Any, lam: Any, most: int) -> Run:
    """Solve, and keep the last iterate, which is not always the returned one."""
    last: list[Progress | None] = [None]

    def keep(progress: Progress) -> None:
        last[0] = progress

    with np.errstate(all="ignore"):
        result = Solver(problem, rule, max_iter=most).solve(x0, lam_g0=lam, callback=keep)
    return rule, problem, result, last[0]


def without_solution() -> Iterator[tuple[Problem, list[float]]]:
    """Small problems that are unbounded, inconsistent or degenerate, or leave their domain."""
    x = ca.SX.sym("x", 2)
    circle = ca.sumsqr(x) - 2
    for name, f, h, x0 in (
        ("linear, unbounded", x[0], x[1], [1.0, 1.0]),
        ("concave, unbounded", x[1] - x[0] ** 2, x[1] - 1, [0.0, 1.0]),
        ("exp, unbounded", -ca.exp(x[0]), x[1] - x[0], [0.0, 1.0]),
        ("unbounded on a parabola", -x[1], x[1] - x[0] ** 2, [1.0, 0.0]),
        ("two parallel lines", ca.sumsqr(x), ca.vertcat(x[0] + x[1], x[0] + x[1] - 1), [3.0, 1.0]),
        ("two disjoint circles", x[0], ca.vertcat(circle, circle - 20 * x[0] + 100), [1.0, 2.0]),
        ("no real root", x[0], ca.sumsqr(x) + 1, [1.0, 0.5]),
        ("root behind a hill", x[1] ** 2, x[0] ** 3 - 3 * x[0] + 30, [2.0, 1.0]),
        ("point as a circle", x[0], ca.sumsqr(x), [1.0, 0.5]),
        ("cusp", x[0], x[1] ** 2 - x[0] ** 3, [1.0, 0.5]),
        ("kink", ca.fabs(x[0]), x[1] - 1, [3.0, 0.0]),
        ("outside the domain", ca.log(x[0]), x[1], [-1.0, 0.0]),
        ("a constant row", ca.sumsqr(x), ca.vertcat(x[0] - 1, 0 * x[0] + 1), [5.0, 1.0]),
    ):
        yield Problem(x=x, f=f, h=h, name=name), x0


def hopeless() -> Iterator[Run]:
    """Runs of the guarded methods on problems without a solution, and from hopeless starts."""
    for rule in GUARDED:
        for problem, x0 in without_solution():
            yield run(rule, problem, x0, 0.0, 1000)
        for entry in SYSTEMS[::4]:
            yield run(rule, entry.build(), entry.starts[-1], 0.0, 2000)


def stressed(seeds: range) -> Iterator[Run]:
    """Runs of the guarded methods on problems that have a solution."""
    for seed, (n, m), kind in product(seeds, SHAPES, KINDS):
        if admits(kind, n, m, min(n, m) - 1):
            i = make_rank_deficient(1e3, seed, n=n, m=m, kind=kind, radius=5.0)
            for rule in GUARDED:
                yield run(rule, i.problem, i.x0, i.multipliers0, 300)
    for seed, (n, m), condition, radius in product(seeds, SHAPES, (10.0, 1e4, 1e6), (3.0, 10.0)):
        i = make_instance(condition, seed, n=n, m=m, radius=radius)
        for rule in GUARDED:
            yield run(rule, i.problem, i.x0, i.multipliers0, 300)


def unguarded(seeds: range) -> Iterator[Run]:
    """Runs of the rules without safeguards, from far enough to fail in every way they can."""
    for seed, (n, m), condition in product(seeds, SHAPES[:3], (3.0, 13.0, 1e3)):
        for radius, rule in product((0.5, 5.0), OTHERS):
            i = make_instance(condition, seed, n=n, m=m, radius=radius)
            yield run(rule, i.problem, i.x0, i.multipliers0, 300)


def failures(runs: Iterator[Run], per_kind: int, most: int) -> Iterator[Run]:
    """Keep what failed, a few of each rule and status, until there are enough."""
    kinds: Counter[tuple[str, str, str]] = Counter()
    for item in runs:
        rule, _, result, _ = item
        kind = (rule, result.stop.name, result.point.name)
        if result.success or kinds[kind] >= per_kind:
            continue
        kinds[kind] += 1
        yield item
        if kinds.total() >= most:
            return


def row(item: Run) -> tuple[list[str], bool]:
    """The cells of one failure and whether its status is right."""
    rule, problem, result, last = item
    found = facts(problem, result)
    right = confirmed(problem, result, last, found)
    numbers = (found.largest, found.slope, found.fitted)
    return [
        rule,
        problem.name,
        result.stop.name,
        result.point.name,
        *(f"{number:.1e}" for number in numbers),
        "stays" if found.stays else f"{np.sqrt(found.squares):.1e}",
        found.ipopt,
        "yes" if right else "NO",
    ], right


def align(rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        for cells in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0 when every status is confirmed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--guarded", type=int, default=20, help="failures where there is a solution"
    )
    parser.add_argument("--others", type=int, default=40, help="failures of the other rules")
    parser.add_argument("--per-kind", type=int, default=3, help="of each rule and status")
    parser.add_argument("--seeds", type=int, default=40, help="instances of each kind of problem")
    chosen = parser.parse_args(arguments)
    seeds = range(5000, 5000 + chosen.seeds)
    head = ["rule", "problem", "stopped", "point", "‖h‖∞", "slope of ‖h‖", "‖∇L‖∞ fitted"]
    rows, right = [[*head, "least squares", "IPOPT from there", "confirmed"]], 0
    found = chain(
        failures(hopeless(), 1000, 1000),
        failures(stressed(seeds), chosen.guarded, chosen.guarded),
        failures(unguarded(seeds), chosen.per_kind, chosen.others),
    )
    for item in found:
        cells, good = row(item)
        rows.append(cells)
        right += good
    print(align(rows))
    print(f"\nconfirmed {right} of {len(rows) - 1}")
    return 0 if right == len(rows) - 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
