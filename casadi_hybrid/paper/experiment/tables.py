"""The paper's tables from runs: cells, the printed numbers beside them, and their chances.

The chance of a printed number is the probability that five instances of the population give a
number as unusual: a count by drawing without replacement, a median by the medians of many fives. A
small chance means that the fitted class is not the paper's, or the paper counts something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.paper.experiment import experiment, printed
from casadi_hybrid.paper.experiment.experiment import ALL_METHODS, LABELS, LONG, Run
from casadi_hybrid.utils.output.text import aligned

FAILS = "FAILS"
FIVE = 5
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Cell:
    """One method at one condition level."""

    runs: int
    # First t with ‖x_t − x*‖ ≤ 1e-3 by seed, of runs that cross.
    hits: Mapping[int, float]
    norms: tuple[float, ...] = ()  # max_t ‖M_t‖₂ of runs with a design
    over_budget: tuple[int, ...] = ()  # seeds of runs that M_max ended
    below_at_200: int = 0  # runs with ‖x_t − x*‖ ≤ 1e-3 at t = 200
    never_left: int = 0  # runs below 1e-3 from the crossing to t = 200
    followed: int = 0  # runs followed to 1,500 steps after a crossing
    below_at_1500: int = 0  # followed runs that crossed and end below 1e-3
    failure: str = ""  # error of a run that could not be computed

    @property
    def successes(self) -> int:
        """Number of runs with ‖x_t − x*‖ ≤ 1e-3 for some t ≤ 200, the paper's measure."""
        return len(self.hits)

    @property
    def median_hit(self) -> float | None:
        """Median hitting time among the successes; None without any."""
        return _median(list(self.hits.values()))

    @property
    def printed_hit(self) -> float | None:
        """Median hitting time; None, a dash in table 2, if fewer than half cross."""
        return self.median_hit if 2 * self.successes >= self.runs else None

    @property
    def median_norm_M(self) -> float | None:
        """Median of max_t ‖M_t‖₂; None without designs."""
        return _median(self.norms)


Summary = dict[str, dict[float, Cell]]


def cell_of(group: Sequence[Run]) -> Cell:
    """Return the cell of some runs of one method at one level."""
    return Cell(
        runs=len(group),
        hits={run.seed: run.hit for run in group if run.hit is not None},
        norms=tuple(run.norm_M for run in group if np.isfinite(run.norm_M)),
        over_budget=tuple(run.seed for run in group if run.over_budget),
        below_at_200=sum(run.at_end for run in group),
        never_left=sum(run.stays for run in group),
        followed=sum(run.longest is not None for run in group),
        below_at_1500=sum(run.arrives for run in group),
        failure=next((run.failure for run in group if run.failure), ""),
    )


def grouped(runs: Iterable[Run]) -> dict[tuple[str, float], list[Run]]:
    """Return the runs by method and condition level, in their order."""
    groups: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.method, run.condition), []).append(run)
    return groups


def summarize(runs: Iterable[Run], seeds: Iterable[int]) -> Summary:
    """Summarize the runs of some seeds, by method and condition level."""
    chosen = set(seeds)
    summary: Summary = {method.key: {} for method in ALL_METHODS}
    for (key, level), group in sorted(grouped(r for r in runs if r.seed in chosen).items()):
        summary[key][level] = cell_of(group)
    return summary


def as_dict(summary: Summary) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the summary with the paper's numbers, ready for JSON."""
    counts = ("runs", "successes", "below_at_200", "never_left", "followed", "below_at_1500")
    names = (*counts, "median_hit", "median_norm_M", "failure")
    paper: dict[str, Mapping[str, Mapping[int, Any]]] = {
        "paper_successes_of_5": printed.SUCCESS,
        "paper_median_hit": printed.HITS,
        "paper_median_norm_M": printed.NORM_M,
    }

    def record(key: str, condition: float, cell: Cell) -> dict[str, Any]:
        ours = {name: getattr(cell, name) for name in names}
        theirs = {name: table.get(key, {}).get(int(condition)) for name, table in paper.items()}
        return {**ours, "over_budget": len(cell.over_budget), **theirs}

    return {
        key: {f"{c:g}": record(key, c, cell) for c, cell in row.items()}
        for key, row in summary.items()
    }


def count_chance(says: int, successes: int, runs: int) -> float:
    """Return the chance that five of ``runs`` have a count no likelier than ``says``."""
    # Hypergeometric, without replacement, summed over the counts that are no likelier.
    ways = [comb(successes, k) * comb(runs - successes, FIVE - k) for k in range(FIVE + 1)]
    return sum(way for way in ways if way <= ways[says]) / comb(runs, FIVE)


def median_chance(says: float, numbers: Sequence[float]) -> float:
    """Return twice the chance that the median of five draws lies beyond ``says``, at most 1."""
    # A fixed seed: the table is the same each time.
    draws = np.random.default_rng(0).choice(np.asarray(numbers), size=(DRAWS, FIVE))
    medians = np.median(draws, axis=1)
    return float(min(1.0, 2.0 * min(np.mean(medians <= says), np.mean(medians >= says))))


