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

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from animation import save_animation
from drawing import LIMIT, Panel, compare
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from program import Program
from reporting import Check, parser
from solving import SLEQP, SQP, UNO, Answer, finish_answers, no_worse_than, solve_with_all
from transcription import Transcription, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "lane_change"
SUMMARY = "double lane change past a standing car, limits on steering and lateral acceleration"


@dataclass(frozen=True)
class Car:
    """A kinematic bicycle and its limits (SI units)."""

    wheelbase: float = 2.7
    length: float = 4.4
    width: float = 1.8
    overhang: float = 0.8
    """From the rear axle to the rear end."""
    steering: float = 0.1
    steering_rate: float = 0.4
    braking: float = 5.0
    driving: float = 2.5
    lateral: float = 5.0
    clearance: float = 0.2

    def lateral_acceleration(self, steering: Any, speed: Any) -> Any:
        """Return v² tan δ / L."""
        return speed**2 * ca.tan(steering) / self.wheelbase

    def along_the_road(self, x: Any, u: Any) -> Any:
        """Return the derivative by s of the state (y, ψ, δ, v) and of the cost."""
        heading, steering, speed = x[1], x[2], x[3]
        forward = speed * ca.cos(heading)
        cost = (
            (self.lateral_acceleration(steering, speed) / self.lateral) ** 2
            + (u[0] / self.steering_rate) ** 2
            + (u[1] / self.braking) ** 2
        )
        return ca.vertcat(
            ca.tan(heading),
            ca.tan(steering) / (self.wheelbase * ca.cos(heading)),
            u[0] / forward,
            u[1] / forward,
            cost / forward,
        )

    def outline(self, s: float, y: float, heading: float) -> np.ndarray:
        """Return the corners of the car with its rear axle at (s, y), 4×2."""
        x = np.array([-self.overhang, self.length - self.overhang])[[0, 1, 1, 0]]
        side = 0.5 * self.width * np.array([-1.0, -1.0, 1.0, 1.0])
        cos, sin = np.cos(heading), np.sin(heading)
        return np.column_stack((s + cos * x - sin * side, y + sin * x + cos * side))


@dataclass(frozen=True)
class Road:
    """Two lanes, our own around y = 0, and a standing car (metres)."""

    length: float = 64.0
    lane: float = 3.5
    begin: float = 24.0
    """Rear end of the standing car."""
    end: float = 30.0
    left: float = 1.2
    """y of its left side."""

    def corridor(self, s: np.ndarray, car: Car) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds on the axles' y where the rear axle is at s."""
        room = 0.5 * car.width + car.clearance
        beside = (s > self.begin - (car.length - car.overhang)) & (s < self.end + car.overhang)
        right = np.where(beside, self.left, -0.5 * self.lane)
        return right + room, np.full(s.shape, 1.5 * self.lane - room)


def lane_change(car: Car, road: Road, intervals: int, speed: float) -> Program:
    """Return the double lane change as a nonlinear program."""
    s = np.linspace(0.0, road.length, intervals + 1)
    low, high = road.corridor(s, car)
    unit = np.array([1.0, 0.1, 0.1, 10.0])
    free = np.full_like(s, np.inf)
    swing = np.full_like(s, car.steering)
    straight = np.array([0.0, 0.0, 0.0, speed])

    ocp = Transcription(NAME)
    X = ocp.variable(
        "state",
        4,
        intervals + 1,
        lower=np.array([low, -free, -swing, 0.0 * s + 1.0]),
        upper=np.array([high, free, swing, free]),
        start=straight,
        unit=unit,
    )
    U = ocp.variable(
        "input",
        2,
        intervals,
        lower=np.array([-car.steering_rate, -car.braking]),
        upper=np.array([car.steering_rate, car.driving]),
        unit=np.array([1.0, 10.0]),
    )
    initial = ocp.parameter("initial", straight)
    ocp.constrain("initial state", X[:, 0] - initial, unit=unit)
    ahead = runge_kutta(car.along_the_road, road.length / intervals)
    ends = [ahead(ca.vertcat(X[:, k], 0.0), U[:, k]) for k in range(intervals)]
    ends = ca.horzcat(*ends)
    ocp.constrain("dynamics", X[:, 1:] - ends[:4, :], unit=unit)
    ocp.constrain("final state", X[:, intervals] - straight, unit=unit)
    ocp.constrain("front axle", X[0, :] + car.wheelbase * ca.sin(X[1, :]), low[None], high[None])
    lateral = car.lateral_acceleration(X[2, :], X[3, :])
    ocp.constrain("lateral acceleration", lateral, -car.lateral, car.lateral, unit=10.0)
    ocp.minimize(ca.sum2(ends[4, :]))
    return ocp.build()


def gap(car: Car, road: Road, states: np.ndarray) -> float:
    """Return the least distance (m) across the road from our right side to the standing car.

    Also between the points of the transcription: they are ten times refined.
    """
    nodes = np.linspace(0.0, road.length, states.shape[1])
    s = np.linspace(0.0, road.length, 10 * (nodes.size - 1) + 1)
    y, heading = (np.interp(s, nodes, row) for row in states[:2])
    least = np.inf
    for pose in zip(s, y, heading, strict=True):
        rear, front = car.outline(*pose)[:2]
        side = np.linspace(rear, front, 50)
        beside = (side[:, 0] >= road.begin) & (side[:, 0] <= road.end)
        least = min(least, float(np.min(side[beside, 1] - road.left, initial=np.inf)))
    return least


