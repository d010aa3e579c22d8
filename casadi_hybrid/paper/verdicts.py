"""What the paper says of its experiment in words, each statement with a verdict and its figures.

Every verdict is computed from the runs. One whose computation fails says FAILS and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.paper.cells import Summary
from casadi_hybrid.paper.experiment import LABELS, PARTIAL_METHODS, Run
from casadi_hybrid.paper.growth import Growth, growth_exponent

HOLDS, IN_PART, REFUTED = "holds", "holds in part", "does not hold"
# No run says anything to the statement; or the computation of the verdict itself failed.
SILENT, FAILS = "not judged", "FAILS"
# Two median hitting times nearer than this are one; two that track each other are within that.
NEAR, TRACKING = 0.02, 0.25
FAILING = (8, 13)
"""The levels at which the paper says that the closed form fails."""
PARTIAL = tuple(method.key for method in PARTIAL_METHODS)

Judgement = tuple[str, list[str]]
Hits = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A statement of the paper, what the runs say to it, and the figures."""

    statement: str
    verdict: str
    figures: tuple[str, ...]

    def __str__(self) -> str:
        lines = (f"{self.statement} {self.verdict.upper()}.", *self.figures)
        return "\n    ".join(lines)


def verdicts(
    runs: Sequence[Run], summary: Summary, growth: Sequence[Growth]
) -> tuple[Verdict, ...]:
    """Judge every statement.

    Args:
        runs, summary: the instances that the verdicts are about.
        growth: norms at x* by condition level.
    """
    parts: tuple[tuple[str, Callable[[], Judgement]], ...] = (
        (
            "The weighted variants generally improve over the unit ones: in hitting times, most "
            "where conditioning is mild.",
            lambda: weighting(runs),
        ),
        (
            "Exact cancellation fails at 8 and 13 because ‖M‖ has to exceed the norm budget.",
            lambda: norm_budget(summary),
        ),
        (
            "The hybrid improves over the pure augmented and the pure optimistic endpoint.",
            lambda: endpoints(summary),
        ),
        ("The closed form tracks the grid oracle closely.", lambda: tracking(runs)),
        ("‖C_can‖ grows like ‖H‖‖B†‖², and max‖M‖ with it.", lambda: scaling(growth)),
        (
            "Partial cancellation extends the method to where ‖M‖ becomes too large.",
            lambda: partial(summary, growth),
        ),
    )
    return tuple(_judged(statement, judge) for statement, judge in parts)


def _judged(statement: str, judge: Callable[[], Judgement]) -> Verdict:
    try:
        verdict, figures = judge()
    except Exception as error:  # noqa: BLE001 - one verdict may fail, the others may not
        verdict, figures = FAILS, [f"not computed: {type(error).__name__}: {error}"]
    return Verdict(statement, verdict, tuple(figures))


def weighting(runs: Sequence[Run]) -> Judgement:
    """Closed form: which margin has the smaller median hitting time where both cross."""
    figures, signs = [], []
    for condition, pairs, both in _matched(runs, "closed-w", "closed-u"):
        counts = _crossed(pairs)
        text = f"{condition:g}: of {len(pairs)} cross {counts[0]} weighted, {counts[1]} unit"
        if both:
            weighted, unit = _medians(both)
            signs.append(0 if abs(weighted / unit - 1) <= NEAR else _sign(unit - weighted))
            word = {1: "weighted is faster", 0: "no difference", -1: "unit is faster"}[signs[-1]]
            first = [_sign(u - w) for w, u in both]
            text += (
                f"; where both do, medians {weighted:g} and {unit:g}, {word} (first: weighted "
                f"{first.count(1)}, together {first.count(0)}, unit {first.count(-1)})"
            )
        figures.append(text)
    return _share(signs), figures


def norm_budget(summary: Summary) -> Judgement:
    """Of the closed form's runs that do not cross: did the norm budget end most of them?"""
    figures, signs = [], []
    for condition, cell in summary["closed-w"].items():
        _whole(cell.failure)
        missed = cell.runs - cell.successes
        if condition in FAILING:
            signs.append(1 if 2 * cell.over_budget > missed else -1)
        figures.append(
            f"{condition:g}: {missed} of {cell.runs} do not cross; the norm budget ended "
            f"{cell.over_budget} run(s); median max‖M‖ {_number(cell.median_norm_M)}"
        )
    return _share(signs), figures


