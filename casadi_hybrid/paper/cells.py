"""From runs to cells: what one method did at one condition level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from casadi_hybrid.paper import printed
from casadi_hybrid.paper.experiment import ALL_METHODS, Run


@dataclass(frozen=True, slots=True)
class Cell:
    """One method at one condition level.

    Attributes:
        runs: instances run.
        successes: those that cross: ‖x_t − x*‖ ≤ 1e-3 for some t ≤ 200. The paper's measure.
        below_at_200: those with ‖x_t − x*‖ ≤ 1e-3 at t = 200.
        never_left: those that crossed and had ‖x_t − x*‖ ≤ 1e-3 from there to t = 200.
        followed: those that were to be followed to 1,500 steps where they crossed.
        below_at_1500: of these, those that crossed and end with ‖x − x*‖ ≤ 1e-3.
        median_hit: median hitting time among the successes, None without any.
        median_norm_M: median of max_t ‖M_t‖₂ over all runs that designed at least once.
        over_budget: runs that ended because ‖M_t‖₂ had to exceed M_max.
        failure: the error where a run could not be computed, else empty; the other numbers are
            then those of the runs that could.
    """

    runs: int
    successes: int
    below_at_200: int
    never_left: int
    followed: int
    below_at_1500: int
    median_hit: float | None
    median_norm_M: float | None
    over_budget: int
    failure: str = ""


Summary = dict[str, dict[float, Cell]]


def cell_of(group: Sequence[Run]) -> Cell:
    """The cell of some runs of one method at one level."""
    hits = [run.hit for run in group if run.hit is not None]
    norms = [run.norm_M for run in group if np.isfinite(run.norm_M)]
    return Cell(
        runs=len(group),
        successes=len(hits),
        below_at_200=sum(run.at_end for run in group),
        never_left=sum(run.stays for run in group),
        followed=sum(run.longest is not None for run in group),
        below_at_1500=sum(run.arrives for run in group),
        median_hit=_median(hits),
        median_norm_M=_median(norms),
        over_budget=sum(run.over_budget for run in group),
        failure=next((run.failure for run in group if run.failure), ""),
    )


def summarize(runs: Iterable[Run], seeds: Iterable[int]) -> Summary:
    """Summarize the runs of some seeds, by method and condition level."""
    chosen = set(seeds)
    groups: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        if run.seed in chosen:
            groups.setdefault((run.method, run.condition), []).append(run)
    return {
        method.key: {
            condition: cell_of(group)
            for (key, condition), group in sorted(groups.items(), key=lambda item: item[0][1])
            if key == method.key
        }
        for method in ALL_METHODS
    }


def _median(values: Sequence[Any]) -> float | None:
    return float(np.median(values)) if values else None


def as_dict(summary: Summary) -> dict[str, dict[str, dict[str, Any]]]:
    """The summary with the paper's numbers, ready for JSON."""
    return {
        key: {
            f"{condition:g}": {
                **asdict(cell),
                "paper_successes_of_5": printed.SUCCESS.get(key, {}).get(int(condition)),
                "paper_median_hit": printed.HITS.get(key, {}).get(int(condition)),
                "paper_median_norm_M": printed.NORM_M.get(key, {}).get(int(condition)),
            }
            for condition, cell in row.items()
        }
        for key, row in summary.items()
    }
