"""Slalom of a planar quadrotor through round obstacles, from rest to rest.

State (x, z, θ, x', z', θ'): position, pitch and their rates. Inputs: the thrusts u₁, u₂ of the two
rotors at the distance l from the centre of mass, 0.5 N ≤ u ≤ 8 N.

    m x'' = −(u₁ + u₂) sin θ,    m z'' = (u₁ + u₂) cos θ − m g,    J θ'' = l (u₂ − u₁)

The flight takes 2.6 seconds with |θ| ≤ 60°, between floor and ceiling −0.7 m ≤ z ≤ 1.1 m, and with
the least ∫ ‖u − u_hover‖² dt. The centre of mass keeps the distance r + l from the centre of every
obstacle of radius r. Floor and ceiling leave one way past each obstacle; without them there are
several local solutions.

The method is multiple shooting: 60 intervals of constant thrust, one Runge–Kutta step of order four
each; limits also hold inside of the intervals. The guess is a straight line through the obstacles,
at rest, with the thrust of hovering.
"""

import sys

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, Solution
from casadi_hybrid.verify import verify

MASS, INERTIA, ARM, TILT = 0.6, 0.01, 0.2, np.pi / 3  # kg, kg m², m, rad
HOVER = MASS * 9.81 / 2  # N
OBSTACLES = ((2.0, 0.5, 0.6), (4.0, -0.1, 0.6), (6.0, 0.7, 0.6))  # x, z and radius in m


def vehicle() -> Model:
    """Return the quadrotor in SI units."""
    body = Model("quadrotor")
    body.state("x", scale=5, unit="m")
    body.state("z", lower=-0.7, upper=1.1, unit="m")
    angle = body.state("theta", lower=-TILT, upper=TILT, unit="rad")
    vx, vz = body.state("vx", scale=5, unit="m/s"), body.state("vz", scale=2, unit="m/s")
    rate = body.state("omega", scale=5, unit="rad/s")
    u = body.control("u", 2, lower=0.5, upper=8, scale=5, guess=HOVER, unit="N")
    lift = (u[0] + u[1]) / MASS
    turn = ARM * (u[1] - u[0]) / INERTIA
    body.rates(x=vx, z=vz, theta=rate,
               vx=-lift * ca.sin(angle), vz=lift * ca.cos(angle) - 9.81, omega=turn)  # fmt: skip
    return body


def problem(intervals: int = 60) -> OptimalControl:
    """Return the slalom."""
    body, method = vehicle(), MultipleShooting(inner=12)
    ocp = OptimalControl(body, duration=2.6, intervals=intervals, method=method)
    rest = {"theta": 0, "vx": 0, "vz": 0, "omega": 0}
    ocp.initial(x=0, z=0, **rest)
    ocp.final(x=8, z=0.5, **rest)
    for i, (a, b, radius) in enumerate(OBSTACLES):
        squared = (body.symbol("x") - a) ** 2 + (body.symbol("z") - b) ** 2
        ocp.path(f"obstacle {i}", squared / (radius + ARM) ** 2, lower=1)
    ocp.minimize("effort", integral=ca.sumsqr(body.symbol("u") - HOVER))
    return ocp


def draw_flight(solution: Solution, path: str) -> None:
    """Draw obstacles, floor and ceiling, the path, and the arms at eleven times."""
    fig, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
    for x, z, radius in OBSTACLES:
        ax.add_patch(plt.Circle((x, z), radius, color="0.8"))
        ax.add_patch(plt.Circle((x, z), radius + ARM, fill=False, linestyle="--"))
    for height in (-0.7, 1.1):
        ax.axhline(height, color="k", linestyle="--")
    ax.plot(solution["x"], solution["z"], color="C0")
    for x, z, angle in solution.states[:3, ::6].T:
        arm = ARM * np.array([-1, 1])
        ax.plot(x + arm * np.cos(angle), z + arm * np.sin(angle), color="k", linewidth=2.5)
    ax.set(aspect="equal", xlim=(-0.4, 8.4), xlabel="$x$ (m)", ylabel="$z$ (m)",
           title="centre of mass and its limits (dashed), arms at eleven times")  # fmt: skip
    fig.savefig(path, dpi=150)


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    ocp = problem()
    solution = ocp.solve()
    print(solution, end="\n\n")
    report = verify(ocp, solution)  # residuals recomputed, and IPOPT started at the answer
    print(report)
    solution.plot(["theta", "u"], path="quadrotor.png")
    draw_flight(solution, "quadrotor_flight.png")
    return report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
