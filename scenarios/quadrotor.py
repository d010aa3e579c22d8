"""Point-to-point flight of a planar quadrotor: free transfer, and slalom through round obstacles.

State (x, z, θ, x', z', θ'): position, pitch and their rates. Inputs: the thrusts u₁, u₂ of the two
rotors at the distance l from the centre of mass, 0.5 N ≤ u ≤ 8 N.

    m x'' = −(u₁ + u₂) sin θ,    m z'' = (u₁ + u₂) cos θ − m g,    J θ'' = l (u₂ − u₁)

From rest to rest in T seconds, |θ| ≤ 60°, between floor and ceiling −0.7 m ≤ z ≤ 1.1 m, with the
least ∫ ‖u − u_hover‖² dt. In the slalom the centre of mass keeps the distance r + l from the centre
of every obstacle of radius r, at the instants of the grid; what is left of it in between is
printed. Floor and ceiling leave one way past each obstacle; without them the solvers found several.

Direct multiple shooting, N intervals of constant thrust, one Runge–Kutta step of order four each.
The start is naive: a straight line through the obstacles at rest, and hovering thrust.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from animation import save_animation
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from program import Program
from reporting import finish, parser
from solving import FATROP, SQP, Answer, no_worse_than, solve_with_all
from transcription import Transcription, exact_step, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "quadrotor"
SUMMARY = "planar quadrotor: transfer and slalom through obstacles, limits on thrust and tilt"

STATE_UNIT = np.array([5.0, 1.0, 1.0, 5.0, 2.0, 5.0])
THRUST_UNIT = 5.0

LIMIT = {"color": PALETTE[1], "linewidth": 1.0, "linestyle": "--"}
CIRCLES = {"color": "#000000", "linestyle": "", "marker": "o", "markersize": 3, "fillstyle": "none"}
CIRCLES |= {"label": "IPOPT, slalom"}


@dataclass(frozen=True)
class Quadrotor:
    """The vehicle (SI units) and its limits."""

    mass: float = 0.6
    inertia: float = 0.01
    arm: float = 0.2
    gravity: float = 9.81
    least: float = 0.5
    most: float = 8.0
    tilt: float = np.pi / 3

    @property
    def hover(self) -> float:
        """Thrust of each rotor at rest."""
        return self.mass * self.gravity / 2

    def dynamics(self, x: Any, u: Any) -> Any:
        """Return the derivative of the state under the two thrusts."""
        thrust = u[0] + u[1]
        return ca.vertcat(
            x[3],
            x[4],
            x[5],
            -thrust * ca.sin(x[2]) / self.mass,
            thrust * ca.cos(x[2]) / self.mass - self.gravity,
            self.arm * (u[1] - u[0]) / self.inertia,
        )


@dataclass(frozen=True)
class Flight:
    """A flight from rest at ``start`` to rest at ``goal`` (m) in ``duration`` seconds.

    ``obstacles`` are discs: x, z and radius in metres.
    """

    name: str
    start: tuple[float, float] = (0.0, 0.0)
    goal: tuple[float, float] = (8.0, 0.5)
    duration: float = 4.0
    obstacles: tuple[tuple[float, float, float], ...] = ()
    heights: tuple[float, float] = (-0.7, 1.1)
    vehicle: Quadrotor = Quadrotor()

    def program(self, intervals: int) -> Program:
        """Return the flight as a nonlinear program."""
        vehicle, dt = self.vehicle, self.duration / intervals
        ends = np.array([[*self.start, 0, 0, 0, 0], [*self.goal, 0, 0, 0, 0]], dtype=float)
        line = np.linspace(*ends, intervals + 1, axis=1)
        upper = np.array([np.inf, self.heights[1], vehicle.tilt, np.inf, np.inf, np.inf])
        lower = np.array([-np.inf, self.heights[0], -vehicle.tilt, -np.inf, -np.inf, -np.inf])

        ocp = Transcription(self.name)
        X = ocp.variable(
            "state", 6, intervals + 1, lower=lower, upper=upper, start=line, unit=STATE_UNIT
        )
        U = ocp.variable(
            "thrust",
            2,
            intervals,
            lower=vehicle.least,
            upper=vehicle.most,
            start=vehicle.hover,
            unit=THRUST_UNIT,
        )
        ocp.constrain("initial state", X[:, 0] - ends[0], unit=STATE_UNIT)
        ocp.shoot("dynamics", runge_kutta(vehicle.dynamics, dt), X, U, unit=STATE_UNIT)
        ocp.constrain("final state", X[:, intervals] - ends[1], unit=STATE_UNIT)
        for i, (x, z, radius) in enumerate(self.obstacles):
            square = (X[0, 1:-1] - x) ** 2 + (X[1, 1:-1] - z) ** 2
            keep = (radius + vehicle.arm) ** 2
            ocp.constrain(f"obstacle {i}", square, lower=keep, upper=np.inf, unit=keep)
        ocp.minimize(dt * ca.sumsqr(U - vehicle.hover))
        return ocp.build()

    def between(self, answer: Answer, pieces: int = 10) -> np.ndarray:
        """Return the states of the exact motion, ``pieces`` an interval."""
        thrusts = answer.values["thrust"]
        dt = self.duration / thrusts.shape[1] / pieces
        step = exact_step(self.vehicle.dynamics, 6, 2, dt)
        states = [answer.values["state"][:, 0]]
        for u in np.repeat(thrusts, pieces, axis=1).T:
            states.append(step(states[-1], u).full().ravel())
        return np.array(states).T

    def clearance(self, states: np.ndarray) -> float:
        """Return the least distance (m) of the rotors' circle to an obstacle."""
        return min(
            float(np.hypot(states[0] - x, states[1] - z).min()) - radius - self.vehicle.arm
            for x, z, radius in self.obstacles
        )


