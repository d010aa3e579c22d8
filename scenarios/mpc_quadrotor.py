"""Predictive control of a planar quadrotor on laps past obstacles, with wind, wrong model, noise.

The vehicle of :mod:`quadrotor` starts at rest and follows laps of 3.5 s on an ellipse that cuts
through the surroundings of two round obstacles; at 5 s a gust adds 2 m/s upwards. The
controller believes in the nominal vehicle without air. The true one is 8 % heavier, its inertia
is 20 % larger, and the air of a wind of −1.5 m/s drags with 0.2 N·s/m. Sensors err by 5 mm,
5 mrad, 2 cm/s and 20 mrad/s (standard deviations).

Every 50 ms the controller looks N = 30 intervals of constant thrust (1.5 s) ahead, with the
position r and the velocity r' of the lap:

    minimize    Σ_k dt·ℓ_k(x_k, u_k) + ℓ_N(x_N, u_hover) + 20 Σ_k (s_k + s_k² + a_k + a_k²)
                ℓ = 20 ‖(x, z) − r‖² + ‖(x', z') − r'‖² + 0.1 (θ² + θ'²) + 0.02 ‖u − u_hover‖²
    subject to  x_0 = measured state,  x_{k+1} = F(x_k, u_k),  0.5 N ≤ u_k ≤ 8 N,
                |θ_k| ≤ 60° + 0.1 a_k,  |(x, z)_k − c_i|² ≥ (r_i + l)² (1 − s_k),  s_k, a_k ≥ 0

with one Runge–Kutta step of order four as F. Tilt and distance are soft: noise and gust may carry
the vehicle across a limit, where hard ones leave no feasible plan. The first solve starts from
hovering at the first place, the later ones from the last solution, shifted by one interval.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from animation import save_animation
from closed_loop import WARM_IPOPT, Course, Loop, finish_courses, run_loop
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from program import Program
from quadrotor import LIMIT, STATE_UNIT, THRUST_UNIT, Flight, Quadrotor, rotors, scenery
from reporting import parser
from solving import FATROP, SQP_CLIPPED
from transcription import Transcription, exact_step, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below, line_style

NAME = "mpc_quadrotor"
SUMMARY = "closed loop: laps of a quadrotor past obstacles, a gust, wrong model and noise"

DT = 0.05
MODEL = Quadrotor()
TRUE = replace(MODEL, mass=1.08 * MODEL.mass, inertia=1.2 * MODEL.inertia)
WIND, DRAG = -1.5, 0.2
NOISE = np.array([0.005, 0.005, 0.005, 0.02, 0.02, 0.02])
PLACE = Flight(
    "laps",
    obstacles=((1.2, 2.0, 0.3), (-1.5, 0.8, 0.3)),
    heights=(-np.inf, np.inf),
    vehicle=MODEL,
)
LAP, CENTRE, AXES = 3.5, np.array([[0.0], [1.0]]), np.array([[2.0], [0.8]])
START = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 0.0])
GUST_TIME, GUST = 5.0, np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0])


def lap(times: Any) -> np.ndarray:
    """Return position (m) and velocity (m/s) of the reference, one column a time."""
    rate = 2 * np.pi / LAP
    phase = rate * np.atleast_1d(times)
    position = CENTRE + AXES * np.vstack((np.cos(phase), np.sin(phase)))
    velocity = rate * AXES * np.vstack((-np.sin(phase), np.cos(phase)))
    return np.vstack((position, velocity))


def true_motion(x: Any, u: Any) -> Any:
    """Return the derivative of the true state: other mass and inertia, and wind."""
    pull = DRAG / TRUE.mass * ca.vertcat(x[3] - WIND, x[4])
    return TRUE.dynamics(x, u) - ca.vertcat(0, 0, 0, pull, 0)


ROUND = lap(np.linspace(0.0, LAP, 101))[:2]


def stage_cost(x: Any, u: Any, target: Any) -> Any:
    """Return ℓ(x, u), the target being position and velocity of the reference."""
    away = 20 * ((x[0] - target[0]) ** 2 + (x[1] - target[1]) ** 2)
    behind = (x[3] - target[2]) ** 2 + (x[4] - target[3]) ** 2
    push = (u[0] - MODEL.hover) ** 2 + (u[1] - MODEL.hover) ** 2
    return away + behind + 0.1 * (x[2] ** 2 + x[5] ** 2) + 0.02 * push


def controller(intervals: int) -> Program:
    """Return the program that is solved at every instant."""
    ocp = Transcription(NAME)
    X = ocp.variable("state", 6, intervals + 1, start=START, unit=STATE_UNIT)
    U = ocp.variable(
        "thrust",
        2,
        intervals,
        lower=MODEL.least,
        upper=MODEL.most,
        start=MODEL.hover,
        unit=THRUST_UNIT,
    )
    near = ocp.variable("nearness", 1, intervals + 1, lower=0.0)
    excess = ocp.variable("excess tilt", 1, intervals + 1, lower=0.0)
    measured = ocp.parameter("measured", START)
    target = ocp.parameter("target", lap(DT * np.arange(intervals + 1)))
    ocp.constrain("initial state", X[:, 0] - measured, unit=STATE_UNIT)
    ocp.shoot("dynamics", runge_kutta(MODEL.dynamics, DT), X, U, unit=STATE_UNIT)
    tilt, soft = X[2, :], 0.1 * excess
    ocp.constrain("tilt", ca.vertcat(tilt - soft, -tilt - soft), -np.inf, MODEL.tilt)
    for i, (x, z, radius) in enumerate(PLACE.obstacles):
        square = ((X[0, :] - x) ** 2 + (X[1, :] - z) ** 2) / (radius + MODEL.arm) ** 2
        ocp.constrain(f"obstacle {i}", square + near, lower=1.0, upper=np.inf)
    for k in range(intervals):
        ocp.minimize(DT * stage_cost(X[:, k], U[:, k], target[:, k]))
    ocp.minimize(stage_cost(X[:, intervals], [MODEL.hover] * 2, target[:, intervals]))
    for slack in (near, excess):
        ocp.minimize(20.0 * (ca.sum2(slack) + ca.sumsqr(slack)))
    return ocp.build()


def outside(x: np.ndarray) -> float:
    """Return by how much a state is too near to an obstacle (m) or too tilted (rad)."""
    return max(0.0, -PLACE.clearance(x[:, None]), abs(x[2]) - MODEL.tilt)


def experiment(intervals: int, steps: int) -> Loop:
    """Return the closed loop, which begins at rest."""
    return Loop(
        controller(intervals),
        state="measured",
        input="thrust",
        plant=exact_step(true_motion, 6, 2, DT),
        start=START,
        steps=steps,
        noise=NOISE,
        violation=lambda x, u: outside(x),
        parameters=lambda k: {"target": lap(DT * (k + np.arange(intervals + 1)))},
        push=lambda k: GUST if k == round(GUST_TIME / DT) else 0.0,
    )


def priced(course: Course) -> Course:
    """Return the course with its cost, each step charged for the target of its instant."""
    targets = lap(DT * np.arange(1, len(course.states))).T
    steps = zip(course.states[1:], course.inputs, targets, strict=True)
    return replace(course, cost=sum(DT * float(stage_cost(*step)) for step in steps))


def draw(courses: Sequence[Course]) -> Figure:
    """Plot paths, pitch and our thrusts with their limits, and the distribution of solve times."""
    fig, axes = figure(4, 1, height=2.0, height_ratios=(1.5, 1, 1, 1))
    path, pitch, thrust, spent = axes[:, 0]
    scenery(path, PLACE)
    path.set(xlim=(-3.0, 3.0), ylim=(-0.3, 2.6))
    path.plot(*ROUND, color="#000000", linestyle=":", linewidth=1.2, label="reference")
    for i, course in enumerate(courses):
        style = line_style(i)
        instants = DT * np.arange(len(course.states))
        path.plot(course.states[:, 0], course.states[:, 1], label=course.label, **style)
        pitch.plot(instants, np.degrees(course.states[:, 2]), **style)
        spent.ecdf(1e3 * course.seconds, **style)
    path.plot([], [], label="limit", **LIMIT)
    for row, style in enumerate(({"linewidth": 0.9}, {"linewidth": 1.6})):
        thrust.stairs(courses[0].inputs[:, row], instants, baseline=None, color=PALETTE[0], **style)
    for ax, limits in (
        (pitch, np.degrees([-MODEL.tilt, MODEL.tilt])),
        (thrust, (MODEL.least, MODEL.most)),
    ):
        for limit in limits:
            ax.axhline(limit, **LIMIT)
        ax.set_xlabel("time (s)")
        if instants[-1] > GUST_TIME:
            ax.axvline(GUST_TIME, color=PALETTE[6], linewidth=0.9)
            ax.annotate("gust", (GUST_TIME, limits[1]), (4, -12), textcoords="offset points")
    pitch.set_ylabel("pitch $\\theta$ (°)")
    thrust.set_ylabel(f"{courses[0].label}, thrusts (N)\nthin: $u_1$, thick: $u_2$")
    spent.set(xscale="log", xlabel="time of a solve (ms)", ylabel="share of solves", ylim=(0, 1.02))
    spent.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    spent.xaxis.set_major_formatter("{x:g}")
    spent.xaxis.set_minor_formatter(NullFormatter())
    legend_below(fig, path, columns=6)
    return fig


def animate(course: Course, path: Path) -> Path:
    """Write the flight as a GIF in real time, with the planned path."""
    fig, axes = figure(1, 1, height=3.2, width=5.0)
    ax = axes[0, 0]
    scenery(ax, PLACE)
    ax.set(xlim=(-3.0, 3.0), ylim=(-0.3, 2.6))
    ax.plot(*ROUND, color="#000000", linestyle=":", linewidth=1.0)
    (target,) = ax.plot([], [], "o", color="#000000", markersize=6, fillstyle="none")
    (trail,) = ax.plot([], [], color=PALETTE[0], linewidth=1.0)
    (planned,) = ax.plot([], [], color=PALETTE[2], linewidth=1.4, linestyle="-.")
    (body,) = ax.plot([], [], "o-", color="#000000", linewidth=3.0, markersize=4)
    clock = ax.set_title("", fontsize=10)

    def frame(k: int) -> None:
        target.set_data(*lap(DT * k)[:2])
        trail.set_data(*course.states[: k + 1, :2].T)
        planned.set_data(*course.plans[k]["state"][:2])
        body.set_data(*rotors(PLACE, course.states[k]))
        gust = "   gust" if 0 <= k * DT - GUST_TIME < 0.3 else ""
        clock.set_text(f"{k * DT:4.2f} s" + gust)

    return save_animation(fig, frame, len(course.plans), path, interval=DT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when all our plans are KKT points and our course costs no more."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    peers = [WARM_IPOPT]
    if arguments.short:
        loop = experiment(15, 8)
    else:
        loop = experiment(30, 120)
        peers += [FATROP, SQP_CLIPPED]
    courses = [priced(run_loop(loop, peer)) for peer in (None, *peers)]
    ours = courses[0]
    films = [] if arguments.short else [animate(ours, arguments.output / "motion.gif")]
    return finish_courses(
        arguments,
        NAME,
        loop,
        courses,
        facts={
            "distance to the reference at the end (m)": float(
                np.hypot(*(ours.states[-1, :2] - lap(DT * loop.steps)[:2, 0]))
            ),
            "largest thrust (N)": float(ours.inputs.max()),
            "largest distance to IPOPT's course (m)": float(
                np.abs(ours.states - courses[1].states)[:, :2].max()
            ),
        },
        figures={"course": draw(courses)},
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
