"""The benchmark as aligned text and as CSV, losses like wins."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from hs_peers import align

from warm.measure import FALSE, LEFT, RAISED, Call
from warm.peers import ALIKE, OURS
from warm.summary import ENOUGH, Cell, Place, Summary, best, exponent, lost_steps, ratios

CLOCKS = {"wall": "seconds", "processor": "processor"}
"""What the clocks are called, and the field of a call that has their seconds."""
CAPTION = f"""\
Milliseconds of one Python call; the median is of the steps that are solved, a KKT point within
1e-6, unscaled, recomputed, the others are of all calls. "x ours" is the median over that of {OURS}:
below 1 the other is faster, a loss of ours.
* the best setting of its solver: the least median of those that solve {ENOUGH:.0%} of the steps.
"false": the solver says success, and it is no KKT point. "worse": solved, at a greater objective
than another solver's by more than 1e-4 relative, another minimum mostly. p99.9 of fewer
than 1000 steps leans on the worst.
"""
_HEAD = (
    "setting", "solved", "median", "p99", "p99.9", "worst", "it.", "x ours", "false", "worse",
    "raised", "left",
)  # fmt: skip
_AGAINST = """\
Against the horizon, medians of solved steps. Time grows as N to the exponent, fitted to all N, and
to the upper half of them, where the fixed cost of a call no longer hides it.
"""
_LISTED = 10


def report(calls: Sequence[Call], summary: Summary) -> str:
    """The table of every program, the ratios, and what went wrong."""
    blocks = [block(place, cells) for place, cells in summary.items()]
    return "\n".join([CAPTION, *blocks, conclusion(calls, summary)])


def conclusion(calls: Sequence[Call], summary: Summary) -> str:
    """What follows from the tables of the programs."""
    defaults = "The best setting of each solver, its median over that of our defaults"
    alike = f"The same over {ALIKE}, which asks for no more than the others are asked for"
    compared = (_ratios(summary, OURS, defaults), _ratios(summary, ALIKE, alike))
    return "\n".join(filter(None, [*compared, _tails(summary), _losses(calls), _oddities(calls)]))


def as_records(summary: Summary) -> list[dict[str, Any]]:
    """One flat record for each setting and program, ready for CSV and JSON; NaN becomes None."""
    found = []
    for (family, N), cells in summary.items():
        stars = {cell.setting for cell in best(cells).values()}
        for cell in cells.values():
            known = {
                key: None if isinstance(value, float) and np.isnan(value) else value
                for key, value in asdict(cell).items()
            }
            found.append({"family": family, "N": N, "best": cell.setting in stars, **known})
    return found


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side, with a rule below the head."""
    lines = align(rows).splitlines()
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def label(place: Place) -> str:
    """A program in words."""
    return f"{place[0]} N={place[1]}"


def block(place: Place, cells: dict[str, Cell]) -> str:
    """The table of one program."""
    stars = {cell.setting for cell in best(cells).values()}
    ours = cells[OURS].median if OURS in cells else np.nan
    rows: list[Sequence[str]] = [_HEAD]
    for cell in cells.values():
        name = ("* " if cell.setting in stars else "  ") + cell.setting
        times = [_number(1e3 * t) for t in (cell.median, cell.p99, cell.p999, cell.worst)]
        flaws = [str(n or "") for n in (cell.false, cell.worse, cell.raised, cell.left)]
        its = "–" if np.isnan(cell.iterations) else f"{cell.iterations:g}"
        ratio = _number(cell.median / ours)
        rows.append((name, f"{cell.solved}/{cell.total}", *times, its, ratio, *flaws))
    return f"{label(place)}\n{aligned(rows)}\n"


def _ratios(summary: Summary, setting: str, title: str) -> str:
    found = ratios(summary, setting)
    if not found:
        return ""
    places = list(summary)
    rows = [["median over ours", *(label(place) for place in places), "geometric mean", ""]]
    for peer, values in found.items():
        row, counted = [peer], []
        for place in places:
            value, able = values.get(place, (np.nan, False))
            shown = _number(value)
            row.append(shown if able or np.isnan(value) else f"({shown})")
            counted += [value] * able
        mean = geometric_mean(counted) if counted else np.nan
        verdict = "–" if np.isnan(mean) else "we win" if mean > 1 else "we lose"
        rows.append([*row, _number(mean), verdict])
    note = f"In parentheses, and not in the mean: below {ENOUGH:.0%} of the steps solved"
    return f"{title}\n{aligned(rows)}\n{note}\n"


def _tails(summary: Summary) -> str:
    """p99.9 over the median, the spread that a controller sees."""
    rows = [["p99.9 over median", *(label(place) for place in summary)]]
    peers = dict.fromkeys(peer for cells in summary.values() for peer in best(cells))
    for peer in peers:
        cells = [best(summary[place]).get(peer) for place in summary]
        rows.append([peer, *(_number(c.p999 / c.median) if c else "–" for c in cells)])
    return "Tails\n" + aligned(rows) + "\n"


def _losses(calls: Sequence[Call]) -> str:
    ours = [call for call in calls if call.setting == OURS]
    lost = lost_steps(calls)
    left = sum(call.kind == LEFT for call in ours)
    failed = sum(not call.solved for call in ours) - left
    lines = [
        f"{OURS}: {failed} of {len(ours) - left} steps not solved, {len(lost)} of them solved by a "
        "peer." + f" Left out, since its time was up: {left}." * bool(left)
    ]
    for call, names in lost[:_LISTED]:
        lines.append(
            f"  {label(call.place)}, seed {call.seed}, step {call.step}: {call.kind}, "
            f"{call.word}; solved by {', '.join(names)}"
        )
    if len(lost) > _LISTED:
        lines.append(f"  and {len(lost) - _LISTED} more, in the file of all calls")
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


def horizon_report(summary: Summary) -> str:
    """Time, iterations and time an iteration against the horizon, with fitted exponents."""
    parts = []
    for family in dict.fromkeys(place[0] for place in summary):
        sizes = [place[1] for place in summary if place[0] == family]
        rows = [[family, *(f"N={N}" for N in sizes), "exponent", "upper half"]]
        for name in dict.fromkeys(n for N in sizes for n in summary[family, N]):
            cells = [summary[family, N].get(name) for N in sizes]
            times = [cell.median if cell else np.nan for cell in cells]
            counts = [cell.iterations if cell else np.nan for cell in cells]
            each = [t / max(1.0, c) for t, c in zip(times, counts, strict=True)]
            rows.append([f"{name}, ms", *(_number(1e3 * t) for t in times), *_fit(sizes, times)])
            rows.append(["  iterations", *(_number(c) for c in counts), "", ""])
            shown = [_number(1e3 * t) for t in each]
            rows.append(["  ms an iteration", *shown, *_fit(sizes, each)])
            rows.append(["  build, s", *(_number(c.build) if c else "–" for c in cells), "", ""])
            solved = [f"{c.solved}/{c.total}" if c else "–" for c in cells]
            rows.append(["  solved", *solved, "", ""])
        parts.append(aligned(rows) + "\n")
    return "\n".join([_AGAINST, *parts])


def write_csv(records: Iterable[dict[str, Any]], path: Path) -> None:
    """Write one line for each record, of which there are some."""
    rows = list(records)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _fit(sizes: Sequence[int], values: Sequence[float]) -> tuple[str, str]:
    upper = (len(sizes) - 1) // 2
    halves = exponent(sizes, values), exponent(sizes[upper:], values[upper:])
    return _number(halves[0]), _number(halves[1])


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"
