"""Predictive control of a hanging chain beside a wall, with a wrong model and noisy sensors.

The controller believes in the plant of :mod:`chain`. The true masses are 10 % heavier, the springs
5 % stiffer, and air drags at every mass with 2 mN·s/m. Positions are measured with an error of 2 mm
and velocities with 1 cm/s (standard deviations). The end of the resting chain has been pulled for
one second by (−1, 1, 1) m/s; after 4 s a gust changes the speed of all masses by 0.5 m/s towards
the wall.

Every 0.2 s the controller looks N intervals of constant velocity ahead:

    minimize    Σ_k dt·(25 ‖p_end − (1, 0, 0)‖² + Σ_i ‖p_i'‖² + 0.01 ‖u_k‖²)
                + 10 Σ_ki (s_ki + s_ki²)
    subject to  x_0 = measured state,  x_{k+1} = F(x_k, u_k),  ‖u_k‖_∞ ≤ 1 m/s,
                y_ki ≥ −0.02 m − s_ki · 0.1 m and s_ki ≥ 0 for every mass i and the end

with two Runge–Kutta steps of order four as F, mapped over the horizon (MX). The wall is soft, since
noise and a wrong model may carry a mass beyond it. The first solve starts from the straight line
between the ends, the later ones from the last solution, shifted by one interval.
"""

import sys

import numpy as np
from chain import DT, GOAL, SPEED, WALL, animate, chain, horizon, pulled, rest
from closed_loop import WARM_IPOPT, Loop, exact_step, finish_courses, run_all
from drawing import draw_courses
from reporting import parser
from solving import FATROP

from casadi_hybrid.control import Soft

NAME = "mpc_chain"
SUMMARY = "closed loop: hanging chain beside a wall with a wrong model, noise and a gust"

GUST_TIME, GUST = 4.0, -0.5


def experiment(masses: int, intervals: int, steps: int) -> Loop:
    """Return the closed loop, which begins with the pulled chain."""
    model, true = chain(masses, wall=-np.inf), chain(masses, 1.1 * 0.033, 1.05, 0.002)
    at, gust = 3 * masses + 3, np.zeros(6 * masses + 3)
    gust[at + 1 :: 3] = GUST
    ocp = horizon(model, intervals, rest(model), name=NAME)
    ocp.path("wall", model.symbol("p")[1::3], lower=WALL, soft=Soft(100, 1000), scale=0.1)
    cost = ocp.expression_function([ocp.costs[0].sum])
    return Loop(
        ocp,
        exact_step(true, DT),
        start=pulled(model),
        steps=steps,
        noise=np.where(np.arange(gust.size) < at, 0.002, 0.01),
        cost=lambda k, x, u: cost(x, [], u, steps * DT, 0),
        violation=lambda x: max(0.0, WALL - x[1:at:3].min()),
        push={round(GUST_TIME / DT): gust},
    )


def main(argv: list[str] | None = None) -> int:
    """Run the scenario; 0 when all our plans are KKT points and our course costs no more."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    masses = 1 if arguments.short else 3
    end, at = slice(3 * masses, 3 * masses + 3), 3 * masses + 3
    loop = experiment(masses, *((8, 6) if arguments.short else (20, 35)))
    courses = run_all(loop, WARM_IPOPT, FATROP, short=arguments.short)
    ours = courses[0].states
    curves = (
        ("end to goal (m)", lambda c: np.linalg.norm(c.states[:, end] - GOAL, axis=1), ()),
        ("least $y$ (m)", lambda c: c.states[:, 1:at:3].min(axis=1), (WALL,)),
        ("$u_y$ (m/s)", lambda c: c.inputs[:, 1], (-SPEED, SPEED)),
    )
    return finish_courses(
        arguments,
        courses,
        facts={
            "masses": masses,
            "distance of the end from its goal at last (m)": float(
                np.linalg.norm(ours[-1, end] - GOAL)
            ),
        },
        figures={"course": draw_courses(courses, DT, curves, (GUST_TIME, "gust"))},
        films={"motion": lambda path: animate(ours[:, :at].T, DT, path)},
    )


if __name__ == "__main__":
    sys.exit(main())
