"""The paper's tables from runs: cells, the printed numbers beside them, and their chances.

Beside the population each printed number stands with the chance that five of its instances give
one as unusual: a count by drawing without replacement, a median by the medians of many fives. Where
it is small, the fitted class is not the paper's, or the paper counts something else.
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
    """One method at one condition level.

    Attributes:
        runs, hits: how many; of those that cross, by seed, the first t with ‖x_t − x*‖ ≤ 1e-3.
        norms: max_t ‖M_t‖₂ of the runs that designed at least once.
        over_budget: seeds of the runs that ended because ‖M_t‖₂ had to exceed M_max.
        below_at_200: runs with ‖x_t − x*‖ ≤ 1e-3 at t = 200.
        never_left: those that crossed and had ‖x_t − x*‖ ≤ 1e-3 from there to t = 200.
        followed: those that were to be followed to 1,500 steps where they crossed.
        below_at_1500: of these, those that crossed and end with ‖x − x*‖ ≤ 1e-3.
        failure: the error where a run could not be computed, and does not count; else empty.
    """

    runs: int
    hits: Mapping[int, float]
    norms: tuple[float, ...] = ()
    over_budget: tuple[int, ...] = ()
    below_at_200: int = 0
    never_left: int = 0
    followed: int = 0
    below_at_1500: int = 0
    failure: str = ""

    @property
    def successes(self) -> int:
        """Runs that cross: ‖x_t − x*‖ ≤ 1e-3 for some t ≤ 200. The paper's measure."""
        return len(self.hits)

    @property
    def median_hit(self) -> float | None:
        """Median hitting time among the successes, None without any."""
        return _median(list(self.hits.values()))

    @property
    def printed_hit(self) -> float | None:
        """The same by the caption of table 2: None, a dash, where fewer than half cross."""
        return self.median_hit if 2 * self.successes >= self.runs else None

    @property
    def median_norm_M(self) -> float | None:
        """Median of max_t ‖M_t‖₂, None where no run designed."""
        return _median(self.norms)


Summary = dict[str, dict[float, Cell]]


def cell_of(group: Sequence[Run]) -> Cell:
    """The cell of some runs of one method at one level."""
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
    """The runs by method and condition level, in their order."""
    found: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        found.setdefault((run.method, run.condition), []).append(run)
    return found


def summarize(runs: Iterable[Run], seeds: Iterable[int]) -> Summary:
    """Summarize the runs of some seeds, by method and condition level."""
    chosen = set(seeds)
    found: Summary = {method.key: {} for method in ALL_METHODS}
    for (key, level), group in sorted(grouped(r for r in runs if r.seed in chosen).items()):
        found[key][level] = cell_of(group)
    return found


def as_dict(summary: Summary) -> dict[str, dict[str, dict[str, Any]]]:
    """The summary with the paper's numbers, ready for JSON."""
    names = (
        "runs", "successes", "below_at_200", "never_left", "followed", "below_at_1500",
        "median_hit", "median_norm_M", "failure",
    )  # fmt: skip
    paper: dict[str, Mapping[str, Mapping[int, Any]]] = {
        "paper_successes_of_5": printed.SUCCESS,
        "paper_median_hit": printed.HITS,
        "paper_median_norm_M": printed.NORM_M,
    }

    def record(key: str, condition: float, cell: Cell) -> dict[str, Any]:
        says = {name: table.get(key, {}).get(int(condition)) for name, table in paper.items()}
        own = {name: getattr(cell, name) for name in names}
        return {**own, "over_budget": len(cell.over_budget), **says}

    return {
        key: {f"{c:g}": record(key, c, cell) for c, cell in row.items()}
        for key, row in summary.items()
    }


def count_chance(says: int, successes: int, runs: int) -> float:
    """The chance that five of ``runs`` have a count no likelier than ``says``."""
    ways = [comb(successes, k) * comb(runs - successes, FIVE - k) for k in range(FIVE + 1)]
    return sum(way for way in ways if way <= ways[says]) / comb(runs, FIVE)


def median_chance(says: float, numbers: Sequence[float]) -> float:
    """Twice the chance that the median of five draws is on the far side of ``says``, at most 1."""
    draws = np.random.default_rng(0).choice(np.asarray(numbers), size=(DRAWS, FIVE))
    medians = np.median(draws, axis=1)
    return float(min(1.0, 2.0 * min(np.mean(medians <= says), np.mean(medians >= says))))


class _Table(NamedTuple):
    """A table; its ``numbers`` are what its medians are of, without them it is of counts."""

    title: str
    keys: Sequence[str]
    text: Callable[[Cell], str]
    print: Mapping[str, Mapping[int, Any]] = {}
    numbers: Callable[[Cell], Sequence[float]] | None = None

    def shown(self, cell: Cell | None, key: str, c: float, compare: bool, chances: bool) -> str:
        """A cell's text with the print, and its chance among five instances of the cell's."""
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
        "of Hestenes\nand Powell, the penalty c = 10 and 20 itself; partial cancellation",
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
    """The paper's three tables as aligned text, with what they leave out.

    ``compare`` adds the printed number in brackets, ``chances`` the chance that five of these
    instances give one as unusual.
    """
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
    """Return the distances of table 1 from print, one line for each count."""
    counted = ("successes", "below_at_200", "never_left")
    names = zip(counted, ("that cross", "still below at 200", "that never left"), strict=True)
    printed_counts = ((k, c, says) for k, row in printed.SUCCESS.items() for c, says in row.items())
    found = ((fitted[key].get(c), says) for key, c, says in printed_counts)
    pairs = [(cell, says) for cell, says in found if cell is not None and cell.runs == FIVE]
    return "\n".join(
        f"- table 1 as a count of runs {text}: off by "
        f"{sum(abs(getattr(cell, name) - says) for cell, says in pairs)} of {FIVE * len(pairs)}"
        for name, text in names
    )


def titled(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with a title and a rule below its first row."""
    lines = aligned(rows, ">")
    return [title, lines[0], "-" * len(lines[0]), *lines[1:], ""]


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _text(value: float | None, form: str = "g") -> str:
    return "–" if value is None else f"{value:{form}}"
