"""Predictive control of a hanging chain beside a wall, with a wrong model and noisy sensors.

The controller believes in the plant of :mod:`chain`. The true masses are 10 % heavier, the springs
5 % stiffer, and air drags at every mass with 2 mN·s/m. Positions are measured with an error of 2 mm
and velocities with 1 cm/s (standard deviations). The end of the resting chain has been pulled for
one second by (−1, 1, 1) m/s; after 4 s a gust changes the speed of all masses by 0.5 m/s towards
the wall.

Every 0.2 s the controller looks N intervals of constant velocity ahead:

    minimize    Σ_k dt·(25 ‖p_end − (1, 0, 0)‖² + Σ_i ‖p_i'‖² + 0.01 ‖u_k‖²) + 10 Σ_k (s_k + s_k²)
    subject to  x_0 = measured state,  x_{k+1} = F(x_k, u_k),  ‖u_k‖_∞ ≤ 1 m/s,
                y of every mass and of the end ≥ −0.02 m − s_k · 0.1 m,  s_k ≥ 0

with two Runge–Kutta steps of order four as F, mapped over the horizon (MX). The wall is soft, since
noise and a wrong model may carry a mass beyond it. The first solve starts from the straight line
between the ends, the later ones from the last solution, shifted by one interval.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from chain import DT, PULL, Chain, animate
from closed_loop import WARM_IPOPT, Course, Loop, finish_courses, run_loop
from matplotlib.figure import Figure
from program import Program
from reporting import parser
from solving import FATROP
from transcription import Transcription, exact_step, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below, line_style

NAME = "mpc_chain"
SUMMARY = "closed loop: hanging chain beside a wall with a wrong model, noise and a gust"

GUST_TIME, GUST = 4.0, -0.5


def controller(chain: Chain, intervals: int) -> Program:
    """Return the program that is solved at every instant."""
    ocp = Transcription(NAME, ca.MX)
    X = ocp.variable("state", chain.states, intervals + 1, start=chain.straight())
    U = ocp.variable("velocity", 3, intervals, lower=-chain.speed, upper=chain.speed)
    S = ocp.variable("excess", 1, intervals + 1, lower=0.0)
    measured = ocp.parameter("measured", chain.rest)
    ocp.constrain("initial state", X[:, 0] - measured)
    ocp.shoot("dynamics", runge_kutta(chain.dynamics, DT, steps=2), X, U)
    room = X[1 : chain.end.stop : 3, :] + 0.1 * ca.repmat(S, chain.masses + 1, 1)
    ocp.constrain("wall", room, chain.wall, np.inf)
    ocp.minimize(DT * chain.cost(X[:, 1:], U) + 10.0 * (ca.sum2(S) + ca.sumsqr(S)))
    return ocp.build()


def experiment(chain: Chain, intervals: int, steps: int) -> Loop:
    """Return the closed loop, which begins with the pulled chain."""
    true = replace(chain, mass=1.1 * chain.mass, stiffness=1.05 * chain.stiffness, drag=0.002)
    gust = np.zeros(chain.states)
    gust[chain.end.stop + 1 :: 3] = GUST
    noise = np.full(chain.states, 0.01)
    noise[: chain.end.stop] = 0.002
    return Loop(
        controller(chain, intervals),
        state="measured",
        input="velocity",
        plant=exact_step(true.dynamics, chain.states, 3, DT),
        start=chain.pulled(PULL, round(1.0 / DT)),
        steps=steps,
        noise=noise,
        cost=lambda x, u: DT * float(chain.cost(ca.DM(x), ca.DM(u))),
        violation=lambda x, u: max(0.0, chain.wall - float(nearest(chain, x))),
        push=lambda k: gust if k == round(GUST_TIME / DT) else 0.0,
    )


def nearest(chain: Chain, states: np.ndarray) -> np.ndarray:
    """Return the least y of the masses and of the end, of states in the last axis."""
    return np.asarray(states[..., 1 : chain.end.stop : 3].min(axis=-1))


def draw(chain: Chain, courses: Sequence[Course]) -> Figure:
    """Plot the end, the distance from the wall and the input with limits, and the solve times."""
    fig, axes = figure(4, 1, height=1.6, sharex=True)
    for i, course in enumerate(courses):
        style = {**line_style(i), "label": course.label}
        instants = DT * np.arange(len(course.states))
        away = course.states[:, chain.end] - chain.rest[chain.end]
        axes[0, 0].plot(instants, np.linalg.norm(away, axis=1), **style)
        axes[1, 0].plot(instants, nearest(chain, course.states), **style)
        axes[2, 0].stairs(course.inputs[:, 1], instants, baseline=None, **style)
        axes[3, 0].semilogy(instants[:-1], 1e3 * course.seconds, **style)
    limits = {"color": "#000000", "linewidth": 1.0, "linestyle": "--"}
    axes[1, 0].axhline(chain.wall, **limits)
    axes[2, 0].axhline(-chain.speed, **limits)
    axes[2, 0].axhline(chain.speed, **limits)
    axes[0, 0].plot([], [], label="limit", **limits)
    labels = ("end to goal (m)", "least $y$ (m)", "$u_y$ (m/s)", "solve (ms)")
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label)
        if instants[-1] > GUST_TIME:
            ax.axvline(GUST_TIME, color=PALETTE[6], linewidth=0.9)
    if instants[-1] > GUST_TIME:
        axes[0, 0].annotate("gust", (GUST_TIME, 1.0), xytext=(4, 0), textcoords="offset points")
    axes[3, 0].tick_params(axis="y", which="minor", labelleft=False)
    axes[3, 0].set_xlabel("time (s)")
    fig.align_ylabels()
    legend_below(fig, axes[0, 0])
    return fig


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when all our plans are KKT points and our course costs no more."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    peers = [WARM_IPOPT]
    if arguments.short:
        chain = Chain(masses=1)
        loop = experiment(chain, 8, 6)
    else:
        chain = Chain(masses=3)
        loop = experiment(chain, 20, 35)
        peers.append(FATROP)
    courses = [run_loop(loop), *(run_loop(loop, peer) for peer in peers)]
    ours, ipopt = courses[:2]
    films = []
    if not arguments.short:
        films.append(animate(chain, ours.states.T, DT, arguments.output / "motion.gif"))
    return finish_courses(
        arguments,
        NAME,
        loop,
        courses,
        facts={
            "masses": chain.masses,
            "distance of the end from its goal at last (m)": float(
                np.linalg.norm(ours.states[-1, chain.end] - chain.rest[chain.end])
            ),
            "largest distance to IPOPT's course": float(np.abs(ours.states - ipopt.states).max()),
        },
        figures={"course": draw(chain, courses)},
        files=films,
    )


if __name__ == "__main__":
    sys.exit(main())
