"""From calls to what is shown: one cell for each setting and program, and the best of each peer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from warm.measure import FALSE, LEFT, RAISED, SOLVED, Call
from warm.peers import OURS

ENOUGH = 0.9
"""A setting can be the best of its peer where it solves at least this share of the steps it ran."""
WORSE = 1e-4
"""An objective is worse that is above the least one by more than this, relative to max(1, |f|)."""
Place = tuple[str, int]


@dataclass(frozen=True)
class Cell:
    """One setting on one program.

    Attributes:
        setting: its name.
        total, solved, false, raised, left: steps, and how many of them ended so.
        worse: solved steps at a KKT point with a greater objective than another solver's.
        median: seconds of the solved steps; NaN where there is none.
        p99, p999, worst: seconds of all calls, whatever came of them.
        iterations: their median; NaN where the solver does not count.
        build: seconds to build the solver.
    """

    setting: str
    total: int
    solved: int
    false: int
    raised: int
    left: int
    worse: int
    median: float
    p99: float
    p999: float
    worst: float
    iterations: float
    build: float

    @property
    def peer(self) -> str:
        """The solver."""
        return self.setting.split("/")[0]

    @property
    def able(self) -> bool:
        """Whether enough steps are solved for a comparison of times, and half of all were run."""
        tried = self.total - self.left
        return tried > 0 and 2 * tried >= self.total and self.solved >= ENOUGH * tried


Summary = dict[Place, dict[str, Cell]]


def summarize(calls: Iterable[Call], clock: str = "seconds") -> Summary:
    """One cell for each setting and program, by one of the clocks: ``seconds``, ``processor``."""
    groups: dict[Place, dict[str, list[Call]]] = {}
    for call in calls:
        groups.setdefault(call.place, {}).setdefault(call.setting, []).append(call)
    return {place: _cells(group, clock) for place, group in groups.items()}


def _cells(group: Mapping[str, Sequence[Call]], clock: str) -> dict[str, Cell]:
    least: dict[Any, float] = {}
    for call in chain.from_iterable(group.values()):
        if call.solved:
            least[call.instant] = min(call.f, least.get(call.instant, np.inf))
    found = {}
    for name, calls in sorted(group.items(), key=lambda item: item[0].split("/")[0] != OURS):
        good = [call for call in calls if call.solved]
        median = np.median([getattr(call, clock) for call in good] or [np.nan])
        made = [getattr(call, clock) for call in calls if call.kind != LEFT]
        p99, p999, worst = map(float, np.quantile(made or [np.nan], (0.99, 0.999, 1.0)))
        counts = [call.iterations for call in good if call.iterations >= 0]
        worse = [c.f - least[c.instant] > WORSE * max(1.0, abs(c.f)) for c in good]
        kinds = [call.kind for call in calls]
        found[name] = Cell(
            name, len(calls), len(good), kinds.count(FALSE), kinds.count(RAISED),
            kinds.count(LEFT), sum(worse), float(median), p99, p999, worst,
            float(np.median(counts)) if counts else np.nan, calls[0].build,
        )  # fmt: skip
    return found


def best(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """The best setting of each peer on one program: of ours the first, its defaults.

    Of the settings that solve nine tenths of the steps the one with the least median; where there
    is none, the one that solves most.
    """
    found: dict[str, Cell] = {}
    for cell in cells.values():
        other = found.get(cell.peer)
        if other is None or (cell.peer != OURS and _better(cell, other)):
            found[cell.peer] = cell
    return found


def _better(cell: Cell, other: Cell) -> bool:
    if cell.able and other.able:
        return cell.median < other.median
    return cell.able or (not other.able and cell.solved > other.solved)


def ratios(summary: Summary, setting: str = OURS) -> dict[str, dict[Place, tuple[float, bool]]]:
    """Median of each peer's best setting over ours, by peer and program, NaN without a step.

    With each, whether both solve enough steps for it to say anything.
    """
    found: dict[str, dict[Place, tuple[float, bool]]] = {}
    for place, cells in summary.items():
        champions = best(cells)
        ours = cells.get(setting)
        for peer, cell in champions.items():
            if peer != OURS and ours is not None:
                compared = cell.median / ours.median, cell.able and ours.able
                found.setdefault(peer, {})[place] = compared
    return found


def lost_steps(calls: Sequence[Call]) -> list[tuple[Call, list[str]]]:
    """The steps that ours runs and does not solve, and a peer does, with the peer's settings."""
    solved: dict[Any, list[str]] = {}
    for call in calls:
        if call.solved and call.setting.split("/")[0] != OURS:
            solved.setdefault(call.instant, []).append(call.setting)
    ours = (call for call in calls if call.setting == OURS and call.kind not in (SOLVED, LEFT))
    return [(call, solved[call.instant]) for call in ours if call.instant in solved]


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """e of values ∝ sizesᵉ by least squares of the logarithms; NaN with less than two."""
    pairs = [(s, v) for s, v in zip(sizes, values, strict=True) if np.isfinite(v) and v > 0]
    if len(pairs) < 2:
        return np.nan
    across, up = np.log(np.array(pairs)).T
    return float(np.polyfit(across, up, 1)[0])
