"""The paper's tables as text, with what it does not tell beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from casadi_hybrid.paper import printed
from casadi_hybrid.paper.cells import Summary
from casadi_hybrid.paper.experiment import LABELS, LONG, PAPER_METHODS, PARTIAL_METHODS

FAILS = "FAILS"
SETTLING = ("aug-w", "opt-w", "grid-w", "closed-w", "closed-u", "pdhg")


def aligned(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """A titled table, its first row above a rule, columns to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{v:>{w}}" for v, w in zip(r, widths, strict=True)) for r in rows]
    return [title, lines[0], "-" * len(lines[0]), *lines[1:], ""]


def text_tables(summary: Summary, *, compare: bool) -> str:
    """The paper's three tables as aligned text; ``compare`` adds its numbers in brackets."""
    conditions = levels(summary)
    n = max(cell.runs for row in summary.values() for cell in row.values())

    def table(title: str, keys: Sequence[str], show: Callable[[str, float], str]) -> list[str]:
        rows = [["cond", *(LABELS[key] for key in keys)]]
        rows += [[f"{c:g}", *(_safe(show, summary, key, c) for key in keys)] for c in conditions]
        return aligned(title, rows)

    def success(key: str, c: float) -> str:
        return f"{summary[key][c].successes}{_printed(printed.SUCCESS, key, c, compare)}"

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
        table(f"Runs of {n} that cross 1e-3 within 200 steps{bracket}", weighted, success),
        table(f"Runs of {n} that cross, unit margin", unit, success),
        table(
            "Median hitting time of 1e-3, n = runs behind it" + (" [paper]" if compare else ""),
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


def settling_table(summary: Summary, *, compare: bool) -> str:
    """Beside the paper's count: who is still below at 200, never left, and is there after 1,500."""
    after = f"after {LONG:,} steps"
    paper = ["paper, of 5"] if compare else []
    rows = [["method", "cond", *paper, "crossed", "still below at 200", "never left", after]]
    for key in SETTLING:
        for condition, cell in summary[key].items():
            count = printed.SUCCESS.get(key, {}).get(int(condition), "not printed")
            numbers = [cell.successes, cell.below_at_200, cell.never_left]
            texts = [f"{number} of {cell.runs}" for number in numbers]
            texts.append(f"{cell.below_at_1500} of {cell.followed}" if cell.followed else "–")
            shown = [FAILS] * len(texts) if cell.failure else texts
            rows.append([LABELS[key], f"{condition:g}", *([f"{count}"] if compare else []), *shown])
    return "\n".join(aligned("Crossing 1e-3 within 200 steps, and settling below it", rows))


def partial_table(summary: Summary) -> str:
    """The paper's extension beside its closed form: crossed, still below, ‖M‖, budget."""
    keys = ("closed-w", *(method.key for method in PARTIAL_METHODS))
    rows = [["cond", *(LABELS[key] for key in keys)]]

    def show(key: str, c: float) -> str:
        cell = summary[key][c]
        norm = "–" if cell.median_norm_M is None else f"{cell.median_norm_M:.1f}"
        hit = "–" if cell.median_hit is None else f"{cell.median_hit:g}"
        counts = f"{cell.successes}, {cell.below_at_200} of {cell.runs}"
        return f"{counts}; {hit}; {norm}; {cell.over_budget}"

    for c in levels(summary):
        rows.append([f"{c:g}", *(_safe(show, summary, key, c) for key in keys)])
    title = (
        "Partial cancellation γ_tC_can with its own balance of S1 and S3: crossed, still below at\n"
        "200; median hit; median max‖M‖; runs that the norm budget ended"
    )
    return "\n".join(aligned(title, rows))


def levels(summary: Summary) -> list[float]:
    """The condition levels of a summary."""
    return sorted({c for row in summary.values() for c in row})


def _safe(show: Callable[[str, float], str], summary: Summary, key: str, c: float) -> str:
    """A cell's text, or FAILS where a run behind it could not be computed."""
    cell = summary[key].get(c)
    if cell is None:
        return "–"
    return FAILS if cell.failure else show(key, c)


def _printed(table: dict[str, Any], key: str, condition: float, compare: bool) -> str:
    if not compare or key not in table or condition not in table[key]:
        return ""
    value = table[key][int(condition)]
    return " [–]" if value is None else f" [{value:g}]"