def draw_road(ax: Axes, road: Road, car: Car) -> None:
    """Draw the lanes and the standing car."""
    middle, edges = 0.5 * road.lane, (-0.5 * road.lane, 1.5 * road.lane)
    for edge in edges:
        ax.axhline(edge, **LIMIT | {"linestyle": "-", "linewidth": 2.0})
    ax.axhline(middle, color=PALETTE[6], linestyle=(0, (8, 8)), linewidth=1.2)
    corners = [(road.begin, road.left - car.width), (road.end, road.left - car.width)]
    corners += [(road.end, road.left), (road.begin, road.left)]
    ax.add_patch(Polygon(corners, facecolor=PALETTE[1], alpha=0.6, label="standing car"))
    ax.set(xlim=(-2, road.length + 5), ylim=(-2.6, 6.0), aspect="equal")
    ax.set(xlabel="distance along the road $s$ (m)", ylabel="$y$ (m)")
    ax.grid(visible=False)


def draw_path(car: Car, road: Road, ours: Answer) -> Figure:
    """Plot the way of the rear axle and the car at ten places, from above."""
    fig, axes = figure(1, 1, height=1.9)
    ax = axes[0, 0]
    draw_road(ax, road, car)
    states = ours.values["state"]
    s = np.linspace(0.0, road.length, states.shape[1])
    for k in np.linspace(0, s.size - 1, 10).round().astype(int):
        corners = car.outline(s[k], states[0, k], states[1, k])
        ax.add_patch(Polygon(corners, facecolor=PALETTE[4], alpha=0.45, edgecolor=PALETTE[0]))
    ax.plot(s, states[0], color=PALETTE[0], label="rear axle (hybrid)")
    legend_below(fig, ax)
    return fig


def animate(car: Car, road: Road, states: np.ndarray, path: Path, dt: float = 0.05) -> Path:
    """Write the motion as a GIF in real time."""
    s = np.linspace(0.0, road.length, states.shape[1])
    pace = 1.0 / (states[3] * np.cos(states[1]))
    time = np.append(0.0, np.cumsum(np.diff(s) * (pace[1:] + pace[:-1]) / 2))
    at = np.arange(0.0, time[-1], dt)
    places = [np.interp(at, time, row) for row in (s, *states)]
    fig, axes = figure(1, 1, height=1.6)
    ax = axes[0, 0]
    draw_road(ax, road, car)
    body = ax.add_patch(Polygon(np.zeros((4, 2)), facecolor=PALETTE[0]))
    (trace,) = ax.plot([], [], color=PALETTE[0])
    clock = ax.set_title("", fontsize=10)

    def frame(k: int) -> None:
        body.set_xy(car.outline(places[0][k], places[1][k], places[2][k]))
        trace.set_data(places[0][: k + 1], places[1][: k + 1])
        clock.set_text(f"{at[k]:4.2f} s, {places[4][k]:4.1f} m/s")

    return save_animation(fig, frame, at.size, path, interval=dt)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the answer is a KKT point no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    car, road = Car(), Road()
    intervals = 32 if arguments.short else 80
    program = lane_change(car, road, intervals, speed=20.0)
    answers = solve_with_all(program, () if arguments.short else (SQP, SLEQP, UNO))
    ours, ipopt = answers[:2]
    states, inputs = ours.values["state"], ours.values["input"]

    def lateral(answer: Answer) -> np.ndarray:
        x = answer.values["state"]
        return np.asarray(car.lateral_acceleration(x[2], x[3])).ravel()

    s = np.linspace(0.0, road.length, intervals + 1)
    panels = (
        Panel("$y$ (m)", "state", 0, road.corridor(s, car)),
        Panel("$\\delta$ (rad)", "state", 2, (-car.steering, car.steering)),
        Panel("$\\omega$ (rad/s)", "input", 0, (-car.steering_rate, car.steering_rate)),
        Panel("lateral (m/s²)", lateral, limits=(-car.lateral, car.lateral)),
        Panel("$a$ (m/s²)", "input", 1, (-car.braking, car.driving)),
    )
    films = []
    if not arguments.short:
        films.append(animate(car, road, states, arguments.output / "motion.gif"))
    return finish_answers(
        arguments,
        NAME,
        answers,
        checks=[
            no_worse_than(ours, ipopt),
            Check("overlap with the standing car (m)", -gap(car, road, states), 0.0),
        ],
        facts={
            "largest lateral acceleration (m/s²)": float(np.abs(lateral(ours)).max()),
            "largest steering rate (rad/s)": float(np.abs(inputs[0]).max()),
            "lowest speed (m/s)": float(states[3].min()),
            "distance to IPOPT's point": float(np.abs(ours.x - ipopt.x).max()),
        },
        figures={
            "path": draw_path(car, road, ours),
            "trajectory": compare(
                s, panels, ours, ipopt, label="distance along the road (m)", height=1.3
            ),
        },
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
