"""Swing-up of a pendulum whose motor is far too weak to lift it, in the least effort and time.

A mass m at the distance l hangs at θ = 0 and has to stand at θ = π, at rest. The torque
|u| ≤ 1.3 N·m is about a quarter of gravity's m g l, so the pendulum has to swing several times:

    m l² θ'' = u − d θ' − m g l sin θ

Direct multiple shooting, N intervals of constant torque with two Runge–Kutta steps of order four
each. Two programs:

- *least effort*: minimize ∫ (u/u_max)² dt in the fixed time T = 5 s, from a naive start: a straight
  line from the hanging to the standing state, and no torque;
- *least time*: minimize T + 0.001 ∫ (u/u_max)² dt, the length of an interval being an unknown. The
  small second term makes the torque unique where time alone leaves it open. It starts from the
  trajectory of the least effort. From the straight line both the hybrid solver and IPOPT end at
  points where the violation of the dynamics has a local minimum.

A motor of 1.0 N·m in T = 6 s is hard from the naive start; its rows are printed, and required of
nobody.
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
from drawing import CIRCLES, LIMIT, TARGET
from matplotlib.figure import Figure
from program import Program
from reporting import finish, parser
from solving import FATROP, Answer, no_worse_than, solve_with_all
from transcription import Transcription, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "pendulum_limits"
SUMMARY = "swing-up of a pendulum in several swings by a weak motor, in the least effort and time"
DURATION = 5.0


@dataclass(frozen=True)
class Pendulum:
    """The plant (SI units) and its limit."""

    mass: float = 1.0
    length: float = 0.5
    damping: float = 0.02
    gravity: float = 9.81
    torque: float = 1.3

    def dynamics(self, x: Any, u: Any) -> Any:
        """Return the derivative of the state (θ, θ') under the torque u."""
        weight = self.mass * self.gravity * self.length
        inertia = self.mass * self.length**2
        moment = u[0] - self.damping * x[1] - weight * ca.sin(x[0])
        return ca.vertcat(x[1], moment / inertia)

    def program(self, intervals: int, duration: float, *, free: bool = False) -> Program:
        """Return the swing-up in a fixed time, or in a free one that starts at the duration."""
        unit = np.array([np.pi, 2.0 * np.pi])
        goal = np.array([np.pi, 0.0])
        line = np.outer(goal, np.linspace(0.0, 1.0, intervals + 1))
        ocp = Transcription("least time" if free else "least effort")
        X = ocp.variable("state", 2, intervals + 1, start=line, unit=unit)
        U = ocp.variable("torque", 1, intervals, lower=-self.torque, upper=self.torque)
        T: Any = duration
        if free:
            T = ocp.variable("duration", lower=0.1, start=duration, unit=duration)
        step = runge_kutta(self.dynamics, T / intervals, steps=2)
        ocp.constrain("initial state", X[:, 0], unit=unit)
        ocp.shoot("dynamics", step, X, U, unit=unit)
        ocp.constrain("final state", X[:, intervals] - goal, unit=unit)
        effort = ca.sumsqr(U / self.torque) * T / intervals
        ocp.minimize(T + 1e-3 * effort if free else effort)
        return ocp.build()


def draw(pendulum: Pendulum, answers: Sequence[Answer], references: Sequence[Answer]) -> Figure:
    """Plot angle and torque of the least effort (left) and time (right), IPOPT's as circles."""
    fig, axes = figure(2, 2, height=2.4, width=9.0)
    line = {"color": PALETTE[0], "linewidth": 1.6, "label": "hybrid"}
    circles = {**CIRCLES, "label": "IPOPT"}
    for column, (ours, ipopt) in enumerate(zip(answers, references, strict=True)):
        time, other = instants(ours), instants(ipopt)
        axes[0, column].plot(time, ours.values["state"][0], **line)
        axes[0, column].plot(other, ipopt.values["state"][0], **circles)
        axes[1, column].stairs(ours.values["torque"].ravel(), time, baseline=None, **line)
        axes[1, column].plot(
            (other[:-1] + other[1:]) / 2, ipopt.values["torque"].ravel(), **circles
        )
        axes[0, column].axhline(np.pi, **TARGET)
        axes[1, column].axhline(-pendulum.torque, **LIMIT)
        axes[1, column].axhline(pendulum.torque, label="limit", **LIMIT)
        axes[0, column].set_title(f"{ours.program.name}, {time[-1]:.2f} s")
        axes[1, column].set_xlabel("time (s)")
    axes[0, 0].annotate("upright", (0, np.pi), xytext=(3, -12), textcoords="offset points")
    axes[0, 0].set_ylabel("angle $\\theta$ (rad)")
    axes[1, 0].set_ylabel("torque $u$ (N·m)")
    fig.align_ylabels()
    legend_below(fig, axes[1, 0])
    return fig


def instants(answer: Answer) -> np.ndarray:
    """Return the times of the states, in seconds."""
    duration = answer.values.get("duration", [DURATION])[0]
    return np.linspace(0.0, float(duration), answer.values["state"].shape[1])


def animate(pendulum: Pendulum, answers: Sequence[Answer], path: Path) -> Path:
    """Write both motions side by side as a GIF in real time, the torque as the bar below."""
    fig, axes = figure(1, 2, height=3.2, width=6.0)
    dt, artists = 0.05, []
    for ax, answer in zip(axes[0], answers, strict=True):
        reach = 1.25 * pendulum.length
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="$x$ (m)")
        ax.set_title(answer.program.name, fontsize=10)
        (rod,) = ax.plot([], [], "o-", color="#000000", linewidth=2.5, markersize=8)
        (bar,) = ax.plot([], [], color=PALETTE[0], linewidth=6, solid_capstyle="butt")
        ax.plot([0, 0], [-reach, -0.93 * reach], color="#000000", linewidth=1.0)
        artists.append((rod, bar))
    axes[0, 0].set_ylabel("height (m)")
    clock = fig.suptitle(" ", fontsize=10)

    def frame(k: int) -> None:
        for (rod, bar), answer in zip(artists, answers, strict=True):
            time = instants(answer)
            angle = np.interp(k * dt, time, answer.values["state"][0])
            tip = pendulum.length * np.array([np.sin(angle), -np.cos(angle)])
            rod.set_data([0.0, tip[0]], [0.0, tip[1]])
            interval = int(np.searchsorted(time, k * dt, side="right")) - 1
            running = interval < time.size - 1
            torque = answer.values["torque"].ravel()[interval] if running else 0.0
            bar.set_data([0.0, pendulum.length * torque / pendulum.torque], 2 * [-0.96 * 0.625])
        clock.set_text(f"{k * dt:4.2f} s")

    return save_animation(fig, frame, round(DURATION / dt) + 1, path, interval=dt)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when both answers are KKT points no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    pendulum, intervals = Pendulum(), 30 if arguments.short else 60
    effort = pendulum.program(intervals, DURATION)
    efforts = solve_with_all(effort, () if arguments.short else (FATROP,))
    found = efforts[0].values
    time = pendulum.program(intervals, DURATION, free=True)
    time = time.with_start(state=found["state"], torque=found["torque"])
    times = solve_with_all(time, ())
    films, hard = [], []
    if not arguments.short:
        films.append(animate(pendulum, (efforts[0], times[0]), arguments.output / "motion.gif"))
        weak = replace(pendulum, torque=1.0).program(intervals, 6.0)
        hard = solve_with_all(replace(weak, name="weak motor"), (FATROP,))
    answers = [*efforts, *times, *hard]
    ours = efforts[0], times[0]
    return finish(
        arguments,
        NAME,
        (effort.n, effort.m),
        [
            {**answer.row(), "method": f"{answer.label}, {answer.program.name}", "detail": ""}
            for answer in answers
        ],
        {f"hybrid, {answer.program.name}": answer.report for answer in ours},
        checks=[no_worse_than(*efforts[:2]), no_worse_than(*times)],
        facts={
            "least time (s)": float(times[0].values["duration"][0]),
            "share of the least time at full torque": float(
                np.mean(np.abs(times[0].values["torque"]) > 0.999 * pendulum.torque)
            ),
            "torque of gravity m g l (N·m)": pendulum.mass * pendulum.gravity * pendulum.length,
        },
        figures={"trajectories": draw(pendulum, ours, (efforts[1], times[1]))},
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