TRANSFER = Flight("transfer", duration=2.0)
SLALOM = Flight(
    "slalom", duration=2.6, obstacles=((2.0, 0.5, 0.6), (4.0, -0.1, 0.6), (6.0, 0.7, 0.6))
)


def scenery(ax: Axes, flight: Flight) -> None:
    """Draw the obstacles, the distance to keep from them, and floor and ceiling."""
    for x, z, radius in flight.obstacles:
        ax.add_patch(Circle((x, z), radius, facecolor="#CCCCCC", edgecolor="none"))
        keep = radius + flight.vehicle.arm
        ax.add_patch(Circle((x, z), keep, facecolor="none", edgecolor=LIMIT["color"], ls="--"))
    for height in filter(np.isfinite, flight.heights):
        ax.axhline(height, **LIMIT)
    ax.set(xlabel="$x$ (m)", ylabel="$z$ (m)", aspect="equal", xlim=(-0.5, 8.5), ylim=(-0.9, 1.4))


def rotors(flight: Flight, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x and z of the two rotors."""
    reach = np.array([-flight.vehicle.arm, flight.vehicle.arm])
    return state[0] + reach * np.cos(state[2]), state[1] + reach * np.sin(state[2])


def draw(flights: Sequence[tuple[Flight, Answer]], ipopt: Answer) -> Figure:
    """Plot paths, tilt and thrusts with their limits; IPOPT's slalom as circles."""
    fig, axes = figure(3, 1, height=1.9)
    path, tilt, thrust = axes[:, 0]
    scenery(path, flights[-1][0])
    path.plot(*ipopt.values["state"][:2], **CIRCLES)
    for i, (flight, answer) in enumerate(flights):
        style = {"color": PALETTE[(2, 0)[i]], "linewidth": 1.6, "linestyle": ("-.", "-")[i]}
        states, thrusts = answer.values["state"], answer.values["thrust"]
        time = np.linspace(0.0, flight.duration, states.shape[1])
        name = f"hybrid, {flight.name}" + ("" if flight.obstacles else ", no obstacles")
        path.plot(*states[:2], label=name, **style)
        for state in states[:, ::6].T:
            path.plot(*rotors(flight, state), color=style["color"], linewidth=2.5)
        tilt.plot(time, np.degrees(states[2]), **style)
        for row in (0, 1):
            look = style | {"linewidth": (0.8, 1.6)[row]}
            thrust.stairs(thrusts[row], time, baseline=None, **look)
    vehicle = flights[0][0].vehicle
    path.plot([], [], label="limit", **LIMIT)
    for ax, limits in ((tilt, np.degrees([-vehicle.tilt, vehicle.tilt])),
                       (thrust, (vehicle.least, vehicle.most))):  # fmt: skip
        for limit in limits:
            ax.axhline(limit, **LIMIT)
    tilt.set(xlabel="time (s)", ylabel="pitch $\\theta$ (°)")
    thrust.set(xlabel="time (s)", ylabel="thrusts (N)\nthin: $u_1$, thick: $u_2$")
    legend_below(fig, path, columns=4)
    return fig


def animate(flight: Flight, answer: Answer, path: Path) -> Path:
    """Write the flight as a GIF in real time."""
    fig, axes = figure(1, 1, height=2.2)
    ax = axes[0, 0]
    scenery(ax, flight)
    states, thrusts = answer.values["state"], answer.values["thrust"]
    (trail,) = ax.plot([], [], color=PALETTE[0], linewidth=1.0)
    (body,) = ax.plot([], [], "o-", color="#000000", linewidth=3.0, markersize=4)
    (left,) = ax.plot([], [], color=PALETTE[1], linewidth=1.6)
    (right,) = ax.plot([], [], color=PALETTE[1], linewidth=1.6)
    clock = ax.set_title("", fontsize=10)
    dt = flight.duration / thrusts.shape[1]

    def frame(k: int) -> None:
        state, push = states[:, k], thrusts[:, min(k, thrusts.shape[1] - 1)]
        x, z = rotors(flight, state)
        trail.set_data(*states[:2, : k + 1])
        body.set_data(x, z)
        for i, jet in enumerate((left, right)):
            # The air goes down, 1 m for 10 N.
            end = x[i] + 0.1 * push[i] * np.sin(state[2]), z[i] - 0.1 * push[i] * np.cos(state[2])
            jet.set_data([x[i], end[0]], [z[i], end[1]])
        clock.set_text(f"{k * dt:4.2f} s")

    return save_animation(fig, frame, states.shape[1], path, interval=dt)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when both flights are KKT points no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    intervals, peers = (30, ()) if arguments.short else (60, (FATROP, SQP))
    solved = {}
    for flight in (TRANSFER, SLALOM):
        solved[flight] = solve_with_all(flight.program(intervals), peers)
    ours, ipopt = solved[SLALOM][:2]
    tilts = np.degrees(ours.values["state"][2])
    films = []
    if not arguments.short:
        films.append(animate(SLALOM, ours, arguments.output / "motion.gif"))
    return finish(
        arguments,
        NAME,
        (ours.program.n, ours.program.m),
        [
            answer.row() | {"method": f"{flight.name}: {answer.label}"}
            for flight, answers in solved.items()
            for answer in answers
        ],
        {f"{flight.name}: hybrid": answers[0].report for flight, answers in solved.items()},
        checks=[
            replace(check, name=f"{flight.name}: {check.name}")
            for flight, answers in solved.items()
            for check in [no_worse_than(*answers[:2])]
        ],
        facts={
            "largest thrust of the slalom (N)": float(ours.values["thrust"].max()),
            "largest tilt of the slalom (°)": float(np.abs(tilts).max()),
            "clearance at the instants of the grid (m)": SLALOM.clearance(ours.values["state"]),
            "clearance of the exact motion in between (m)": SLALOM.clearance(SLALOM.between(ours)),
        },
        figures={"flights": draw([(flight, a[0]) for flight, a in solved.items()], ipopt)},
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
