"""Predictive control of a cart-pole: swing-up and a push, with a wrong model and noisy sensors.

The controller believes in the plant of :mod:`cartpole` with a force of up to 10 N. The true cart is
20 % and the true pole 10 % heavier, the pole is 5 % longer, and the rail has a viscous friction of
0.3 N·s/m. Sensors err by 2 mm, 2 mrad, 1 cm/s and 10 mrad/s (standard deviations). The pole hangs
at first; at 4.5 s, when it stands, a push changes the speed of the cart by 0.8 m/s.

Every 50 ms the controller looks N = 30 intervals of constant force (1.5 s) ahead:

    minimize    Σ_k dt·ℓ(x_k, u_k) + ℓ(x_N, 0) + 10 Σ_k (s_k + s_k²)
                ℓ = 10 (1 + cos θ) + 10 q² + 0.1 q'² + 0.1 θ'² + 0.01 u²
    subject to  x_0 = measured state,  x_{k+1} = F(x_k, u_k),  |u_k| ≤ 10 N,
                |q_k| ≤ 0.5 m + s_k · 0.1 m,  s_k ≥ 0

with two Runge–Kutta steps of order four as F. The limits of the track are soft: noise and a wrong
model may carry the cart beyond them, where hard limits leave no feasible plan. The first solve
starts from a naive guess, hanging at rest without force, and the later ones from the last
solution, shifted by one interval.
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
from cartpole import CartPole
from closed_loop import WARM_IPOPT, Course, Loop, finish_courses, run_loop
from matplotlib.figure import Figure
from program import Program
from reporting import parser
from solving import FATROP, SQP_CLIPPED
from transcription import Transcription, exact_step, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below, line_style

NAME = "mpc_cartpole"
SUMMARY = "closed loop: swing-up and push of a cart-pole with a wrong model and noise"

DT = 0.05
NOISE = np.array([0.002, 0.002, 0.01, 0.01])
PUSH_TIME, PUSH = 4.5, np.array([0.0, 0.0, 0.8, 0.0])
MODEL = CartPole(force=10.0)
TRUE = replace(MODEL, cart=1.2, pole=0.33, length=0.525)
FRICTION = 0.3


def true_motion(x: Any, u: Any) -> Any:
    """Return the derivative of the true state: other masses and length, and friction."""
    return TRUE.dynamics(x, u - FRICTION * x[2])


def stage_cost(x: Any, u: Any) -> Any:
    """Return ℓ(x, u)."""
    q, angle, speed, rate = x[0], x[1], x[2], x[3]
    return 10 * (1 + ca.cos(angle)) + 10 * q**2 + 0.1 * (speed**2 + rate**2) + 0.01 * u**2


def controller(intervals: int) -> Program:
    """Return the program that is solved at every instant."""
    unit = np.array([1.0, np.pi, 2.0, 2.0 * np.pi])
    ocp = Transcription(NAME)
    X = ocp.variable("state", 4, intervals + 1, unit=unit)
    U = ocp.variable("force", 1, intervals, lower=-MODEL.force, upper=MODEL.force, unit=10.0)
    S = ocp.variable("excess", 1, intervals + 1, lower=0.0)
    measured = ocp.parameter("measured", np.zeros(4))
    ocp.constrain("initial state", X[:, 0] - measured, unit=unit)
    ocp.shoot("dynamics", runge_kutta(MODEL.dynamics, DT, steps=2), X, U, unit=unit)
    q, slack = X[0, :], 0.1 * S
    ocp.constrain("track", ca.vertcat(q - slack, -q - slack), -np.inf, MODEL.track)
    for k in range(intervals):
        ocp.minimize(DT * stage_cost(X[:, k], U[k]))
    ocp.minimize(stage_cost(X[:, intervals], 0.0))
    ocp.minimize(10.0 * (ca.sum2(S) + ca.sumsqr(S)))
    return ocp.build()


def experiment(intervals: int, steps: int) -> Loop:
    """Return the closed loop, which begins at rest with the pole hanging."""
    return Loop(
        controller(intervals),
        state="measured",
        input="force",
        plant=exact_step(true_motion, 4, 1, DT),
        start=np.zeros(4),
        steps=steps,
        noise=NOISE,
        cost=lambda x, u: DT * float(stage_cost(x, u[0])),
        violation=lambda x, u: max(0.0, abs(x[0]) - MODEL.track),
        push=lambda k: PUSH if k == round(PUSH_TIME / DT) else 0.0,
    )


def draw(courses: Sequence[Course]) -> Figure:
    """Plot position, angle and force of every course with their limits, and the solve times."""
    fig, axes = figure(4, 1, height=1.6, sharex=True)
    for i, course in enumerate(courses):
        style = {**line_style(i), "label": course.label}
        instants = DT * np.arange(len(course.states))
        axes[0, 0].plot(instants, course.states[:, 0], **style)
        axes[1, 0].plot(instants, course.states[:, 1], **style)
        axes[2, 0].stairs(course.inputs[:, 0], instants, baseline=None, **style)
        axes[3, 0].semilogy(instants[:-1], 1e3 * course.seconds, **style)
    limits = {"color": "#000000", "linewidth": 1.0, "linestyle": "--"}
    for row, limit in ((0, MODEL.track), (2, MODEL.force)):
        axes[row, 0].axhline(limit, label="limit", **limits)
        axes[row, 0].axhline(-limit, **limits)
    for side in (-np.pi, np.pi):
        axes[1, 0].axhline(side, color="#000000", linewidth=0.9, linestyle=":")
    axes[1, 0].annotate("upright", (0, np.pi), xytext=(3, -12), textcoords="offset points")
    labels = ("position $q$ (m)", "angle $\\theta$ (rad)", "force $u$ (N)", "solve (ms)")
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label)
        if instants[-1] > PUSH_TIME:
            ax.axvline(PUSH_TIME, color=PALETTE[6], linewidth=0.9)
    if instants[-1] > PUSH_TIME:
        axes[0, 0].annotate("push", (PUSH_TIME, -0.35), xytext=(4, 0), textcoords="offset points")
    axes[3, 0].tick_params(axis="y", which="minor", labelleft=False)
    axes[3, 0].set_xlabel("time (s)")
    fig.align_ylabels()
    legend_below(fig, axes[0, 0])
    return fig


def animate(course: Course, path: Path) -> Path:
    """Write the motion as a GIF in real time, with the planned path of the pole's tip."""
    fig, axes = figure(1, 1, height=3.2, width=5.0)
    ax = axes[0, 0]
    ax.set(xlim=(-1.4, 1.4), ylim=(-0.7, 0.7), aspect="equal", xlabel="position (m)")
    ax.set_ylabel("height (m)")
    for side in (-MODEL.track, MODEL.track):
        ax.axvline(side, color=PALETTE[1], linestyle="--", linewidth=1.0)
    (planned,) = ax.plot([], [], color=PALETTE[4], linewidth=1.2)
    (cart,) = ax.plot([], [], "s", color=PALETTE[0], markersize=16)
    (pole,) = ax.plot([], [], "o-", color="#000000", linewidth=2.5, markersize=7)
    clock = ax.set_title("", fontsize=10)

    def tip(state: np.ndarray, length: float) -> tuple[Any, Any]:
        return state[0] + length * np.sin(state[1]), -length * np.cos(state[1])

    def frame(k: int) -> None:
        state = course.states[k]
        planned.set_data(*tip(course.plans[k]["state"], MODEL.length))
        cart.set_data([state[0]], [0.0])
        pole.set_data(*zip((state[0], 0.0), tip(state, TRUE.length), strict=True))
        clock.set_text(f"{k * DT:4.2f} s" + ("   push" if 0 <= k * DT - PUSH_TIME < 0.3 else ""))

    return save_animation(fig, frame, len(course.plans), path, interval=DT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when all our plans are KKT points and our course costs no more."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    peers = [WARM_IPOPT]
    if arguments.short:
        loop = experiment(20, 8)
    else:
        loop = experiment(30, 120)
        peers += [FATROP, SQP_CLIPPED]
    courses = [run_loop(loop), *(run_loop(loop, peer) for peer in peers)]
    ours = courses[0]
    films = [] if arguments.short else [animate(ours, arguments.output / "motion.gif")]
    return finish_courses(
        arguments,
        NAME,
        loop,
        courses,
        facts={
            "distance from upright at the end (rad)": abs(abs(ours.states[-1, 1]) - np.pi),
            "largest force (N)": float(np.abs(ours.inputs).max()),
            "largest distance to IPOPT's course": float(
                np.abs(ours.states - courses[1].states).max()
            ),
        },
        figures={"course": draw(courses)},
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
