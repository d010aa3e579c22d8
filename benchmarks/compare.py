"""This package and CasADi's other NLP solvers on collections of problems, judged in one way.

    python benchmarks/compare.py --set hs [--solvers NAME ...] [--only TEXT ...] [--list]
    python benchmarks/compare.py --set cute --folder FOLDER [--largest KB] [--profile FILE.pdf]

Sets: ``peers/cases.py``. Two are read from a folder that holds their files: ``cute``, the ``.nl``
files in the folder ``cute`` of github.com/Pyomo/pyomo-model-libraries, and ``pglib``, the grids of
github.com/power-grid-lib/pglib-opf. Each solver runs in a process of its own that is ended after
the time limit; options: ``peers/solvers.py``. Kinds of an answer: ``peers/judge.py``; a solver's
own word decides nothing. Columns:

* right: answers of a kind that is right for the problem, and how many of each kind;
* least f: solved, with the least f of all solvers up to 1e-6·max(1, |f|);
* f*: solved, with the published least value or less;
* it., s: iterations and seconds of all calls that returned, the least of the repeats;
* it./X, first/X, least/X: geometric means of iterations, of the seconds of the first call and of
  the least of its repeats, as multiples of the solver X's, over problems that both do right.

Seconds are processor time of the calling thread unless ``--clock`` says otherwise. Below the table
stand wins and losses beside each peer, and beside the best variant of IPOPT, problem by problem the
one with the fewest iterations. A verdict where the other solves is a loss; "other minima" are those
whose f differs by over 1e-6·max(1, |f|).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from peers.cases import SETS, SIZES, Case, case_named, cases, moved, of_sizes
from peers.judge import KINDS, Judge, Outcome, judged
from peers.report import exponent, geometric_mean, profile, spread, table
from peers.solvers import OURS, PEERS
from peers.workers import CLOCKS, Answer, Run, Worker
from problems.large import LARGE

SPREAD = 1e-6
DEFAULTS = {"control": (OURS, "ipopt expand", "ipopt unscaled expand"), "large": (OURS, "ipopt")}
Outcomes = dict[str, Outcome]
Table = dict[str, Outcomes]
"""Outcomes by solver, then by name of the case."""
Measure = Callable[[Answer], float]
MEASURES: dict[str, Measure] = {
    "it.": lambda answer: float(max(answer.iterations or 0, 1)),
    "first": lambda answer: answer.times[0],
    "least": lambda answer: answer.seconds,
}


class Comparison:
    """Problems, their judges, and the outcomes of the solvers that have run."""

    def __init__(self, problems: Sequence[Case], keep: int = 1000) -> None:
        self._judge = lru_cache(keep)(lambda name: Judge(self._built[name]()))
        self._built = {case.name.partition("#")[0]: case.build for case in problems}
        self.cases: dict[str, Case] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        self.unread: dict[str, str] = {}
        self.table: Table = {}
        self.measures = list(MEASURES)
        for case in problems:
            try:
                data = case.build()
            except Exception as error:  # noqa: BLE001 - CasADi raises what it likes
                self.unread[case.name] = str(error).strip().splitlines()[-1][:100]
            else:
                self.cases[case.name] = case
                self.sizes[case.name] = data["x"].numel(), data["g"].numel()

    def run(self, how: Run) -> None:
        """Solve every problem by one solver."""
        outcomes: Outcomes = {}
        self.measures = list(MEASURES)[: 2 if how.repeat == 1 else 3]
        with Worker(how) as worker:
            for name, case in self.cases.items():
                answer = worker.solve(case)
                outcomes[name] = judged(case, self._judge(name.partition("#")[0]), answer)
        self.table[how.solver] = outcomes
        counts = Counter(outcome.kind for outcome in outcomes.values())
        print(f"{how.solver}: {dict(counts)}", file=sys.stderr, flush=True)

    def peers(self) -> list[str]:
        """The solvers that are no setting of this package."""
        return [name for name in self.table if PEERS[name].peer != OURS]

    def right(self, solver: str) -> Outcomes:
        """The outcomes of a solver that are right."""
        found = self.table.get(solver, {})
        return {name: one for name, one in found.items() if one.kind in self.cases[name].good}

    def optimal(self, name: str, outcome: Outcome) -> bool:
        """Whether a problem is solved with its published least value or less."""
        case = self.cases[name]
        if case.f_star is None or outcome.kind != "solved":
            return False
        return outcome.f <= case.f_star + case.digits * max(1.0, abs(case.f_star))

    def summary(self, markdown: bool = False) -> str:
        """The table of the solvers."""
        reference = (self.peers() or list(self.table))[0]
        kinds = [
            kind
            for kind in KINDS
            if any(one.kind == kind for own in self.table.values() for one in own.values())
        ]
        least = self._least()
        rows = [["solver", "right", *kinds, "least f", "f*", "it.", "s"]]
        rows[0] += [f"{measure}/{reference}" for measure in self.measures]
        for solver, outcomes in self.table.items():
            counts = Counter(outcome.kind for outcome in outcomes.values())
            best = sum(
                one.kind == "solved" and one.f <= least[name] + SPREAD * max(1, abs(least[name]))
                for name, one in outcomes.items()
            )
            answers = [one.answer for one in outcomes.values() if one.answer.end == "returned"]
            told = [answer.iterations for answer in answers if answer.iterations is not None]
            rows.append([
                solver, str(len(self.right(solver))), *(str(counts[kind]) for kind in kinds),
                str(best), str(sum(self.optimal(*item) for item in outcomes.items())),
                str(sum(told)) if told else "–", f"{sum(a.seconds for a in answers):.2f}",
                *(self._mean(solver, reference, measure) for measure in self.measures),
            ])  # fmt: skip
        return table(rows, markdown)

    def _mean(self, solver: str, reference: str, measure: str) -> str:
        ratios = _ratios(self.right(solver), self.right(reference), measure)
        return f"{geometric_mean(list(ratios.values())):.2f}" if ratios else "–"

    def _least(self) -> dict[str, float]:
        least: dict[str, float] = {}
        for outcomes in self.table.values():
            for name, one in outcomes.items():
                if one.kind == "solved":
                    least[name] = min(one.f, least.get(name, np.inf))
        return least

    def listing(self, markdown: bool = False, memory: bool = False) -> str:
        """The table of the problems; answers that are not right are marked."""
        rows = [["problem", "n", "m"]]
        for solver in self.table:
            rows[0] += [solver, "it.", "f", "residual", "build", "first", "last"]
            rows[0] += ["MiB"] if memory else []
        for name, case in self.cases.items():
            row = [name, *map(str, self.sizes[name])]
            for outcomes in self.table.values():
                one = outcomes[name]
                answer, mark = one.answer, "" if one.kind in case.good else " !"
                count = "–" if answer.iterations is None else str(answer.iterations)
                first, last = (answer.times[k] if answer.times else np.nan for k in (0, -1))
                seconds = [f"{s:.3g}" for s in (answer.built, first, last)]
                row += [one.kind + mark, count, f"{one.f:.8g}", f"{one.residual:.0e}", *seconds]
                row += [f"{answer.memory:.0f}"] if memory else []
            rows.append(row)
        return table(rows, markdown)

    def versus(self) -> str:
        """Wins and losses of this package beside each peer and beside IPOPT's best variant."""
        settings = [name for name in self.table if PEERS[name].peer == OURS]
        if not settings:
            return ""
        lines, first = [], settings[0]
        ours = self.right(first)
        peers = {name: self.right(name) for name in (*settings[1:], *self.peers())}
        variants = [self.right(name) for name in peers if PEERS[name].peer == "ipopt"]
        if len(variants) > 1:
            peers["the best IPOPT"] = _fewest(variants)
        for peer, theirs in peers.items():
            lines.append(f"\n{first} / {peer}, {len(ours.keys() & theirs.keys())} right in both:")
            for measure in self.measures:
                lines.append(f"  {measure} {spread(_ratios(ours, theirs, measure))}")
            lost = [
                f"{name} ({self.table[first][name].kind})" for name in self._missed(ours, theirs)
            ]
            won = self._missed(theirs, ours)
            worse, better = _minima(ours, theirs), _minima(theirs, ours)
            for text, names in (
                ("lost", lost), ("won", won), ("other minima, worse", worse), ("better", better),
            ):  # fmt: skip
                lines.append(f"  {text}: {len(names)}: {', '.join(names) or '–'}")
        return "\n".join(lines)

    def _missed(self, ours: Outcomes, theirs: Outcomes) -> list[str]:
        """Problems that they do right and we do not; a verdict is no answer where one is."""
        kinds = {name: one.kind for name, one in ours.items()}
        return [
            name
            for name, one in theirs.items()
            if name not in kinds
            or (one.kind, kinds[name], self.cases[name].truth) == ("solved", "verdict", "solvable")
        ]

    def growth(self) -> str:
        """Exponents in n of the first call's seconds and of those of an iteration, by family."""
        lines = []
        for solver in self.table:
            families: dict[str, list[tuple[int, float, float]]] = {}
            for name, one in self.right(solver).items():
                first = one.answer.times[0]
                each = first / MEASURES["it."](one.answer)
                family = families.setdefault(name.rpartition("-")[0], [])
                family.append((self.sizes[name][0], first, each))
            for label, rows in families.items():
                if len(rows) > 1:
                    n, firsts, eaches = zip(*rows, strict=True)
                    lines.append(
                        f"{label}, {solver}: first call n^{exponent(n, firsts):.2f}, "
                        f"an iteration n^{exponent(n, eaches):.2f}"
                    )
        return "\n".join(lines)

    def costs(self, measure: str) -> dict[str, dict[str, float]]:
        """Numbers of the right answers, for a profile."""
        return {
            solver: {name: MEASURES[measure](o.answer) for name, o in self.right(solver).items()}
            for solver in self.table
        }

    def record(self, path: Path) -> None:
        """Write every outcome, without points and multipliers."""
        rows = []
        for solver, outcomes in self.table.items():
            for name, one in outcomes.items():
                answer = replace(one.answer, x=(), lam_g=(), lam_x=())
                entry = asdict(replace(one, answer=answer))
                rows.append({"problem": name, "solver": solver, "n": self.sizes[name][0], **entry})
        path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _ratios(ours: Outcomes, theirs: Outcomes, measure: str) -> dict[str, float]:
    """Of problems that both do right, our number over theirs where both tell it."""
    value, ratios = MEASURES[measure], {}
    for name in (name for name in ours if name in theirs):
        answers = ours[name].answer, theirs[name].answer
        if measure != "it." or all(answer.iterations is not None for answer in answers):
            ratios[name] = value(answers[0]) / value(answers[1])
    return ratios


