"""This package and IPOPT on optimal-control problems from cold starts, judged in one way.

    python benchmarks/control_peers.py [--families NAME ...] [--sizes small medium large]
        [--solvers NAME ...] [--limit SECONDS] [--repeat K] [--compiled] [--json FILE]

Problems: ``problems/control.py``, none tuned to a solver. Each solver runs in a process of its own
that is ended after the time limit. Settings: ``peers/solvers.py``; this package with its defaults,
IPOPT with expanded graphs, with its own scaling and ``tol`` 1e-8 and without and 1e-9, bounds not
relaxed. What counts as solved: ``peers/judge.py``, the largest unscaled KKT residual, recomputed
from the problem's own functions, is at most 1e-6; a solver's own word decides nothing. With
``--compiled`` all of them have their functions compiled, by the same compiler and flags, which is
no part of the time; the peer is IPOPT with the graph as it is, whose stages compile once. Columns:

* yes: solved; else what it was: false (it says success), wrong (a verdict that is not confirmed),
  verdict (one that is), honest (it says that it failed), crash, time;
* it.: iterations; s: processor time of the call alone by the calling thread, the median of K
  repeats, the solver made before;
* the peer of a row is the variant other than this package's that solves it in the fewest
  iterations, of equal ones the first; where none solves it, the first;
* it./peer, s/peer: this package's over the peer's, where both solve; an iteration count of zero
  counts as one;
* f: "more" or "less" where both solve and their objectives differ by over 1e-6·max(1, |f|):
  this package's is worse or better. Different minima are no failure of either.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from peers.cases import Case, of_control
from peers.judge import Judge
from peers.solvers import SOLVERS
from peers.workers import Worker
from problems.control import FAMILIES, SIZES
from wheel_peers import Outcome, judged, mean_ratio

# With expand, as ours does by itself where it pays: the fair way to evaluate an MX graph.
OURS, PEERS = "hybrid", ("ipopt expand", "ipopt unscaled expand")
NAMES = {"ours": OURS}
CELLS = (("solved", 7), ("it.", 5), ("s", 8))
WIDTHS = (18, 5, 5, *(width for _ in range(2) for _, width in CELLS), 9, 8, 5, 15)
HEAD = ("problem", "n", "m", "ours", "it.", "s", "peer", "it.", "s")
HEADER = (*HEAD, "it./peer", "s/peer", "f", "which peer")
SPREAD = 1e-6


@dataclass(frozen=True)
class Row:
    """One instance: its size and what every solver made of it."""

    name: str
    n: int
    m: int
    outcomes: Mapping[str, Outcome]

    @property
    def peer(self) -> str | None:
        """The peer of this row, see the top of the file."""
        others = [solver for solver in self.outcomes if solver != OURS]
        solving = [solver for solver in others if self.solved(solver)]
        return min(solving, key=self.iterations) if solving else next(iter(others), None)

    def solved(self, solver: str | None) -> bool:
        """Whether it did."""
        return solver in self.outcomes and self.outcomes[solver].kind == "solved"

    def iterations(self, solver: str) -> float:
        """Its iterations, at least one; infinite where it does not tell."""
        count = self.outcomes[solver].answer.iterations
        return np.inf if count is None else max(count, 1)

    def ratios(self, peer: str | None) -> tuple[float, float] | None:
        """Of iterations and of processor time, this package's over the peer's, if both solve."""
        if peer is None or not (self.solved(OURS) and self.solved(peer)):
            return None
        ours, other = self.outcomes[OURS].answer, self.outcomes[peer].answer
        return self.iterations(OURS) / self.iterations(peer), ours.seconds / other.seconds

    def line(self) -> str:
        """The row of the table."""
        peer = self.peer
        cells = [self.name, str(self.n), str(self.m)]
        for solver in (OURS, peer):
            found = self.outcomes.get(solver) if solver is not None else None
            cells += ["–", "–", "–"] if found is None else told(found)
        ratios = self.ratios(peer)
        cells += ["–", "–", ""] if ratios is None else [f"{ratio:.2f}" for ratio in ratios]
        if ratios is not None:
            ours, other = self.outcomes[OURS].f, self.outcomes[peer].f
            same = abs(ours - other) <= SPREAD * max(1.0, abs(other))
            cells.append("" if same else "more" if ours > other else "less")
        return aligned([*cells, peer or "–"])


def told(found: Outcome) -> list[str]:
    """How it ended, iterations, seconds."""
    answer = found.answer
    count = "–" if answer.iterations is None else str(answer.iterations)
    seconds = f"{answer.seconds:.3f}" if answer.end == "returned" else "–"
    return ["yes" if found.kind == "solved" else found.kind, count, seconds]


def aligned(cells: Sequence[str]) -> str:
    """Cells in the columns of the table, the first to the left, the rest to the right."""
    parts = [
        cell.ljust(width) if k == 0 else cell.rjust(width)
        for k, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ]
    return " ".join(parts).rstrip()


def instances(families: Sequence[str], sizes: Sequence[str]) -> list[Case]:
    """The cases of these families and sizes."""
    return [
        of_control(name, N)
        for name in families
        for size in sizes
        for N in FAMILIES[name].sizes(size)
    ]


def compare(
    problems: Sequence[Case],
    solvers: Sequence[str],
    limit: float,
    repeat: int,
    compiled: bool = False,
) -> list[Row]:
    """Solve every problem by every solver, printing a line after each problem."""
    rows = []
    with ExitStack() as stack:
        end = " compiled" if compiled else ""
        workers = {n: stack.enter_context(Worker(f"{n}{end}", limit, repeat)) for n in solvers}
        for case in problems:
            data = case.build()
            judge, outcomes = Judge(data), {}
            for name, worker in workers.items():
                answer = worker.solve(case)
                if answer.times:
                    answer = replace(answer, seconds=float(np.median(answer.times)))
                outcomes[name] = judged(case, judge, answer)
            rows.append(Row(case.name, data["x"].numel(), data["g"].numel(), outcomes))
            print(rows[-1].line(), flush=True)
    return rows


def summary(rows: Sequence[Row], solvers: Sequence[str]) -> str:
    """What stands below the table."""
    lines = [""]
    for solver in solvers:
        found = [row.outcomes[solver] for row in rows]
        count = sum(row.solved(solver) for row in rows)
        output, error = (sum(f.answer.written[k] for f in found) for k in range(2))
        lines.append(
            f"{solver}: {count} of {len(rows)} solved; wrote {output} characters to standard "
            f"output, {error} to standard error"
        )
        first = next((f.answer.error for f in found if f.answer.error), "")
        lines += [f"    {text}" for text in first.splitlines()[:3]]
    others = [solver for solver in solvers if solver != OURS]
    if OURS not in solvers or not others:
        return "\n".join(lines)
    for peer in (None, *others):
        pairs = {row.name: row.ratios(peer or row.peer) for row in rows}
        both = {name: pair for name, pair in pairs.items() if pair is not None}
        if not both:
            continue
        worst = max(both, key=lambda name: both[name][0])
        slowest = max(both, key=lambda name: both[name][1])
        iterations, times = ([(pair[k], 1.0) for pair in both.values()] for k in range(2))
        lines.append(
            f"{OURS} / {peer or 'the peer of each row'}, {len(both)} that both solve: iterations "
            f"{mean_ratio(iterations)}, time {mean_ratio(times)} (geometric means); "
            f"largest: iterations {both[worst][0]:.2f} ({worst}), "
            f"time {both[slowest][1]:.2f} ({slowest})"
        )
    for row in rows:
        by = [solver for solver in others if row.solved(solver)]
        if not row.solved(OURS):
            ours = row.outcomes[OURS]
            lines.append(
                f"not solved by {OURS}: {row.name} ({ours.kind}, "
                f"{ours.answer.status or ours.answer.end}, residual {ours.residual:.0e}); "
                f"solved by {', '.join(by) or 'none'}"
            )
    return "\n".join(lines)


def record(rows: Sequence[Row], path: Path) -> None:
    """Write every outcome, without points and multipliers."""
    entries = []
    for row in rows:
        for solver, found in row.outcomes.items():
            entry = asdict(replace(found, answer=replace(found.answer, x=(), lam_g=(), lam_x=())))
            entries.append({"problem": row.name, "n": row.n, "m": row.m, "solver": solver, **entry})
    path.write_text(json.dumps(entries, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--solvers", nargs="+", choices=[*NAMES, *SOLVERS])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one solve")
    parser.add_argument("--repeat", type=int, default=1, help="solve each this often")
    parser.add_argument("--json", type=Path, default=None, help="file for every outcome")
    parser.add_argument(
        "--compiled", action="store_true", help="with compiled functions; needs cc, and minutes"
    )
    chosen = parser.parse_args(arguments)
    # An expanded graph takes minutes to compile; loops of mapped stages take seconds.
    peers = ("ipopt",) if chosen.compiled else PEERS
    chosen.solvers = chosen.solvers or [OURS, *peers]
    lacking = [
        name for name in chosen.solvers if f"{NAMES.get(name, name)} compiled" not in SOLVERS
    ]
    if chosen.compiled and lacking:
        parser.error(f"--compiled: there is no compiled form of {', '.join(lacking)}")
    for library in ("OMP", "OPENBLAS"):  # one thread each, or processor time compares nothing
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    solvers = list(dict.fromkeys(NAMES.get(name, name) for name in chosen.solvers))
    problems = instances(chosen.families, chosen.sizes)
    print(f"{len(problems)} problems, limit {chosen.limit:g} s, {os.cpu_count()} processors")
    print(aligned(HEADER))
    rows = compare(problems, solvers, chosen.limit, max(1, chosen.repeat), chosen.compiled)
    print(summary(rows, solvers))
    if chosen.json is not None:
        record(rows, chosen.json)


if __name__ == "__main__":
    main()
