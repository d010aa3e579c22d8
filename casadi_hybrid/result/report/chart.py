"""Curves over the iterations on a logarithmic axis, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.result.report.text import number, safe

Array = NDArray[np.float64]

WIDTH, RIGHT = 480.0, 12.0
"""Of a picture, and of the margin on its right side."""
_LEFT, _BELOW = 58.0, 44.0
_HEIGHT, _LINE, _LETTER = 200.0, 19.0, 7.0
_COLUMNS, _MARKED = 240, 40
_DECADES = 7
_HIGHEST = 1e300


def chart(
    title: str, t: NDArray[np.intp], curves: Mapping[str, Array], limits: Mapping[str, float]
) -> str:
    """Up to three curves over the steps taken and lines across, by name, as an SVG element.

    It is text where no value is finite and positive.
    """
    values, across = np.concatenate([*curves.values()]), np.array([*limits.values()], float)
    values, across = values[_drawable(values)], across[_drawable(across)]
    if not values.size:
        return f"<p>{safe(title)}: nothing to draw, no value is positive and finite.</p>"
    known = np.log10(np.append(values, across))
    low, high = math.floor(known.min()), math.ceil(known.max())
    low -= low == high or across.min(initial=np.inf) <= 10.0**low  # a line needs room
    keys, top = _legend(curves)
    first, last = int(t[0]), max(int(t[-1]), int(t[0]) + 1)
    right, bottom = WIDTH - RIGHT, top + _HEIGHT

    def height(exponents: Any) -> Any:
        return bottom - _HEIGHT * np.clip((exponents - low) / (high - low), 0.0, 1.0)

    parts = [keys]
    for exponent in range(low, high + 1, max(1, math.ceil((high - low) / _DECADES))):
        y, label = height(exponent), f"1e{exponent}"
        label = number(10.0**exponent, "g") if -3 < exponent < 4 else label.replace("-", "−")
        parts.append(f'<path class="grid" d="M{_LEFT:g} {y:.1f}H{right:g}"/>')
        parts.append(f'<text class="dim end" x="{_LEFT - 6:g}" y="{y + 4:.1f}">{label}</text>')
    parts.append(axis(first, last, _LEFT, bottom))
    for name, value in limits.items():
        if 0 < value < _HIGHEST:
            y = height(math.log10(value))
            parts.append(f'<path class="limit" d="M{_LEFT:g} {y:.1f}H{right:g}"/>')
            parts.append(f'<text class="dim" x="{_LEFT + 5:g}" y="{y - 4:.1f}">{safe(name)}</text>')
    for k, curve in enumerate(curves.values()):
        shown = thinned(curve)
        x = _LEFT + (right - _LEFT) * (t[shown] - first) / (last - first)
        values, there = curve[shown], _drawable(curve[shown])
        parts.append(_drawn(k, x, height(np.log10(np.where(there, values, 1.0))), there))
        zero = f'cy="{bottom:.1f}" r="{3 if shown.size <= _MARKED else 1.6:g}"'
        parts += [f'<circle class="dot hollow solid s{k}" cx="{at:.1f}" {zero}/>'
                  for at in x[values == 0.0]]  # fmt: skip
    return svg(bottom + _BELOW, safe(title), *parts)


def _drawable(values: Array) -> NDArray[np.bool_]:
    return np.asarray((values > 0) & (values < _HIGHEST))


def _legend(labels: Iterable[str]) -> tuple[str, float]:
    """The legend in rows above the frame, and the height it takes."""
    parts, x, y = [], _LEFT, 14.0
    for k, label in enumerate(labels):
        width = 34.0 + _LETTER * len(label) + 14.0
        if x > _LEFT and x + width > WIDTH:
            x, y = _LEFT, y + _LINE
        parts.append(f'<path class="curve s{k}" d="M{x:g} {y - 4:g}h26"/>')
        parts.append(f'<text x="{x + 32:g}" y="{y:g}">{safe(label)}</text>')
        x += width
    return "".join(parts), y + 10.0


def _drawn(k: int, x: Array, y: Array, there: NDArray[np.bool_]) -> str:
    """A curve: unbroken parts as lines, with markers where there are few points."""
    lines, dots = [], []
    for begin, end in stretches(there):
        points = [f"{x[i]:.1f} {y[i]:.1f}" for i in range(begin, end)]
        lines.append("M" + "L".join(points))
        if there.size <= _MARKED or len(points) == 1:  # alone: no line
            dots += [f'<circle class="f{k}" cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="2.6"/>'
                     for i in range(begin, end)]  # fmt: skip
    return f'<path class="curve s{k}" d="{"".join(lines)}"/>{"".join(dots)}'


def thinned(values: Array) -> NDArray[np.intp]:
    """Indices of the values to draw: of each column the least and the largest."""
    if values.size <= 2 * _COLUMNS:
        return np.arange(values.size)
    kept = {0, values.size - 1}
    for part in np.array_split(np.arange(values.size), _COLUMNS):
        inside = np.where(np.isfinite(values[part]), values[part], 0.0)
        kept |= {int(part[inside.argmin()]), int(part[inside.argmax()])}
    return np.array(sorted(kept))


def svg(height: float, title: str, *parts: str) -> str:
    """A picture with a title for those who cannot see it."""
    box = f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{title}">'
    return f"{box}{''.join(parts)}</svg>"


def axis(first: int, last: int, left: float, bottom: float) -> str:
    """The axis of the steps taken, below a picture."""
    right = WIDTH - RIGHT
    parts = [f'<path class="axis" d="M{left:g} {bottom:g}H{right:g}"/>']
    for t in ticks(first, last):
        x = left + (right - left) * (t - first) / (last - first)
        parts.append(
            f'<path class="axis" d="M{x:.1f} {bottom:g}v4"/>'
            f'<text class="dim middle" x="{x:.1f}" y="{bottom + 18:g}">{t:,}</text>'
        )
    middle = (left + right) / 2
    parts.append(f'<text class="middle" x="{middle:g}" y="{bottom + 38:g}">steps taken</text>')
    return "".join(parts)


def stretches(filled: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Where each run of true entries begins and where it ends, one a line."""
    return np.flatnonzero(np.diff(filled.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)


def ticks(first: int, last: int) -> list[int]:
    """Up to six round whole numbers from first to last."""
    span = max(1, last - first)
    steps = (lead * 10**k for k in count() for lead in (1, 2, 5))
    step = next(step for step in steps if span / step <= 5)
    return list(range(-(-first // step) * step, last + 1, step))
