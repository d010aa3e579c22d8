"""Why cells differ from print: contradictions within the print, chance, or neither.

Five instances say little. So each printed number is held against what five instances of the
population give: a count has the chances of drawing without replacement, a median those of the
medians of many fives drawn from it. Where neither makes the printed number likely, the class that
was fitted is not the paper's, or its count is of something else; then that is what the line says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import comb
from typing import Any

import numpy as np

from casadi_hybrid.paper import printed
from casadi_hybrid.paper.cells import Cell, Summary
from casadi_hybrid.paper.experiment import LABELS, Run

FIVE = 5
# Below this chance five instances of the population do not explain a printed number.
UNLIKELY = 0.05
DRAWS = 2000


def contradictions() -> list[str]:
    """Where the paper's tables contradict each other, or its own rule; from its numbers alone."""
    found = []
    for key, row in printed.HITS.items():
        counts = printed.SUCCESS.get(key)
        for condition, hit in row.items():
            if counts is None or hit is None or 2 * counts[condition] >= FIVE:
                continue
            count = counts[condition]
            what = "of no run" if count == 0 else f"of {count}"
            found.append(
                f"{LABELS[key]} at {condition}: {count} of {FIVE} cross, yet a median hitting time "
                f"of {hit:g}, {what}, is printed; by the caption of table 2 fewer than half is a "
                "dash"
            )
    exceeds = [c for c, count in printed.SUCCESS["closed-w"].items() if count == 0]
    for condition in exceeds:
        norm = printed.NORM_M["closed-u"][condition]
        if norm is not None and norm <= printed.M_MAX:
            found.append(
                f"{LABELS['closed-u']} at {condition}: max‖M‖ {norm:g} is printed, where the text "
                f"says that the required correction exceeds the norm budget of {printed.M_MAX:g}"
            )
    return found


def differences(
    runs: Sequence[Run], fitted: Summary, population: Summary | None, seeds: Sequence[int]
) -> list[str]:
    """One line for each cell of the three tables whose number is not the printed one.

    Fewer than five instances are not held against print.

    Args:
        runs: all runs.
        fitted: the summary of the five seeds that stand beside the print.
        population: the summary of the seeds that played no part in the fit, None without any.
        seeds: those seeds.
    """
    tables: tuple[tuple[str, Mapping[str, Mapping[int, Any]], Callable[..., Any], Any], ...] = (
        ("crossed", printed.SUCCESS, lambda cell: cell.successes, _success),
        ("median hit", printed.HITS, lambda cell: cell.median_hit, lambda run: run.hit),
        ("max‖M‖", printed.NORM_M, lambda cell: cell.median_norm_M, lambda run: run.norm_M),
    )
    found = []
    for name, table, ours, value in tables:
        for key, row in table.items():
            for condition, print_says in row.items():
                cell = fitted.get(key, {}).get(float(condition))
                if cell is None or cell.runs < FIVE:
                    continue
                here = ours(cell)
                head = f"{LABELS[key]} at {condition}, {name} {_text(here)} [{_text(print_says)}]: "
                if cell.failure:
                    found.append(f"{head}FAILS, {cell.failure}")
                elif _differs(here, print_says):
                    group = [
                        run
                        for run in runs
                        if run.seed in seeds and (run.method, run.condition) == (key, condition)
                    ]
                    found.append(head + _guarded(name, print_says, group, value, population))
    return found


READINGS: dict[str, Callable[[Cell], int]] = {
    "that cross": lambda cell: cell.successes,
    "still below at 200": lambda cell: cell.below_at_200,
    "that never left": lambda cell: cell.never_left,
}


def readings(fitted: Summary) -> list[str]:
    """How far table 1 is from print as a whole, by what is counted."""
    found = []
    for name, count in READINGS.items():
        off, of = 0, 0
        for key, row in printed.SUCCESS.items():
            for condition, says in row.items():
                cell = fitted.get(key, {}).get(float(condition))
                if cell is not None and cell.runs == FIVE:
                    off += abs(count(cell) - says)
                    of += cell.runs
        if of:
            found.append(f"table 1 as a count of runs {name}: off by {off} of {of}")
    return found


def _guarded(
    name: str, says: Any, group: Sequence[Run], value: Any, population: Summary | None
) -> str:
    try:
        return _reason(name, says, group, value, population)
    except Exception as error:  # noqa: BLE001 - one explanation may fail, the others may not
        return f"FAILS, the explanation was not computed: {type(error).__name__}: {error}"


def _reason(
    name: str, says: Any, group: Sequence[Run], value: Any, population: Summary | None
) -> str:
    if population is None or len(group) < FIVE:
        return "not explained: no population was run; ask for more instances"
    if any(run.failure for run in group):
        return "not explained: a run of the population FAILS"
    if name == "crossed":
        return _count_reason(int(says), group)
    numbers = [float(value(run)) for run in group if _known(value(run))]
    if says is None:
        return f"a dash is printed; {len(numbers)} of {len(group)} of the population have a number"
    return _median_reason(float(says), numbers, len(group))


def _count_reason(says: int, group: Sequence[Run]) -> str:
    readings = {
        "cross": [run.hit is not None for run in group],
        "are below at 200": [run.at_end for run in group],
        "never left": [run.stays for run in group],
    }
    shares = ", ".join(f"{sum(flags)} {name}" for name, flags in readings.items())
    text = f"of {len(group)} in the population {shares}"
    chance = count_chance(says, sum(readings["cross"]), len(group))
    if chance >= UNLIKELY:
        return f"{text}: five of them give the print or less usual with chance {chance:.2f}"
    other = [
        name
        for name, flags in readings.items()
        if name != "cross" and count_chance(says, sum(flags), len(group)) >= UNLIKELY
    ]
    ending = f"; the count of those that {' or '.join(other)} would" if other else ""
    return f"{text}: five of them do not explain the print (chance {chance:.3f}){ending}"


def _median_reason(says: float, numbers: Sequence[float], runs: int) -> str:
    if not numbers:
        return f"none of {runs} in the population has a number, so nothing here explains the print"
    middle = float(np.median(numbers))
    text = f"median {middle:.4g} over {len(numbers)} of {runs} in the population"
    chance = median_chance(says, numbers)
    if chance >= UNLIKELY:
        return f"{text}: fives of them have medians as far off with chance {chance:.2f}"
    return f"{text}: fives of them do not explain the print (chance {chance:.3f})"


def count_chance(says: int, successes: int, runs: int) -> float:
    """The chance that five of ``runs`` have a count no likelier than ``says``."""
    total = comb(runs, FIVE)
    chances = [
        comb(successes, k) * comb(runs - successes, FIVE - k) / total for k in range(FIVE + 1)
    ]
    return float(sum(chance for chance in chances if chance <= chances[says] * (1 + 1e-9)))


def median_chance(says: float, numbers: Sequence[float]) -> float:
    """Twice the chance that the median of five draws is on the far side of ``says``, at most 1."""
    rng = np.random.default_rng(0)
    draws = rng.choice(np.asarray(numbers), size=(DRAWS, FIVE))
    medians = np.median(draws, axis=1)
    return float(min(1.0, 2.0 * min(np.mean(medians <= says), np.mean(medians >= says))))


def _success(run: Run) -> bool:
    return run.hit is not None


def _known(value: Any) -> bool:
    return value is not None and bool(np.isfinite(value))


def _differs(here: Any, says: Any) -> bool:
    """Whether a number is not the printed one to the digits of the print."""
    if here is None or says is None:
        return (here is None) != (says is None)
    return bool(round(float(here), 2) != round(float(says), 2))


def _text(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}"
