"""From trials to the study's table: success rates and median iterations, and how failures ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.study.trial import (
    HIT,
    REGULAR,
    TOL,
    TOL_STATIONARITY_DEFICIENT,
    Trial,
    Unit,
)


class Block(NamedTuple):
    """The units that share a part of the table."""

    kind: str
    n: int
    m: int
    radius: float

    @property
    def title(self) -> str:
        """The block in words."""
        kind = "" if self.kind == REGULAR else f", rank lost at x* ({self.kind})"
        return f"n = {self.n}, m = {self.m}{kind}, start radius {self.radius:g}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One rule at one condition level of a block.

    Attributes:
        runs, successes: counts.
        median_iterations: among the successes; None without any.
        failures: how the other runs ended, as "stop reason/point status", with counts.
    """

    runs: int
    successes: int
    median_iterations: float | None
    failures: Mapping[str, int]

    @property
    def percent(self) -> float:
        """Successes in percent of the runs."""
        return 100.0 * self.successes / self.runs


Summary = dict[Block, dict[float, dict[str, Cell]]]


def block_of(unit: Unit) -> Block:
    """Return the block a unit belongs to."""
    return Block(unit.kind, unit.n, unit.m, unit.radius)


def summarize(units: Mapping[Unit, Iterable[Trial]]) -> Summary:
    """Summarize by block, condition level and rule, in the order of the units."""
    groups: dict[Block, dict[float, dict[str, list[Trial]]]] = {}
    for unit, trials in units.items():
        level = groups.setdefault(block_of(unit), {}).setdefault(unit.condition, {})
        for trial in trials:
            level.setdefault(trial.rule, []).append(trial)
    return {
        block: {
            condition: {rule: _cell(trials) for rule, trials in rules.items()}
            for condition, rules in levels.items()
        }
        for block, levels in groups.items()
    }


def _cell(trials: list[Trial]) -> Cell:
    hits = [trial.iterations for trial in trials if trial.success]
    failures = Counter(f"{t.stop}/{t.point}" for t in trials if not t.success)
    median = float(np.median(hits)) if hits else None
    return Cell(len(trials), len(hits), median, dict(failures.most_common()))


def caption(summary: Summary, budget: int) -> str:
    """What the numbers are, for the kinds of blocks at hand."""
    lines = [
        "Per rule: successes in % of the runs, and median iterations (n = successes behind it).",
        f"Budget: {budget} iterations. A rule that does not apply to a problem fails on it.",
    ]
    full = [block for block in summary if block.kind == REGULAR]
    if any(block.m >= block.n for block in full):
        lines.append(
            f"Success for m ≥ n: ‖x_t − x*‖₂ ≤ {HIT:g} within the budget; iterations to the "
            "first such t."
        )
    if any(block.m < block.n for block in full):
        lines.append(
            f"Success for m < n: a KKT point, ‖h‖_∞ ≤ {TOL:g} and ‖∇f + J_hᵀλ‖_∞ ≤ {TOL:g}, "
            "unscaled, evaluated anew; iterations of the run."
        )
    if len(full) < len(summary):
        lines.append(
            f"Success where rank is lost: ‖h‖_∞ ≤ {TOL:g} and ‖∇f + J_hᵀλ‖_∞ ≤ "
            f"{TOL_STATIONARITY_DEFICIENT:g}, unscaled, with multipliers fitted by the verifier; "
            "iterations of the run."
        )
    return "\n".join(lines)


def text_table(summary: Summary) -> str:
    """Aligned text: a block each, condition levels down, rules across."""
    parts = []
    for block, levels in summary.items():
        rules = list(next(iter(levels.values())))
        count = span(cell.runs for cells in levels.values() for cell in cells.values())
        rows = [["cond", *rules]]
        rows += [[f"{c:g}", *(_text(cells[r]) for r in rules)] for c, cells in levels.items()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rules) + 1)]
        lines = ["  ".join(f"{v:>{w}}" for v, w in zip(r, widths, strict=True)) for r in rows]
        title = f"{block.title}: {count} runs a cell"
        parts.append("\n".join([title, lines[0], "-" * len(lines[0]), *lines[1:]]))
        parts.append(_failures(levels, rules))
    return "\n".join(parts)


def span(counts: Iterable[int]) -> str:
    """Least and largest count in words: "50", or "49 to 50"."""
    found = sorted(set(counts))
    return " to ".join(dict.fromkeys((f"{found[0]}", f"{found[-1]}")))


def _text(cell: Cell) -> str:
    median = "–" if cell.median_iterations is None else f"{cell.median_iterations:g}"
    return f"{cell.percent:.3g}% {median:>5} (n={cell.successes:>3})"


def _failures(levels: Mapping[float, Mapping[str, Cell]], rules: list[str]) -> str:
    """How the failures of a block ended, all its condition levels together."""
    lines = []
    for rule in rules:
        total: Counter[str] = Counter()
        for cells in levels.values():
            total.update(cells[rule].failures)
        if total:
            ends = ", ".join(f"{end} {number}" for end, number in total.most_common())
            lines.append(f"  failures of {rule}: {ends}")
    return "\n".join([*lines, ""])


def as_cells(summary: Summary) -> list[dict[str, Any]]:
    """One flat record a cell, ready for JSON."""
    return [
        {**block._asdict(), "condition": condition, "rule": rule, **asdict(cell)}
        for block, levels in summary.items()
        for condition, cells in levels.items()
        for rule, cell in cells.items()
    ]
