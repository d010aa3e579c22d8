"""Parallel parking between two parked cars, with exact avoidance of collisions and free duration.

Kinematic bicycle with the rear axle at (x, y), heading ψ, steering angle δ and speed v; the inputs
are the steering rate ω and the acceleration a. The car starts beside the front one of the parked
cars and ends at rest at the kerb, half a metre from the rear one.

    x' = v cos ψ,  y' = v sin ψ,  ψ' = v tan δ / L,  δ' = ω,  v' = a,  min T + ∫ ω²/0.8² + a² dt

Limits: |δ| ≤ 0.6 rad, |ω| ≤ 0.8 rad/s, |v| ≤ 1 m/s, |a| ≤ 1 m/s². All four corners of the car
stay between the kerb and the far side of the road. Two convex bodies are apart exactly if a
straight line separates them. Since the parked cars stand at the kerb, only lines through their
corner at the gap count; the angle φ of the normal of this line is an unknown at every time:

    (cos φ, sin φ)·(z − corner) ≥ 0.15 m for the four corners z of our car

with φ in [0, π/2] for the rear and [π/2, π] for the front parked car. Smooth, exact, no logic, and
the clearance is in metres. (It is the dual form of the distance between convex sets: X. Zhang,
A. Liniger, F. Borrelli, "Optimization-based collision avoidance", IEEE Transactions on Control
Systems Technology 29, 2021.) Where the cars are far apart many lines separate them. The interior
methods end in the middle of these lines; the active-set methods end on the first or last one,
where the verifier may have to leave open whether the point is a minimizer.

Direct multiple shooting, N intervals of constant inputs, one Runge–Kutta step of order four each.
The start is naive: a straight line from the first pose to the last, through the front parked
car, at 0.7 m/s backwards for 10 s, no input, and every φ in the middle of its range.
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
from solving import SLEQP, UNO, Answer, finish_answers, no_worse_than, solve_with_all
from transcription import Transcription, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "parking"
SUMMARY = "parallel parking between two cars, exact collision avoidance, free duration"


@dataclass(frozen=True)
class Car:
    """A kinematic bicycle and its limits (SI units)."""

    wheelbase: float = 2.7
    length: float = 4.4
    width: float = 1.8
    overhang: float = 0.9
    """From the rear axle to the rear end."""
    steering: float = 0.6
    steering_rate: float = 0.8
    speed: float = 1.0
    acceleration: float = 1.0

    def dynamics(self, x: Any, u: Any) -> Any:
        """Return the derivative of the state (x, y, ψ, δ, v) under (ω, a)."""
        heading, steering, speed = x[2], x[3], x[4]
        turn = speed * ca.tan(steering) / self.wheelbase
        return ca.vertcat(speed * ca.cos(heading), speed * ca.sin(heading), turn, u[0], u[1])

    def corners(self, pose: Any) -> Any:
        """Return the four corners of the car at the pose (x, y, ψ), one a column."""
        back, side = -self.overhang, 0.5 * self.width
        front = back + self.length
        body = np.array([[back, front, front, back], [-side, -side, side, side]])
        cos, sin = ca.cos(pose[2]), ca.sin(pose[2])
        turn = ca.vertcat(ca.horzcat(cos, -sin), ca.horzcat(sin, cos))
        return ca.repmat(ca.vertcat(pose[0], pose[1]), 1, 4) + ca.mtimes(turn, body)


@dataclass(frozen=True)
class Street:
    """A gap between two cars at the kerb y = 0, seen from its rear end x = 0 (metres)."""

    gap: float = 7.0
    parked_length: float = 4.4
    parked_top: float = 2.0
    parked_bottom: float = 0.2
    width: float = 6.5
    clearance: float = 0.15

    @property
    def parked(self) -> dict[str, np.ndarray]:
        """Corners of the parked cars, one a column."""
        y = [self.parked_bottom, self.parked_bottom, self.parked_top, self.parked_top]
        spans = {"rear": (-self.parked_length, 0.0)}
        spans["front"] = (self.gap, self.gap + self.parked_length)
        return {name: np.array([[a, b, b, a], y]) for name, (a, b) in spans.items()}


def parking(car: Car, street: Street, intervals: int) -> Program:
    """Return the parking manoeuvre as a nonlinear program."""
    first = np.array([street.gap + 1.5, 3.4, 0.0, 0.0, 0.0])
    last = np.array([0.5 + car.overhang, street.parked_bottom + 0.5 * car.width, 0.0, 0.0, 0.0])
    straight = np.linspace(first, last, intervals + 1).T
    straight[4] = -0.7
    unit = np.array([1.0, 1.0, 0.5, 0.5, 1.0])
    box = np.array([np.inf, np.inf, np.inf, car.steering, car.speed])
    inputs = np.array([car.steering_rate, car.acceleration])

    ocp = Transcription(NAME)
    X = ocp.variable("state", 5, intervals + 1, lower=-box, upper=box, start=straight, unit=unit)
    U = ocp.variable("input", 2, intervals, lower=-inputs, upper=inputs)
    T = ocp.variable("duration", lower=2.0, upper=60.0, start=10.0, unit=10.0)
    initial = ocp.parameter("initial", first)
    ocp.constrain("initial state", X[:, 0] - initial, unit=unit)
    ocp.shoot("dynamics", runge_kutta(car.dynamics, T / intervals), X, U, unit=unit)
    ocp.constrain("final state", X[:, intervals] - last, unit=unit)

    corners = [car.corners(X[:, k]) for k in range(intervals + 1)]
    across = ca.horzcat(*(at[1, :].T for at in corners))
    ocp.constrain("kerb and far side", across, 0.0, street.width)
    quarter = 0.5 * np.pi
    for name, corner, low in (
        ("rear", np.array([0.0, street.parked_top]), 0.0),
        ("front", np.array([street.gap, street.parked_top]), quarter),
    ):
        angle = ocp.variable(
            f"normal to {name}",
            1,
            intervals + 1,
            lower=low,
            upper=low + quarter,
            start=low + 0.5 * quarter,
        )
        distances = [
            ca.mtimes((at - corner).T, ca.vertcat(ca.cos(angle[k]), ca.sin(angle[k])))
            for k, at in enumerate(corners)
        ]
        ocp.constrain(f"distance to {name}", ca.horzcat(*distances), street.clearance, np.inf)
    ocp.minimize(T + T / intervals * ca.sumsqr(U / ca.repmat(inputs, 1, intervals)))
    return ocp.build()


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return a bound from below on the distance of two rectangles (m), negative if they overlap.

    The largest gap between their shadows on the normals of their sides.
    """
    gaps = []
    for side in (one[:, 1] - one[:, 0], one[:, 2] - one[:, 1], other[:, 1] - other[:, 0]):
        normal = np.array([-side[1], side[0]]) / np.linalg.norm(side)
        a, b = normal @ one, normal @ other
        gaps.append(max(a.min() - b.max(), b.min() - a.max()))
    # The fourth normal, that of the parked cars' ends, is the road's own direction.
    gaps.append(max(one[0].min() - other[0].max(), other[0].min() - one[0].max()))
    return float(max(gaps))


