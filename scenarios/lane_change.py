"""Double lane change: past a car that stands in the lane, and back, as gently as possible.

A car enters at 20 m/s. It has to change to the left lane, pass and return, within the corridor
between the other car and the edges of the road. Kinematic bicycle: rear axle at (s, y), heading ψ,
steering angle δ, speed v; its inputs are the steering rate ω and the acceleration a. The distance s
along the road is the independent variable, so the corridor becomes bounds that depend on s:

    y_s = tan ψ,  ψ_s = tan δ / (L cos ψ),  δ_s = ω / (v cos ψ),  v_s = a / (v cos ψ)

Limits: |δ| ≤ 0.1 rad, |ω| ≤ 0.4 rad/s, −5 ≤ a ≤ 2.5 m/s², lateral acceleration
|v² tan δ / L| ≤ 5 m/s². Both axles keep half the car's width and 0.2 m from the corridor's sides,
wherever any part of the car is beside the obstacle. The car leaves straight ahead in its own lane
at 20 m/s. The cost is the integral over time of (v² tan δ / (5 L))² + (a/5)² + (ω/0.4)².

The method is multiple shooting: 80 intervals of constant inputs, one Runge–Kutta step of order four
each; limits also hold inside of the intervals. The guess drives straight through the obstacle.
"""

import sys

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, Samples
from casadi_hybrid.verify import verify

WHEELBASE, LENGTH, WIDTH, OVERHANG = 2.7, 4.4, 1.8, 0.8  # m; the last: rear axle to rear end
ROAD, LANE = 64.0, 3.5  # m: length of the road, width of a lane
BEGIN, END, LEFT = 24.0, 30.0, 1.2  # m: rear, front and left side of the standing car
MARGIN = 0.5 * WIDTH + 0.2  # m: distance of an axle from the corridor's sides


def right_side(s: float) -> float:
    """Return the least y of the axles while the rear axle is at s."""
    beside = (s > BEGIN - (LENGTH - OVERHANG)) & (s < END + OVERHANG)
    return np.where(beside, LEFT, -0.5 * LANE) + MARGIN


def problem(intervals: int = 80) -> OptimalControl:
    """Return the optimal control problem."""
    car, left_side = Model("lane_change", time_unit="m"), 1.5 * LANE - MARGIN
    y = car.state("y", upper=left_side, unit="m")
    heading = car.state("psi", scale=0.1, unit="rad")
    steering = car.state("delta", lower=-0.1, upper=0.1, scale=0.1, unit="rad")
    v = car.state("v", lower=1, scale=10, unit="m/s")
    omega = car.control("omega", lower=-0.4, upper=0.4, unit="rad/s")
    a = car.control("a", lower=-5, upper=2.5, scale=10, unit="m/s²")
    lateral = car.output("lateral", v**2 * ca.tan(steering) / WHEELBASE, unit="m/s²")
    forward = v * ca.cos(heading)
    turn = ca.tan(steering) / (WHEELBASE * ca.cos(heading))
    car.rates(y=ca.tan(heading), psi=turn, delta=omega / forward, v=a / forward)
    method = MultipleShooting(inner=4)
    ocp = OptimalControl(car, duration=ROAD, intervals=intervals, method=method)
    front = y + WHEELBASE * ca.sin(heading)
    ocp.path("axles", ca.vertcat(y, front) - ocp.reference("right side", right_side), lower=0)
    ocp.path("front axle", front, upper=left_side)
    ocp.path("lateral acceleration", lateral, lower=-5, upper=5, scale=10, unit="m/s²")
    ocp.initial(y=0, psi=0, delta=0, v=20)
    ocp.final(y=0, psi=0, delta=0, v=20)
    cost = (lateral / 5) ** 2 + (omega / 0.4) ** 2 + (a / 5) ** 2
    ocp.minimize("cost", integral=cost / forward)
    return ocp


def draw_road(way: Samples, path: str) -> None:
    """Draw the road, the standing car, and the outline of the car at eleven places."""
    fig, ax = plt.subplots(figsize=(8, 1.9), layout="constrained")
    for edge, line in ((-0.5, "-"), (0.5, "--"), (1.5, "-")):
        ax.axhline(edge * LANE, color="0.5", linestyle=line)
    ax.fill([BEGIN, END, END, BEGIN], [LEFT - WIDTH] * 2 + [LEFT] * 2, color="0.7")
    back, ahead, side = -OVERHANG, LENGTH - OVERHANG, 0.5 * WIDTH
    body = np.array([back, ahead, ahead, back]) + 1j * np.array([-side, -side, side, side])
    for k in np.linspace(0, way.times.size - 1, 11).astype(int):
        corners = way.times[k] + 1j * way["y"][k] + body * np.exp(1j * way["psi"][k])
        ax.fill(corners.real, corners.imag, facecolor="C0", edgecolor="k", alpha=0.3)
    ax.plot(way.times, way["y"], color="C0")
    ax.set(aspect="equal", xlabel="along the road (m)", ylabel="across (m)")
    fig.savefig(path, dpi=150)


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    ocp = problem()
    solution = ocp.solve()
    print(solution, end="\n\n")
    report = verify(ocp, solution)  # residuals recomputed, and IPOPT started at the answer
    print(report, end="\n\n")
    print(f"lowest speed {solution['v'].min():.2f} m/s")
    solution.plot(["y", "delta", "lateral acceleration", "a"], path="lane_change.png")
    draw_road(solution.sample(), "lane_change_road.png")
    return report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
