"""Hanging chain of masses brought back to rest beside a wall, by moving its free end.

Three equal masses m hang between a fixed end, the origin, and an end whose velocity u is the input.
Neighbours are Δ apart and pull at each other with the force of a spring of stiffness D and length
L at rest; gravity acts along −z:

    F(Δ) = D (1 − L/‖Δ‖) Δ,    m p_i'' = F(p_i+1 − p_i) − F(p_i − p_i−1) − m g e_z,    p_end' = u

with ‖u‖_∞ ≤ 1 m/s and a wall that no mass may enter, y ≥ −0.02 m. Somebody has pulled the end of
the resting chain for one second with (−1, 1, 1) m/s. From there, over four seconds,

    minimize  ∫ 25 ‖p_end − (1, 0, 0)‖² + Σ_i ‖p_i'‖² + 0.01 ‖u‖² dt

with a sum over the grid points for the integral. The method is multiple shooting: 20 intervals of
constant velocity, two Runge–Kutta steps of order four each. One interval is built and mapped over
the horizon (`unroll=False`), and the wall also holds at twelve points inside of each interval. The
guess is the straight line between the ends, at rest.

The problem is that of L. Wirsching, H. G. Bock, M. Diehl, "Fast NMPC of a chain of masses connected
by springs", IEEE International Conference on Control Applications, 2006; the wall and the numbers
follow its later use as a benchmark.
"""

import sys
from itertools import pairwise

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, Plant, RungeKutta, steady
from casadi_hybrid.verify import verify

MASSES, DT, WALL = 3, 0.2, -0.02
GOAL, PULL = np.array([1.0, 0.0, 0.0]), np.array([-1.0, 1.0, 1.0])
STRAIGHT = np.outer(np.linspace(0.0, 1.0, MASSES + 2)[1:], GOAL).ravel()


def chain() -> Model:
    """Return the plant in SI units: places p of masses and end, velocities v of the masses."""
    plant, mass, length, stiffness = Model("chain"), 0.033, 0.033, 1.0
    wall = np.tile([-np.inf, WALL, -np.inf], MASSES + 1)
    p = plant.state("p", 3 * MASSES + 3, lower=wall, unit="m")
    v = plant.state("v", 3 * MASSES, unit="m/s")
    u = plant.control("u", 3, lower=-1, upper=1, unit="m/s")
    plant.output("nearest to the wall", ca.mmin(p[1::3]), unit="m")
    springs = [b - a for a, b in pairwise([ca.SX(3, 1), *ca.vertsplit(p, 3)])]
    forces = [stiffness * (1 - length / ca.norm_2(d)) * d for d in springs]
    resultant = ca.vertcat(*(b - a for a, b in pairwise(forces)))
    gravity = ca.repmat(ca.DM([0.0, 0.0, 9.81]), MASSES, 1)
    plant.rates(p=ca.vertcat(v, u), v=resultant / mass - gravity)
    return plant


def problem(intervals: int = 20) -> OptimalControl:
    """Return the way back to rest from the pulled chain."""
    plant = chain()
    ocp = OptimalControl(plant, duration=intervals * DT, intervals=intervals, unroll=False,
                         method=MultipleShooting(RungeKutta(2), inner=12))  # fmt: skip
    end_at_goal = np.append(np.full(3 * MASSES, np.nan), GOAL)  # the masses follow
    rest = steady(plant, p=end_at_goal, u=0, guess={"p": STRAIGHT})
    p, v = np.split(Plant(plant, 1.0).step(rest.states, PULL), [3 * MASSES + 3])
    ocp.initial(p=p, v=v)
    ocp.guess(p=STRAIGHT, v=0)
    p, v, u = (plant.symbol(name) for name in "pvu")
    error = 25 * ca.sumsqr(p[-3:] - GOAL) + ca.sumsqr(v)
    ocp.minimize("cost", sum=DT * (error + 0.01 * ca.sumsqr(u)), end=DT * error)
    return ocp


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    ocp = problem()
    solution = ocp.solve()
    print(solution, end="\n\n")
    report = verify(ocp, solution)  # residuals recomputed, and IPOPT started at the answer
    print(report)
    solution.plot(["nearest to the wall", "u"], path="chain.png")
    fig, axes = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    for ax, row, title in zip(axes, (2, 1), ("from the side", "from above"), strict=True):
        for k in (0, 2, 5, -1):
            points = np.append(np.zeros(3), solution["p"][:, k]).reshape(-1, 3).T
            ax.plot(points[0], points[row], "o-", label=f"{solution.times[k]:.1f} s", markersize=4)
        ax.set(xlabel="$x$ (m)", ylabel=f"${'xyz'[row]}$ (m)", title=title)
    axes[1].axhline(WALL, color="k", linestyle="--", label="wall")
    axes[1].legend(fontsize=8)
    fig.savefig("chain_motion.png", dpi=150)
    return report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