def clearances(car: Car, street: Street, states: np.ndarray) -> np.ndarray:
    """Return the distance to the nearest parked car at every pose, a column of ``states``."""
    bodies = [np.asarray(ca.DM(car.corners(pose))) for pose in states[:3].T]
    return np.array([min(distance(b, c) for c in street.parked.values()) for b in bodies])


def draw_street(ax: Axes, street: Street) -> None:
    """Draw the kerb, the far side and the parked cars."""
    for y in (0.0, street.width):
        ax.axhline(y, **LIMIT | {"linestyle": "-", "linewidth": 2.0})
    for name, corners in street.parked.items():
        label = "parked cars" if name == "rear" else None
        ax.add_patch(Polygon(corners.T, facecolor=PALETTE[1], alpha=0.6, label=label))
    ax.set(xlim=(-4.8, street.gap + 6.2), ylim=(-0.4, street.width + 0.4), aspect="equal")
    ax.set(xlabel="$x$ (m)", ylabel="$y$ (m)")
    ax.grid(visible=False)


def draw_path(car: Car, street: Street, ours: Answer) -> Figure:
    """Plot the way of the rear axle, and the car at eleven times, from above."""
    fig, axes = figure(1, 1, height=3.4)
    ax = axes[0, 0]
    draw_street(ax, street)
    states = ours.values["state"]
    for k in np.linspace(0, states.shape[1] - 1, 11).round().astype(int):
        corners = np.asarray(ca.DM(car.corners(states[:, k]))).T
        car_at = Polygon(corners, facecolor=PALETTE[4], alpha=0.3, edgecolor=PALETTE[0])
        ax.add_patch(car_at)
    car_at.set_label("the car on its way")
    ax.plot(*states[:2], color=PALETTE[0], label="rear axle (hybrid)")
    legend_below(fig, ax)
    return fig


