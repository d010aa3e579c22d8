"""A hanging chain of masses is brought back to rest beside a wall, by moving its free end.

M equal masses m hang between a fixed end, the origin, and an end whose velocity u is the input.
Neighbours are Δ apart and pull at each other with the force of a spring of stiffness D and length
L at rest; gravity acts along −z:

    F(Δ) = D (1 − L/‖Δ‖) Δ,    m p_i'' = F(p_i+1 − p_i) − F(p_i − p_i−1) − m g e_z,    p_end' = u

with ‖u‖_∞ ≤ 1 m/s and a wall that no mass may enter, y ≥ −0.02 m. Somebody has pulled the end of
the resting chain for one second with (−1, 1, 1) m/s. From there, over T seconds,

    minimize  ∫ 25 ‖p_end − (1, 0, 0)‖² + Σ_i ‖p_i'‖² + 0.01 ‖u‖² dt

with a sum over the instants for the integral. Direct multiple shooting, N intervals of constant
velocity, two Runge–Kutta steps of order four each. One interval is built and mapped over the
horizon (MX), which takes a tenth of a second. The hybrid solver finds the interval again and takes
its derivatives once, whatever N. The start is naive: masses on the straight line between the ends,
at rest.

The problem is that of L. Wirsching, H. G. Bock, M. Diehl, "Fast NMPC of a chain of masses connected
by springs", IEEE International Conference on Control Applications, 2006; the wall and the numbers
follow its later use as a benchmark.
"""

import sys
from itertools import pairwise

import casadi as ca
import numpy as np
from drawing import LIMIT, compare, panels
from matplotlib.figure import Figure
from reporting import parser
from solving import FATROP, finish_answers, solve_with_all

from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, Plant, RungeKutta, steady
from casadi_hybrid.utils.output.plotting import PALETTE, figure, legend_below

NAME = "chain"
SUMMARY = "hanging chain of masses brought to rest beside a wall by moving one end"

DT, WALL, SPEED = 0.2, -0.02, 1.0
GOAL, PULL = np.array([1.0, 0.0, 0.0]), np.array([-1.0, 1.0, 1.0])
COLOURS = (PALETTE[0], PALETTE[2], PALETTE[3], PALETTE[7])  # the second is that of limits


def straight(masses: int) -> np.ndarray:
    """Return the places of masses and end on the straight line to the goal, one below the other."""
    return np.outer(np.linspace(0.0, 1.0, masses + 2)[1:], GOAL).ravel()


def chain(masses: int) -> Model:
    """Return the plant in SI units: places of the masses and of the end, the masses' speeds."""
    plant, mass, length, stiffness = Model(NAME), 0.033, 0.033, 1.0
    least = np.tile([-np.inf, WALL, -np.inf], masses + 1)
    p = plant.state("p", 3 * masses + 3, lower=least, unit="m")
    v = plant.state("v", 3 * masses, unit="m/s")
    u = plant.control("u", 3, lower=-SPEED, upper=SPEED, unit="m/s")
    plant.output("nearest to the wall", ca.mmin(p[1::3]), unit="m")
    places = [ca.SX(3, 1), *ca.vertsplit(p, 3)]
    springs = [b - a for a, b in pairwise(places)]
    forces = [stiffness * (1 - length / ca.norm_2(d)) * d for d in springs]
    pull = ca.vertcat(*(b - a for a, b in pairwise(forces)))
    weight = ca.repmat(ca.DM([0.0, 0.0, 9.81]), masses, 1)
    plant.rates(p=ca.vertcat(v, u), v=pull / mass - weight)
    return plant


def rest(plant: Model, masses: int):
    """Return the state at rest under gravity with the end at the goal."""
    place = np.append(np.full(3 * masses, np.nan), GOAL)  # those of the masses follow
    return steady(plant, p=place, u=0, guess={"p": straight(masses)})


def pulled(plant: Model, masses: int) -> np.ndarray:
    """Return the state after the end of the resting chain was pulled for one second."""
    return Plant(plant, 1.0).step(rest(plant, masses).states, PULL)


def horizon(masses: int, intervals: int) -> OptimalControl:
    plant = chain(masses)
    ocp = OptimalControl(plant, duration=intervals * DT, intervals=intervals, unroll=False,
                         method=MultipleShooting(RungeKutta(2)))  # fmt: skip
    p, v = np.split(pulled(plant, masses), [3 * masses + 3])
    ocp.initial(p=p, v=v)
    ocp.guess(p=straight(masses), v=0)
    p, v, u = (plant.symbol(name) for name in "pvu")
    away = 25 * ca.sumsqr(p[-3:] - GOAL) + ca.sumsqr(v)
    ocp.minimize("cost", sum=DT * (away + 0.01 * ca.sumsqr(u)), end=DT * away)
    return ocp


def shape(places: np.ndarray) -> np.ndarray:
    """Return the coordinates of the fixed end, the masses and the end: 3 × (M + 2)."""
    return np.append(np.zeros(3), places).reshape(-1, 3).T


def draw(ours) -> Figure:
    fig, ((side, above),) = figure(1, 2, height=2.8)
    for ax, row, title in ((side, 2, "from the side"), (above, 1, "from above")):
        for k, color, mark in zip((0, 2, 5, -1), COLOURS, "osD^", strict=True):
            points, label = shape(ours["p"][:, k]), f"{ours.times[k]:.1f} s"
            ax.plot(points[0], points[row], f"{mark}-", color=color, markersize=4, label=label)
        ax.set(xlabel="$x$ (m)", ylabel=f"${'xyz'[row]}$ (m)")
        ax.set_title(title, fontsize=10)
    above.axhline(WALL, **LIMIT, label="limit")
    legend_below(fig, above, columns=5)
    return fig


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    masses, intervals = (1, 12) if arguments.short else (3, 40)
    ocp = horizon(masses, intervals)
    answers = solve_with_all(ocp, FATROP, short=arguments.short)
    ours, ipopt = (answer.solution for answer in answers[:2])
    fig = compare(ours, ipopt, ("nearest to the wall", "u"))
    panels(fig)["nearest to the wall"].axhline(WALL, **LIMIT)
    away = ours["p"][:, -1] - rest(ocp.model, masses)["p"]
    return finish_answers(
        arguments,
        answers,
        facts={"distance of the chain from rest at the end (m)": float(np.abs(away).max())},
        figures={"motion": draw(ours), "trajectory": fig},
    )


if __name__ == "__main__":
    sys.exit(main())
