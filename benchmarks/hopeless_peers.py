"""Hopeless cases and traps, the truth written beside each: this package's ``nlpsol`` and IPOPT.

    python benchmarks/hopeless_peers.py [--only TEXT ...] [--limit S] [--repeat K] [--json FILE]

Unbounded, infeasible and degenerate problems, infima that are not attained, values that are not
finite, and nonconvex ones that only look hopeless. What an answer is, is judged as in
``wheel_peers.py``: solved (a KKT point within 1e-6, unscaled), verdict (it says infeasible or
unbounded, and that is so; of a solvable problem: at a local minimum of the violation), honest (it
says that it failed), false (it says success, and the point is no KKT point), wrong (infeasible or
unbounded, and that is not so), crash, time. "value" is a false whose point is feasible and has the
known least value up to 1e-6·max(1, |f*|): the multipliers are out of reach, not the point. Which
of these are right is written with every problem; the others are marked with "!".

IPOPT runs twice, with its own scaling and with none, its bounds not relaxed. The ratio of a row is
that of our iterations to the fewest of the IPOPT variants, where both are right.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hs_peers import align
from peers.cases import HOPELESS, cases
from peers.judge import TOLERANCE, Judge
from problems.hopeless import TRAPS, Trap
from wheel_peers import KINDS, Outcome, Table, compare, record

OURS = "hybrid"
PEERS = ("ipopt", "ipopt unscaled")


def word(entry: Trap, found: Outcome, judge: Judge) -> str:
    """The kind, or "value"."""
    if found.kind != "false" or entry.f_star is None:
        return found.kind
    near = abs(found.f - entry.f_star) <= TOLERANCE * max(1.0, abs(entry.f_star))
    return "value" if near and judge.violation(found.answer.x) <= TOLERANCE else "false"


def right(entry: Trap, said: str) -> bool:
    """Whether this word is right for this problem."""
    return said == "value" or said in entry.good


def cells(entry: Trap, found: Outcome, said: str) -> list[str]:
    """Word, status, iterations and f."""
    mark = "" if right(entry, said) else " !"
    answer = found.answer
    count = "–" if answer.iterations is None else str(answer.iterations)
    return [said + mark, (answer.status or answer.end)[:24], count, f"{found.f:.6g}"]


def report(entries: Sequence[Trap], table: Table) -> str:
    """The table, with counts below it."""
    head = [p for name in ("ours", "IPOPT", "unscaled") for p in (name, "status", "it.", "f")]
    rows = [["problem", "n", "truth", "known", *head, "ratio"]]
    words: dict[str, dict[str, str]] = {solver: {} for solver in table}
    ratios: dict[str, float] = {}
    for entry in entries:
        judge = Judge(entry.build())
        for solver, outcomes in table.items():
            words[solver][entry.name] = word(entry, outcomes[entry.name], judge)
        count = {
            solver: max(table[solver][entry.name].answer.iterations or 0, 1)
            for solver in table
            if right(entry, words[solver][entry.name])
        }
        peers = [count[peer] for peer in PEERS if peer in count]
        if OURS in count and peers:
            ratios[entry.name] = count[OURS] / min(peers)
        row = [entry.name, str(len(entry.x0)), entry.truth, entry.known]
        for solver in (OURS, *PEERS):
            row += cells(entry, table[solver][entry.name], words[solver][entry.name])
        rows.append([*row, f"{ratios[entry.name]:.2f}" if entry.name in ratios else "–"])
    return "\n".join([align(rows), "", *totals(entries, words, ratios)])


def totals(
    entries: Sequence[Trap], words: dict[str, dict[str, str]], ratios: dict[str, float]
) -> list[str]:
    """Counts of the words, what is lost and won, and the ratio of the iterations."""
    lines = []
    good = {
        solver: {entry.name for entry in entries if right(entry, said[entry.name])}
        for solver, said in words.items()
    }
    for solver, said in words.items():
        all_words = list(said.values())
        parts = [f"{all_words.count(k)} {k}" for k in (*KINDS, "value") if k in all_words]
        lines.append(f"{solver}: {len(good[solver])} right of {len(said)}; {', '.join(parts)}")
    either = set().union(*(good[peer] for peer in PEERS))
    for text, names in (
        ("IPOPT right in a variant, ours not", either - good[OURS]),
        ("ours right, IPOPT in no variant", good[OURS] - either),
        ("none right", {entry.name for entry in entries} - either - good[OURS]),
    ):
        listed = [f"{e.name} ({words[OURS][e.name]})" for e in entries if e.name in names]
        lines.append(f"{text}: {len(names)}: {', '.join(listed) or '–'}")
    if ratios:
        worst = max(ratios, key=ratios.__getitem__)
        mean = np.exp(np.mean(np.log(list(ratios.values()))))
        fewer = sum(ratio < 1 for ratio in ratios.values())
        more = sum(ratio > 1 for ratio in ratios.values())
        lines.append(
            f"iterations, ours / the better variant of IPOPT, over the {len(ratios)} where both "
            f"are right: geometric mean {mean:.3f}, fewer in {fewer}, more in {more}, "
            f"largest {ratios[worst]:.2f} ({worst})"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=None, help="names that contain one of these")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one solve")
    parser.add_argument("--repeat", type=int, default=1, help="solve each this often")
    parser.add_argument("--json", type=Path, default=None, help="file for every outcome")
    chosen = parser.parse_args(arguments)
    for library in ("OMP", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    wanted = {
        entry.name
        for entry in TRAPS
        if chosen.only is None or any(text in entry.name for text in chosen.only)
    }
    if not wanted:
        parser.error(f"no problem has one of {', '.join(chosen.only)} in its name")
    problems = [case for case in cases(HOPELESS) if case.name in wanted]
    with np.errstate(over="ignore", invalid="ignore"):  # points as far as 1e200 are judged
        table = compare(problems, (OURS, *PEERS), chosen.limit, max(1, chosen.repeat))
    print(report([entry for entry in TRAPS if entry.name in wanted], table))
    if chosen.json is not None:
        record(table, problems, chosen.json)


if __name__ == "__main__":
    main()
