"""Square systems g(x) = 0, some within bounds: this package's ``nlpsol`` and IPOPT with f = 0.

    python benchmarks/squares_peers.py [--only TEXT ...] [--limit S] [--repeat K] [--json FILE]

A root is a point whose largest violation of an equation or a bound, recomputed from the problem's
own functions and unscaled, is at most 1e-6, whatever the solver says. IPOPT runs twice, with its
own scaling and with none, its bounds not relaxed (``peers/solvers.py``). Times are processor time
of the call alone, the least of K repeats. The ratio of a row is that of the iterations to the
fewest of the IPOPT variants that find a root.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from hs_peers import align
from peers.cases import ROOTS, Case, cases
from peers.judge import TOLERANCE, Judge
from peers.workers import Answer, Worker

OURS = "hybrid"
PEERS = ("ipopt", "ipopt unscaled")


@dataclass(frozen=True)
class Found:
    """An answer and its largest violation."""

    violation: float
    answer: Answer

    @property
    def root(self) -> bool:
        """Whether the point is a root."""
        return self.violation <= TOLERANCE

    @property
    def iterations(self) -> int:
        """Iterations, at least one."""
        return max(self.answer.iterations or 0, 1)


Row = dict[str, Found]


def compare(problems: Sequence[Case], limit: float, repeat: int) -> dict[str, Row]:
    """Run every solver on every case; findings by name of the case and solver."""
    table: dict[str, Row] = {case.name: {} for case in problems}
    judges = {case.name: Judge(case.build()) for case in problems}
    for solver in (OURS, *PEERS):
        with Worker(solver, limit, repeat) as worker:
            for case in problems:
                answer = worker.solve(case)
                returned = answer.end == "returned"
                violation = judges[case.name].violation(answer.x) if returned else np.inf
                table[case.name][solver] = Found(violation, answer)
        roots = sum(row[solver].root for row in table.values())
        print(f"{solver}: {roots} roots", file=sys.stderr, flush=True)
    return table


def best_peer(row: Row) -> Found | None:
    """The variant of IPOPT that finds a root in the fewest iterations."""
    found = [row[peer] for peer in PEERS if row[peer].root]
    return min(found, key=lambda one: one.iterations) if found else None


def cells(found: Found) -> list[str]:
    """Root or the status, iterations, milliseconds."""
    answer = found.answer
    word = "yes" if found.root else (answer.status or answer.end)[:26]
    count = "–" if answer.iterations is None else str(answer.iterations)
    return [word, count, f"{1e3 * answer.seconds:.1f}" if answer.end == "returned" else "–"]


def report(table: dict[str, Row], sizes: dict[str, int]) -> str:
    """The table, with counts below it."""
    head = [part for name in ("ours", "IPOPT", "unscaled") for part in (name, "it.", "ms")]
    rows, ratios = [["system", "n", *head, "ratio"]], {}
    for name, row in table.items():
        peer = best_peer(row)
        if peer is not None and row[OURS].root:
            ratios[name] = row[OURS].iterations / peer.iterations
        shown = [cell for solver in (OURS, *PEERS) for cell in cells(row[solver])]
        ratio = f"{ratios[name]:.2f}" if name in ratios else "–"
        rows.append([name, str(sizes[name]), *shown, ratio])
    lines = [align(rows), ""]
    for solver in (OURS, *PEERS):
        found = [row[solver] for row in table.values()]
        said = sum(one.answer.claim == "success" and not one.root for one in found)
        lines.append(
            f"{solver}: {sum(one.root for one in found)} roots of {len(found)}, "
            f"{said} times success without a root"
        )
    if ratios:
        mean = np.exp(np.mean(np.log(list(ratios.values()))))
        worst = max(ratios, key=ratios.__getitem__)
        fewer = sum(ratio < 1 for ratio in ratios.values())
        more = sum(ratio > 1 for ratio in ratios.values())
        lines.append(
            f"iterations, ours / the better variant of IPOPT, over the {len(ratios)} that both "
            f"solve: geometric mean {mean:.3f}, fewer in {fewer}, more in {more}, "
            f"largest {ratios[worst]:.2f} ({worst})"
        )
    lost = [n for n, row in table.items() if not row[OURS].root and best_peer(row) is not None]
    won = [n for n, row in table.items() if row[OURS].root and best_peer(row) is None]
    lines.append(f"IPOPT finds a root and ours does not: {', '.join(lost) or 'none'}")
    lines.append(f"ours finds a root and IPOPT does not: {', '.join(won) or 'none'}")
    return "\n".join(lines)


def record(table: dict[str, Row], path: Path) -> None:
    """Write every finding."""
    rows = [
        {"problem": name, "solver": solver, "root": found.root, **asdict(found)}
        for name, row in table.items()
        for solver, found in row.items()
    ]
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=None, help="names that contain one of these")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one solve")
    parser.add_argument("--repeat", type=int, default=1, help="solve each this often")
    parser.add_argument("--json", type=Path, default=None, help="file for every finding")
    chosen = parser.parse_args(arguments)
    for library in ("OMP", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    problems = [
        case
        for case in cases(ROOTS)
        if chosen.only is None or any(text in case.name for text in chosen.only)
    ]
    if not problems:
        parser.error(f"no system has one of {', '.join(chosen.only)} in its name")
    table = compare(problems, chosen.limit, max(1, chosen.repeat))
    print(report(table, {case.name: len(case.x0) for case in problems}))
    if chosen.json is not None:
        record(table, chosen.json)


if __name__ == "__main__":
    main()
