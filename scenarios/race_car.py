"""The fastest flying lap of a race car with sliding tyres on a closed circuit.

The way s along the centre line (curvature κ) is the independent variable. The car is a single track
with mass m, inertia J and axles at l_f, l_r: offset n and heading χ to the centre line, speeds v_x,
v_y, yaw rate r, steering angle δ. Inputs are the rate of δ and the force F of engine and brakes.

    s' = (v_x cos χ − v_y sin χ)/(1 − n κ),  n' = v_x sin χ + v_y cos χ,  χ' = r − κ s'
    m (v_x' − v_y r) = F − F_f sin δ − c v_x²,  m (v_y' + v_x r) = F_r + F_f cos δ
    J r' = l_f F_f cos δ − l_r F_r,  F_i = μ N_i sin(C arctan(B α_i)) √(1 − (X_i/(μ N_i))²)
    α_f = δ − arctan((v_y + l_f r)/v_x),  α_r = −arctan((v_y − l_r r)/v_x)

all divided by s'. X_i is the share of F on an axle, N_i its constant load. The limits are the
track's width, the engine's power, |X_i| ≤ 0.95 μ N_i and |α_i| ≤ 9°. Every state but the time ends
as it began. The method is Radau collocation of degree 2 on 120 intervals. The limits hold at its
points; the excess in between is checked. The guess is 15 m/s along the centre line. Tyres: H. B.
Pacejka, "Tyre and Vehicle Dynamics", Elsevier 2006. Circuit and car are made up.
"""

import sys

import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

from casadi_hybrid.control import Collocation, Model, OptimalControl
from casadi_hybrid.verify import verify

ORDER = np.array([1, -1, 2, -2, 3, -3, 4, -4])  # of the centre line's Fourier series, in m
TERMS = np.array([225, 75, -34 + 6j, -8 + 8j, 19 - 19j, 7 + 5j, 1 - 13j, -15 + 3j]) / 2
WAVES = np.exp(1j * np.outer(np.linspace(0, 2 * np.pi, 4001), ORDER))
LINE, SLOPE, BEND = (WAVES @ (TERMS * (1j * ORDER) ** n) for n in range(3))
WAY = np.append(0.0, np.cumsum((abs(SLOPE[1:]) + abs(SLOPE[:-1])) * np.pi / 4000))
CURVATURE = (SLOPE.conj() * BEND).imag / abs(SLOPE) ** 3
MASS, INERTIA, FRONT, REAR, DRAG = 800.0, 900.0, 1.5, 1.3, 0.9  # kg, kg m², m, m, kg/m
GRIP, SHAPE, STIFFNESS, POWER, BRAKES = 1.3, 1.5, 9.0, 1.6e5, 0.6  # μ, C, B, W, share in front
LOADS = MASS * 9.81 / (FRONT + REAR) * np.array([REAR, FRONT])  # N


def problem(intervals: int = 120) -> OptimalControl:
    """Return the flying lap."""
    model = Model("race_car", time_unit="m")
    n = model.state("offset", lower=-4, upper=4, unit="m")
    chi = model.state("heading", lower=-1.0, upper=1.0, scale=0.3, unit="rad")
    vx = model.state("speed", lower=5.0, scale=10.0, guess=15.0, unit="m/s")
    vy = model.state("sideways", lower=-8.0, upper=8.0, unit="m/s")
    r = model.state("yaw", lower=-3.0, upper=3.0, unit="rad/s")
    delta = model.state("steering", lower=-0.5, upper=0.5, scale=0.1, unit="rad")
    lap = model.state("lap", scale=10.0, unit="s", guess=lambda fraction: fraction * WAY[-1] / 15.0)
    rate = model.control("steering rate", lower=-1.5, upper=1.5, unit="rad/s")
    drive = model.control("engine", lower=0.0, upper=8e3, scale=5e3, unit="N")
    brake = model.control("brakes", lower=0.0, upper=1.5e4, scale=5e3, unit="N")
    bend = model.reference("bend", lambda s: np.interp(s, WAY, CURVATURE), unit="1/m")
    shares = (-BRAKES * brake, drive - (1.0 - BRAKES) * brake)
    slips = (delta - ca.atan((vy + FRONT * r) / vx), -ca.atan((vy - REAR * r) / vx))
    used = [share / (GRIP * load) for share, load in zip(shares, LOADS, strict=True)]
    ff, fr = (GRIP * load * ca.sin(SHAPE * ca.atan(STIFFNESS * slip)) * ca.sqrt(1.0 - part**2)
              for load, slip, part in zip(LOADS, slips, used, strict=True))  # fmt: skip
    pace = (vx * ca.cos(chi) - vy * ca.sin(chi)) / (1.0 - n * bend)
    push = sum(shares) - ff * ca.sin(delta) - DRAG * vx**2
    across = vx * ca.sin(chi) + vy * ca.cos(chi)
    side, yaw = fr + ff * ca.cos(delta), FRONT * ff * ca.cos(delta) - REAR * fr
    forces = push / MASS + vy * r, side / MASS - vx * r, yaw / INERTIA
    rates = zip(model.signals["state"], (across, r - bend * pace, *forces, rate, 1), strict=True)
    model.rates({name: in_time / pace for name, in_time in rates})

    ocp = OptimalControl(model, duration=WAY[-1], intervals=intervals, method=Collocation(2))
    ocp.periodic(*(name for name in model.signals["state"] if name != "lap"))
    ocp.initial(lap=0.0)
    ocp.minimize("time", end=lap)
    ocp.minimize("calm", integral=1e-5 * (rate**2 + (drive * brake / 1e7) ** 2))
    ocp.path("grip used", ca.vertcat(*used), lower=-0.95, upper=0.95)
    angles = np.degrees(1) * ca.vertcat(*slips)
    ocp.path("slip angle", angles, lower=-9, upper=9, scale=6, unit="°")
    ocp.path("power", drive * vx, upper=POWER, scale=POWER, unit="W")
    return ocp


def main() -> bool:
    """Solve, check and draw; return True if the answer is accepted."""
    ocp = problem()
    solution = ocp.solve()
    print(solution, end="\n\n")
    report = verify(solution.program.nlp, solution, **solution.program.arguments)
    print(report, end="\n\n")
    print(between := solution.violation())
    fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
    normal = 1j * SLOPE / abs(SLOPE)
    for side in (-4, 4):
        ax.plot((LINE + side * normal).real, (LINE + side * normal).imag, color="0.5", linewidth=1)
    offset, speed = (np.interp(WAY, solution.times, solution[key]) for key in ("offset", "speed"))
    driven = LINE + offset * normal
    speed = ax.scatter(driven.real, driven.imag, 4, 3.6 * speed, cmap="cividis")
    fig.colorbar(speed, label="speed (km/h)")
    ax.set(aspect="equal", xlabel="east (m)", ylabel="north (m)")
    fig.savefig("race_car.png", dpi=150)
    return report.accepted and between.largest < 0.06


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
