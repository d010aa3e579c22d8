"""Swing-up of a pole on a cart with limited force and a short track, in the least effort.

The cart (mass M) moves along a track |q| ≤ 0.5 m and is driven by a force |u| ≤ 8 N; the pole
(mass m at the distance l from the joint) hangs at θ = 0 and has to stand at θ = π, at rest and in
the middle of the track, after T seconds. The force is too small to lift the pole in one swing.

    (M + m) q'' + m l θ'' cos θ − m l θ'² sin θ = u,    l θ'' + q'' cos θ + g sin θ = 0

Direct multiple shooting, N intervals of constant force, two Runge–Kutta steps of order four each.
The start is naive: a straight line from the initial to the final state, and no force.
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
from drawing import Panel, compare
from matplotlib.figure import Figure
from program import Program
from reporting import parser
from solving import FATROP, SQP, Answer, finish_answers, no_worse_than, solve_with_all
from transcription import Transcription, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure

NAME = "cartpole"
SUMMARY = "swing-up of a cart-pole with limits on force and track"


@dataclass(frozen=True)
class CartPole:
    """The plant (SI units) and its limits."""

    cart: float = 1.0
    pole: float = 0.3
    length: float = 0.5
    gravity: float = 9.81
    track: float = 0.5
    force: float = 8.0

    def dynamics(self, x: Any, u: Any) -> Any:
        """Return the derivative of the state (q, θ, q', θ') under the force u."""
        angle, speed, rate = x[1], x[2], x[3]
        sin, cos = ca.sin(angle), ca.cos(angle)
        push = u[0] + self.pole * sin * (self.length * rate**2 + self.gravity * cos)
        acceleration = push / (self.cart + self.pole * sin**2)
        swing = -(acceleration * cos + self.gravity * sin) / self.length
        return ca.vertcat(speed, rate, acceleration, swing)

    def program(self, intervals: int, duration: float) -> Program:
        """Return the swing-up as a nonlinear program."""
        dt = duration / intervals
        unit = np.array([1.0, np.pi, 2.0, 2.0 * np.pi])
        box = np.array([self.track, np.inf, np.inf, np.inf])
        goal = np.array([0.0, np.pi, 0.0, 0.0])

        ocp = Transcription(NAME)
        X = ocp.variable(
            "state",
            4,
            intervals + 1,
            lower=-box,
            upper=box,
            start=np.outer(goal, np.linspace(0.0, 1.0, intervals + 1)),
            unit=unit,
        )
        U = ocp.variable("force", 1, intervals, lower=-self.force, upper=self.force, unit=10.0)
        initial = ocp.parameter("initial", np.zeros(4))
        ocp.constrain("initial state", X[:, 0] - initial, unit=unit)
        ocp.shoot("dynamics", runge_kutta(self.dynamics, dt, steps=2), X, U, unit=unit)
        ocp.constrain("final state", X[:, intervals] - goal, unit=unit)
        ocp.minimize(dt * ca.sumsqr(U / 10.0))
        return ocp.build()


def draw(plant: CartPole, duration: float, ours: Answer, ipopt: Answer) -> Figure:
    """Plot position, angle and force over time with their limits, IPOPT's as circles."""
    panels = (
        Panel("position $q$ (m)", "state", 0, (-plant.track, plant.track)),
        Panel("angle $\\theta$ (rad)", "state", 1, target=np.pi),
        Panel("force $u$ (N)", "force", 0, (-plant.force, plant.force)),
    )
    time = np.linspace(0.0, duration, ours.values["state"].shape[1])
    return compare(time, panels, ours, ipopt, height=1.7)


def animate(plant: CartPole, duration: float, states: np.ndarray, path: Path) -> Path:
    """Write the motion as a GIF in real time."""
    fig, axes = figure(1, 1, height=3.2, width=5.0)
    ax = axes[0, 0]
    ax.set(xlim=(-1.4, 1.4), ylim=(-0.7, 0.7), aspect="equal", xlabel="position (m)")
    ax.set_ylabel("height (m)")
    for side in (-plant.track, plant.track):
        ax.axvline(side, color=PALETTE[1], linestyle="--", linewidth=1.0)
    (cart,) = ax.plot([], [], "s", color=PALETTE[0], markersize=16)
    (pole,) = ax.plot([], [], "o-", color="#000000", linewidth=2.5, markersize=7)
    clock = ax.set_title("", fontsize=10)
    dt = duration / (states.shape[1] - 1)

    def frame(k: int) -> None:
        q, angle = states[0, k], states[1, k]
        cart.set_data([q], [0.0])
        tip = (q + plant.length * np.sin(angle), -plant.length * np.cos(angle))
        pole.set_data([q, tip[0]], [0.0, tip[1]])
        clock.set_text(f"{k * dt:4.2f} s")

    return save_animation(fig, frame, states.shape[1], path, interval=dt)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the answer is a KKT point no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    plant = CartPole()
    duration, intervals = 2.5, 25 if arguments.short else 60
    program = plant.program(intervals, duration)
    answers = solve_with_all(program, () if arguments.short else (FATROP, SQP))
    ours, ipopt = answers[:2]
    states, force = ours.values["state"], ours.values["force"]
    films = []
    if not arguments.short:
        films.append(animate(plant, duration, states, arguments.output / "motion.gif"))
    return finish_answers(
        arguments,
        NAME,
        answers,
        checks=[no_worse_than(ours, ipopt)],
        facts={
            "largest force (N)": float(np.abs(force).max()),
            "largest excursion (m)": float(np.abs(states[0]).max()),
            "distance to IPOPT's point": float(np.abs(ours.x - ipopt.x).max()),
        },
        figures={"trajectory": draw(plant, duration, ours, ipopt)},
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
