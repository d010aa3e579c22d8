"""Run the paper's experiment and print its tables beside the printed ones, with what they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from casadi_hybrid.basics.record.collect import Collected, Unfinished, collect
from casadi_hybrid.paper.cells import Summary, as_dict, summarize
from casadi_hybrid.paper.differences import contradictions, differences, readings
from casadi_hybrid.paper.experiment import FOLLOWED, LONG, Run, run_instance
from casadi_hybrid.paper.fitted import SEEDS, listing
from casadi_hybrid.paper.generator import CONDITIONS
from casadi_hybrid.paper.growth import Growth, growth, growth_rows
from casadi_hybrid.paper.keeping import keeping
from casadi_hybrid.paper.tables import (
    FAILS,
    aligned,
    partial_table,
    settling_table,
    text_tables,
)
from casadi_hybrid.paper.verdicts import Verdict, verdicts

NOTES = """\
What else to know
- θ makes S1 and S3 equal, and with these constants they bind before the margin does where the
  local condition exceeds 2.66 (weighted) and 3.28 (unit): there the two variants are one method.
- With equal steps every split has the same iterates. What the hybrid gains is only the larger
  step that S1–S3 allow it. Where they cap η_x, η_d is not unique; the largest is taken.
- S1 is dropped for C_aug = 0, as the paper drops S3 for C_opt = 0; otherwise the pure optimistic
  method almost never succeeds.
- Algorithm 1 as printed evaluates H at μ_t, which depends on the split. These tables follow it;
  the solver's default evaluates H at the split-invariant multiplier.
- Under partial cancellation a larger α keeps the target curvature δ, so a smaller γ need not make
  M smaller: where H bends downwards in the weakest direction of B, it does not.
- With m = 5 > n = 3 the feasible set is the one point x*: f has no say in the answer, μ* is not
  unique, and Gauss–Newton on h alone would do. Other shapes: --shape N M."""


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All runs, and their summaries over the five fitted seeds and over all others.

    Attributes:
        runs: every run.
        fitted: summary of the seeds that the constants were fitted on.
        population: summary of the seeds that played no part in that, None without any.
        instances: of both, by condition level.
        shape: (n, m).
        growth: norms at x* by level, empty where they could not be computed.
        unwritten: why runs could not be written to the record; empty where all are.
    """

    runs: tuple[Run, ...]
    fitted: Summary
    population: Summary | None
    instances: int
    shape: tuple[int, int]
    growth: tuple[Growth, ...]
    unwritten: str = ""

    @property
    def is_paper(self) -> bool:
        """Whether the shape is the paper's."""
        return self.shape == (3, 5)

    @property
    def judged(self) -> tuple[Verdict, ...]:
        """The verdicts on what the paper says in words, over the population where there is one."""
        chosen = [run for run in self.runs if self.population is None or run.seed not in SEEDS]
        return verdicts(chosen, self.population or self.fitted, self.growth)

    def __str__(self) -> str:
        title = f"{self.shape[0]} variables, {self.shape[1]} constraints"
        first = min(self.instances, len(SEEDS))
        parts = [_or_fails(lambda: findings(self.runs, is_paper=self.is_paper)), ""]
        name = f"{first} fitted seeds" if self.is_paper else f"first {first} instances"
        parts += [f"=== The {name} of each condition level, {title} ===", ""]
        if self.is_paper:
            parts += [_or_fails(lambda: settling_table(self.fitted, compare=True))]
        parts.append(_or_fails(lambda: text_tables(self.fitted, compare=self.is_paper)))
        if self.population is not None:
            others = self.instances - first
            parts += [f"=== {others} other instances of each condition level, {title} ===", ""]
            population = self.population
            parts += [_or_fails(lambda: settling_table(population, compare=self.is_paper))]
            parts += [_or_fails(lambda: text_tables(population, compare=self.is_paper))]
        parts.append(_or_fails(lambda: partial_table(self.population or self.fitted)))
        if self.growth:
            rows = growth_rows(self.growth, compare=self.is_paper)
            of = "the population" if self.population is not None else "these instances"
            title = f"Medians of {of} at (x*, μ*), and how many are beyond M_max"
            parts += aligned(title, rows)
        else:
            parts += [f"Norms at (x*, μ*): {FAILS}, they could not be computed", ""]
        if self.is_paper:
            parts += ["What the paper says in words", *(f"- {v}" for v in self.judged), ""]
            parts += ["Contradictions in print", *(f"- {line}" for line in contradictions()), ""]
            parts += ["Cells that differ from print", _or_fails(self._differences), ""]
            parts += [listing(), "", NOTES]
        return "\n".join(parts)

    def _differences(self) -> str:
        seeds = [s for s in range(self.instances) if s not in SEEDS]
        found = differences(self.runs, self.fitted, self.population, seeds)
        return "\n".join(f"- {line}" for line in (*readings(self.fitted), *found))

    def to_dict(self) -> dict[str, Any]:
        """All that the tables show, by method and condition level."""
        return {
            "shape": {"n": self.shape[0], "m": self.shape[1]},
            "instances": self.instances,
            "threshold": 1e-3,
            "fitted_seeds": list(SEEDS),
            "fitted": as_dict(self.fitted),
            "population": None if self.population is None else as_dict(self.population),
            "growth": [asdict(row) for row in self.growth],
            "verdicts": [asdict(verdict) for verdict in self.judged] if self.is_paper else [],
            "contradictions": contradictions() if self.is_paper else [],
        }


