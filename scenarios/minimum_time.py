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

import sys
from pathlib import Path

import casadi as ca
import numpy as np
from animation import film
from drawing import CIRCLES, LIMIT, compare
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from reporting import parser
from roads import draw_line
from solving import SLEQP, UNO, Answer, finish_answers, solve_with_all

from casadi_hybrid.control import Model, OptimalControl
from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "minimum_time"
SUMMARY = "a car through a hairpin and a bend in the shortest time, limits on grip and engine"

TRACK = np.array([(50, 0), (15 * np.pi, 1 / 15), (30, 0), (10 * np.pi, -1 / 20), (40, 0)]).T
"""Lengths and curvatures of the pieces of the centre line, in metres, positive to the left."""
LENGTH, HALF_WIDTH = float(TRACK[0].sum()), 3.0
GRIP, DRIVE, POWER, ENTRY = 9.0, 4.0, 60.0, 10.0
"""m/s², m/s², W/kg and m/s."""


def curvature(intervals: int) -> np.ndarray:
    """Return the mean curvature of each interval."""
    ends, turned = (np.append(0.0, np.cumsum(row)) for row in (TRACK[0], TRACK[0] * TRACK[1]))
    s = np.linspace(0.0, LENGTH, intervals + 1)
    return np.diff(np.interp(s, ends, turned)) / np.diff(s)


def places(offset: np.ndarray) -> np.ndarray:
    """Return the points (x, y), 2×(N+1), at the offsets from the centre line."""
    turn = curvature(offset.size - 1) * LENGTH / (offset.size - 1)
    heading = np.append(0.0, np.cumsum(turn))
    middle = (heading[1:] + heading[:-1]) / 2
    chord = LENGTH / turn.size * np.sinc(turn / (2.0 * np.pi))
    centre = np.cumsum(chord * np.array([np.cos(middle), np.sin(middle)]), axis=1)
    return np.pad(centre, ((0, 0), (1, 0))) + offset * [-np.sin(heading), np.cos(heading)]


def lap(intervals: int) -> OptimalControl:
    """Return the lap, of which the way along the centre line is the independent variable."""
    car = Model(NAME, time_unit="m")
    n = car.state("n", lower=-HALF_WIDTH, upper=HALF_WIDTH, unit="m")
    chi = car.state("chi", lower=-1.2, upper=1.2, scale=0.5, unit="rad")
    # The lower limit is not reached; far below it one step of the integrator would turn time back.
    v = car.state("v", lower=8, scale=10, guess=ENTRY, unit="m/s")
    t = car.state("t", unit="s")
    bend = car.control("kappa", lower=-0.5, upper=0.5, scale=0.1, unit="1/m")
    a = car.control("a", lower=-GRIP, upper=DRIVE, scale=10, unit="m/s²")
    track = car.reference("bend", np.append(curvature(intervals), 0.0), unit="1/m")
    stretch = (1 - n * track) / ca.cos(chi)
    pace = stretch / v
    car.rates(n=stretch * ca.sin(chi), chi=bend * stretch - track, v=a * pace, t=pace)
    ocp = OptimalControl(car, duration=LENGTH, intervals=intervals)
    ocp.initial(n=0, chi=0, v=ENTRY, t=0)
    ocp.path("grip", ((v**2 * bend) ** 2 + a**2) / GRIP**2, upper=1, at="ends")
    ocp.path("power", a * v, upper=POWER, scale=POWER, unit="W/kg", at="ends")
    ocp.minimize("time", end=t)
    return ocp


def draw_track(ours: Answer, *, height: float = 4.8) -> tuple[Figure, Axes]:
    """Draw the edges of the track and our path on it, coloured by speed."""
    fig, ((ax,),) = figure(1, 1, height=height, width=0.95 * height)
    for side in (-HALF_WIDTH, HALF_WIDTH):
        ax.plot(*places(np.full(401, side)), **LIMIT, label="limit" if side > 0 else None)
    draw_line(ax, places(ours["n"]), ours["v"])
    return fig, ax


def draw_path(ours: Answer, ipopt: Answer) -> Figure:
    """Plot the path from above, IPOPT's as circles at every fourth point."""
    fig, ax = draw_track(ours)
    ax.plot(*places(ipopt["n"])[:, ::4], **CIRCLES | {"markersize": 3}, label=ipopt.label)
    legend_below(fig, ax)
    return fig


def animate(ours: Answer, path: Path, dt: float = 0.1) -> Path:
    """Write the motion as a GIF."""
    ax = draw_track(ours, height=4.0)[1]
    at = np.arange(0.0, ours["t"][-1], dt)
    x, y, v = (np.interp(at, ours["t"], row) for row in (*places(ours["n"]), ours["v"]))
    car = {"color": PALETTE[1], "marker": "o", "markersize": 9, "markeredgecolor": "#000000"}
    stage = (ax, [(lambda k: ([x[k]], [y[k]]), car)])
    return film(path, at.size, dt, stage, clock=lambda k: f"{at[k]:5.2f} s, {v[k]:4.1f} m/s")


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    ocp = lap(40 if arguments.short else 50)
    # SQP stops without an answer here, after half a minute.
    answers = solve_with_all(ocp, UNO, SLEQP, short=arguments.short)
    (ours, ipopt), shown = answers[:2], ("v", "n", "a", "grip", "power")
    limited = ours.solution.active(1e-3, side="upper")
    of_car = [rows for name, rows in limited.items() if name.startswith(("grip", "power", "a"))]
    return finish_answers(
        arguments,
        answers,
        facts={
            "time (s)": float(ours["t"][-1]),
            "time at the entry speed on the centre line (s)": LENGTH / ENTRY,
            "highest speed (m/s)": float(ours["v"].max()),
            "share of intervals on a limit": float(np.any(of_car, axis=0).mean()),
        },
        figures={
            "path": draw_path(ours, ipopt),
            "trajectory": compare(ours, ipopt, shown, label="way along the track (m)"),
        },
        films={"motion": lambda path: animate(ours, path)},
    )


if __name__ == "__main__":
    sys.exit(main())