class _Table(NamedTuple):
    """A table: of medians of ``numbers``, or of counts if they are None."""

    title: str
    keys: Sequence[str]
    text: Callable[[Cell], str]
    print: Mapping[str, Mapping[int, Any]] = {}
    numbers: Callable[[Cell], Sequence[float]] | None = None

    def shown(self, cell: Cell | None, key: str, c: float, compare: bool, chances: bool) -> str:
        """Return a cell's text with the printed number and its chance among five instances."""
        if cell is None or cell.failure:
            return "–" if cell is None else FAILS
        if not compare or int(c) not in self.print.get(key, {}):
            return self.text(cell)
        says, chance = self.print[key][int(c)], ""
        if says is not None and chances and cell.runs >= FIVE:
            if self.numbers is None:
                chance = f"; {count_chance(says, cell.successes, cell.runs):.2f}"
            elif numbers := self.numbers(cell):
                chance = f"; {median_chance(says, numbers):.2f}"
        return f"{self.text(cell)} [{_text(says)}{chance}]"


_SETTLING = ("aug-w", "opt-w", "grid-w", "closed-w", "closed-u", "pdhg")
_UNIT = ("aug-u", "opt-u", "grid-u", "closed-u")
_PARTIAL = [method.key for method in experiment.PARTIAL_METHODS]
_BESIDE = [*_UNIT, *(method.key for method in experiment.TEXTBOOK_METHODS), *_PARTIAL]
_TABLES = (
    _Table(
        "Runs of {n} that cross 1e-3 within 200 steps",
        ("aug-w", "opt-w", "grid-w", "closed-w", "ogda", "eg", "pdhg", "lin-al"),
        lambda cell: f"{cell.successes}",
        printed.SUCCESS,
    ),
    _Table("Of these, still below at step 200", _SETTLING, lambda cell: f"{cell.below_at_200}"),
    _Table("Of these, never left once below", _SETTLING, lambda cell: f"{cell.never_left}"),
    _Table(
        f"Of those that were followed, below after {LONG:,} steps",
        _SETTLING,
        lambda cell: f"{cell.below_at_1500} of {cell.followed}" if cell.followed else "–",
    ),
    _Table(
        "Runs of {n} that cross, not printed: unit margins; linearized AL with the multiplier step "
        "of Hestenes and Powell, the penalty c = 10 and 20 itself; partial cancellation",
        _BESIDE,
        lambda cell: f"{cell.successes}",
    ),
    _Table(
        "Median hitting time of 1e-3, n = runs behind it, a dash where fewer than half cross",
        ("grid-w", "closed-w", "closed-u", "pdhg", *_PARTIAL),
        lambda cell: f"{_text(cell.printed_hit)} (n={cell.successes})",
        printed.HITS,
        lambda cell: list(cell.hits.values()),
    ),
    _Table(
        "Median of max‖M‖₂",
        ("closed-u", "grid-w", "closed-w", *_PARTIAL),
        lambda cell: _text(cell.median_norm_M, ".2f"),
        printed.NORM_M,
        lambda cell: cell.norms,
    ),
    _Table(
        "Runs of {n} that the norm budget ended",
        ("closed-u", "grid-w", "closed-w", *_PARTIAL),
        lambda cell: f"{len(cell.over_budget)}",
    ),
)


def text_tables(summary: Summary, *, compare: bool, chances: bool = False) -> str:
    """Return the tables as text, with the printed numbers (``compare``) and their chances."""
    n = max(cell.runs for row in summary.values() for cell in row.values())
    levels = sorted({c for row in summary.values() for c in row})
    lines: list[str] = []
    for table in _TABLES:
        rows = [["cond", *(LABELS[key] for key in table.keys)]]
        for c in levels:
            cells = ((key, summary[key].get(c)) for key in table.keys)
            rows.append([f"{c:g}", *(table.shown(x, key, c, compare, chances) for key, x in cells)])
        title = table.title.format(n=n)
        if compare and table.print:
            title += " [paper; the chance of it among five of these]" if chances else " [paper]"
        lines += titled(title, rows)
    return "\n".join(lines)


def distances(fitted: Summary) -> str:
    """Return the distances of table 1 from the printed one, a line for each kind of count."""
    pairs = [
        (cell, says)
        for key, row in printed.SUCCESS.items()
        for c, says in row.items()
        if (cell := fitted[key].get(c)) is not None and cell.runs == FIVE
    ]
    off = {
        "that cross": sum(abs(cell.successes - says) for cell, says in pairs),
        "still below at 200": sum(abs(cell.below_at_200 - says) for cell, says in pairs),
        "that never left": sum(abs(cell.never_left - says) for cell, says in pairs),
    }
    return "\n".join(
        f"- table 1 as a count of runs {text}: off by {distance} of {FIVE * len(pairs)}"
        for text, distance in off.items()
    )


def titled(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with a title and a rule below its first row."""
    lines = aligned(rows, ">")
    return [title, lines[0], "-" * len(lines[0]), *lines[1:], ""]


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _text(value: float | None, form: str = "g") -> str:
    return "–" if value is None else f"{value:{form}}"