def findings(runs: Sequence[Run], *, is_paper: bool) -> str:
    """The first lines: of the runs that cross, how many are below at 200, stay, and arrive."""
    followed = [run for run in runs if run.seed < FOLLOWED] or runs
    row = summarize(followed, {run.seed for run in followed})["closed-w"]
    lines = [
        "By the paper's measure a run succeeds when it crosses ‖x_t − x*‖ ≤ 1e-3 once. It need not "
        "stay there.",
        f"Of the closed form's runs (weighted) on the first {max(c.runs for c in row.values())} "
        "instances of each condition level:",
    ]
    for condition, cell in row.items():
        if cell.failure:
            lines.append(f"  {condition:>2g}: {FAILS}, {cell.failure}")
            continue
        text = (
            f"  {condition:>2g}: {cell.successes:>2} of {cell.runs} cross; {cell.below_at_200:>2} "
            f"are still below at step 200, {cell.never_left:>2} never left"
        )
        if cell.followed:
            text += f"; {cell.below_at_1500:>2} are below after {LONG:,} steps"
        lines.append(text)
    if is_paper:
        lines += [
            "The first five instances are fitted seeds, not the paper's five: their distributions "
            "and the constants",
            "listed below were fitted on them to the printed tables, so agreement there is partly "
            "by construction.",
            "The population leaves them out.",
        ]
    return "\n".join(lines)


def _or_fails(text: Callable[[], str]) -> str:
    """A part of the report, or FAILS with the error: one part may fail, the others may not."""
    try:
        return text()
    except Exception as error:  # noqa: BLE001 - whatever it is, the rest is printed
        return f"{FAILS}: {type(error).__name__}: {error}\n"


def reproduce(
    instances: int = 50,
    *,
    conditions: Sequence[float] = CONDITIONS,
    shape: tuple[int, int] = (3, 5),
    workers: int | None = None,
    cluster: Any = None,
    folder: Path | None = None,
    fresh: bool = False,
    progress: bool = True,
) -> Reproduction:
    """Run the paper's twelve variants, and three of its extension, on problems of every level.

    Args:
        instances: problems per level; the first five are the fitted seeds, the rest the population.
        conditions: κ_B levels.
        shape: (n, m).
        workers: parallel processes; all cores by default.
        cluster: a Dask cluster in their place: ``"local"``, the address of a scheduler, or a
            ``distributed.Client``.
        folder: where finished instances are kept, so that a call that was cut short goes on.
        fresh: forget what the folder holds.
        progress: show progress on stderr.

    Raises:
        InputError: for a folder that cannot be written to, is in use, or holds another study.
        Unfinished: by Ctrl-C, with the reproduction of the instances that are done.
    """
    keys = [(float(c), seed, *shape) for seed in range(instances) for c in conditions]
    others = range(len(SEEDS), instances)

    def reproduction(found: Collected[Any, list[Run]], grown: tuple[Growth, ...]) -> Reproduction:
        runs = [run for group in found.values.values() for run in group]
        runs.sort(key=lambda r: (r.method, r.condition, r.seed))
        return Reproduction(
            tuple(runs),
            summarize(runs, SEEDS),
            summarize(runs, others) if others else None,
            instances,
            shape,
            grown,
            found.unwritten,
        )

    kept = None if folder is None else keeping(folder, fresh=fresh)
    label = "reproduce" if progress else ""
    try:
        found = collect(run_instance, keys, kept, workers=workers, cluster=cluster, label=label)
    except Unfinished as stop:
        raise Unfinished(reproduction(stop.found, ()), stop.done, stop.total) from None
    try:
        grown = growth(sorted(map(float, conditions)), others or range(instances), shape)
    except Exception:  # noqa: BLE001 - its table and the verdict that needs it say so
        grown = ()
    return reproduction(found, grown)