def endpoints(summary: Summary) -> Judgement:
    """Does the closed form cross in more runs than either endpoint?"""
    figures, signs = [], []
    for condition, cell in summary["closed-w"].items():
        pure = [summary[key][condition] for key in ("aug-w", "opt-w")]
        for known in (cell, *pure):
            _whole(known.failure)
        signs.append(_sign(cell.successes - max(p.successes for p in pure)))
        word = {1: "more", 0: "no more", -1: "fewer"}[signs[-1]]
        ends = [cell.below_at_200, *(p.below_at_200 for p in pure)]
        figures.append(
            f"{condition:g}: {word}; of {cell.runs} cross: closed form {cell.successes}, "
            f"augmented {pure[0].successes}, optimistic {pure[1].successes}; still below at 200: "
            f"{ends[0]}, {ends[1]}, {ends[2]}"
        )
    return _share(signs), figures


def tracking(runs: Sequence[Run]) -> Judgement:
    """Median hitting times where both cross: within a quarter of each other?"""
    figures, signs = [], []
    for condition, pairs, both in _matched(runs, "closed-w", "grid-w"):
        counts = _crossed(pairs)
        text = f"{condition:g}: of {len(pairs)} cross: closed form {counts[0]}, grid {counts[1]}"
        if both:
            closed, grid = _medians(both)
            signs.append(1 if abs(closed / grid - 1) <= TRACKING else -1)
            text += f"; where both do, medians {closed:g} and {grid:g}"
        figures.append(text)
    return _share(signs), figures


def scaling(growth: Sequence[Growth]) -> Judgement:
    """The power of κ with which the medians at x* grow, from the least to the largest level."""
    power = {
        name: growth_exponent(growth, name) for name in ("cancellation", "bound", "closed", "least")
    }
    worst = max(row.ratio for row in growth)
    figures = [
        f"powers of cond: ‖C_can‖ {power['cancellation']:.2f}, ‖H‖‖B†‖² {power['bound']:.2f}, ‖M‖ "
        f"of the closed form {power['closed']:.2f}, the least ‖M‖ that reaches δ "
        f"{power['least']:.2f}",
        f"largest ‖C_can‖ / (‖H‖‖B†‖²) at any x*: {worst:.3f}",
    ]
    quadratic = all(1.5 <= power[name] <= 2.5 for name in ("cancellation", "bound", "closed"))
    return HOLDS if quadratic and worst <= 1 + 1e-9 else REFUTED, figures


def partial(summary: Summary, growth: Sequence[Growth]) -> Judgement:
    """Where the budget ends runs of the closed form: does partial cancellation cross more often?"""
    figures, signs = [], []
    for row in growth:
        figures.append(
            f"{row.condition:g}: at x* the γ of the least ‖M‖ is below 1 in "
            f"{100 * row.below_one:.0f} % of the instances; median ‖M‖ {row.partial:.1f}, with "
            f"γ = 1 {row.closed:.1f}"
        )
    for condition, cell in summary["closed-w"].items():
        others = {key: summary[key][condition] for key in PARTIAL}
        for known in (cell, *others.values()):
            _whole(known.failure)
        if not cell.over_budget:
            continue
        signs += [_sign(other.successes - cell.successes) for other in others.values()]
        texts = [f"{LABELS[key]} {c.successes}, {c.over_budget}" for key, c in others.items()]
        figures.append(
            f"{condition:g}: of {cell.runs} cross, and the budget ends: closed form "
            f"{cell.successes}, {cell.over_budget}; {'; '.join(texts)}"
        )
    return _share(signs), figures


def _matched(
    runs: Sequence[Run], first: str, second: str
) -> Iterator[tuple[float, list[Hits], list[tuple[int, int]]]]:
    """By level the hitting times of two methods on the same instances: all, and where both cross.

    Raises:
        ArithmeticError: where a run could not be computed.
    """
    for condition in sorted({run.condition for run in runs}):
        hits: dict[int, dict[str, int | None]] = {}
        for run in runs:
            if run.condition == condition and run.method in (first, second):
                _whole(run.failure)
                hits.setdefault(run.seed, {})[run.method] = run.hit
        pairs = [(found[first], found[second]) for found in hits.values()]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        yield condition, pairs, both


def _whole(failure: str) -> None:
    """Refuse to judge by half of the runs."""
    if failure:
        raise ArithmeticError(f"a run could not be computed: {failure}")


def _crossed(pairs: Sequence[Hits]) -> tuple[int, int]:
    return sum(a is not None for a, _ in pairs), sum(b is not None for _, b in pairs)


def _medians(pairs: Sequence[tuple[int, int]]) -> tuple[float, float]:
    return float(np.median([a for a, _ in pairs])), float(np.median([b for _, b in pairs]))


def _sign(value: float) -> int:
    return int(np.sign(value))


def _share(signs: Sequence[int]) -> str:
    """Better at every level: holds. At none: does not hold. Else in part."""
    if not signs:
        return SILENT
    if max(signs) <= 0:
        return REFUTED
    return HOLDS if min(signs) > 0 else IN_PART


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.1f}"
