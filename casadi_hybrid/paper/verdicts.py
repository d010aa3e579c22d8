"""What the paper says of its experiment in words, each statement with a verdict and its figures.

Every verdict is computed from the runs. One whose computation fails says FAILS and why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.paper.cells import Summary
from casadi_hybrid.paper.experiment import Run
from casadi_hybrid.paper.growth import Growth, growth_exponent

HOLDS, IN_PART, FAILS = "holds", "holds in part", "FAILS"
# Two median hitting times nearer than this are one.
NEAR = 0.02


@dataclass(frozen=True, slots=True)
class Verdict:
    """A statement of the paper, what the runs say to it, and the figures."""

    statement: str
    verdict: str
    figures: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.verdict:<13}  {self.statement}", *(f"    {f}" for f in self.figures)]
        )


def verdicts(
    runs: Sequence[Run], summary: Summary, growth: Sequence[Growth]
) -> tuple[Verdict, ...]:
    """Judge every statement.

    Args:
        runs, summary: the instances that the verdicts are about.
        growth: norms at x* by condition level.
    """
    parts: tuple[tuple[str, Callable[[], tuple[str, list[str]]]], ...] = (
        ("The weighted variants generally improve over the unit ones.", lambda: weighting(runs)),
        (
            "At 8 and 13 exact cancellation fails because ‖M‖ exceeds the norm budget.",
            lambda: norm_budget(summary),
        ),
        (
            "The hybrid improves over the pure augmented and pure optimistic endpoints.",
            lambda: endpoints(summary),
        ),
        ("The closed form tracks the grid oracle closely.", lambda: tracking(runs)),
        ("‖C_can‖ grows like ‖H‖‖B†‖², and max‖M‖ with it.", lambda: scaling(growth)),
    )
    return tuple(_judged(statement, judge) for statement, judge in parts)


def _judged(statement: str, judge: Callable[[], tuple[str, list[str]]]) -> Verdict:
    try:
        verdict, figures = judge()
    except Exception as error:  # one verdict may fail, the others may not
        verdict, figures = FAILS, [f"not computed: {type(error).__name__}: {error}"]
    return Verdict(statement, verdict, tuple(figures))


def weighting(runs: Sequence[Run]) -> tuple[str, list[str]]:
    """Closed form: instance by instance, which margin crosses first; a level at a time."""
    figures, faster = [], {}
    for condition in _levels(runs):
        pairs = _pairs(runs, "closed-w", "closed-u", condition)
        both = [(w, u) for w, u in pairs if w is not None and u is not None]
        counts = tuple(sum(test) for test in zip(*((w < u, w == u, w > u) for w, u in both)))
        crossed = tuple(sum(hit is not None for hit in side) for side in zip(*pairs))
        if not both:
            figures.append(f"{condition:g}: crossed {crossed[0]} weighted, {crossed[1]} unit")
            continue
        medians = tuple(float(np.median(side)) for side in zip(*both))
        faster[condition] = _compare(*medians)
        figures.append(
            f"{condition:g}: {_word(faster[condition])}; crossed {crossed[0]} weighted, "
            f"{crossed[1]} unit; where both did, median {medians[0]:g} and {medians[1]:g}, first: "
            f"weighted {counts[0]}, together {counts[1]}, unit {counts[2]}"
        )
    return _share(list(faster.values())), figures


def norm_budget(summary: Summary) -> tuple[str, list[str]]:
    """Of the closed form's runs that do not cross: how many did the norm budget end?"""
    figures, right = [], []
    for condition, cell in summary["closed-w"].items():
        missed = cell.runs - cell.successes
        if condition >= 8:
            right.append(1 if missed and 2 * cell.over_budget > missed else -1)
        figures.append(
            f"{condition:g}: {missed} of {cell.runs} do not cross; the norm budget ended "
            f"{cell.over_budget} runs; median max‖M‖ {_number(cell.median_norm_M)}"
        )
    return _share(right), figures


