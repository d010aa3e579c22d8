"""Animations of motion, written as GIF in real time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Polygon
from PIL import Image

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
    dpi: int = 80,
) -> Path:
    """Write a GIF that repeats; return its path.

    A frame shows for ``dt`` seconds. Above frame k stands ``clock(k)``, by default the time, and
    for 0.3 s the word of an event, (seconds, a word).
    """

    def above(k: int) -> str:
        happening = f"   {event[1]}" if 0 <= k * dt - event[0] < 0.3 else ""
        return clock(k) if clock else f"{k * dt:4.2f} s{happening}"

    moves = [(*_artist(ax, points(0), style), points) for points, style in moving]
    figure = ax.get_figure()
    title = ax.set_title(above(0), fontsize=10)
    # What stands still is drawn once: drawing all of it in each frame takes most of the time.
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    for _ in range(2):  # until everything has its place; the layout leaves out what is animated
        canvas.draw()
    figure.set_layout_engine("none")
    artists = [artist for artist, *_ in moves] + [title]
    for artist in artists:
        artist.set_animated(True)
    canvas.draw()
    still, images = canvas.copy_from_bbox(figure.bbox), []
    for k in range(frames):
        canvas.restore_region(still)
        for _, move, points in moves:
            move(points(k))
        title.set_text(above(k))
        for artist in artists:
            figure.draw_artist(artist)
        images.append(Image.fromarray(np.array(canvas.buffer_rgba())).convert("RGB"))
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(path, save_all=True, append_images=images[1:], duration=int(1e3 * dt), loop=0)
    return path


def _artist(ax: Any, points: Any, style: Mapping[str, Any]) -> tuple[Any, Callable[[Any], None]]:
    """Add an artist; return it, and what moves it to other points."""
    if "facecolor" in style:
        patch = ax.add_patch(Polygon(np.transpose(points), **style))
        return patch, lambda rows: patch.set_xy(np.transpose(rows))
    (line,) = ax.plot(*points, **style)
    return line, lambda rows: line.set_data(*rows)
