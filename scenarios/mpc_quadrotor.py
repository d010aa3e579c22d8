"""Predictive control of a planar quadrotor on laps past obstacles: gust, wrong model, noise.

State (x, z, θ, x', z', θ') and the thrusts u₁, u₂ of two rotors at the distance l from the centre:

    m x'' = −(u₁ + u₂) sin θ − d (x' − w), m z'' = (u₁ + u₂) cos θ − m g − d z', J θ'' = l (u₂ − u₁)

The vehicle follows laps of 3.5 s on an ellipse that cuts through the surroundings of two round
obstacles. At 5 s a gust adds 2 m/s upwards. The controller believes in d = 0; the true vehicle is
8 % heavier, its inertia 20 % larger, and a wind w = −1.5 m/s drags with d = 0.2 N·s/m. Sensors err
by 5 mm, 5 mrad, 2 cm/s and 20 mrad/s (standard deviations). Every 50 ms the controller looks 30
intervals of constant thrust ahead, with position r and velocity r' of the lap:

    minimize    Σ_k dt·ℓ_k(x_k, u_k) + ℓ_N(x_N, u_hover) + 20 Σ_k (Σ_i (s_ki + s_ki²) + a_k + a_k²)
                ℓ = 20 ‖(x, z) − r‖² + ‖(x', z') − r'‖² + 0.1 (θ² + θ'²) + 0.02 ‖u − u_hover‖²
    subject to  x_0 = measured state,  x_{k+1} = F(x_k, u_k),  0.5 N ≤ u_k ≤ 8 N,
                |θ_k| ≤ 60° + 0.1 a_k,  |(x, z)_k − c_i|² ≥ (r_i + l)² (1 − s_ki),  s_ki, a_k ≥ 0
"""

import sys

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid.control import MPC, Model, OptimalControl, Plant, Run, Soft, simulate
from casadi_hybrid.verify import verify

DT, MASS, INERTIA, ARM, TILT = 0.05, 0.6, 0.01, 0.2, np.pi / 3  # s, kg, kg m², m, rad
HOVER = MASS * 9.81 / 2  # N
OBSTACLES = ((1.2, 2.0, 0.3), (-1.5, 0.8, 0.3))  # x, z and radius in m
START = {"x": 2.0, "z": 1.0, "theta": 0.0, "vx": 0.0, "vz": 0.0, "omega": 0.0}


def lap(time: float) -> np.ndarray:
    """Return position (m) and velocity (m/s) of the reference."""
    rate = 2 * np.pi / 3.5
    cos, sin = np.cos(rate * time), np.sin(rate * time)
    return np.array([2.0 * cos, 1.0 + 0.8 * sin, -2.0 * rate * sin, 0.8 * rate * cos])


def vehicle(mass: float = MASS, inertia: float = INERTIA, drag: float = 0.0) -> Model:
    body = Model("quadrotor")
    body.state("x", scale=5, unit="m")
    body.state("z", unit="m")
    angle = body.state("theta", unit="rad")
    vx, vz = body.state("vx", scale=5, unit="m/s"), body.state("vz", scale=2, unit="m/s")
    rate = body.state("omega", scale=5, unit="rad/s")
    u = body.control("u", 2, lower=0.5, upper=8, scale=5, guess=HOVER, unit="N")
    right = -(u[0] + u[1]) * ca.sin(angle) - drag * (vx + 1.5)
    up = (u[0] + u[1]) * ca.cos(angle) - drag * vz
    turn = ARM * (u[1] - u[0]) / inertia
    body.rates(x=vx, z=vz, theta=rate, vx=right / mass, vz=up / mass - 9.81, omega=turn)
    return body


def problem(intervals: int = 30) -> OptimalControl:
    """Return the problem that the controller solves at every step."""
    body = vehicle()
    ocp = OptimalControl(body, duration=intervals * DT, intervals=intervals, name="mpc_quadrotor")
    target, s, u = ocp.reference("target", lap, 4), body.stacked("state"), body.symbol("u")
    ocp.initial(**START)
    ocp.guess(**START)
    ocp.path("tilt", s[2], lower=-TILT, upper=TILT, soft=Soft(200, 2000), scale=0.1)
    for i, (a, b, radius) in enumerate(OBSTACLES):
        squared = ((s[0] - a) ** 2 + (s[1] - b) ** 2) / (radius + ARM) ** 2
        ocp.path(f"obstacle {i}", squared, lower=1, soft=Soft(20, 20))
    error = 20 * ca.sumsqr(s[:2] - target[:2]) + ca.sumsqr(s[3:5] - target[2:])
    end = error + 0.1 * (s[2] ** 2 + s[5] ** 2)
    ocp.minimize("cost", sum=DT * (end + 0.02 * ca.sumsqr(u - HOVER)), end=end)
    return ocp


def draw_laps(run: Run, path: str) -> None:
    fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    for x, z, radius in OBSTACLES:
        ax.add_patch(plt.Circle((x, z), radius, color="0.8"))
        ax.add_patch(plt.Circle((x, z), radius + ARM, fill=False, linestyle=":"))
    ax.plot(*lap(np.linspace(0, 3.5, 101))[:2], "k:")
    ax.plot(run["x"], run["z"])
    ax.set(aspect="equal", xlabel="$x$ (m)", ylabel="$z$ (m)", title="flight and target (dots)")
    fig.savefig(path, dpi=150)


def main() -> bool:
    """Simulate, check and draw; return True if all steps are solved and accepted."""
    ocp, true = problem(), vehicle(1.08 * MASS, 1.2 * INERTIA, drag=0.2)
    noise, gust = [0.005, 0.005, 0.005, 0.02, 0.02, 0.02], {100: {"vz": 2.0}}
    run = simulate(Plant(true, DT), MPC(ocp), steps=120, x0=START, noise=noise, push=gust)
    print(run, end="\n\n")
    # Residuals of every fifth prediction, recomputed; IPOPT judges the one after the gust.
    worst = max(verify(ocp, step.plan, ipopt=False).stationarity.value for step in run.steps[::5])
    print(f"largest stationarity residual: {worst:.1e}")
    report = verify(ocp, run.steps[100].plan)
    print(report)
    draw_laps(run, "mpc_quadrotor.png")
    return run.failed == 0 and worst < 1e-6 and report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
