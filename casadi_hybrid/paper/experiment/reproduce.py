"""The paper's experiment: all runs, the tables beside the printed ones, and the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.paper.experiment import tables
from casadi_hybrid.paper.experiment.experiment import FOLLOWED, LONG, Run, run_instance
from casadi_hybrid.paper.experiment.fitted import SEEDS, listing
from casadi_hybrid.paper.experiment.generator import CONDITIONS
from casadi_hybrid.paper.experiment.norms import Norms, norm_rows, norms_at_solutions
from casadi_hybrid.paper.experiment.tables import FAILS, Summary, as_dict, summarize, titled
from casadi_hybrid.paper.experiment.verdicts import Verdict, contradictions, verdicts
from casadi_hybrid.utils.record.collect import Keeping, collect
from casadi_hybrid.utils.record.record import Row

NOTES = """\
What else to know
- θ makes S1 and S3 equal, and with these constants they bind before the margin does where the \
local condition exceeds 2.66 (weighted) and 3.28 (unit): there the two variants are one method.
- With equal steps every split has the same iterates. The hybrid gains only by the larger step \
that S1–S3 allow. If they cap η_x, η_d is not unique; the largest is taken.
- S1 is dropped for C_aug = 0, as the paper drops S3 for C_opt = 0. With S1 as printed the pure \
optimistic method does not have the five successes of table 1 at 1, 2 and 3.
- Algorithm 1 as printed evaluates H at μ_t, which depends on the split. These tables follow it; \
the solver's default evaluates H at the split-invariant multiplier.
- Under partial cancellation a larger α keeps the target curvature δ. A smaller γ does not make M \
smaller if H has negative curvature in the weakest direction of B.
- The sources of the last baseline, Hestenes and Powell, step the multipliers by the penalty c; it \
is tied to η = 0.05 in the fitted table. With c = 20 it crosses about as often as PDHG.
- OGDA crosses at none of eight η from 0.01 to 1, extragradient in 3 of 240 runs.
- With m = 5 > n = 3 the feasible set is the one point x*: the answer does not depend on f, μ* is \
not unique, and Gauss–Newton on h alone would do. Other shapes: --shape N M."""
SEEDS_NOTE = """\
The first five instances are fitted seeds, not the paper's five: the constants listed below were \
fitted on them to the printed tables, so agreement there is partly by construction. The population \
leaves them out. Instance s of level κ is drawn with the number 1000κ + s: from 1,000 instances \
on, the draws of one level repeat those of the next."""


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All runs, by method, level and seed."""

    runs: tuple[Run, ...]
    instances: int  # for each level
    shape: tuple[int, int]  # (n, m)
    norms: Norms  # at x* by level; empty if they could not be computed
    unwritten: str = ""  # why runs are missing in the record

    @cached_property
    def fitted(self) -> Summary:
        """Summary of the seeds that the constants were fitted on."""
        return summarize(self.runs, SEEDS)

    @cached_property
    def population(self) -> Summary | None:
        """Summary of the other seeds; None without any."""
        summary = summarize(self.runs, range(len(SEEDS), self.instances))
        return summary if any(summary.values()) else None

    @property
    def is_paper(self) -> bool:
        """True for the paper's shape."""
        return self.shape == (3, 5)

    @property
    def summary(self) -> Summary:
        """Summary to judge the paper's statements by: the population, or the fitted seeds."""
        return self.population or self.fitted

    @property
    def judged(self) -> tuple[Verdict, ...]:
        """Verdicts on the paper's statements."""
        return verdicts(self.summary, self.norms)

    def __str__(self) -> str:
        first = min(self.instances, len(SEEDS))
        name = f"The {first} fitted seeds" if self.is_paper else f"The first {first} instances"
        parts = [findings(self.runs, is_paper=self.is_paper)]
        parts.append(self._tables(name, self.fitted, chances=False))
        if self.population is not None:
            name = f"{self.instances - first} other instances"
            parts.append(self._tables(name, self.population, chances=True))
        parts.append(self._norms())
        if self.is_paper:
            parts += [self._statements(), listing(), f"\n{NOTES}"]
        return "\n".join(parts)

    def _tables(self, name: str, summary: Summary, *, chances: bool) -> str:
        n, m = self.shape
        title = f"\n=== {name} of each condition level, {n} variables, {m} constraints ===\n"
        text = tables.text_tables(summary, compare=self.is_paper, chances=chances)
        return f"{title}\n{text}"

    def _norms(self) -> str:
        if not self.norms:
            return f"Norms at (x*, μ*): {FAILS}, they could not be computed\n"
        source = "these instances" if self.population is None else "the population"
        title = f"Medians of {source} at (x*, μ*), and how many are beyond M_max"
        return "\n".join(titled(title, norm_rows(self.norms, compare=self.is_paper)))

    def _statements(self) -> str:
        lines = ["Statements of the paper, and the statistics that judge them"]
        lines += [f"- {verdict}" for verdict in self.judged]
        lines += ["", "Contradictions of the print"]
        lines += [f"- {line}" for line in contradictions(self.summary, self.norms)]
        return "\n".join([*lines, "", tables.distances(self.fitted), ""])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the tables, by method and condition level."""
        return {
            "shape": {"n": self.shape[0], "m": self.shape[1]},
            "instances": self.instances,
            "threshold": 1e-3,
            "fitted_seeds": list(SEEDS),
            "fitted": as_dict(self.fitted),
            "population": None if self.population is None else as_dict(self.population),
            "norms": [{"condition": c, **row} for c, row in self.norms.items()],
            "verdicts": [verdict.to_dict() for verdict in self.judged] if self.is_paper else [],
            "contradictions": contradictions(self.summary, self.norms) if self.is_paper else [],
        }


def findings(runs: Sequence[Run], *, is_paper: bool) -> str:
    """Return the first lines: how many runs of the closed form cross, stay, and arrive."""
    followed = [run for run in runs if run.seed < FOLLOWED] or runs
    row = summarize(followed, {run.seed for run in followed})["closed-w"]
    lines = [
        "By the paper's measure a run succeeds when it crosses ‖x_t − x*‖ ≤ 1e-3 once. It need not "
        "stay there.",
        f"Of the closed form's runs (weighted) on the first {max(c.runs for c in row.values())} "
        "instances of each condition level:",
    ]
    for condition, cell in row.items():
        text = (
            f"{cell.successes:>2} of {cell.runs} cross; {cell.below_at_200:>2} below at step 200, "
            f"{cell.never_left:>2} never left"
        )
        if cell.followed:
            text += f"; {cell.below_at_1500:>2} below at step {LONG:,}"
        lines.append(f"  {condition:>2g}: {f'{FAILS}, {cell.failure}' if cell.failure else text}")
    return "\n".join([*lines, SEEDS_NOTE] if is_paper else lines)


_SERIES = ("errors", "feasibility", "stationarity", "effective")


def _keeping(folder: Path, fresh: bool) -> Keeping[tuple[float, int, int, int], list[Run]]:
    """Return the record of a reproduction: a row for each method."""

    def rows(unit: tuple[float, int, int, int], runs: Sequence[Run]) -> list[Row]:
        return [asdict(run) for run in runs]

    def runs_of(rows: Sequence[Row]) -> list[Run]:
        arrays = ({name: np.array(row[name], dtype=float) for name in _SERIES} for row in rows)
        return [
            Run(**{**row, **series, "hits": tuple(row["hits"])})
            for row, series in zip(rows, arrays, strict=True)
        ]

    return Keeping(folder, "reproduce", {}, rows, runs_of, table="", fresh=fresh)


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
    """Run the paper's twelve variants, and further methods, on problems of every level.

    Args:
        instances: problems per level; the first five are the fitted seeds, the rest the population.
        conditions, shape: κ_B levels, and (n, m).
        folder: holds finished instances, so that an interrupted call can be resumed.
        workers, cluster, fresh, progress: as of :func:`~casadi_hybrid.paper.study.sweep.sweep`.

    Raises:
        InputError: for a folder that cannot be written to, is in use, or holds another study.
        Unfinished: by Ctrl-C, with the reproduction of the instances that are done.
    """
    # Seeds outside: an interrupted call has all levels of the first instances.
    keys = [(float(c), seed, *shape) for seed in range(instances) for c in conditions]

    def reproduction(groups: dict[Any, list[Run]], unwritten: str) -> Reproduction:
        runs = [run for group in groups.values() for run in group]
        runs.sort(key=lambda r: (r.method, r.condition, r.seed))
        norms: Norms = {}
        if len(groups) == len(keys):  # not after Ctrl-C
            seeds = range(len(SEEDS), instances) or range(instances)
            with suppress(Exception):  # the table and the verdict then print FAILS
                norms = norms_at_solutions(sorted(map(float, conditions)), seeds, shape)
        return Reproduction(tuple(runs), instances, shape, norms, unwritten)

    return collect(
        run_instance,
        keys,
        reproduction,
        None if folder is None else _keeping(folder, fresh),
        workers=workers,
        cluster=cluster,
        label="reproduce" if progress else "",
    )