def endpoints(summary: Summary) -> tuple[str, list[str]]:
    """Runs of each that cross, and that are below at 200."""
    figures, right = [], []
    for condition, cell in summary["closed-w"].items():
        pure = [summary[key][condition] for key in ("aug-w", "opt-w")]
        right.append(_sign(cell.successes - max(p.successes for p in pure)))
        ends = [cell.below_at_200, *(p.below_at_200 for p in pure)]
        figures.append(
            f"{condition:g}: {_word(right[-1])}; of {cell.runs} cross: closed form "
            f"{cell.successes}, augmented {pure[0].successes}, optimistic {pure[1].successes}; "
            f"still below at 200: {ends[0]}, {ends[1]}, {ends[2]}"
        )
    return _share(right), figures


def tracking(runs: Sequence[Run]) -> tuple[str, list[str]]:
    """Median hitting times where both cross: within a quarter of each other?"""
    figures, right = [], []
    for condition in _levels(runs):
        pairs = _pairs(runs, "closed-w", "grid-w", condition)
        both = [(c, g) for c, g in pairs if c is not None and g is not None]
        crossed = tuple(sum(hit is not None for hit in side) for side in zip(*pairs))
        text = (
            f"{condition:g}: crossed: closed form {crossed[0]}, grid {crossed[1]} of {len(pairs)}"
        )
        if both:
            closed, grid = (float(np.median(side)) for side in zip(*both))
            right.append(1 if abs(closed / grid - 1) <= 0.25 else -1)
            text += f"; where both did, median {closed:g} and {grid:g}"
        figures.append(text)
    return _share(right), figures


def scaling(growth: Sequence[Growth]) -> tuple[str, list[str]]:
    """The power of κ with which the medians at x* grow, from the least to the largest level."""
    exponents = {
        name: growth_exponent(growth, name) for name in ("cancellation", "bound", "closed", "least")
    }
    worst = max(row.ratio for row in growth)
    figures = [
        f"powers of cond: ‖C_can‖ {exponents['cancellation']:.2f}, ‖H‖‖B†‖² "
        f"{exponents['bound']:.2f}, ‖M‖ {exponents['closed']:.2f}, the least ‖M‖ that reaches δ "
        f"{exponents['least']:.2f}",
        f"largest ‖C_can‖ / (‖H‖‖B†‖²) at any x*: {worst:.3f}",
    ]
    near = all(1.5 <= exponents[name] <= 2.5 for name in ("cancellation", "bound"))
    return (HOLDS if near and worst <= 1 + 1e-9 else FAILS), figures


def _levels(runs: Sequence[Run]) -> list[float]:
    return sorted({run.condition for run in runs})


def _pairs(
    runs: Sequence[Run], first: str, second: str, condition: float
) -> list[tuple[int | None, int | None]]:
    """Hitting times of two methods on the same instances."""
    hits: dict[int, dict[str, int | None]] = {}
    for run in runs:
        if run.condition == condition and run.method in (first, second):
            if run.failure:
                raise ArithmeticError(f"{run.method} at {condition:g}, {run.seed}: {run.failure}")
            hits.setdefault(run.seed, {})[run.method] = run.hit
    return [(found[first], found[second]) for found in hits.values()]


def _compare(ours: float, others: float) -> int:
    """1 where ours is the smaller by more than :data:`NEAR`, −1 where it is the larger, else 0."""
    return 0 if abs(ours / others - 1) <= NEAR else _sign(others - ours)


def _sign(value: float) -> int:
    return int(np.sign(value))


def _word(sign: int) -> str:
    return {1: "better", 0: "no difference", -1: "worse"}[sign]


def _share(signs: Sequence[int]) -> str:
    """Better everywhere it differs: holds. Nowhere: FAILS. Else in part."""
    if not signs or max(signs) <= 0:
        return FAILS
    return HOLDS if min(signs) > 0 else IN_PART


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.1f}"
