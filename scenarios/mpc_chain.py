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
from chain import DT, WALL, animate, chain, horizon, pulled, stage_cost
from closed_loop import PEERS, Course, finish_courses, run_all
from drawing import draw_courses
from reporting import parser

from casadi_hybrid.control import Plant, Soft

NAME = "mpc_chain"
SUMMARY = "closed loop: hanging chain beside a wall with a wrong model, noise and a gust"

GUST_TIME, GUST = 4.0, [0.0, -0.5, 0.0]


def courses(masses: int, intervals: int, steps: int, *, short: bool) -> list[Course]:
    """Return the closed loops, which begin with the pulled chain."""
    model, true = chain(masses, wall=-np.inf), chain(masses, 1.1 * 0.033, 1.05, 0.002)
    gust = {"p": np.zeros(3 * masses + 3), "v": np.tile(GUST, masses)}
    ocp = horizon(model, masses, intervals, name=NAME)
    ocp.path("wall", model.symbol("p")[1::3], lower=WALL, soft=Soft(100, 1000), scale=0.1)
    return run_all(
        ocp,
        Plant(true, DT),
        PEERS[:2],
        short=short,
        steps=steps,
        x0=pulled(model, masses),
        noise={"p": 0.002, "v": 0.01},
        limits={"nearest to the wall": (WALL, None)},
        cost=stage_cost(true, true.symbol("u")),
        push=lambda k, t, x: gust if k == round(GUST_TIME / DT) else None,
    )


def main(argv: list[str] | None = None) -> int:
    """Run the scenario; 0 when all our plans are KKT points and our course costs no more."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    masses, *size = (1, 8, 6) if arguments.short else (3, 20, 35)
    ours, *others = courses(masses, *size, short=arguments.short)
    shown = "end to goal", "nearest to the wall", "u"
    fig = draw_courses([ours, *others], shown, (GUST_TIME, "gust"), soft=["nearest to the wall"])
    return finish_courses(
        arguments,
        [ours, *others],
        facts={
            "masses": masses,
            "distance of the end from its goal at last (m)": float(ours["end to goal"][-1]),
        },
        figures={"course": fig},
        films={"motion": lambda path: animate(ours["p"], DT, path)},
    )


if __name__ == "__main__":
    sys.exit(main())
