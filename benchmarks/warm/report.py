"""From judged calls to the tables: a cell for each setting and program, ratios, losses, growth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from peers.report import exponent, geometric_mean, table
from peers.solvers import OURS

from warm.loop import FALSE, LEFT, RAISED, Call
from warm.peers import ALIKE

ENOUGH = 0.9
"""A setting can be the best of its peer where it solves at least this share of the steps it ran."""
WORSE = 1e-4
"""An objective is worse that is above the least one by more than this, relative to max(1, |f|)."""
LISTED = 10
CAPTION = f"""\
Milliseconds of one Python call; the median is of the steps that are solved, a KKT point within
1e-6, unscaled, recomputed, the others are of all calls. "x ours" is the median over that of {OURS}:
below 1 the other is faster, a loss of ours.
* the best setting of its solver: the least median of those that solve {ENOUGH:.0%} of the steps.
"false": the solver says success, and it is no KKT point. "worse": solved, at a greater objective
than another solver's by more than 1e-4 relative, another minimum mostly. p99.9 of fewer
than 1000 steps leans on the worst.
"""
HEAD = (
    "setting", "solved", "median", "p99", "p99.9", "worst", "it.", "x ours", "false", "worse",
    "raised", "left",
)  # fmt: skip
GROWTH = """\
Against the horizon, medians of solved steps. Time grows as N to the exponent, fitted to all N, and
to the upper half of them, where the fixed cost of a call no longer hides it.
"""
Place = tuple[str, int]


@dataclass(frozen=True)
class Cell:
    """One setting on one program.

    Attributes:
        setting: its name.
        total, solved, false, raised, left: steps, and how many of them ended so.
        worse: solved steps at a KKT point with a greater objective than another solver's.
        median: seconds of the solved steps; NaN where there is none.
        tail: 99 %, 99.9 % and 100 % quantiles of the seconds of all calls.
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
    tail: Sequence[float]
    iterations: float
    build: float

    @property
    def peer(self) -> str:
        """The solver."""
        return self.setting.split("/")[0]

    @property
    def able(self) -> bool:
        """True where half of the steps were run and enough of them solved to compare times."""
        tried = self.total - self.left
        return tried > 0 and 2 * tried >= self.total and self.solved >= ENOUGH * tried


Summary = dict[Place, dict[str, Cell]]


def summarize(calls: Iterable[Call], clock: str = "wall") -> Summary:
    """One cell for each setting and program, by one of the clocks; ours first."""
    groups: dict[Place, dict[str, list[Call]]] = {}
    least: dict[Any, float] = {}
    for call in sorted(calls, key=lambda call: call.setting.split("/")[0] != OURS):
        groups.setdefault(call.place, {}).setdefault(call.setting, []).append(call)
        if call.solved:
            least[call.instant] = min(call.f, least.get(call.instant, np.inf))
    return {
        place: {name: _cell(each, least, clock) for name, each in group.items()}
        for place, group in groups.items()
    }


def _cell(calls: Sequence[Call], least: Mapping[Any, float], clock: str) -> Cell:
    good = [call for call in calls if call.solved]
    times = [getattr(call, clock) for call in good]
    every = [getattr(call, clock) for call in calls if call.kind != LEFT]
    counts = [call.iterations for call in good if call.iterations >= 0]
    worse = [call.f - least[call.instant] > WORSE * max(1.0, abs(call.f)) for call in good]
    kinds = Counter(call.kind for call in calls)
    return Cell(
        setting=calls[0].setting,
        total=len(calls),
        solved=len(good),
        false=kinds[FALSE],
        raised=kinds[RAISED],
        left=kinds[LEFT],
        worse=sum(worse),
        median=float(np.median(times or [np.nan])),
        tail=np.quantile(every or [np.nan], (0.99, 0.999, 1.0)).tolist(),
        iterations=float(np.median(counts)) if counts else np.nan,
        build=calls[0].build,
    )


