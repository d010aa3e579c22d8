"""A car through a hairpin and a bend in the shortest time, at the limit of grip and engine.

The way s along the centre line of the track (curvature κ_c) is the independent variable. The car
is a point with the offset n to the left of the centre line, the heading χ relative to it and the
speed v; its inputs are the curvature κ of its own path and the acceleration a.

    n_s = (1 − n κ_c) tan χ,   χ_s = κ (1 − n κ_c) / cos χ − κ_c,   v_s = a t_s,
    t_s = (1 − n κ_c) / (v cos χ),   min t(end)

Limits: the track |n| ≤ 3 m, the circle of grip (v² κ)² + a² ≤ (9 m/s²)², the engine a ≤ 4 m/s²
and a v ≤ 60 W/kg. The car starts at 10 m/s in the middle of the track; its end is free. Time is
an outcome, so the duration is free. The optimum is made of arcs on one limit after another: full
power, full brakes, the circle of grip, the edges of the track.

Direct multiple shooting, N intervals of constant inputs, one Runge–Kutta step of order four each;
grip holds at both ends of every interval. The start is naive: 10 m/s along the centre line, and
no input.
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
from drawing import CIRCLES, LIMIT, Panel, compare
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from program import Program
from reporting import parser
from solving import SLEQP, UNO, Answer, finish_answers, no_worse_than, solve_with_all
from transcription import Transcription, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "minimum_time"
SUMMARY = "a car through a hairpin and a bend in the shortest time, limits on grip and engine"


@dataclass(frozen=True)
class Track:
    """A centre line of straights and arcs (metres)."""

    segments: tuple[tuple[float, float], ...] = (
        (50.0, 0.0),
        (15.0 * np.pi, 1.0 / 15.0),
        (30.0, 0.0),
        (10.0 * np.pi, -1.0 / 20.0),
        (40.0, 0.0),
    )
    """Lengths and curvatures, positive to the left."""
    half_width: float = 3.0

    @property
    def length(self) -> float:
        """Length of the centre line."""
        return sum(length for length, _ in self.segments)

    def curvature(self, intervals: int) -> np.ndarray:
        """Return the mean curvature of each interval."""
        ends = np.cumsum([0.0, *(length for length, _ in self.segments)])
        turned = np.cumsum([0.0, *(length * bend for length, bend in self.segments)])
        s = np.linspace(0.0, self.length, intervals + 1)
        return np.diff(np.interp(s, ends, turned)) / np.diff(s)

    def points(self, offset: np.ndarray) -> np.ndarray:
        """Return the points (x, y), 2×(N+1), at the offsets from the centre line."""
        intervals = offset.size - 1
        ds = self.length / intervals
        bend = self.curvature(intervals)
        heading = np.append(0.0, np.cumsum(bend * ds))
        middle = (heading[1:] + heading[:-1]) / 2
        chord = ds * np.sinc(bend * ds / (2.0 * np.pi))
        steps = chord * np.array([np.cos(middle), np.sin(middle)])
        centre = np.hstack((np.zeros((2, 1)), np.cumsum(steps, axis=1)))
        return centre + offset * np.array([-np.sin(heading), np.cos(heading)])


@dataclass(frozen=True)
class Car:
    """Grip and engine, for one kilogram (SI units)."""

    grip: float = 9.0
    drive: float = 4.0
    power: float = 60.0
    entry: float = 10.0
    slowest: float = 8.0
    """Not reached; far below it one step of the integrator would turn time back."""

    def along_the_track(self, x: Any, u: Any) -> Any:
        """Return the derivative by s of (n, χ, v, t) under (κ, a, κ_c)."""
        stretch = (1 - x[0] * u[2]) / ca.cos(x[1])
        pace = stretch / x[2]
        return ca.vertcat(stretch * ca.sin(x[1]), u[0] * stretch - u[2], u[1] * pace, pace)

    def lap(self, track: Track, intervals: int) -> Program:
        """Return the lap as a nonlinear program."""
        entry = np.array([0.0, 0.0, self.entry, 0.0])
        unit = np.array([1.0, 0.5, 10.0, 1.0])
        ocp = Transcription(NAME)
        X = ocp.variable(
            "state",
            4,
            intervals + 1,
            lower=np.array([-track.half_width, -1.2, self.slowest, -np.inf]),
            upper=np.array([track.half_width, 1.2, np.inf, np.inf]),
            start=entry,
            unit=unit,
        )
        U = ocp.variable(
            "input",
            2,
            intervals,
            lower=np.array([-0.5, -self.grip]),
            upper=np.array([0.5, self.drive]),
            unit=np.array([0.1, 10.0]),
        )
        bend = ocp.parameter("bend", track.curvature(intervals)[None, :])
        initial = ocp.parameter("entry", entry)
        ocp.constrain("entry", X[:, 0] - initial, unit=unit)
        step = runge_kutta(self.along_the_track, track.length / intervals)
        ocp.shoot("dynamics", step, X, ca.vertcat(U, bend), unit=unit)
        for name, v in (("grip at the begin", X[2, :-1]), ("grip at the end", X[2, 1:])):
            used = (v**2 * U[0, :]) ** 2 + U[1, :] ** 2
            ocp.constrain(name, used / self.grip**2, -np.inf, 1.0)
        ocp.constrain("power", U[1, :] * X[2, 1:], -np.inf, self.power, unit=self.power)
        ocp.minimize(X[3, intervals])
        return ocp.build()

    def grip_used(self, answer: Answer) -> np.ndarray:
        """Return √((v² κ)² + a²) of every interval at its begin or end, whichever is larger."""
        v = answer.values["state"][2]
        bend, push = answer.values["input"]
        return np.maximum(np.hypot(v[:-1] ** 2 * bend, push), np.hypot(v[1:] ** 2 * bend, push))


def on_a_limit(car: Car, answer: Answer) -> np.ndarray:
    """Return for each interval whether grip, engine or power is used up to a thousandth."""
    push, v = answer.values["input"][1], answer.values["state"][2, 1:]
    used = (car.grip_used(answer) / car.grip, push / car.drive, push * v / car.power)
    return np.max(used, axis=0) > 1 - 1e-3


def draw_track(track: Track, states: np.ndarray, *, height: float = 4.8) -> tuple[Figure, Axes]:
    """Draw the edges of the track and our path on it, coloured by speed."""
    fig, axes = figure(1, 1, height=height, width=0.95 * height)
    ax = axes[0, 0]
    for side in (-track.half_width, track.half_width):
        edge = track.points(np.full(401, side))
        ax.plot(*edge, **LIMIT | {"label": "limit" if side > 0 else None})
    path = track.points(states[0]).T
    pieces = LineCollection(np.stack((path[:-1], path[1:]), axis=1), linewidths=3.0)
    pieces.set_array((states[2, :-1] + states[2, 1:]) / 2)
    pieces.set_cmap("cividis")
    ax.add_collection(pieces)
    fig.colorbar(pieces, ax=ax, label="speed (m/s)")
    ax.set(aspect="equal", xlabel="$x$ (m)", ylabel="$y$ (m)")
    return fig, ax


def draw_path(track: Track, ours: Answer, ipopt: Answer) -> Figure:
    """Plot the path from above, IPOPT's as circles at every fourth point."""
    fig, ax = draw_track(track, ours.values["state"])
    theirs = track.points(ipopt.values["state"][0])[:, ::4]
    ax.plot(*theirs, **CIRCLES | {"markersize": 3}, label=ipopt.label)
    legend_below(fig, ax)
    return fig


