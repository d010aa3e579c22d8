"""Predictive control of a cart-pole: swing-up and a push, with a wrong model and noisy sensors.

A pole (mass m, length l) on a cart (mass M) that a force |u| ≤ 10 N drives along a rail:

    (M + m) q'' + m l θ'' cos θ − m l θ'² sin θ = u − d q',    l θ'' + q'' cos θ + g sin θ = 0

The true cart is 20 % and the true pole 10 % heavier than the controller believes, the pole is 5 %
longer, and the rail has a friction of 0.3 N·s/m. Sensors err by 2 mm, 2 mrad, 1 cm/s and 10 mrad/s
(standard deviations). The pole hangs at first; at 4.5 s, when it stands, a push changes the speed
of the cart by 0.8 m/s. Every 50 ms the controller looks 1.5 s ahead, 30 intervals of constant force
with one Runge–Kutta step each:

    minimize    Σ_k dt·ℓ(x_k, u_k) + ℓ(x_N, 0) + 10 Σ_k (s_k + s_k²)
                ℓ = 10 (1 + cos θ) + 10 q² + 0.1 q'² + 0.1 θ'² + 0.01 u²
    subject to  x_0 = measured state,  x_{k+1} = F(x_k, u_k),  |u_k| ≤ 10 N,
                |q_k| ≤ 0.5 m + s_k · 0.1 m,  s_k ≥ 0

The limits of the track are soft: noise and a wrong model may carry the cart beyond them, where hard
limits leave no feasible trajectory.
"""

import sys

import casadi as ca
import numpy as np

from casadi_hybrid.control import MPC, Model, OptimalControl, Plant, Soft, simulate
from casadi_hybrid.verify import verify

DT = 0.05  # s
HANGING = {"q": 0, "theta": 0, "v": 0, "omega": 0}


def cart_pole(M: float = 1.0, m: float = 0.3, length: float = 0.5, friction: float = 0.0) -> Model:
    """Return the plant in SI units."""
    plant = Model("cartpole")
    plant.state("q", unit="m")
    angle = plant.state("theta", scale=np.pi, unit="rad")
    v = plant.state("v", scale=2.0, unit="m/s")
    rate = plant.state("omega", scale=2 * np.pi, unit="rad/s")
    u = plant.control("u", lower=-10, upper=10, scale=10.0, unit="N")
    sin, cos = ca.sin(angle), ca.cos(angle)
    force = u - friction * v + m * sin * (length * rate**2 + 9.81 * cos)
    acceleration = force / (M + m * sin**2)
    swing = -(acceleration * cos + 9.81 * sin) / length
    plant.rates(q=v, theta=rate, v=acceleration, omega=swing)
    return plant


def stage_cost(plant: Model, u: ca.SX | float) -> ca.SX:
    """Return ℓ(x, u)."""
    q, angle, v, rate = (plant.symbol(name) for name in HANGING)
    return 10 * (1 + ca.cos(angle)) + 10 * q**2 + 0.1 * (v**2 + rate**2) + 0.01 * u**2


def problem(intervals: int = 30) -> OptimalControl:
    """Return the problem that the controller solves at every step."""
    model = cart_pole()
    ocp = OptimalControl(model, duration=intervals * DT, intervals=intervals, name="mpc_cartpole")
    ocp.initial(**HANGING)
    ocp.guess(**HANGING)
    ocp.path("track", model.symbol("q"), lower=-0.5, upper=0.5, soft=Soft(100, 1000), scale=0.1)
    ocp.minimize("cost", sum=DT * stage_cost(model, model.symbol("u")), end=stage_cost(model, 0))
    return ocp


def main() -> bool:
    """Simulate, check and draw; return True if all steps are solved and accepted."""
    ocp, true = problem(), cart_pole(M=1.2, m=0.33, length=0.525, friction=0.3)
    run = simulate(
        Plant(true, DT),
        MPC(ocp),
        steps=120,
        x0=HANGING,
        noise=[0.002, 0.002, 0.01, 0.01],
        push={90: {"v": 0.8}},
        cost=DT * stage_cost(true, true.symbol("u")),
    )
    print(run, end="\n\n")
    # Residuals of every fifth prediction, recomputed; IPOPT judges the one after the push.
    worst = max(verify(ocp, step.plan, ipopt=False).stationarity.value for step in run.steps[::5])
    print(f"largest stationarity residual: {worst:.1e}")
    report = verify(ocp, run.steps[90].plan)
    print(report)
    run.plot(["q", "theta", "u"], path="mpc_cartpole.png")
    return run.failed == 0 and worst < 1e-6 and report.accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
