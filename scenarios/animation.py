"""Animations of motion, written as GIF in real time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

Moving = tuple[Callable[[int], Any], Mapping[str, Any]]
"""What moves: frame → the rows of its points, and its style; one with a facecolor is filled."""

ROD = {"color": "#000000", "marker": "o", "linewidth": 2.5, "markersize": 7}
"""How a stiff body between joints is drawn."""


def film(
    path: Path,
    frames: int,
    dt: float,
    ax: Axes,
    moving: Sequence[Moving],
    *,
    clock: Callable[[int], str] | None = None,
    event: tuple[float, str] = (np.inf, ""),
) -> Path:
    """Write a GIF that repeats; return its path.

    A frame shows for ``dt`` seconds. Above frame k stands ``clock(k)``, by default the time, and
    for 0.3 s the word of an event, (seconds, a word).
    """
    movers = [(_mover(ax, points(0), style), points) for points, style in moving]

    def draw(k: int) -> None:
        for move, points in movers:
            move(points(k))
        happening = f"   {event[1]}" if 0 <= k * dt - event[0] < 0.3 else ""
        ax.set_title(clock(k) if clock else f"{k * dt:4.2f} s{happening}", fontsize=10)

    motion = FuncAnimation(ax.get_figure(), draw, frames)
    motion.save(path, PillowWriter(fps=1 / dt), dpi=80)
    return path


def _mover(ax: Any, points: Any, style: Mapping[str, Any]) -> Callable[[Any], None]:
    """Add an artist; return what moves it to other points."""
    if "facecolor" in style:
        patch = ax.add_patch(Polygon(np.transpose(points), **style))
        return lambda rows: patch.set_xy(np.transpose(rows))
    (line,) = ax.plot(*points, **style)
    return lambda rows: line.set_data(*rows)
