"""From runs to the paper's tables: success counts, median hitting times, median ‖M‖."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.paper import printed
from casadi_hybrid.paper.experiment import LABELS, PAPER_METHODS, THRESHOLDS, Run

AT = THRESHOLDS.index(1e-3)


@dataclass(frozen=True, slots=True)
class Cell:
    """One method at one condition level.

    Attributes:
        runs: instances run.
        successes: those with ‖x − x*‖ ≤ 1e-3 within the budget.
        median_hit: median hitting time among the successes, None without any.
        median_norm_M: median of max_t‖M_t‖₂ over all runs that designed at least once.
    """

    runs: int
    successes: int
    median_hit: float | None
    median_norm_M: float | None


Summary = dict[str, dict[float, Cell]]


def summarize(runs: Iterable[Run], instances: int) -> Summary:
    """Summarize the runs with ``seed < instances``, by method and condition level."""
    groups: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        if run.seed < instances:
            groups.setdefault((run.method, run.condition), []).append(run)
    summary: Summary = {}
    for method in PAPER_METHODS:
        row = {}
        for (key, condition), group in sorted(groups.items(), key=lambda item: item[0][1]):
            if key == method.key:
                hits = [run.hits[AT] for run in group if run.hits[AT] is not None]
                norms = [run.norm_M for run in group if np.isfinite(run.norm_M)]
                row[condition] = Cell(len(group), len(hits), _median(hits), _median(norms))
        summary[method.key] = row
    return summary


def _median(values: Sequence[Any]) -> float | None:
    return float(np.median(values)) if values else None


def text_tables(summary: Summary, *, compare: bool) -> str:
    """The three tables as aligned text; ``compare`` adds the paper's number in brackets."""
    conditions = list(next(iter(summary.values())))
    n = next(iter(next(iter(summary.values())).values())).runs

    def table(title: str, keys: Sequence[str], cell: Any) -> list[str]:
        rows = [["cond", *(LABELS[key] for key in keys)]]
        rows += [[f"{c:g}", *(cell(key, c) for key in keys)] for c in conditions]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(f"{v:>{w}}" for v, w in zip(r, widths, strict=True)) for r in rows]
        return [title, lines[0], "-" * len(lines[0]), *lines[1:], ""]

    def success(key: str, c: float) -> str:
        here = summary[key][c]
        return f"{here.successes}{_printed(printed.SUCCESS, key, c, compare)}"

    def hit(key: str, c: float) -> str:
        here = summary[key][c]
        value = "–" if here.median_hit is None else f"{here.median_hit:g}"
        return f"{value} (n={here.successes}){_printed(printed.HITS, key, c, compare)}"

    def norm(key: str, c: float) -> str:
        value = summary[key][c].median_norm_M
        text = "–" if value is None else f"{value:.2f}"
        return f"{text}{_printed(printed.NORM_M, key, c, compare)}"

    bracket = " [paper, of 5]" if compare else ""
    every = [m.key for m in PAPER_METHODS]
    weighted = [key for key in every if not key.endswith("-u")]
    unit = [key for key in every if key.endswith("-u")]
    blocks = [
        table(f"Successes of {n} at ‖x − x*‖ ≤ 1e-3{bracket}", weighted, success),
        table(f"Successes of {n}, unit margin", unit, success),
        table(
            "Median hitting time of 1e-3, n = successes behind it"
            + (" [paper]" if compare else ""),
            ["grid-w", "closed-w", "closed-u", "pdhg"],
            hit,
        ),
        table(
            "Median of max‖M‖₂" + (" [paper]" if compare else ""),
            ["closed-u", "grid-w", "closed-w"],
            norm,
        ),
    ]
    return "\n".join(line for block in blocks for line in block)


def _printed(table: dict[str, Any], key: str, condition: float, compare: bool) -> str:
    if not compare or key not in table or condition not in table[key]:
        return ""
    value = table[key][int(condition)]
    return " [–]" if value is None else f" [{value:g}]"


def as_dict(summary: Summary) -> dict[str, dict[str, dict[str, Any]]]:
    """The summary with the paper's numbers, ready for JSON."""
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for key, row in summary.items():
        out[key] = {}
        for condition, cell in row.items():
            c = int(condition)
            out[key][f"{condition:g}"] = {
                "runs": cell.runs,
                "successes": cell.successes,
                "median_hit": cell.median_hit,
                "median_norm_M": cell.median_norm_M,
                "paper_successes_of_5": printed.SUCCESS.get(key, {}).get(c),
                "paper_median_hit": printed.HITS.get(key, {}).get(c),
                "paper_median_norm_M": printed.NORM_M.get(key, {}).get(c),
            }
    return out


def write_csv(runs: Iterable[Run], path: Path) -> None:
    """Write one line a run."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        hits = [f"hit_{threshold:g}" for threshold in THRESHOLDS]
        numbers = ["max_norm_M", "final_error", "feasibility", "stationarity"]
        writer.writerow(["method", "condition", "seed", *hits, *numbers, "stop"])
        for r in sorted(runs, key=lambda r: (r.method, r.condition, r.seed)):
            times = ["" if hit is None else hit for hit in r.hits]
            norm = "" if np.isnan(r.norm_M) else f"{r.norm_M:.6g}"
            values = [f"{v:.6g}" for v in (r.errors[-1], r.feasibility, r.stationarity)]
            writer.writerow([r.method, f"{r.condition:g}", r.seed, *times, norm, *values, r.stop])
