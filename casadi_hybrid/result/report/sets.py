"""Which bounds are active at the iterates, as SVG."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.point.working_set import EQUAL, LOWER, UPPER, Sides, active_sides
from casadi_hybrid.result.answer import Answer
from casadi_hybrid.result.history import History
from casadi_hybrid.result.report.chart import ticks
from casadi_hybrid.result.report.text import cut, safe

ROWS = 40
"""Bounds shown at most."""
COLUMNS = 200
"""Iterates shown at most."""
_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 480.0, 170.0, 12.0, 26.0, 16.0
_LETTERS = 21


@dataclass(frozen=True)
class Sets:
    """The sides at which bounds are active, for every iterate.

    Attributes:
        names: of the bounds that were active at some iterate.
        sides: one row a name, one column an iterate.
        t: steps taken.
    """

    names: tuple[str, ...]
    sides: Sides
    t: NDArray[np.intp]


def sets_of(answer: Answer, history: History) -> Sets:
    """The bounds that were active at some iterate; equations are left out.

    Those whose side changed last come first, then those that never changed.
    """
    b, near = answer.bounds, answer.tolerances.feasibility
    lam_x = np.zeros_like(history.x) if history.lam_x is None else history.lam_x
    names: list[str] = []
    sides: list[NDArray[np.int8]] = []
    for values, lower, upper, lam, labels in (
        (history.h, b.lbg, b.ubg, history.multipliers, answer.constraint_names),
        (history.x, b.lbx, b.ubx, lam_x, answer.variable_names),
    ):
        found = np.array(
            [active_sides(v, lower, upper, one, near) for v, one in zip(values, lam, strict=True)]
        )
        inner = np.flatnonzero(((found == LOWER) | (found == UPPER)).any(axis=0))
        names += [labels[i] for i in inner]
        sides += [found[:, i] for i in inner]
    if not sides:
        return Sets((), np.zeros((0, history.t.size), np.int8), history.t)
    table = np.array(sides)
    changed = [int(np.flatnonzero(np.diff(row)).max(initial=-1)) for row in table]
    order = sorted(range(len(names)), key=lambda i: -changed[i])
    return Sets(tuple(names[i] for i in order), table[order], history.t)


def picture(course: Sets) -> str:
    """Bars over the iterations: where a bound is active, by side."""
    names, table = course.names[:ROWS], course.sides[:ROWS]
    every = np.unique(np.linspace(0, course.t.size - 1, min(course.t.size, COLUMNS)).astype(int))
    t = course.t[every]
    # An iterate lasts until the next one, and the last for a step.
    first, last = int(t[0]), int(t[-1]) + 1
    edges = _LEFT + (_WIDTH - _LEFT - _RIGHT) * (np.append(t, last) - first) / (last - first)
    parts = [_key(_LEFT, "f0", "lower bound"), _key(_LEFT + 140, "f1", "upper bound")]
    for k, (name, row) in enumerate(zip(names, table[:, every], strict=True)):
        y = _TOP + k * _ROW
        label = safe(cut(name, _LETTERS), _LETTERS)
        parts.append(
            f'<text class="end" x="{_LEFT - 8:g}" y="{y + 12:g}">{label}'
            f"<title>{safe(name)}</title></text>"
        )
        for side, kind, place, high in ((LOWER, "f0", 8.0, 5.0), (UPPER, "f1", 2.0, 5.0)):
            parts.append(_bars(np.asarray(row == side), kind, y + place, high, edges))
    bottom = _TOP + len(names) * _ROW + 2
    parts.append(f'<path class="axis" d="M{_LEFT:g} {bottom:g}H{_WIDTH - _RIGHT:g}"/>')
    for one in ticks(first, last):
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * (one - first) / (last - first)
        parts.append(
            f'<path class="axis" d="M{x:.1f} {bottom:g}v4"/>'
            f'<text class="dim middle" x="{x:.1f}" y="{bottom + 18:g}">{one:,}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text class="middle" x="{middle:g}" y="{bottom + 38:g}">steps taken</text>')
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {bottom + 46:g}" role="img" '
        f'aria-label="active bounds over the iterations">{"".join(parts)}</svg>'
    )


def counts(answer: Answer) -> str:
    """How many bounds are active at the returned point, in a sentence."""
    at = answer.working_set
    told = []
    for label, sides in (("variables", at.x), ("rows of g", at.g)):
        lower, upper, equal = (int(np.sum(sides == side)) for side in (LOWER, UPPER, EQUAL))
        told.append(
            f"of {sides.size:,} {label} {lower:,} at the lower bound, {upper:,} at the upper, "
            f"{equal:,} {'fixed' if label == 'variables' else 'equations'}"
        )
    return f"At the returned point: {'; '.join(told)}."


def _key(x: float, kind: str, label: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:g}" y="6" width="18" height="7"/>'
        f'<text x="{x + 24:g}" y="14">{label}</text>'
    )


def _bars(
    active: NDArray[np.bool_], kind: str, y: float, high: float, edges: NDArray[np.float64]
) -> str:
    """The runs of active iterates as one path."""
    ends = np.flatnonzero(np.diff(np.concatenate(([0], active.astype(np.int8), [0]))))
    parts = []
    for begin, end in zip(ends[::2], ends[1::2], strict=True):
        x, width = edges[begin], edges[end] - edges[begin]
        parts.append(f"M{x:.1f} {y:g}h{width:.1f}v{high:g}h{-width:.1f}z")
    return f'<path class="{kind}" d="{"".join(parts)}"/>' if parts else ""
