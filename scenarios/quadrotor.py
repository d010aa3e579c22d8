"""Point-to-point flight of a planar quadrotor: free transfer, and slalom through round obstacles.

State (x, z, θ, x', z', θ'): position, pitch and their rates. Inputs: the thrusts u₁, u₂ of the two
rotors at the distance l from the centre of mass, 0.5 N ≤ u ≤ 8 N.

    m x'' = −(u₁ + u₂) sin θ,    m z'' = (u₁ + u₂) cos θ − m g,    J θ'' = l (u₂ − u₁)

From rest to rest in T seconds, |θ| ≤ 60°, between floor and ceiling −0.7 m ≤ z ≤ 1.1 m, with the
least ∫ ‖u − u_hover‖² dt. In the slalom the centre of mass keeps the distance r + l from the centre
of every obstacle of radius r, at the instants of the grid; what is left of it in between is
printed. Floor and ceiling leave one way past each obstacle; without them the solvers found several.

Direct multiple shooting, N intervals of constant thrust, one Runge–Kutta step of order four each.
The start is naive: a straight line through the obstacles at rest, and hovering thrust.
"""

import sys

import casadi as ca
import numpy as np
from drawing import CIRCLES, LIMIT, compare
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from reporting import parser
from solving import FATROP, SQP, finish_answers, solve_with_all

from casadi_hybrid.control import Model, OptimalControl, Solution
from casadi_hybrid.utils.output.plotting import PALETTE, figure, legend_below

NAME = "quadrotor"
SUMMARY = "planar quadrotor: transfer and slalom through obstacles, limits on thrust and tilt"

MASS, INERTIA, ARM, TILT, THRUST = 0.6, 0.01, 0.2, np.pi / 3, (0.5, 8.0)
"""kg, kg m², m, rad, N"""
HOVER = MASS * 9.81 / 2
HEIGHTS = (-0.7, 1.1)
DISCS = ((2.0, 0.5, 0.6), (4.0, -0.1, 0.6), (6.0, 0.7, 0.6))
"""Obstacles: x, z and radius in metres."""


def vehicle(mass=1.0, inertia=1.0, *, wind=0.0, drag=0.0, heights=HEIGHTS, tilt=TILT) -> Model:
    """Return a quadrotor in the wind; mass and inertia are shares of the nominal ones."""
    body = Model(NAME)
    body.state("x", scale=5, unit="m")
    body.state("z", lower=heights[0], upper=heights[1], unit="m")
    angle = body.state("theta", lower=-tilt, upper=tilt, unit="rad")
    vx, vz = body.state("vx", scale=5, unit="m/s"), body.state("vz", scale=2, unit="m/s")
    rate = body.state("omega", scale=5, unit="rad/s")
    u = body.control("u", 2, lower=THRUST[0], upper=THRUST[1], scale=5, guess=HOVER, unit="N")
    lift = u[0] + u[1]
    forces = -lift * ca.sin(angle) - drag * (vx - wind), lift * ca.cos(angle) - drag * vz
    pushed, pulled = (force / (mass * MASS) for force in forces)
    turn = ARM * (u[1] - u[0]) / (inertia * INERTIA)
    body.rates(x=vx, z=vz, theta=rate, vx=pushed, vz=pulled - 9.81, omega=turn)
    return body


def flight(name: str, intervals: int, duration: float, obstacles=()) -> OptimalControl:
    ocp = OptimalControl(vehicle(), duration=duration, intervals=intervals, name=name)
    rest = {"theta": 0, "vx": 0, "vz": 0, "omega": 0}
    ocp.initial(x=0, z=0, **rest)
    ocp.final(x=8, z=0.5, **rest)
    avoid(ocp, obstacles)
    ocp.minimize("effort", integral=ca.sumsqr(ocp.model.symbol("u") - HOVER))
    return ocp


def avoid(ocp: OptimalControl, obstacles, **options) -> None:
    """Keep the rotors' circle out of every obstacle: a row that is 1 where they touch."""
    x, z = ocp.model.symbol("x"), ocp.model.symbol("z")
    for i, (a, b, radius) in enumerate(obstacles):
        near = ((x - a) ** 2 + (z - b) ** 2) / (radius + ARM) ** 2
        ocp.path(f"obstacle {i}", near, lower=1, **options)


def gaps(x, z, obstacles) -> list:
    """Return the distance (m) of the rotors' circle to every obstacle, of numbers or symbols."""
    return [((x - a) ** 2 + (z - b) ** 2) ** 0.5 - radius - ARM for a, b, radius in obstacles]


def scenery(ax: Axes, obstacles=DISCS, heights=HEIGHTS, near=LIMIT) -> None:
    """Draw the obstacles, the distance to keep from them, and floor and ceiling."""
    for x, z, radius in obstacles:
        ax.add_patch(Circle((x, z), radius, facecolor="#CCCCCC", label="obstacle"))
        ax.add_patch(Circle((x, z), radius + ARM, fill=False, **near))
    for height in heights:
        ax.axhline(height, **LIMIT, label="limit")
    ax.set(xlabel="$x$ (m)", ylabel="$z$ (m)", aspect="equal", xlim=(-0.5, 8.5), ylim=(-1.0, 1.6))


def draw(transfer: Solution, slalom: Solution, ipopt: Solution) -> Figure:
    fig, ((path,),) = figure(height=2.7)
    arms = np.array([-ARM, ARM])
    scenery(path)
    path.plot(ipopt["x"], ipopt["z"], **CIRCLES | {"markersize": 3}, label="IPOPT, slalom")
    for answer, name, color, line in (
        (transfer, "hybrid, transfer, no obstacles", PALETTE[2], "-."),
        (slalom, "hybrid, slalom", PALETTE[0], "-"),
    ):
        path.plot(answer["x"], answer["z"], label=name, color=color, linestyle=line)
        for x, z, angle in answer.states[:3, ::6].T:
            rotors = x + arms * np.cos(angle), z + arms * np.sin(angle)
            path.plot(*rotors, color=color, linewidth=2.5)
    path.plot([], [], color="#444444", linewidth=2.5, label="the vehicle on its way")
    legend_below(fig, path)
    return fig


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    N = 30 if arguments.short else 60
    flights = (flight("transfer", N, 2.0), flight("slalom", N, 2.6, DISCS))
    solved = [solve_with_all(ocp, FATROP, SQP, short=arguments.short) for ocp in flights]
    transfer, ours = (answers[0].solution for answers in solved)
    ipopt = solved[1][1].solution
    between = ours.sample()
    return finish_answers(
        arguments,
        *solved,
        facts={"clearance in between (m)": np.min(gaps(between["x"], between["z"], DISCS))},
        figures={
            "flights": draw(transfer, ours, ipopt),
            "slalom": compare(ours, ipopt, ("theta", "u")),
        },
    )


if __name__ == "__main__":
    sys.exit(main())
