"""A hanging chain of masses is brought back to rest beside a wall, by moving its free end.

M equal masses m hang between a fixed end, the origin, and an end whose velocity u is the input.
Neighbours are Δ apart and pull at each other with the force of a spring of stiffness D and length
L at rest; gravity acts along −z:

    F(Δ) = D (1 − L/‖Δ‖) Δ,    m p_i'' = F(p_i+1 − p_i) − F(p_i − p_i−1) − m g e_z,    p_end' = u

with ‖u‖_∞ ≤ 1 m/s and a wall that no mass may enter, y ≥ −0.02 m. Somebody has pulled the end of
the resting chain for one second with (−1, 1, 1) m/s. From there, over T seconds,

    minimize  ∫ 25 ‖p_end − (1, 0, 0)‖² + Σ_i ‖p_i'‖² + 0.01 ‖u‖² dt

Direct multiple shooting, N intervals of constant velocity, two Runge–Kutta steps of order four
each. One interval is built and mapped over the horizon (MX), which takes a tenth of a second. The
hybrid solver turns a graph of this size into scalar operations when it is built: that takes most of
its building time and makes each solve faster. The start is naive: masses on the straight line
between the ends, at rest.

The problem is that of L. Wirsching, H. G. Bock, M. Diehl, "Fast NMPC of a chain of masses connected
by springs", IEEE International Conference on Control Applications, 2006; the wall and the numbers
follow its later use as a benchmark.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from animation import save_animation
from drawing import CIRCLES, LIMIT
from matplotlib.figure import Figure
from program import Program
from reporting import parser
from solving import FATROP, Answer, finish_answers, no_worse_than, solve_with_all
from transcription import Transcription, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "chain"
SUMMARY = "hanging chain of masses brought to rest beside a wall by moving one end"

DT = 0.2
FRAMES = 2
COLOURS = (PALETTE[0], PALETTE[2], PALETTE[3], PALETTE[7])  # the second is that of limits
GOAL = np.array([1.0, 0.0, 0.0])
PULL = np.array([-1.0, 1.0, 1.0])


@dataclass(frozen=True)
class Chain:
    """The plant (SI units) and its limits.

    The state stacks the positions of the masses and of the end, then the masses' velocities.
    """

    masses: int = 3
    mass: float = 0.033
    stiffness: float = 1.0
    length: float = 0.033
    drag: float = 0.0
    gravity: float = 9.81
    wall: float = -0.02
    speed: float = 1.0

    @property
    def end(self) -> slice:
        """Where the state has the position of the end."""
        return slice(3 * self.masses, 3 * self.masses + 3)

    @property
    def states(self) -> int:
        """Number of states."""
        return 6 * self.masses + 3

    def dynamics(self, x: Any, u: Any) -> Any:
        """Return the derivative of the state when the end moves with the velocity u."""
        M = self.masses
        positions = [ca.DM.zeros(3), *(x[3 * i : 3 * i + 3] for i in range(M + 1))]
        velocities = x[3 * M + 3 :]
        springs = [b - a for a, b in pairwise(positions)]
        forces = [self.stiffness * (1 - self.length / ca.norm_2(d)) * d for d in springs]
        weight = ca.DM([0.0, 0.0, -self.gravity])
        pull = ca.vertcat(*(forces[i + 1] - forces[i] for i in range(M))) - self.drag * velocities
        return ca.vertcat(velocities, u, pull / self.mass + ca.repmat(weight, M, 1))

    def straight(self) -> np.ndarray:
        """Return the state at rest with all masses on the straight line to the goal."""
        line = np.outer(np.linspace(0.0, 1.0, self.masses + 2)[1:], GOAL)
        return np.concatenate((line.ravel(), np.zeros(3 * self.masses)))

    @cached_property
    def rest(self) -> np.ndarray:
        """The state at rest under gravity with the end at the goal."""
        z = ca.SX.sym("z", 3 * self.masses)
        state = ca.vertcat(z, GOAL, np.zeros(3 * self.masses))
        forces = self.dynamics(state, np.zeros(3))[self.end.stop :]
        solve = ca.rootfinder("rest", "newton", ca.Function("forces", [z], [forces]))
        guess = self.straight()[: 3 * self.masses].reshape(-1, 3)
        guess = guess - np.outer(np.sin(np.pi * guess[:, 0]), [0.0, 0.0, 1.0])
        found = solve(guess.ravel()).full().ravel()
        return np.concatenate((found, GOAL, np.zeros(3 * self.masses)))

    def pulled(self, velocity: np.ndarray, intervals: int) -> np.ndarray:
        """Return the state after the end of the resting chain was moved for some intervals."""
        step, state = runge_kutta(self.dynamics, DT, steps=2), ca.DM(self.rest)
        for _ in range(intervals):
            state = step(state, velocity)
        return np.asarray(state.full().ravel())

    def cost(self, x: Any, u: Any) -> Any:
        """Return the integrand of the objective, for columns of states and of inputs."""
        end, velocities = x[self.end, :] - GOAL, x[self.end.stop :, :]
        return 25 * ca.sumsqr(end) + ca.sumsqr(velocities) + 0.01 * ca.sumsqr(u)

    def program(self, intervals: int, initial: np.ndarray) -> Program:
        """Return the way back to rest from the initial state as a nonlinear program."""
        lower = np.full((self.states, intervals + 1), -np.inf)
        lower[1 : self.end.stop : 3, 1:] = self.wall
        ocp = Transcription(NAME, ca.MX)
        X = ocp.variable("state", self.states, intervals + 1, lower=lower, start=self.straight())
        U = ocp.variable("velocity", 3, intervals, lower=-self.speed, upper=self.speed)
        ocp.constrain("initial state", X[:, 0] - ocp.parameter("initial", initial))
        ocp.shoot("dynamics", runge_kutta(self.dynamics, DT, steps=2), X, U)
        ocp.minimize(DT * self.cost(X[:, 1:], U))
        return ocp.build()

    def filmed(self, states: np.ndarray, inputs: np.ndarray, frames: int) -> np.ndarray:
        """Return the states with intermediate ones: so many columns an interval."""
        step = runge_kutta(self.dynamics, DT / frames)
        columns = []
        for state, velocity in zip(states.T, inputs.T, strict=False):
            columns.append(state)
            for _ in range(frames - 1):
                columns.append(ca.DM(step(ca.DM(columns[-1]), velocity)).full().ravel())
        return np.column_stack(columns)

    def shape(self, state: np.ndarray) -> np.ndarray:
        """Return the coordinates of the fixed end, the masses and the end: 3 × (M + 2)."""
        return np.column_stack((np.zeros(3), state[: self.end.stop].reshape(-1, 3).T))


def draw(chain: Chain, ours: Answer, ipopt: Answer) -> Figure:
    """Plot the chain from the side and from above, its distance from the wall, and the input."""
    fig, axes = figure(2, 2, height=3.0, width=9.0)
    states, inputs = ours.values["state"], ours.values["velocity"]
    time = DT * np.arange(states.shape[1])
    instants = [0, 2, 5, states.shape[1] - 1]
    for ax, row in ((axes[0, 0], 2), (axes[0, 1], 1)):
        for i, k in enumerate(instants):
            points = chain.shape(states[:, k])
            label = f"{time[k]:.1f} s"
            ax.plot(points[0], points[row], "o-", color=COLOURS[i], markersize=4, label=label)
        ax.set_xlabel("$x$ (m)")
    axes[0, 0].set(ylabel="$z$ (m)", title="from the side")
    axes[0, 1].set(ylabel="$y$ (m)", title="from above")
    axes[0, 0].legend(fontsize=8)
    axes[0, 1].axhline(chain.wall, **LIMIT)

    nearest = [
        answer.values["state"][1 : chain.end.stop : 3].min(axis=0) for answer in (ours, ipopt)
    ]
    axes[1, 0].plot(time, nearest[0], color=PALETTE[0], label="hybrid")
    axes[1, 0].plot(time, nearest[1], label="IPOPT", **CIRCLES)
    axes[1, 0].axhline(chain.wall, label="limit", **LIMIT)
    axes[1, 0].set(xlabel="time (s)", ylabel="nearest to the wall, $y$ (m)")
    for i, name in enumerate("xyz"):
        style = {"color": COLOURS[i], "linestyle": ("-", "--", ":")[i], "linewidth": 1.6}
        axes[1, 1].stairs(inputs[i], time, baseline=None, label=f"$u_{name}$", **style)
    for limit in (-chain.speed, chain.speed):
        axes[1, 1].axhline(limit, **LIMIT)
    axes[1, 1].set(xlabel="time (s)", ylabel="velocity of the end (m/s)")
    axes[1, 1].legend(fontsize=8)
    legend_below(fig, axes[1, 0])
    return fig


def animate(chain: Chain, states: np.ndarray, dt: float, path: Path) -> Path:
    """Write the motion of the chain, from the side and from above, as a GIF in real time."""
    fig, axes = figure(1, 2, height=3.0, width=8.0)
    points = np.array([chain.shape(state) for state in states.T])
    lines = []
    for ax, row, title in zip(axes[0], (2, 1), ("from the side", "from above"), strict=True):
        margin = 0.1
        ax.set(xlim=(points[:, 0].min() - margin, points[:, 0].max() + margin), xlabel="$x$ (m)")
        ax.set(ylim=(points[:, row].min() - margin, points[:, row].max() + margin), title=title)
        ax.set_ylabel(f"${'xyz'[row]}$ (m)")
        lines.append(ax.plot([], [], "o-", color=PALETTE[0], linewidth=1.8)[0])
    axes[0, 1].axhline(chain.wall, **LIMIT)
    clock = fig.suptitle(" ", fontsize=10)

    def frame(k: int) -> None:
        for line, row in zip(lines, (2, 1), strict=True):
            line.set_data(points[k, 0], points[k, row])
        clock.set_text(f"{k * dt:4.1f} s")

    return save_animation(fig, frame, len(points), path, interval=dt)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the answer is a KKT point no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    chain, intervals = (Chain(masses=1), 12) if arguments.short else (Chain(), 40)
    program = chain.program(intervals, chain.pulled(PULL, round(1.0 / DT)))
    answers = solve_with_all(program, () if arguments.short else (FATROP,))
    ours, ipopt = answers[:2]
    states = ours.values["state"]
    films = []
    if not arguments.short:
        film = chain.filmed(states, ours.values["velocity"], FRAMES)
        films.append(animate(chain, film, DT / FRAMES, arguments.output / "motion.gif"))
    return finish_answers(
        arguments,
        NAME,
        answers,
        checks=[no_worse_than(ours, ipopt)],
        facts={
            "masses": chain.masses,
            "distance of the chain from rest at the end (m)": float(
                np.abs(states[: chain.end.stop, -1] - chain.rest[: chain.end.stop]).max()
            ),
            "build (s), hybrid": ours.build,
            "build (s), IPOPT": ipopt.build,
            "distance to IPOPT's point": float(np.abs(ours.x - ipopt.x).max()),
        },
        figures={"motion": draw(chain, ours, ipopt)},
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
