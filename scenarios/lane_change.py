"""Double lane change: past a car that stands in the lane, and back, as gently as possible.

A car enters at 20 m/s. It has to change to the left lane, pass, and return, within the corridor
that the other car and the edges of the road leave. Kinematic bicycle with the rear axle at (s, y),
the heading ψ, the steering angle δ and the speed v; its inputs are the steering rate ω and the
acceleration a. The distance s along the road is the independent variable, so that the corridor
becomes bounds that depend on s:

    y_s = tan ψ,  ψ_s = tan δ / (L cos ψ),  δ_s = ω / (v cos ψ),  v_s = a / (v cos ψ)

Limits: |δ| ≤ 0.1 rad, |ω| ≤ 0.4 rad/s, −5 ≤ a ≤ 2.5 m/s², lateral acceleration
|v² tan δ / L| ≤ 5 m/s². Both axles keep half the car's width and 0.2 m from the corridor's sides,
wherever any part of the car is beside the obstacle. The car leaves straight ahead in its own lane
at 20 m/s again. The cost is the integral over time of (v² tan δ / (5 L))² + (a/5)² + (ω/0.4)².

Direct multiple shooting, N intervals of constant inputs, one Runge–Kutta step of order four each.
The start is naive: straight ahead at 20 m/s through the obstacle, all inputs zero.
"""

import sys
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from drawing import LIMIT, compare
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from reporting import Check, parser
from solving import SLEQP, SQP, UNO, finish_answers, solve_with_all

from casadi_hybrid.control import Model, OptimalControl
from casadi_hybrid.utils.output.plotting import PALETTE, figure, legend_below

NAME = "lane_change"
SUMMARY = "double lane change past a standing car, limits on steering and lateral acceleration"

WHEELBASE = 2.7
CAR = LENGTH, WIDTH, OVERHANG = 4.4, 1.8, 0.8
"""In metres; the last one is from the rear axle to the rear end."""
BRAKING, DRIVING, LATERAL, SPEED = 5.0, 2.5, 5.0, 20.0
ROAD, LANE, ROOM = 64.0, 3.5, 0.5 * WIDTH + 0.2
"""Length of the road, width of a lane, distance of an axle from the corridor's sides (m)."""
BEGIN, END, LEFT = 24.0, 30.0, 1.2
"""Of the standing car: rear end, front end and y of its left side."""


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


def draw_way(
    way: tuple[Any, Any, Any],
    car: tuple[float, float, float],
    edges: tuple[float, float],
    standing: Sequence[np.ndarray],
    across: tuple[float, float],
    height: float,
) -> Figure:
    """Draw the way (x, y, heading) of a rear axle on a road, and the car at eleven of its points.

    The road goes along x and is shown 0.8 m beyond its edges, with the outlines of standing cars.
    """
    fig, ((ax,),) = figure(1, 1, height=height)
    for edge in edges:
        ax.axhline(edge, color=LIMIT["color"], linewidth=2.0, label="edge of the road")
    for corners in standing:
        ax.add_patch(Polygon(corners.T, facecolor="#BBBBBB", label="standing car"))
    style = {"facecolor": PALETTE[4], "alpha": 0.35, "edgecolor": PALETTE[0]}
    for k in np.linspace(0, len(way[0]) - 1, 11).round().astype(int):
        corners = outline(*(row[k] for row in way), *car)
        ax.add_patch(Polygon(corners.T, **style, label="the car on its way"))
    ax.plot(*way[:2], color=PALETTE[0], label="rear axle (hybrid)")
    ax.set(xlim=across, ylim=(edges[0] - 0.8, edges[1] + 0.8), aspect="equal")
    ax.set(xlabel="along the road (m)", ylabel="across (m)")
    ax.grid(visible=False)
    legend_below(fig, ax)
    return fig


def corridor(s):
    """Return the least y of the axles where the rear axle is at s."""
    beside = (s > BEGIN - (LENGTH - OVERHANG)) & (s < END + OVERHANG)
    return np.where(beside, LEFT, -0.5 * LANE) + ROOM


def lane_change(intervals: int) -> OptimalControl:
    """Return the double lane change; the way along the road is the independent variable."""
    car, most = Model(NAME, time_unit="m"), 1.5 * LANE - ROOM
    y = car.state("y", upper=most, unit="m")
    heading = car.state("psi", scale=0.1, unit="rad")
    steering = car.state("delta", lower=-0.1, upper=0.1, scale=0.1, unit="rad")
    v = car.state("v", lower=1, scale=10, unit="m/s")
    omega = car.control("omega", lower=-0.4, upper=0.4, unit="rad/s")
    a = car.control("a", lower=-BRAKING, upper=DRIVING, scale=10, unit="m/s²")
    lateral = car.output("lateral", v**2 * ca.tan(steering) / WHEELBASE, unit="m/s²")
    forward = v * ca.cos(heading)
    turn = ca.tan(steering) / (WHEELBASE * ca.cos(heading))
    car.rates(y=ca.tan(heading), psi=turn, delta=omega / forward, v=a / forward)
    ocp = OptimalControl(car, duration=ROAD, intervals=intervals)
    least = ocp.reference("right side", corridor)
    front = y + WHEELBASE * ca.sin(heading)
    ocp.path("axles", ca.vertcat(y, front) - least, lower=0)
    ocp.path("front axle", front, upper=most)
    ocp.path("lateral acceleration", lateral, lower=-LATERAL, upper=LATERAL, scale=10, unit="m/s²")
    ocp.initial(y=0, psi=0, delta=0, v=SPEED)
    ocp.final(y=0, psi=0, delta=0, v=SPEED)
    cost = (lateral / LATERAL) ** 2 + (omega / 0.4) ** 2 + (a / BRAKING) ** 2
    ocp.minimize("cost", integral=cost / forward)
    return ocp


def gap(s: np.ndarray, y: np.ndarray, heading: np.ndarray) -> float:
    """Return the least distance (m) across the road from our right side to the standing car."""
    ends = (outline(*pose, *CAR).T[:2] for pose in zip(s, y, heading, strict=True))
    along, across = np.concatenate([np.linspace(rear, front, 50) for rear, front in ends]).T
    beside = (along >= BEGIN) & (along <= END)
    return float(np.min(across[beside] - LEFT, initial=np.inf))


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    ocp = lane_change(32 if arguments.short else 80)
    answers = solve_with_all(ocp, SQP, SLEQP, UNO, short=arguments.short)
    ours, ipopt = (answer.solution for answer in answers[:2])
    shown, between = ("y", "delta", "omega", "lateral acceleration", "a"), ours.sample()
    overlap = -gap(between.times, between["y"], between["psi"])
    standing = np.array([[BEGIN, END, END, BEGIN], [LEFT - WIDTH] * 2 + [LEFT] * 2])
    way, edges = (ours.times, ours["y"], ours["psi"]), (-0.5 * LANE, 1.5 * LANE)
    path = draw_way(way, CAR, edges, [standing], (-2, ROAD + 5), 1.9)
    path.axes[0].axhline(0.5 * LANE, color=PALETTE[6], linestyle=(0, (8, 8)), linewidth=1.2)
    return finish_answers(
        arguments,
        answers,
        checks=[Check("overlap with the standing car (m)", overlap, 0.0)],
        facts={"lowest speed (m/s)": float(ours["v"].min())},
        figures={
            "path": path,
            "trajectory": compare(ours, ipopt, shown, label="distance along the road (m)"),
        },
    )


if __name__ == "__main__":
    sys.exit(main())
