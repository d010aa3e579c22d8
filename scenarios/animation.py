"""Animations of motion, written as GIF in real time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import animation
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
    *stages: tuple[Axes, Sequence[Moving]],
    clock: Callable[[int], str] | None = None,
    event: Callable[[float], str] = lambda t: "",
    dpi: int = 80,
) -> Path:
    """Write a GIF that repeats; return its path.

    Args:
        path: of the file; its folder is made where it is missing.
        frames: number of frames.
        dt: seconds a frame.
        *stages: axes with what moves in them.
        clock: what stands above frame k; by default the time and the event at this time.
        event: time → a word.
        dpi: dots per inch; animations are looked at on a screen.
    """
    moving = [
        (_artist(ax, points(0), style), points) for ax, things in stages for points, style in things
    ]
    figure = stages[0][0].get_figure()
    title = stages[0][0].set_title(" ", fontsize=10) if len(stages) == 1 else figure.suptitle(" ")

    def draw(k: int) -> None:
        for move, points in moving:
            move(points(k))
        title.set_text(clock(k) if clock else f"{k * dt:4.2f} s{event(k * dt)}")

    # The layout of the first frame serves all: computing it anew takes longer than drawing.
    draw(0)
    figure.canvas.draw()
    figure.set_layout_engine("none")
    made = animation.FuncAnimation(figure, draw, frames=frames, init_func=list)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path, writer=animation.PillowWriter(fps=1.0 / dt), dpi=dpi)
    return path


def _artist(ax: Any, points: Any, style: Mapping[str, Any]) -> Callable[[Any], None]:
    """Add an artist; return what moves it to other points."""
    if "facecolor" in style:
        patch = ax.add_patch(Polygon(np.transpose(points), **style))
        return lambda rows: patch.set_xy(np.transpose(rows))
    (line,) = ax.plot(*points, **style)
    return lambda rows: line.set_data_3d(*rows) if len(rows) > 2 else line.set_data(*rows)