def _fewest(variants: Sequence[Outcomes]) -> Outcomes:
    """Of several solvers, problem by problem the answer of the fewest iterations."""
    iterations, found = MEASURES["it."], Outcomes()
    for outcomes in variants:
        for name, one in outcomes.items():
            if name not in found or iterations(one.answer) < iterations(found[name].answer):
                found[name] = one
    return found


def _minima(ours: Outcomes, theirs: Outcomes) -> list[str]:
    """Problems that both solve, where our f is larger."""
    return [
        name
        for name, one in ours.items()
        if name in theirs
        and one.kind == theirs[name].kind == "solved"
        and one.f > theirs[name].f + SPREAD * max(1.0, abs(theirs[name].f))
    ]


def sized(text: str) -> bool:
    """Whether a text names a family of large problems and a size."""
    family, _, size = text.rpartition("-")
    return family in LARGE and size.isdigit()


def chosen_cases(chosen: argparse.Namespace) -> list[Case]:
    """The problems that the command line names.

    Names of families with a size (``network-500``) stand for themselves.
    """
    found: list[Case] = []
    for group in chosen.set:
        every = of_sizes(chosen.sizes) if group == "control" else cases(group, chosen.folder)
        every = tuple(case for case in every if case.size <= 1000 * chosen.largest)
        texts = chosen.only or [""]
        exact = [text for text in texts if group == "large" and sized(text)]
        found += [case_named(group, text) for text in exact]
        found += [c for c in every if any(t in c.name for t in texts if t not in exact)]
    if chosen.noise > 0:
        return [moved(case, chosen.noise, k) for case in found for k in range(chosen.seeds)]
    return found


