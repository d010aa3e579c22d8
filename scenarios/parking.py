"""Parallel parking between two parked cars, with exact avoidance of collisions and free duration.

Kinematic bicycle with the rear axle at (x, y), heading ψ, steering angle δ and speed v; the inputs
are the steering rate ω and the acceleration a. The car starts beside the front one of the parked
cars and ends at rest at the kerb, half a metre from the rear one.

    x' = v cos ψ,  y' = v sin ψ,  ψ' = v tan δ / L,  δ' = ω,  v' = a,  min T + ∫ ω²/0.8² + a² dt

Limits: |δ| ≤ 0.6 rad, |ω| ≤ 0.8 rad/s, |v| ≤ 1 m/s, |a| ≤ 1 m/s². All four corners of the car
stay between the kerb and the far side of the road. Two convex bodies are apart exactly if a
straight line separates them. Since the parked cars stand at the kerb, only lines through their
corner at the gap count; the angle φ of the normal of this line is an unknown at every time:

    (cos φ, sin φ)·(z − corner) ≥ 0.15 m for the four corners z of our car

with φ in [0, π/2] for the rear and [π/2, π] for the front parked car. Smooth, exact, no logic, and
the clearance is in metres. (It is the dual form of the distance between convex sets: X. Zhang,
A. Liniger, F. Borrelli, "Optimization-based collision avoidance", IEEE Transactions on Control
Systems Technology 29, 2021.) Where the cars are far apart many lines separate them. The interior
methods end in the middle of these lines; the active-set methods end on the first or last one,
where the verifier may have to leave open whether the point is a minimizer.

Direct multiple shooting, N intervals of constant inputs, one Runge–Kutta step of order four each.
The limits hold at the grid points and in the middle of each interval; at the grid points alone the
car would come as near as 0.10 m in between.
The start is naive: a straight line from the first pose to the last, through the front parked
car, at 0.7 m/s backwards for 10 s, no input, and every φ in the middle of its range.
"""

import sys

import casadi as ca
import numpy as np
from drawing import compare
from lane_change import draw_way, outline
from reporting import Check, parser
from solving import SLEQP, UNO, finish_answers, solve_with_all

from casadi_hybrid.control import Free, Model, MultipleShooting, OptimalControl

NAME = "parking"
SUMMARY = "parallel parking between two cars, exact collision avoidance, free duration"

WHEELBASE = 2.7
CAR = LENGTH, WIDTH, OVERHANG = 4.4, 1.8, 0.9
"""In metres; the last one is from the rear axle to the rear end."""
GAP, STREET, TOP, BOTTOM, CLEARANCE = 7.0, 6.5, 2.0, 0.2, 0.15
"""The gap between the parked cars begins at x = 0; width of the street, sides of those cars."""
SIDES = [BOTTOM, BOTTOM, TOP, TOP]
PARKED = [np.array([[a, a + LENGTH, a + LENGTH, a], SIDES]) for a in (-LENGTH, GAP)]
CORNERS = {"rear": (0.0, TOP), "front": (GAP, TOP)}


def manoeuvre(intervals: int) -> OptimalControl:
    car = Model(NAME)
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
    body = outline(x, y, heading, *CAR)
    ocp.path("kerb and far side", body[1, :], lower=0, upper=STREET, unit="m")
    for (name, corner), low in zip(CORNERS.items(), (0.0, 0.5 * np.pi), strict=True):
        # An angle at every time: linear in between, which nothing asks for.
        normal = car.control(name, lower=low, upper=low + np.pi / 2, guess=low + np.pi / 4,
                             unit="rad", linear=True)  # fmt: skip
        away = (body - np.array([corner]).T).T @ ca.vertcat(ca.cos(normal), ca.sin(normal))
        ocp.path(f"distance to {name}", away, lower=CLEARANCE, unit="m")
    ocp.initial(x=GAP + 1.5, y=3.4, psi=0, delta=0, v=0)
    ocp.final(x=0.5 + OVERHANG, y=BOTTOM + 0.5 * WIDTH, psi=0, delta=0, v=0)
    ocp.guess(v=-0.7)
    ocp.minimize("time", end=ocp.duration)
    ocp.minimize("effort", integral=(omega / 0.8) ** 2 + a**2)
    return ocp


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    ocp = manoeuvre(24 if arguments.short else 48)
    answers = solve_with_all(ocp, UNO, SLEQP, short=arguments.short)
    ours, ipopt = (answer.solution for answer in answers[:2])
    # Between the grid points too a line by which no more than the clearance is missing separates.
    missing = max(ours.violation()[f"distance to {name}"].max() for name in CORNERS)
    way = ours["x"], ours["y"], ours["psi"]
    shown = "v", "delta", "omega", "a", "distance to rear", "distance to front"
    return finish_answers(
        arguments,
        answers,
        checks=[Check("overlap with a parked car (m)", missing - CLEARANCE, 0.0)],
        facts={
            "duration (s)": ours.duration,
            "clearance in between, by the separating lines (m)": CLEARANCE - missing,
        },
        figures={
            "path": draw_way(way, CAR, (0.0, STREET), PARKED, (-4.8, GAP + 6.2), 3.4),
            "trajectory": compare(ours, ipopt, shown),
        },
    )


if __name__ == "__main__":
    sys.exit(main())
