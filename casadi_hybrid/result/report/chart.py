"""Curves over the iterations on a logarithmic axis, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Curve:
    """One curve: its name in the legend, and its values, one an iterate."""

    label: str
    values: Array


def chart(
    title: str, t: NDArray[np.intp], curves: Sequence[Curve], limits: Sequence[tuple[str, float]]
) -> str:
    """Up to three curves over the steps taken and lines across, by name, as an SVG element.

    It is text where no value is finite and positive.
    """
    values, across = np.concatenate([c.values for c in curves]), np.array([v for _, v in limits])
    values, across = values[_drawable(values)], across[_drawable(across)]
    if not values.size:
        return f"<p>{safe(title)}: nothing to draw, no value is positive and finite.</p>"
    known = np.log10(np.append(values, across))
    low, high = math.floor(known.min()), math.ceil(known.max())
    low -= low == high or across.min(initial=np.inf) <= 10.0**low  # a line needs room
    keys, top = _legend([c.label for c in curves])
    first, last = int(t[0]), max(int(t[-1]), int(t[0]) + 1)
    frame = _Frame(first, last, float(low), float(high), top)
    lines = (frame.limit(name, value) for name, value in limits if 0 < value < _HIGHEST)
    drawn = (frame.curve(t, curve.values, k) for k, curve in enumerate(curves))
    return svg(top + _HEIGHT + _BELOW, safe(title), keys, frame.axes(), *lines, *drawn)


def _drawable(values: Array) -> NDArray[np.bool_]:
    return np.asarray((values > 0) & (values < _HIGHEST))


def _legend(labels: Sequence[str]) -> tuple[str, float]:
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


@dataclass(frozen=True)
class _Frame:
    """Where numbers lie in the picture: steps across, decades upwards."""

    first: int
    last: int
    low: float
    high: float
    top: float

    def x(self, t: Any) -> Any:
        inside = WIDTH - _LEFT - RIGHT
        return _LEFT + inside * (t - self.first) / (self.last - self.first)

    def y(self, exponent: Any) -> Any:
        share = (exponent - self.low) / (self.high - self.low)
        return self.top + _HEIGHT * (1.0 - np.clip(share, 0.0, 1.0))

    def axes(self) -> str:
        bottom, parts = self.top + _HEIGHT, []
        step = max(1, math.ceil((self.high - self.low) / _DECADES))
        for exponent in range(int(self.low), int(self.high) + 1, step):
            y = self.y(exponent)
            parts.append(f'<path class="grid" d="M{_LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}"/>')
            label = number(10.0**exponent, "g") if -3 < exponent < 4 else f"1e{exponent}"
            label = label.replace("-", "−")
            parts.append(f'<text class="dim end" x="{_LEFT - 6:g}" y="{y + 4:.1f}">{label}</text>')
        return "".join(parts) + axis(self.first, self.last, _LEFT, bottom)

    def limit(self, name: str, value: float) -> str:
        y = self.y(math.log10(value))
        return (
            f'<path class="limit" d="M{_LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}"/>'
            f'<text class="dim" x="{_LEFT + 5:g}" y="{y - 4:.1f}">{safe(name)}</text>'
        )

    def curve(self, t: NDArray[np.intp], values: Array, k: int) -> str:
        """Unbroken parts as lines, with markers where there are few; zeros as hollow markers."""
        shown = thinned(values)
        marked, there, across = shown.size <= _MARKED, _drawable(values[shown]), self.x(t[shown])
        heights = self.y(np.log10(values[shown], where=there, out=np.full(shown.size, self.low)))
        parts = []
        dots = [
            f'<circle class="dot hollow solid s{k}" cx="{x:.1f}" cy="{self.y(self.low):.1f}" '
            f'r="{3 if marked else 1.6:g}"/>'
            for x in across[values[shown] == 0.0]
        ]
        for begin, end in stretches(there):
            points = list(zip(across[begin:end], heights[begin:end], strict=True))
            parts.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points))
            if marked or len(points) == 1:  # alone: no line
                dots += [f'<circle class="f{k}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>'
                         for x, y in points]  # fmt: skip
        return f'<path class="curve s{k}" d="{"".join(parts)}"/>{"".join(dots)}'


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