def best(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """The best setting of each peer on one program: of ours the first, its defaults.

    Of the settings that solve nine tenths of the steps the one with the least median; where there
    is none, the one that solves most.
    """

    def rank(cell: Cell) -> tuple[bool, float]:
        return not cell.able, cell.median if cell.able else -cell.solved

    stars: dict[str, Cell] = {}
    for cell in cells.values():
        other = stars.get(cell.peer)
        if other is None or (cell.peer != OURS and rank(cell) < rank(other)):
            stars[cell.peer] = cell
    return stars


def costs(calls: Sequence[Call], summary: Summary, clock: str) -> dict[str, dict[Any, float]]:
    """Seconds of every step by each peer's best setting, for a profile."""
    stars = {place: best(cells) for place, cells in summary.items()}
    found: dict[str, dict[Any, float]] = {}
    for call in calls:
        peer = call.setting.split("/")[0]
        if call.setting == stars[call.place][peer].setting:
            seconds = getattr(call, clock) if call.solved else np.inf
            found.setdefault(peer, {})[call.instant] = seconds
    return found


# --- Text -----------------------------------------------------------------------------------------
def report(calls: Sequence[Call], summary: Summary) -> str:
    """The table of every program, the ratios, and what went wrong."""
    blocks = [block(place, cells) for place, cells in summary.items()]
    return "\n".join([CAPTION, *blocks, conclusion(calls, summary)])


def block(place: Place, cells: Mapping[str, Cell]) -> str:
    """The table of one program."""
    stars = [cell.setting for cell in best(cells).values()]
    ours = cells[OURS].median if OURS in cells else np.nan
    rows: list[Sequence[str]] = [HEAD]
    for cell in cells.values():
        name = cell.setting + " *" * (cell.setting in stars)
        times = [number(1e3 * seconds) for seconds in (cell.median, *cell.tail)]
        flaws = [str(count or "") for count in (cell.false, cell.worse, cell.raised, cell.left)]
        ratio = number(cell.median / ours)
        solved = f"{cell.solved}/{cell.total}"
        rows.append((name, solved, *times, number(cell.iterations), ratio, *flaws))
    return f"{label(place)}\n{table(rows)}\n"


def conclusion(calls: Sequence[Call], summary: Summary) -> str:
    """Ratios, losses and oddities over all programs."""
    defaults = "The best setting of each solver, its median over that of our defaults"
    alike = f"The same over {ALIKE}, which asks for no more than the others are asked for"
    parts = [_ratios(summary, OURS, defaults), _ratios(summary, ALIKE, alike)]
    return "\n".join(filter(None, [*parts, _losses(calls), _oddities(calls)]))


def _ratios(summary: Summary, setting: str, title: str) -> str:
    """Medians of each peer's best setting over ours, where one solves enough to compare."""
    places = [place for place in summary if setting in summary[place]]
    stars = {place: best(summary[place]) for place in places}
    peers = dict.fromkeys(peer for each in stars.values() for peer in each if peer != OURS)
    rows = [["median over ours", *map(label, places), "geometric mean", ""]]
    for peer in peers:
        shown, counted = [], []
        for place in places:
            ours, cell = summary[place][setting], stars[place].get(peer)
            ratio = cell.median / ours.median if cell else np.nan
            able = cell is not None and cell.able and ours.able
            shown.append(number(ratio) if able or np.isnan(ratio) else f"({number(ratio)})")
            counted += [ratio] * able
        mean = geometric_mean(counted)
        verdict = "–" if np.isnan(mean) else "we win" if mean > 1 else "we lose"
        rows.append([peer, *shown, number(mean), verdict])
    note = f"In parentheses, and not in the mean: below {ENOUGH:.0%} of the steps solved"
    return f"{title}\n{table(rows)}\n{note}\n" if peers else ""


def _losses(calls: Sequence[Call]) -> str:
    """The steps that ours does not solve, and by whom they are solved."""
    solved: dict[Any, list[str]] = {}
    for call in calls:
        if call.solved and call.setting.split("/")[0] != OURS:
            solved.setdefault(call.instant, []).append(call.setting)
    ran = [call for call in calls if call.setting == OURS and call.kind != LEFT]
    left = sum(call.setting == OURS for call in calls) - len(ran)
    failed = [call for call in ran if not call.solved]
    lost = [call for call in failed if call.instant in solved]
    lines = [
        f"{OURS}: {len(failed)} of {len(ran)} steps not solved, {len(lost)} of them solved by a "
        "peer." + f" Left out, since its time was up: {left}." * bool(left)
    ]
    for call in lost[:LISTED]:
        place = f"{label(call.place)}, seed {call.seed}, step {call.step}"
        peers = ", ".join(solved[call.instant])
        lines.append(f"  {place}: {call.kind}, {call.word}; solved by {peers}")
    if len(lost) > LISTED:
        lines.append(f"  and {len(lost) - LISTED} more, in the file of all calls")
    return "\n".join(lines) + "\n"


def _oddities(calls: Sequence[Call]) -> str:
    """Wrong words and raised errors, each kind once, with its count."""
    odd = (call for call in calls if call.kind in (FALSE, RAISED))
    counts = Counter((call.setting, label(call.place), call.kind, call.word) for call in odd)
    if not counts:
        return "No solver called a point a solution that is none, and none raised an error.\n"
    lines = [
        f"  {name} on {place}: {kind} in {count} steps, {word!r}"
        for (name, place, kind, word), count in counts.items()
    ]
    return "\n".join(["Wrong words and errors:", *lines]) + "\n"


def growth(summary: Summary) -> str:
    """Time, iterations and time an iteration against the horizon, with fitted exponents."""
    parts = [GROWTH]
    for family in dict.fromkeys(name for name, _ in summary):
        by_size = {N: cells for (name, N), cells in summary.items() if name == family}
        sizes, upper = list(by_size), (len(by_size) - 1) // 2
        rows = [[family, *(f"N={N}" for N in sizes), "exponent", "upper half"]]
        for name in dict.fromkeys(name for cells in by_size.values() for name in cells):
            cells = [each[name] for each in by_size.values()]
            times = [1e3 * cell.median for cell in cells]
            counts = [cell.iterations for cell in cells]
            each = [time / max(1.0, count) for time, count in zip(times, counts, strict=True)]
            for title, values in ((f"{name}, ms", times), ("  ms an iteration", each)):
                fits = exponent(sizes, values), exponent(sizes[upper:], values[upper:])
                rows.append([title, *map(number, values), *map(number, fits)])
            builds = [cell.build for cell in cells]
            for title, values in (("  iterations", counts), ("  build, s", builds)):
                rows.append([title, *map(number, values), "", ""])
            rows.append(["  solved", *(f"{c.solved}/{c.total}" for c in cells), "", ""])
        parts.append(table(rows) + "\n")
    return "\n".join(parts)


def label(place: Place) -> str:
    """A program in words."""
    return f"{place[0]} N={place[1]}"


def number(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"
