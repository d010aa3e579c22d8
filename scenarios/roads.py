"""Cars seen from above: their outline, the road that they are on, the way they take."""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from drawing import LIMIT
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from casadi_hybrid.plotting import PALETTE, figure, legend_below


def outline(x: Any, y: Any, heading: Any, length: float, width: float, overhang: float) -> Any:
    """Return the corners of a car with its rear axle at (x, y), one a column: rear right first.

    ``overhang`` is from the rear axle to the rear end. Numbers give an array, symbols symbols.
    """
    back, side = -overhang, 0.5 * width
    front = back + length
    body = np.array([[back, front, front, back], [-side, -side, side, side]])
    cos, sin = ca.cos(heading), ca.sin(heading)
    turn = ca.vertcat(ca.horzcat(cos, -sin), ca.horzcat(sin, cos))
    corners = ca.repmat(ca.vertcat(x, y), 1, 4) + ca.mtimes(turn, body)
    return corners.full() if isinstance(corners, ca.DM) else corners


def draw_road(
    height: float, edges: Sequence[float], standing: Sequence[np.ndarray], across: tuple[float, ...]
) -> tuple[Figure, Axes]:
    """Draw the edges of a road along x, 0.8 m beyond them, and the outlines of standing cars."""
    fig, axes = figure(1, 1, height=height)
    ax = axes[0, 0]
    for edge in edges:
        ax.axhline(edge, color=LIMIT["color"], linewidth=2.0, label="edge of the road")
    for car in standing:
        ax.add_patch(Polygon(car.T, facecolor="#BBBBBB", label="standing car"))
    ax.set(xlim=across, ylim=(edges[0] - 0.8, edges[-1] + 0.8), aspect="equal")
    ax.set(xlabel="along the road (m)", ylabel="across (m)")
    ax.grid(visible=False)
    return fig, ax


def draw_way(
    road: tuple[Figure, Axes], x: Any, y: Any, heading: Any, car: tuple[float, float, float]
) -> Figure:
    """Draw the way of the rear axle on a road, and the car at eleven of its points."""
    fig, ax = road
    for k in np.linspace(0, len(x) - 1, 11).round().astype(int):
        corners = outline(x[k], y[k], heading[k], *car).T
        style = {"facecolor": PALETTE[4], "alpha": 0.35, "edgecolor": PALETTE[0]}
        ax.add_patch(Polygon(corners, **style, label="the car on its way"))
    ax.plot(x, y, color=PALETTE[0], label="rear axle (hybrid)")
    legend_below(fig, ax)
    return fig
