"""This package and every NLP solver of the CasADi wheel on the same problems, judged in one way.

    python benchmarks/wheel_peers.py [--set hs|more|systems|squares|all] [--noise S --seeds K]
        [--solvers NAME ...] [--only NAME ...] [--limit SECONDS] [--json FILE]

Each solver runs in a process of its own that is ended after the time limit. Settings:
``peers/solvers.py``. What counts as solved: ``peers/judge.py``; a solver's own word decides
nothing. Columns:

* solved: a KKT point within 1e-6, unscaled;
* verdict: not solved, and the solver says infeasible or unbounded, and that is confirmed (of a
  problem that has a solution: a local minimum of the violation);
* false: the solver says success and neither holds; wrong: it says infeasible or unbounded and that
  is not confirmed (these and the following are the failures);
* honest: it says that it failed; crash: the process died or the call raised; time: over the limit;
* best f: solved, with the least f of all solvers up to 1e-6·max(1, |f|);
* it.: median of the iterations where solved; those that alpaqa and blockSQP do not tell are "–";
* time/ipopt, it./ipopt: geometric means over the problems that both solve; processor time of the
  calling thread alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from hs_peers import align
from peers.cases import SETS, Case, cases, moved
from peers.judge import TOLERANCE, Judge
from peers.solvers import SOLVERS
from peers.workers import Answer, Worker

GOOD = ("solved", "verdict")
KINDS = (*GOOD, "false", "wrong", "honest", "crash", "time")
OURS, REFERENCE = "hybrid", "ipopt"


@dataclass(frozen=True)
class Outcome:
    """A judged answer; ``kind`` is one of ``KINDS``."""

    kind: str
    f: float
    residual: float
    answer: Answer


def judged(case: Case, judge: Judge, answer: Answer) -> Outcome:
    """Put an answer under one of the kinds."""
    if answer.end != "returned":
        return Outcome("time" if answer.end == "timeout" else "crash", np.nan, np.inf, answer)
    x = answer.x
    residual, f = judge.residual(x, answer.lam_g, answer.lam_x), judge.objective(x)
    if residual <= TOLERANCE:
        return Outcome("solved", f, residual, answer)
    confirmed = {
        "infeasible": case.truth == "infeasible" or judge.infeasible(x),
        "unbounded": case.truth == "unbounded" or judge.unbounded(x),
    }
    if answer.claim in confirmed:
        return Outcome("verdict" if confirmed[answer.claim] else "wrong", f, residual, answer)
    return Outcome("false" if answer.claim == "success" else "honest", f, residual, answer)


Table = dict[str, dict[str, Outcome]]


def compare(problems: Sequence[Case], solvers: Sequence[str], limit: float, repeat: int) -> Table:
    """Run every solver on every case; outcomes by solver and by name of the case."""
    judges = {case.name.partition("#")[0]: Judge(case.build()) for case in problems}
    table: Table = {}
    for solver in solvers:
        with Worker(solver, limit, repeat) as worker:
            table[solver] = {
                case.name: judged(case, judges[case.name.partition("#")[0]], worker.solve(case))
                for case in problems
            }
        print(f"{solver}: {tally(table[solver])}", file=sys.stderr, flush=True)
    return table


def tally(outcomes: Mapping[str, Outcome]) -> str:
    """The kinds that occur, with their counts."""
    counts = Counter(found.kind for found in outcomes.values())
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])


def mean_ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """Geometric mean of the ratios."""
    if not pairs:
        return "–"
    return f"{np.exp(np.mean([np.log(a / b) for a, b in pairs])):.2f}"


def summary(table: Table) -> str:
    """One line per solver."""
    head = ["solver", *KINDS, "best f", "it.", "it./ipopt", "time/ipopt"]
    least: dict[str, float] = {}
    for outcomes in table.values():
        for name, found in outcomes.items():
            if found.kind == "solved":
                least[name] = min(found.f, least.get(name, np.inf))
    rows = [head]
    for solver, outcomes in table.items():
        solved = {name: found for name, found in outcomes.items() if found.kind == "solved"}
        best = sum(f.f <= least[n] + 1e-6 * max(1.0, abs(least[n])) for n, f in solved.items())
        counts = [f.answer.iterations for f in solved.values() if f.answer.iterations is not None]
        row = [solver, *(str(sum(f.kind == k for f in outcomes.values())) for k in KINDS)]
        row += [str(best), f"{np.median(counts):.0f}" if counts else "–"]
        reference = table.get(REFERENCE, {})
        both = [(f.answer, reference[n].answer) for n, f in solved.items()
                if n in reference and reference[n].kind == "solved"]  # fmt: skip
        iterations = [(max(a.iterations, 1), max(b.iterations, 1)) for a, b in both
                      if a.iterations is not None and b.iterations is not None]  # fmt: skip
        rows.append(
            [*row, mean_ratio(iterations), mean_ratio([(a.seconds, b.seconds) for a, b in both])]
        )
    return align(rows)


def differences(table: Table) -> str:
    """Which problems are good for one of the peers and not for this package, and the reverse."""
    if OURS not in table or len(table) == 1:
        return ""
    lines = ["", f"not solved by {OURS}, and by whom it is:"]
    peers = [solver for solver in table if solver != OURS]
    names = list(table[OURS])
    for name in names:
        ours = table[OURS][name]
        by = [solver for solver in peers if table[solver][name].kind in GOOD]
        if ours.kind not in GOOD:
            who = ", ".join(by) or "none"
            text = f"{ours.kind}, {ours.answer.status or ours.answer.end}"
            lines.append(f"  {name} ({text}, residual {ours.residual:.0e}): {who}")
    for solver in peers:
        lost = [
            n for n in names if table[OURS][n].kind in GOOD and table[solver][n].kind not in GOOD
        ]
        lines.append(f"{len(lost)} that {OURS} solves and {solver} does not")
    return "\n".join(lines)


def record(table: Table, problems: Sequence[Case], path: Path) -> None:
    """Write every outcome."""
    groups = {case.name: case.group for case in problems}
    rows = [
        {"solver": solver, "set": groups[name], "problem": name, **asdict(found)}
        for solver, outcomes in table.items()
        for name, found in outcomes.items()
    ]
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=(*SETS, "all"), default="hs", help="which problems")
    parser.add_argument("--noise", type=float, default=0.0, help="relative noise of the starts")
    parser.add_argument("--seeds", type=int, default=4, help="noisy starts of each problem")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--only", nargs="+", default=None, help="names of problems")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for one solve")
    parser.add_argument("--repeat", type=int, default=1, help="solve each this often")
    parser.add_argument("--json", type=Path, default=None, help="file for every outcome")
    chosen = parser.parse_args(arguments)
    for library in ("OMP", "OPENBLAS"):  # one thread each, or processor time compares nothing
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    groups = SETS if chosen.set == "all" else (chosen.set,)
    problems = [case for group in groups for case in cases(group)]
    if chosen.only is not None:
        unknown = set(chosen.only) - {case.name for case in problems}
        if unknown:
            some = ", ".join(case.name for case in problems[:3])
            parser.error(f"no problem {', '.join(sorted(unknown))}; names are like {some}")
        problems = [case for case in problems if case.name in chosen.only]
    if chosen.noise > 0:
        problems = [moved(case, chosen.noise, k) for case in problems for k in range(chosen.seeds)]
    table = compare(problems, chosen.solvers, chosen.limit, max(1, chosen.repeat))
    print(f"{len(problems)} problems, limit {chosen.limit:g} s, {os.cpu_count()} processors")
    print(summary(table))
    print(differences(table))
    if chosen.json is not None:
        record(table, problems, chosen.json)


if __name__ == "__main__":
    main()