def parsed(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--set", nargs="+", choices=SETS, default=["hs"], help="which problems")
    add("--folder", default="", help="folder of the files of cute or pglib")
    add("--largest", type=float, default=400.0, help="kB of a file; larger ones are left out")
    add("--sizes", nargs="+", choices=SIZES, default=(), help="of the set control")
    add("--only", nargs="+", help="names that contain one of these; of large, FAMILY-SIZE")
    add("--solvers", nargs="+", choices=PEERS, help="which solvers")
    add("--compiled", action="store_true", help="with compiled functions; needs cc")
    add("--noise", type=float, default=0.0, help="relative noise of the starts")
    add("--seeds", type=int, default=4, help="noisy starts of each problem")
    add("--limit", type=float, default=30.0, help="seconds for one solve")
    add("--repeat", type=int, default=1, help="solve each this often")
    add("--clock", choices=CLOCKS, default="thread")
    add("--list", action="store_true", help="print a line for each problem")
    add("--markdown", action="store_true", help="print tables for a page")
    add("--profile", type=Path, help="file for the performance profile, .pdf, .svg or .png")
    add("--measure", choices=MEASURES, default="least", help="what the profile compares")
    add("--json", type=Path, help="file for every outcome")
    chosen = parser.parse_args(arguments)
    defaults = (OURS, "ipopt", "ipopt strict", "ipopt unscaled")
    chosen.solvers = chosen.solvers or DEFAULTS.get(chosen.set[0], defaults)
    return parser, chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare and print."""
    parser, chosen = parsed(arguments)
    for library in ("OMP", "OPENBLAS"):  # one thread each, or processor time compares nothing
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    problems = chosen_cases(chosen)
    if not problems:
        parser.error(f"no problem of {', '.join(chosen.set)} has one of these names")
    alone = "large" in chosen.set
    found = Comparison(problems, keep=1 if alone else 1000)
    with np.errstate(over="ignore", invalid="ignore"):  # points as far as 1e200 are judged
        for solver in dict.fromkeys(chosen.solvers):
            repeat = max(1 + alone, chosen.repeat)
            found.run(Run(solver, chosen.limit, repeat, chosen.compiled, chosen.clock, alone))
    print(f"{len(found.cases)} problems, limit {chosen.limit:g} s, {os.cpu_count()} processors")
    for name, error in found.unread.items():
        print(f"not read: {name}: {error}")
    if chosen.list or alone:
        print(found.listing(chosen.markdown, memory=alone))
    print(found.summary(chosen.markdown))
    print(found.versus())
    if alone:
        print(found.growth())
    if chosen.profile is not None:
        profile(found.costs(chosen.measure), chosen.profile)
    if chosen.json is not None:
        found.record(chosen.json)


if __name__ == "__main__":
    main()
