"""Swing-up of a pole on a cart with limited force and a short track, in the least effort.

The cart (mass M) moves along a track |q| ≤ 0.5 m and is driven by a force |u| ≤ 8 N. The pole
(mass m at the distance l from the joint) hangs at θ = 0. After 2.5 s it has to stand at θ = π, at
rest and in the middle of the track. The force is too small to lift the pole in one swing.

    (M + m) q'' + m l θ'' cos θ − m l θ'² sin θ = u,    l θ'' + q'' cos θ + g sin θ = 0

The method is multiple shooting: 60 intervals of constant force, two Runge–Kutta steps of order four
each. The limits also hold at four points inside of each interval. The guess is a straight line from
the initial to the final state, without force.
"""

import sys

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid.control import Model, MultipleShooting, OptimalControl, RungeKutta, Solution
from casadi_hybrid.verify import verify

LENGTH = 0.5  # m


def cart_pole(M: float = 1.0, m: float = 0.3) -> Model:
    """Return the plant in SI units."""
    plant = Model("cartpole")
    plant.state("q", lower=-0.5, upper=0.5, unit="m")
    angle = plant.state("theta", scale=np.pi, unit="rad")
    v = plant.state("v", scale=2.0, unit="m/s")
    rate = plant.state("omega", scale=2 * np.pi, unit="rad/s")
    u = plant.control("u", lower=-8, upper=8, scale=10.0, unit="N")
    sin, cos = ca.sin(angle), ca.cos(angle)
    force = u + m * sin * (LENGTH * rate**2 + 9.81 * cos)
    acceleration = force / (M + m * sin**2)
    swing = -(acceleration * cos + 9.81 * sin) / LENGTH
    plant.rates(q=v, theta=rate, v=acceleration, omega=swing)
    return plant


def problem(intervals: int = 60) -> OptimalControl:
    """Return the swing-up in the least effort."""
    plant = cart_pole()
    shooting = MultipleShooting(RungeKutta(2), inner=4)
    ocp = OptimalControl(plant, duration=2.5, intervals=intervals, method=shooting)
    ocp.initial(q=0, theta=0, v=0, omega=0)
    ocp.final(q=0, theta=np.pi, v=0, omega=0)
    ocp.minimize("effort", integral=(plant.symbol("u") / 10) ** 2)
    return ocp


def draw_motion(solution: Solution, path: str) -> None:
    """Draw cart and pole at eleven times, side by side."""
    fig, ax = plt.subplots(figsize=(8, 1.8), layout="constrained")
    times = np.linspace(0, solution.duration, 11)
    seen = solution.at(times)
    for i, (q, angle) in enumerate(zip(seen["q"], seen["theta"], strict=True)):
        joint = 1.3 * i + q
        ax.plot([1.3 * i - 0.5, 1.3 * i + 0.5], [-0.05, -0.05], color="0.7", linewidth=1)
        ax.plot(joint, 0, "s", color="C0", markersize=7)
        tip = joint + LENGTH * np.sin(angle), -LENGTH * np.cos(angle)
        ax.plot([joint, tip[0]], [0, tip[1]], "o-", color="k", markevery=[1], markersize=4)
        ax.text(1.3 * i, -0.85, f"{times[i]:.2f} s", ha="center", fontsize=8)
    ax.set(aspect="equal", ylim=(-0.95, 0.6))
    ax.axis("off")
    fig.savefig(path, dpi=150)


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    ocp = problem()
    solution = ocp.solve()
    print(solution, end="\n\n")
    report = verify(ocp, solution)  # residuals recomputed, and IPOPT started at the answer
    print(report)
    solution.plot(["q", "theta", "u"], path="cartpole.png")
    draw_motion(solution, "cartpole_motion.png")
    return report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
