"""All collections by this package alone, written to a file, and what a change of the method does.

    python benchmarks/before_after.py run FILE [--sets NAME ...] [--limit S]
    python benchmarks/before_after.py diff BEFORE AFTER

``run`` solves every problem of the sets from its published start, those of ``noise`` (the two
collections of Schittkowski) and ``moved`` (square systems) from four starts moved at random, each
once, in a process of its own that is ended after the time limit, and writes how it ended, f, the
residual, iterations and processor time. What counts as solved: ``peers/judge.py``; ``truth`` are
the small cases that the tests know the answer of, ``relatives`` of traps that one mechanism alone
solves. The package of another checkout is run with ``PYTHONPATH=CHECKOUT``, another kernel of
OpenBLAS, which adds the same numbers in another order, with ``OPENBLAS_CORETYPE=Haswell``.
``diff`` prints a line a set, then each problem whose word, f or number of iterations has changed,
the last by over a fifth and by more than five.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from peers.cases import Case, cases, moved
from peers.judge import GOOD, Judge, judged
from peers.report import mean_ratio, table
from peers.workers import Run, Worker

NOISE, SEEDS = 1.0, 4
MOVED = {"noise": ("hs", "more"), "moved": ("squares", "roots")}
GROUPS = (
    "hs", "more", "systems", "squares", "roots", "hopeless", "truth", "control", *MOVED,
    "relatives",
)  # fmt: skip
SPREAD, FIFTH, FEW = 1e-6, 1.2, 5


def problems(group: str) -> Iterator[Case]:
    """The cases of a set."""
    if group not in MOVED:
        yield from cases(group)
    for published in MOVED.get(group, ()):
        for case in cases(published):
            yield from (moved(case, NOISE, seed) for seed in range(SEEDS))


def solve_all(groups: Sequence[str], limit: float) -> list[dict[str, Any]]:
    """One row a problem."""
    rows: list[dict[str, Any]] = []
    for group in groups:
        judged_name, judge = "", None
        with Worker(Run("hybrid", limit)) as worker:
            for case in problems(group):
                name = case.name.partition("#")[0]
                if judge is None or name != judged_name:  # the starts of a problem are in a row
                    judged_name, judge = name, Judge(case.build())
                found = judged(case, judge, worker.solve(case))
                answer = found.answer
                rows.append({
                    "set": group, "problem": case.name, "kind": found.kind, "f": found.f,
                    "residual": found.residual, "status": answer.status or answer.end,
                    "iterations": answer.iterations or 0, "seconds": answer.seconds,
                })  # fmt: skip
        kinds = Counter(row["kind"] for row in rows if row["set"] == group)
        print(f"{group}: {dict(kinds)}", file=sys.stderr, flush=True)
    return rows


def told(row: dict[str, Any]) -> list[str]:
    """How a problem ended, as cells."""
    return [row["kind"], row["status"][:24], str(row["iterations"]), f"{row['f']:.6g}"]


def difference(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> str:
    """The table of the sets and the list of what has changed."""
    old = {(row["set"], row["problem"]): row for row in before}
    new = {(row["set"], row["problem"]): row for row in after}
    both = [key for key in old if key in new]
    sets = [["set", "problems", "good before", "after", "gained", "lost", "it. (both)", "time"]]
    lines = []
    for group in dict.fromkeys(key[0] for key in both):
        keys = [key for key in both if key[0] == group]
        good = [{key for key in keys if rows[key]["kind"] in GOOD} for rows in (old, new)]
        shared = [(old[key], new[key]) for key in keys if key in good[0] & good[1]]
        its = [(max(b["iterations"], 1), max(a["iterations"], 1)) for a, b in shared]
        seconds = [(b["seconds"], a["seconds"]) for a, b in shared]
        counts = [len(keys), *map(len, (*good, good[1] - good[0], good[0] - good[1]))]
        sets.append([group, *map(str, counts), mean_ratio(its), mean_ratio(seconds)])
    for key in both:
        a, b = old[key], new[key]
        more, fewer = max(a["iterations"], b["iterations"]), min(a["iterations"], b["iterations"])
        moved_f = abs(a["f"] - b["f"]) > SPREAD * max(1.0, abs(a["f"]))
        if a["kind"] != b["kind"] or moved_f or (more > FIFTH * fewer and more > fewer + FEW):
            lines.append([*key, *told(a), *told(b)])
    return "\n".join([table(sets), "", table(lines) if lines else "nothing has changed"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="solve all and write a file")
    run.add_argument("file", type=Path)
    run.add_argument("--sets", nargs="+", choices=GROUPS, default=list(GROUPS))
    run.add_argument("--limit", type=float, default=60.0, help="seconds for one solve")
    diff = commands.add_parser("diff", help="print what differs between two files")
    diff.add_argument("before", type=Path)
    diff.add_argument("after", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.command == "diff":
        print(difference(*(json.loads(f.read_text()) for f in (chosen.before, chosen.after))))
        return
    for library in ("OMP", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    with np.errstate(over="ignore", invalid="ignore"):  # points as far as 1e200 are judged
        rows = solve_all(chosen.sets, chosen.limit)
    chosen.file.write_text(json.dumps(rows, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
