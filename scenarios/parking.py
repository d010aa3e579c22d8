"""Parallel parking between two parked cars, with exact avoidance of collisions and free duration.

Kinematic bicycle: rear axle at (x, y), heading ψ, steering angle δ, speed v; the inputs are ω and
a. The car starts beside the front parked car and ends at rest at the kerb.

    x' = v cos ψ,  y' = v sin ψ,  ψ' = v tan δ / L,  δ' = ω,  v' = a,  min T + ∫ ω²/0.8² + a² dt

Limits: |δ| ≤ 0.6 rad, |ω| ≤ 0.8 rad/s, |v| ≤ 1 m/s, |a| ≤ 1 m/s². All four corners of the car
stay between the kerb and the far side of the road. Two convex bodies are apart exactly if a
straight line separates them. Since the parked cars stand at the kerb, only lines through their
corner at the gap count; the angle φ of the normal of this line is an unknown at every time:

    (cos φ, sin φ)·(z − corner) ≥ 0.15 m for the four corners z of our car

with φ in [0, π/2] for the rear and [π/2, π] for the front parked car (X. Zhang, A. Liniger, F.
Borrelli, "Optimization-based collision avoidance", IEEE TCST 29, 2021).

The method is multiple shooting: 48 intervals of constant inputs, one Runge–Kutta step of order four
each. The limits also hold in the middle of each; between these points a centimetre may be missing.
The guess is a straight line to the last pose, through the front parked car.
"""

import sys

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid.control import Free, Model, MultipleShooting, OptimalControl, Solution
from casadi_hybrid.verify import verify

WHEELBASE, LENGTH, WIDTH, OVERHANG = 2.7, 4.4, 1.8, 0.9  # m; the last: rear axle to rear end
GAP, STREET, TOP, BOTTOM = 7.0, 6.5, 2.0, 0.2  # m: gap from x = 0, street, sides of parked cars
CORNERS = {"rear": (0.0, TOP), "front": (GAP, TOP)}
FRONT, SIDE = LENGTH - OVERHANG, 0.5 * WIDTH
BODY = np.array([[-OVERHANG, FRONT, FRONT, -OVERHANG], [-SIDE, -SIDE, SIDE, SIDE]])


def outline(x: ca.SX, y: ca.SX, heading: ca.SX) -> ca.SX:
    """Return the corners of the car, one a column."""
    cos, sin = ca.cos(heading), ca.sin(heading)
    turn = ca.vertcat(ca.horzcat(cos, -sin), ca.horzcat(sin, cos))
    return ca.repmat(ca.vertcat(x, y), 1, 4) + turn @ BODY


def problem(intervals: int = 48) -> OptimalControl:
    car = Model("parking")
    x, y = car.state("x", unit="m"), car.state("y", unit="m")
    heading = car.state("psi", scale=0.5, unit="rad")
    steering = car.state("delta", lower=-0.6, upper=0.6, scale=0.5, unit="rad")
    v = car.state("v", lower=-1, upper=1, unit="m/s")
    omega = car.control("omega", lower=-0.8, upper=0.8, unit="rad/s")
    a = car.control("a", lower=-1, upper=1, unit="m/s²")
    turn = v * ca.tan(steering) / WHEELBASE
    car.rates(x=v * ca.cos(heading), y=v * ca.sin(heading), psi=turn, delta=omega, v=a)
    duration, method = Free(10.0, 2.0, 60.0), MultipleShooting(inner=1)
    ocp = OptimalControl(car, duration=duration, intervals=intervals, method=method)
    corners = outline(x, y, heading)
    ocp.path("kerb and far side", corners[1, :], lower=0, upper=STREET, unit="m")
    for (name, corner), low in zip(CORNERS.items(), (0.0, 0.5 * np.pi), strict=True):
        normal = car.control(name, lower=low, upper=low + np.pi / 2, guess=low + np.pi / 4,
                             unit="rad", linear=True)  # fmt: skip
        distance = (corners - ca.DM(corner)).T @ ca.vertcat(ca.cos(normal), ca.sin(normal))
        ocp.path(f"distance to {name}", distance, lower=0.15, unit="m")
    ocp.initial(x=GAP + 1.5, y=3.4, psi=0, delta=0, v=0)
    ocp.final(x=0.5 + OVERHANG, y=BOTTOM + 0.5 * WIDTH, psi=0, delta=0, v=0)
    ocp.guess(v=-0.7)
    ocp.minimize("time", end=ocp.duration)
    ocp.minimize("effort", integral=(omega / 0.8) ** 2 + a**2)
    return ocp


def draw_street(solution: Solution, path: str) -> None:
    fig, ax = plt.subplots(figsize=(7, 3.0), layout="constrained")
    for left in (-LENGTH, GAP):
        ax.fill(left + np.array([0, LENGTH, LENGTH, 0]), [BOTTOM, BOTTOM, TOP, TOP], color="0.7")
    for k in np.linspace(0, solution.times.size - 1, 10).astype(int):
        corners = outline(*(ca.DM(solution[name][k]) for name in ("x", "y", "psi"))).full()
        ax.fill(*corners, facecolor="C0", edgecolor="k", alpha=0.25)
    ax.plot(solution["x"], solution["y"], color="C0")
    ax.set(aspect="equal", xlabel="along the street (m)", ylabel="across (m)")
    fig.savefig(path, dpi=150)


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    ocp = problem()
    solution = ocp.solve()
    print(solution, end="\n\n")
    report = verify(solution.program.nlp, solution, **solution.program.arguments)
    print(report, end="\n\n")
    print(between := solution.violation())
    solution.plot(["v", "delta", "omega", "a"], path="parking.png")
    draw_street(solution, "parking_street.png")
    return report.accepted and between.largest < 0.012


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
