"""The study's table: success rates, median iterations, and the ends of failed runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.paper.experiment.tables import titled
from casadi_hybrid.paper.study.trial import HIT, TOL, Trial, Unit


class Block(NamedTuple):
    """Units of one part of the table."""

    n: int
    m: int
    radius: float


@dataclass(frozen=True, slots=True)
class Rate:
    """One rule at one condition level of a block."""

    runs: int
    successes: int
    median_iterations: float | None  # over the successes
    failures: Mapping[str, int]  # by "stop reason/point status"

    @property
    def percent(self) -> float:
        """Successes in percent of the runs."""
        return 100.0 * self.successes / self.runs


Summary = dict[Block, dict[float, dict[str, Rate]]]


def summarize(units: Mapping[Unit, Iterable[Trial]]) -> Summary:
    """Summarize by block, condition level and rule, in the order of the units."""
    groups: dict[tuple[Block, float, str], list[Trial]] = {}
    for unit, trials in units.items():
        for trial in trials:
            groups.setdefault((Block(*unit[:3]), unit.condition, trial.rule), []).append(trial)
    summary: Summary = {}
    for (block, condition, rule), group in groups.items():
        iterations = [trial.iterations for trial in group if trial.success]
        ends = Counter(f"{t.stop}/{t.point}" for t in group if not t.success)
        median = float(np.median(iterations)) if iterations else None
        rate = Rate(len(group), len(iterations), median, dict(ends.most_common()))
        summary.setdefault(block, {}).setdefault(condition, {})[rule] = rate
    return summary


def caption(summary: Summary, budget: int) -> str:
    """Return the definitions of the table's numbers, for the kinds of blocks at hand."""
    lines = [
        "Per rule: successes in % of the runs, and median iterations (n = successes behind it).",
        f"Budget: {budget} iterations. A rule that does not apply to a problem fails on it.",
    ]
    if any(block.m >= block.n for block in summary):
        lines.append(
            f"Success for m ≥ n: ‖x_t − x*‖₂ ≤ {HIT:g} within the budget; iterations to the first "
            "such t."
        )
    if any(block.m < block.n for block in summary):
        lines.append(
            f"Success for m < n: a KKT point, ‖h‖_∞ ≤ {TOL:g} and ‖∇f + J_hᵀλ‖_∞ ≤ {TOL:g}, "
            "unscaled, evaluated anew; iterations of the run."
        )
    return "\n".join(lines)


def text_table(summary: Summary) -> str:
    """Return a table for each block (condition levels down, rules across) and the failures."""
    lines: list[str] = []
    for block, levels in summary.items():
        rules = list(next(iter(levels.values())))
        title = f"n = {block.n}, m = {block.m}, start radius {block.radius:g}"
        count = span(rate.runs for rates in levels.values() for rate in rates.values())
        rows = [["cond", *rules]]
        rows += [[f"{c:g}", *(_text(rates[r]) for r in rules)] for c, rates in levels.items()]
        lines += titled(f"{title}: {count} runs a cell", rows)
        for rule in rules:
            ends: Counter[str] = Counter()
            for rates in levels.values():
                ends.update(rates[rule].failures)
            if ends:
                counts = ", ".join(f"{end} {number}" for end, number in ends.most_common())
                lines.append(f"  failures of {rule}: {counts}")
        lines += [""] if lines[-1] else []
    return "\n".join(lines)


def span(counts: Iterable[int]) -> str:
    """Return the range of counts in words: "50", or "49 to 50"."""
    values = sorted(set(counts))
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _text(rate: Rate) -> str:
    median = "–" if rate.median_iterations is None else f"{rate.median_iterations:g}"
    return f"{rate.percent:.3g}% {median} (n={rate.successes})"


def as_cells(summary: Summary) -> list[dict[str, Any]]:
    """Return one flat record for each cell of the table, ready for JSON."""
    return [
        {**block._asdict(), "condition": condition, "rule": rule, **asdict(rate)}
        for block, levels in summary.items()
        for condition, rates in levels.items()
        for rule, rate in rates.items()
    ]
