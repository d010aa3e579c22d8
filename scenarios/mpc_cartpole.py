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

import sys
from functools import partial

import casadi as ca
import numpy as np
from cartpole import TRACK, cart_pole, film
from closed_loop import Solves, finish_courses, run_all
from drawing import draw_courses
from reporting import parser

from casadi_hybrid.control import MultipleShooting, OptimalControl, Plant, RungeKutta, Soft

NAME = "mpc_cartpole"
SUMMARY = "closed loop: swing-up and push of a cart-pole with a wrong model and noise"

DT, FORCE = 0.05, 10.0
EVENT, PUSH = (4.5, "push"), {"v": 0.8}
MODEL_LENGTH, TRUE_LENGTH = 0.5, 0.525


def stage_cost(plant, u):
    """Return ℓ(x, u)."""
    q, angle, v, rate = (plant.symbol(name) for name in ("q", "theta", "v", "omega"))
    return 10 * (1 + ca.cos(angle)) + 10 * q**2 + 0.1 * (v**2 + rate**2) + 0.01 * u**2


def courses(intervals: int, steps: int, *, short: bool) -> list[Solves]:
    model = cart_pole(force=FORCE, track=np.inf)
    true = cart_pole(1.2, 0.33, TRUE_LENGTH, friction=0.3, force=FORCE)
    rest = {"q": 0, "theta": 0, "v": 0, "omega": 0}
    ocp = OptimalControl(model, duration=intervals * DT, intervals=intervals, name=NAME,
                         method=MultipleShooting(RungeKutta(2)))  # fmt: skip
    ocp.initial(**rest)
    ocp.guess(**rest)
    ocp.path("track", model.symbol("q"), lower=-TRACK, upper=TRACK, soft=Soft(100, 1000), scale=0.1)
    ocp.minimize("cost", sum=DT * stage_cost(model, model.symbol("u")), end=stage_cost(model, 0))
    return run_all(
        ocp,
        Plant(true, DT),
        short=short,
        steps=steps,
        x0=rest,
        noise=[0.002, 0.002, 0.01, 0.01],
        cost=DT * stage_cost(true, true.symbol("u")),
        push=lambda k, t, x: PUSH if k == round(EVENT[0] / DT) else None,
    )


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    size = (20, 8) if arguments.short else (30, 120)
    found = courses(*size, short=arguments.short)
    ours, plans, reach = found[0].run, found[0].plans, MODEL_LENGTH
    tips = [(p["q"] + reach * np.sin(p["theta"]), -reach * np.cos(p["theta"])) for p in plans]
    drawn = {"length": TRUE_LENGTH, "plans": tips, "event": EVENT}
    return finish_courses(
        arguments,
        found,
        facts={"distance from upright at the end (rad)": abs(abs(ours["theta"][-1]) - np.pi)},
        figures={"course": draw_courses(found, ("q", "theta", "u"), EVENT, soft=["q"])},
        films={"motion": partial(film, ours["q"][:-1], ours["theta"][:-1], DT, **drawn)},
    )


if __name__ == "__main__":
    sys.exit(main())
