"""Animations of motion, written as GIF."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib import animation
from matplotlib.figure import Figure


def save_animation(
    figure: Figure,
    draw: Callable[[int], object],
    frames: int,
    path: Path,
    *,
    interval: float,
    dpi: int = 80,
) -> Path:
    """Write ``draw(0) … draw(frames − 1)`` as a GIF that repeats.

    Args:
        figure: what is drawn into; ``draw`` changes its artists or clears and draws anew.
        draw: draws frame k.
        frames: number of frames.
        path: of the file; its folder is made where it is missing.
        interval: seconds a frame, so that motion runs in real time where it is the sampling time.
        dpi: dots per inch; animations are looked at on a screen.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The layout of the first frame serves all: computing it anew takes longer than drawing.
    draw(0)
    figure.canvas.draw()
    figure.set_layout_engine("none")
    film = animation.FuncAnimation(figure, draw, frames=frames, init_func=list)
    writer = animation.PillowWriter(fps=1.0 / interval)
    film.save(path, writer=writer, dpi=dpi)
    return path