def animate(car: Car, street: Street, ours: Answer, path: Path) -> Path:
    """Write the motion with the separating lines as a GIF in real time."""
    states, duration = ours.values["state"], float(ours.values["duration"][0])
    fig, axes = figure(1, 1, height=3.4)
    ax = axes[0, 0]
    draw_street(ax, street)
    body = ax.add_patch(Polygon(np.zeros((4, 2)), facecolor=PALETTE[0], alpha=0.8))
    lines = {name: ax.plot([], [], "k:", linewidth=1.2)[0] for name in street.parked}
    clock = ax.set_title("", fontsize=10)
    dt = duration / (states.shape[1] - 1)

    def frame(k: int) -> None:
        body.set_xy(np.asarray(ca.DM(car.corners(states[:, k]))).T)
        for name, line in lines.items():
            angle = ours.values[f"normal to {name}"][0, k]
            corner = np.array([0.0 if name == "rear" else street.gap, street.parked_top])
            ends = np.outer([-12.0, 12.0], [-np.sin(angle), np.cos(angle)]) + corner
            line.set_data(*ends.T)
        clock.set_text(f"{k * dt:4.1f} s, {round(states[4, k], 2) + 0.0:5.2f} m/s")

    return save_animation(fig, frame, states.shape[1], path, interval=dt)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the answer is a KKT point no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    car, street = Car(), Street()
    intervals = 24 if arguments.short else 48
    program = parking(car, street, intervals)
    answers = solve_with_all(program, () if arguments.short else (UNO, SLEQP))
    ours, ipopt = answers[:2]
    states, duration = ours.values["state"], float(ours.values["duration"][0])
    nodes, fine = np.linspace(0, 1, intervals + 1), np.linspace(0, 1, 10 * intervals + 1)
    refined = np.array([np.interp(fine, nodes, row) for row in states])
    closest = float(clearances(car, street, refined).min())
    panels = (
        Panel("$v$ (m/s)", "state", 4, (-car.speed, car.speed)),
        Panel("$\\delta$ (rad)", "state", 3, (-car.steering, car.steering)),
        Panel("$\\omega$ (rad/s)", "input", 0, (-car.steering_rate, car.steering_rate)),
        Panel("$a$ (m/s²)", "input", 1, (-car.acceleration, car.acceleration)),
        Panel(
            "distance (m)",
            lambda answer: clearances(car, street, answer.values["state"]),
            limits=(street.clearance,),
        ),
    )
    films = []
    if not arguments.short:
        films.append(animate(car, street, ours, arguments.output / "motion.gif"))
    return finish_answers(
        arguments,
        NAME,
        answers,
        checks=[
            no_worse_than(ours, ipopt),
            Check("overlap with a parked car, also between the times (m)", -closest, 0.0),
        ],
        facts={
            "duration (s)": duration,
            "largest steering angle (rad)": float(np.abs(states[3]).max()),
            "distance to IPOPT's point": float(np.abs(ours.x - ipopt.x).max()),
        },
        figures={
            "path": draw_path(car, street, ours),
            "trajectory": compare(duration * nodes, panels, ours, ipopt, height=1.3),
        },
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
