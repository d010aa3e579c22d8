"""Which bounds are active at the iterates, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.point.working_set import EQUAL, LOWER, UPPER, Sides, active_sides
from casadi_hybrid.result.answer import Answer
from casadi_hybrid.result.history import History
from casadi_hybrid.result.report.chart import RIGHT, WIDTH, axis, stretches, svg
from casadi_hybrid.result.report.text import cut, safe

ROWS = 40
"""Bounds shown at most."""
COLUMNS = 200
"""Iterates shown at most."""
_LEFT, _TOP, _ROW = 170.0, 26.0, 16.0
_LETTERS = 21


def active_bounds(answer: Answer, history: History) -> tuple[list[str], Sides]:
    """The bounds that were active at some iterate, by name, and at which sides; no equations.

    The sides have a row a name and a column an iterate. Those whose side changed last come first,
    then those that never changed.
    """
    b, near = answer.bounds, answer.tolerances.feasibility
    lam_x = np.zeros_like(history.x) if history.lam_x is None else history.lam_x
    names: list[str] = []
    sides = [np.zeros((0, history.t.size), np.int8)]
    for values, lower, upper, lam, labels in (
        (history.h, b.lbg, b.ubg, history.multipliers, answer.constraint_names),
        (history.x, b.lbx, b.ubx, lam_x, answer.variable_names),
    ):
        found = np.array(
            [active_sides(v, lower, upper, one, near) for v, one in zip(values, lam, strict=True)]
        )
        inner = np.flatnonzero(((found == LOWER) | (found == UPPER)).any(axis=0))
        names += [labels[i] for i in inner]
        sides.append(found[:, inner].T)
    table = np.concatenate(sides)
    changed = [int(np.flatnonzero(np.diff(row)).max(initial=-1)) for row in table]
    order = sorted(range(len(names)), key=lambda i: -changed[i])
    return [names[i] for i in order], table[order]


def picture(names: Sequence[str], sides: Sides, t: NDArray[np.intp]) -> str:
    """Bars over the iterations: where a bound is active, by side."""
    names, table = names[:ROWS], sides[:ROWS]
    every = np.unique(np.linspace(0, t.size - 1, min(t.size, COLUMNS)).astype(int))
    t = t[every]
    # An iterate lasts until the next one, and the last for a step.
    first, last = int(t[0]), int(t[-1]) + 1
    edges = _LEFT + (WIDTH - _LEFT - RIGHT) * (np.append(t, last) - first) / (last - first)
    parts = [_key(_LEFT, "f0", "lower bound"), _key(_LEFT + 140, "f1", "upper bound")]
    for k, (name, row) in enumerate(zip(names, table[:, every], strict=True)):
        y = _TOP + k * _ROW
        label = safe(cut(name, _LETTERS), _LETTERS)
        parts.append(
            f'<text class="end" x="{_LEFT - 8:g}" y="{y + 12:g}">{label}'
            f"<title>{safe(name)}</title></text>"
        )
        for side, kind, top in ((LOWER, "f0", y + 8.0), (UPPER, "f1", y + 2.0)):
            ends = edges[stretches(np.asarray(row == side))]
            bars = [f"M{a:.1f} {top:g}h{b - a:.1f}v5h{a - b:.1f}z" for a, b in ends]
            if bars:
                parts.append(f'<path class="{kind}" d="{"".join(bars)}"/>')
    bottom = _TOP + len(names) * _ROW + 2
    parts.append(axis(first, last, _LEFT, bottom))
    return svg(bottom + 46, "active bounds over the iterations", *parts)


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
