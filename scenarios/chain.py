"""A hanging chain of masses is brought back to rest beside a wall, by moving its free end.

M equal masses m hang between a fixed end, the origin, and an end whose velocity u is the input.
Neighbours are Δ apart and pull at each other with the force of a spring of stiffness D and length
L at rest; gravity acts along −z:

    F(Δ) = D (1 − L/‖Δ‖) Δ,    m p_i'' = F(p_i+1 − p_i) − F(p_i − p_i−1) − m g e_z,    p_end' = u

with ‖u‖_∞ ≤ 1 m/s and a wall that no mass may enter, y ≥ −0.02 m. Somebody has pulled the end of
the resting chain for one second with (−1, 1, 1) m/s. From there, over T seconds,

    minimize  ∫ 25 ‖p_end − (1, 0, 0)‖² + Σ_i ‖p_i'‖² + 0.01 ‖u‖² dt

Direct multiple shooting, N intervals of constant velocity, two Runge–Kutta steps of order four
each. One interval is built and mapped over the horizon (MX), which takes a tenth of a second. The
hybrid solver turns a graph of this size into scalar operations when it is built: that takes most of
its building time and makes each solve faster. The start is naive: masses on the straight line
between the ends, at rest.

The problem is that of L. Wirsching, H. G. Bock, M. Diehl, "Fast NMPC of a chain of masses connected
by springs", IEEE International Conference on Control Applications, 2006; the wall and the numbers
follow its later use as a benchmark.
"""

import sys
from itertools import pairwise
from pathlib import Path

import casadi as ca
import numpy as np
from animation import film
from closed_loop import simulated
from drawing import LIMIT, Panel, draw_panel
from matplotlib.figure import Figure
from reporting import parser
from solving import FATROP, Answer, finish_answers, solve_with_all

from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, RungeKutta
from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "chain"
SUMMARY = "hanging chain of masses brought to rest beside a wall by moving one end"

DT = 0.2
COLOURS = (PALETTE[0], PALETTE[2], PALETTE[3], PALETTE[7])  # the second is that of limits
GOAL, PULL = np.array([1.0, 0.0, 0.0]), np.array([-1.0, 1.0, 1.0])
WALL, SPEED = -0.02, 1.0


def straight(masses: int) -> np.ndarray:
    """Return the places of masses and end on the straight line to the goal, a column each."""
    return np.outer(GOAL, np.linspace(0.0, 1.0, masses + 2)[1:])


def chain(masses: int, mass=0.033, stiffness=1.0, drag=0.0, wall=WALL) -> Model:
    """Return the plant in SI units: places of the masses and of the end, the masses' speeds."""
    plant = Model(NAME)
    least = np.tile([-np.inf, wall, -np.inf], masses + 1)
    guess = straight(masses).ravel(order="F")
    p = plant.state("p", 3 * masses + 3, lower=least, guess=guess, unit="m")
    v = plant.state("v", 3 * masses, unit="m/s")
    u = plant.control("u", 3, lower=-SPEED, upper=SPEED, unit="m/s")
    places = [ca.SX(3, 1), *(p[3 * i : 3 * i + 3] for i in range(masses + 1))]
    springs = [b - a for a, b in pairwise(places)]
    forces = [stiffness * (1 - 0.033 / ca.norm_2(d)) * d for d in springs]
    pull = ca.vertcat(*(b - a for a, b in pairwise(forces))) - drag * v
    plant.rates(p=ca.vertcat(v, u), v=pull / mass - ca.repmat(ca.DM([0, 0, 9.81]), masses, 1))
    return plant


def rest(plant: Model) -> np.ndarray:
    """Return the state at rest under gravity with the end at the goal."""
    free = plant.size("state") // 2 - 1
    z = ca.SX.sym("z", free)
    state = ca.vertcat(z, GOAL, np.zeros(free))
    forces = plant.moves.rate(state, [], np.zeros(3), [], 0)[free + 3 :]
    line = straight(free // 3)[:, :-1]
    guess = line - np.outer([0.0, 0.0, 1.0], np.sin(np.pi * line[0]))
    solve = ca.rootfinder("rest", "newton", ca.Function("forces", [z], [forces]))
    found = solve(guess.ravel(order="F")).full().ravel()
    return np.concatenate((found, GOAL, np.zeros(free)))


def pulled(plant: Model) -> np.ndarray:
    """Return the state after the end of the resting chain was pulled for one second."""
    return simulated(plant, rest(plant), np.outer(PULL, np.ones(5)), DT)[:, -1]


def cost(plant: Model):
    """Return the integrand."""
    p, v, u = (plant.symbol(name) for name in ("p", "v", "u"))
    return 25 * ca.sumsqr(p[-3:] - GOAL) + ca.sumsqr(v) + 0.01 * ca.sumsqr(u)


def horizon(plant: Model, intervals: int, name: str = NAME) -> OptimalControl:
    """Return the way back to rest, without its initial state."""
    shooting = MultipleShooting(RungeKutta(2))
    ocp = OptimalControl(plant, duration=intervals * DT, intervals=intervals, method=shooting,
                         unroll=False, name=name)  # fmt: skip
    ocp.initial()
    ocp.guess(p=straight(plant.size("state") // 6).ravel(order="F"), v=0)
    return ocp


def shape(states: np.ndarray) -> np.ndarray:
    """Return the places of the fixed end, the masses and the end, 3 × (M + 2), of every column."""
    places = states[: states.shape[0] // 2 + 2]
    return np.pad(places.reshape(-1, 3, places.shape[1]), ((1, 0), (0, 0), (0, 0))).T.swapaxes(1, 2).swapaxes(1, 2)


