"""Swing-up of a pendulum by a motor that is far too weak to lift it, in the least effort or time.

A mass of 1 kg at the distance l hangs at θ = 0 and has to stand at θ = π, at rest. The torque
|u| ≤ 1.3 N·m is about a quarter of gravity's m g l, so the pendulum has to swing several times:

    m l² θ'' = u − d θ' − m g l sin θ

The method is multiple shooting: 60 intervals of constant torque, two Runge–Kutta steps of order
four each. Two problems are solved:

- *least effort*: minimize ∫ (u/u_max)² dt in the fixed time of 5 s. The guess is a straight line
  from the hanging to the standing state, without torque.
- *least time*: minimize T + 0.001 ∫ (u/u_max)² dt, where the duration T is an unknown. The small
  second term makes the torque unique where time alone leaves it open. The guess is the trajectory
  of the least effort: from the straight line this solver and IPOPT end at an infeasible point.
"""

import sys

import casadi as ca
import numpy as np

from casadi_hybrid.control import Free, Model, MultipleShooting, OptimalControl, RungeKutta
from casadi_hybrid.verify import verify

TORQUE, LENGTH, WEIGHT = 1.3, 0.5, 9.81  # N·m, m, N


def problem(duration: float | Free = 5.0, intervals: int = 60) -> OptimalControl:
    """Return the swing-up with the least effort in a fixed duration, or with a least free one."""
    free = isinstance(duration, Free)
    plant = Model("least time" if free else "least effort")
    angle = plant.state("theta", scale=np.pi, unit="rad")
    rate = plant.state("omega", scale=2 * np.pi, unit="rad/s")
    u = plant.control("u", lower=-TORQUE, upper=TORQUE, unit="N·m")
    plant.rates(theta=rate, omega=(u - 0.02 * rate - WEIGHT * LENGTH * ca.sin(angle)) / LENGTH**2)
    shooting = MultipleShooting(RungeKutta(2))
    ocp = OptimalControl(plant, duration=duration, intervals=intervals, method=shooting)
    ocp.initial(theta=0, omega=0)
    ocp.final(theta=np.pi, omega=0)
    ocp.minimize("effort", integral=(1e-3 if free else 1) * (u / TORQUE) ** 2)
    ocp.minimize("time", end=ocp.duration if free else 0)
    return ocp


def main() -> bool:
    """Solve, check and draw both; return True if both answers are accepted."""
    accepted, solution = True, None
    for duration, path in ((5.0, "pendulum.png"), (Free(5.0, 0.1), "pendulum_time.png")):
        ocp = problem(duration)
        solution = ocp.solve(guess=solution)  # None: the straight line
        print(solution, end="\n\n")
        report = verify(ocp, solution)  # residuals recomputed, and IPOPT started at the answer
        print(report, end="\n\n")
        solution.plot(["theta", "u"], path=path)
        accepted = accepted and report.accepted
    at_limit = np.mean(abs(solution["u"]) > 0.999 * TORQUE)
    print(f"least time {solution.duration:.4f} s, {at_limit:.0%} of it at full torque")
    return accepted


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
