"""Around the constants that the paper leaves open: one changed at a time.

    python benchmarks/paper_search.py [--only WORD ...] [--workers W] [--output FILE]

`casadi-hybrid reproduce` runs the paper's experiment with constants that were fitted to its printed
tables. The 228 settings that were tried for that were not kept, and this does not repeat the
search. Around its result every fitted constant is changed alone, the five fitted seeds of all six
condition levels are run, and the tables are held against print:

* counts: the sum of |count − printed| over the cells of table 1 that the change concerns, of so
  many instances;
* hits: the mean of |log(median / printed)| over the cells of table 2 where both are numbers;
* ‖M‖: the same over those of table 3.

Of each, the first number is the change's and the second that of the fitted setting on the same
cells; smaller is nearer to print. `paper_search.txt` has the result.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.paper.experiment import CONDITIONS, printed
from casadi_hybrid.paper.experiment.experiment import (
    AS_PRINTED,
    BUDGET,
    PAPER_METHODS,
    PaperMethod,
    Run,
    run_method,
)
from casadi_hybrid.paper.experiment.fitted import SEEDS
from casadi_hybrid.paper.experiment.generator import FITTED, Recipe, make_instance
from casadi_hybrid.paper.experiment.tables import Cell, cell_of, grouped
from casadi_hybrid.paper.iterations import Hybrid
from casadi_hybrid.paper.rules import DesignRule, GridSplit
from casadi_hybrid.utils.output.text import aligned
from casadi_hybrid.utils.record.parallel import in_parallel

DESIGNED = ("aug-w", "opt-w", "grid-w", "closed-w", "closed-u")
PRINTED = (*DESIGNED, "pdhg")
METHODS = {method.key: method for method in PAPER_METHODS}
SHORT = 150


@dataclass(frozen=True)
class Setting:
    """One change: what it is called, the methods it concerns, and how they are made then."""

    name: str
    keys: tuple[str, ...] = PRINTED
    recipe: Recipe = FITTED
    methods: dict[str, PaperMethod] = field(default_factory=dict)

    def method(self, key: str) -> PaperMethod:
        """The method under this setting."""
        return self.methods.get(key, METHODS[key])


def with_options(name: str, keys: Sequence[str], **options: Any) -> Setting:
    """The methods with other options."""
    changed = {
        key: replace(METHODS[key], options={**METHODS[key].options, **options}) for key in keys
    }
    return Setting(name, tuple(keys), methods=changed)


def with_rule(name: str, key: str, rule: DesignRule) -> Setting:
    """One method with another rule."""
    method = PaperMethod(key, key, Hybrid(rule, label=key, **AS_PRINTED))
    return Setting(name, (key,), methods={key: method})


def settings() -> list[Setting]:
    """Every change, grouped by what it changes."""
    found = []
    recipes: dict[str, tuple[Any, ...]] = {
        "eps_nl": (0.1, 0.4),
        "radius": (0.25, 1.0),
        "multiplier_radius": (0.0, 0.5),
        "spread": (1.0,),
        "multiplier_spread": (1.0,),
        "curvature": ((1.0, -0.5, -1.0),),
        "width": (0.45,),
        "power": (1.0,),
    }
    for name, values in recipes.items():
        for value in values:
            found.append(
                Setting(f"{name} = {_text(value)}", PRINTED, replace(FITTED, **{name: value}))
            )
    found.append(with_options("H_t at π_t", DESIGNED, hessian_at="memory_free"))
    found.append(with_options("empty memory at the start", DESIGNED, dual_start="memory_free"))
    found.append(with_options("S1 kept where C_aug = 0", ["opt-w"], s1="printed"))
    for strengths in ((1.0,), (1.0, 2.0, 4.0), (2.0, 1.0), (8.0, 4.0, 2.0, 1.0)):
        rule = DesignRule(split=GridSplit(strengths=strengths))
        found.append(with_rule(f"grid: α / α_t = {_text(strengths)}", "grid-w", rule))
    found.append(
        with_rule(
            "grid: θ = 0, 0.25, …, 1",
            "grid-w",
            DesignRule(split=GridSplit(thetas=(0.0, 0.25, 0.5, 0.75, 1.0))),
        )
    )
    for tau, sigma in ((0.05, 5.0), (0.05, 10.0), (0.05, 40.0), (0.1, 10.0), (0.02, 20.0)):
        name = f"PDHG: τ, σ = {tau:g}, {sigma:g}"
        found.append(with_options(name, ["pdhg"], tau=tau, sigma=sigma))
    for eta in (0.01, 0.02, 0.1, 0.2, 0.3, 0.5, 1.0):
        found.append(with_options(f"OGDA, EG: η = {eta:g}", ["ogda", "eg"], eta=eta))
    for eta, penalty in ((0.05, 10.0), (0.2, 1.0)):
        name = f"linearized AL: η, penalty = {eta:g}, {penalty:g}"
        found.append(with_options(name, ["lin-al"], eta=eta, penalty=penalty))
    for c in (10.0, 20.0):
        name = f"linearized AL: penalty, dual_step = {c:g}, {c:g}"
        found.append(with_options(name, ["lin-al"], penalty=c, dual_step=c))
    return found


Job = tuple[Setting, float, int]


def work(job: Job) -> list[Run]:
    """Run the methods of a setting on one instance."""
    setting, condition, seed = job
    instance = make_instance(condition, seed, recipe=setting.recipe)
    return [run_method(setting.method(key), instance) for key in setting.keys]


@dataclass(frozen=True)
class Score:
    """How far the tables are from print (see the module's docstring); NaN without a cell."""

    counts: int
    of: int
    hits: float
    norms: float


def score(cells: dict[tuple[str, float], Cell]) -> Score:
    """Hold cells against print."""
    counts = [
        abs(cell.successes - printed.SUCCESS[key][int(c)])
        for (key, c), cell in cells.items()
        if key in printed.SUCCESS
    ]
    total = sum(cell.runs for (key, _), cell in cells.items() if key in printed.SUCCESS)

    def distance(
        table: dict[str, dict[int, float | None]], of: Callable[[Cell], float | None]
    ) -> float:
        logs = [
            abs(np.log(float(ours) / float(theirs)))
            for (key, c), cell in cells.items()
            if key in table and (theirs := table[key][int(c)]) and (ours := of(cell))
        ]
        return float(np.mean(logs)) if logs else np.nan

    return Score(
        sum(counts),
        total,
        distance(printed.HITS, lambda cell: cell.median_hit),
        distance(printed.NORM_M, lambda cell: cell.median_norm_M),
    )


def cells_of(runs: Sequence[Run]) -> dict[tuple[str, float], Cell]:
    """By method and level."""
    return {key: cell_of(group) for key, group in sorted(grouped(runs).items())}


def within(run: Run, budget: int) -> Run:
    """The run as a smaller budget would have ended it (max‖M‖ is left as it is)."""
    return replace(run, hits=tuple(t if t is None or t <= budget else None for t in run.hits))


def report(base: Sequence[Run], found: Sequence[tuple[str, tuple[str, ...], Sequence[Run]]]) -> str:
    """The table: the fitted setting first."""
    rows = [["changed alone", "counts", "fitted", "of", "hits", "fitted", "‖M‖", "fitted"]]
    reference = score(cells_of(base))
    rows.append(_row("(nothing: the fitted setting)", reference, reference))
    for name, keys, runs in found:
        same = score(cells_of([run for run in base if run.method in keys]))
        rows.append(_row(name, score(cells_of(runs)), same))
    lines = aligned(rows, "<>")
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _row(name: str, ours: Score, fitted: Score) -> list[str]:
    numbers = [ours.hits, fitted.hits, ours.norms, fitted.norms]
    texts = ["–" if np.isnan(v) else f"{v:.2f}" for v in numbers]
    return [name, f"{ours.counts}", f"{fitted.counts}", f"{ours.of}", *texts]


def _text(value: Any) -> str:
    return ", ".join(f"{v:g}" for v in value) if isinstance(value, tuple) else f"{value:g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="settings named so")
    parser.add_argument("--workers", type=int, metavar="W", help="processes (default: cores)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args(arguments)
    chosen = [s for s in settings() if not options.only or any(w in s.name for w in options.only)]
    every = tuple(key for key in METHODS if key not in ("aug-u", "opt-u", "grid-u"))
    plan = [Setting("fitted", every), *chosen]
    jobs: list[Job] = [(s, float(c), seed) for s in plan for c in CONDITIONS for seed in SEEDS]
    runs: dict[str, list[Run]] = {setting.name: [] for setting in plan}
    for (setting, _, _), group in in_parallel(
        work, jobs, workers=options.workers, label="paper_search"
    ):
        runs[setting.name] += group
    base = runs.pop("fitted")
    found = [(s.name, s.keys, runs[s.name]) for s in chosen]
    if not options.only or any(w in "budget" for w in options.only):
        shorter = [within(run, SHORT) for run in base if run.method in PRINTED]
        found.append((f"budget = {SHORT} in place of {BUDGET}", PRINTED, shorter))
    text = report(base, found)
    print(text)
    if options.output:
        options.output.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