def animate(track: Track, states: np.ndarray, path: Path, dt: float = 0.1) -> Path:
    """Write the motion as a GIF in real time."""
    fig, ax = draw_track(track, states, height=4.0)
    way = track.points(states[0])
    at = np.arange(0.0, states[3, -1], dt)
    places = np.array([np.interp(at, states[3], row) for row in (*way, states[2])])
    (car,) = ax.plot([], [], "o", color=PALETTE[1], markersize=9, markeredgecolor="#000000")
    clock = ax.set_title("", fontsize=10)

    def frame(k: int) -> None:
        car.set_data([places[0, k]], [places[1, k]])
        clock.set_text(f"{at[k]:5.2f} s, {places[2, k]:4.1f} m/s")

    return save_animation(fig, frame, at.size, path, interval=dt)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the answer is a KKT point no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    car, track = Car(), Track()
    intervals = 40 if arguments.short else 50
    program = car.lap(track, intervals)
    # SQP stops without an answer here, after half a minute.
    answers = solve_with_all(program, () if arguments.short else (UNO, SLEQP))
    ours, ipopt = answers[:2]
    states = ours.values["state"]
    panels = (
        Panel("$v$ (m/s)", "state", 2),
        Panel("$n$ (m)", "state", 0, (-track.half_width, track.half_width)),
        Panel("$a$ (m/s²)", "input", 1, (car.drive,)),
        Panel("grip used (m/s²)", car.grip_used, limits=(car.grip,)),
        Panel(
            "$a v$ (W/kg)",
            lambda answer: answer.values["input"][1] * answer.values["state"][2, 1:],
            limits=(car.power,),
        ),
    )
    s = np.linspace(0.0, track.length, intervals + 1)
    films = []
    if not arguments.short:
        films.append(animate(track, states, arguments.output / "motion.gif"))
    return finish_answers(
        arguments,
        NAME,
        answers,
        checks=[no_worse_than(ours, ipopt)],
        facts={
            "time (s)": float(states[3, -1]),
            "time at the entry speed on the centre line (s)": track.length / car.entry,
            "highest speed (m/s)": float(states[2].max()),
            "share of intervals on a limit": float(np.mean(on_a_limit(car, ours))),
            "distance to IPOPT's point": float(np.abs(ours.x - ipopt.x).max()),
        },
        figures={
            "path": draw_path(track, ours, ipopt),
            "trajectory": compare(
                s, panels, ours, ipopt, label="way along the centre line (m)", height=1.3
            ),
        },
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
