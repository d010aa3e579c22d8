"""Swing-up of a pole on a cart with limited force and a short track, in the least effort.

The cart (mass M) moves along a track |q| ≤ 0.5 m and is driven by a force |u| ≤ 8 N; the pole
(mass m at the distance l from the joint) hangs at θ = 0 and has to stand at θ = π, at rest and in
the middle of the track, after T seconds. The force is too small to lift the pole in one swing.

    (M + m) q'' + m l θ'' cos θ − m l θ'² sin θ = u,    l θ'' + q'' cos θ + g sin θ = 0

Direct multiple shooting, N intervals of constant force, two Runge–Kutta steps of order four each.
The start is naive: a straight line from the initial to the final state, and no force.
"""

import sys
from functools import partial
from pathlib import Path

import casadi as ca
import numpy as np
from drawing import LIMIT, compare
from matplotlib.animation import FuncAnimation, PillowWriter
from reporting import parser
from solving import FATROP, SQP, finish_answers, solve_with_all

from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, RungeKutta
from casadi_hybrid.utils.output.plotting import PALETTE, figure

NAME = "cartpole"
SUMMARY = "swing-up of a cart-pole with limits on force and track"
TRACK, LENGTH = 0.5, 0.5  # m


def cart_pole(M=1.0, m=0.3, length=LENGTH, *, force=8.0, track=TRACK, friction=0.0) -> Model:
    """Return the plant in SI units; the rail may have a viscous friction."""
    plant = Model("cartpole")
    plant.state("q", lower=-track, upper=track, unit="m")
    angle = plant.state("theta", scale=np.pi, unit="rad")
    v = plant.state("v", scale=2.0, unit="m/s")
    rate = plant.state("omega", scale=2 * np.pi, unit="rad/s")
    u = plant.control("u", lower=-force, upper=force, scale=10.0, unit="N")
    sin, cos = ca.sin(angle), ca.cos(angle)
    push = u - friction * v + m * sin * (length * rate**2 + 9.81 * cos)
    acceleration = push / (M + m * sin**2)
    swing = -(acceleration * cos + 9.81 * sin) / length
    plant.rates(q=v, theta=rate, v=acceleration, omega=swing)
    return plant


def swing_up(intervals: int) -> OptimalControl:
    plant = cart_pole()
    shooting = MultipleShooting(RungeKutta(2))
    ocp = OptimalControl(plant, duration=2.5, intervals=intervals, method=shooting)
    ocp.initial(q=0, theta=0, v=0, omega=0)
    ocp.final(q=0, theta=np.pi, v=0, omega=0)
    ocp.minimize("effort", integral=(plant.symbol("u") / 10) ** 2)
    return ocp


def film(q, angle, dt, path: Path, *, length=LENGTH, plans=(), event=(np.inf, "")) -> Path:
    """Write the motion as a GIF; ``plans`` has the planned path of the tip for each frame.

    The word of an event, (seconds, a word), stands beside the time for 0.3 s.
    """
    fig, ((ax,),) = figure(1, 1, height=3.2, width=5.0)
    ax.set(xlim=(-1.4, 1.4), ylim=(-0.7, 0.7), aspect="equal")
    ax.set(xlabel="position (m)", ylabel="height (m)")
    for side in (-TRACK, TRACK):
        ax.axvline(side, **LIMIT)
    (plan,) = ax.plot([], [], color=PALETTE[4], linewidth=1.2)
    (cart,) = ax.plot([], [], color=PALETTE[0], marker="s", markersize=16)
    (pole,) = ax.plot([], [], color="#000000", marker="o", linewidth=2.5, markersize=7)

    def draw(k: int) -> None:
        plan.set_data(plans[k] if plans else ([], []))
        cart.set_data([q[k]], [0])
        pole.set_data([q[k], q[k] + length * np.sin(angle[k])], [0, -length * np.cos(angle[k])])
        happening = event[1] if 0 <= k * dt - event[0] < 0.3 else ""
        ax.set_title(f"{k * dt:4.2f} s   {happening}", fontsize=10)

    FuncAnimation(fig, draw, len(q)).save(path, PillowWriter(fps=1 / dt), dpi=80)
    return path


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    ocp = swing_up(25 if arguments.short else 60)
    answers = solve_with_all(ocp, FATROP, SQP, short=arguments.short)
    ours, ipopt = (answer.solution for answer in answers[:2])
    return finish_answers(
        arguments,
        answers,
        figures={"trajectory": compare(ours, ipopt, ("q", "theta", "u"), targets={"theta": np.pi})},
        films={"motion": partial(film, ours["q"], ours["theta"], ours.times[1])},
    )


if __name__ == "__main__":
    sys.exit(main())
