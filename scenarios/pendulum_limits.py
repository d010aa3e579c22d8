"""Swing-up of a pendulum whose motor is far too weak to lift it, in the least effort and time.

A mass m at the distance l hangs at θ = 0 and has to stand at θ = π, at rest. The torque
|u| ≤ 1.3 N·m is about a quarter of gravity's m g l, so the pendulum has to swing several times:

    m l² θ'' = u − d θ' − m g l sin θ

Direct multiple shooting, N intervals of constant torque with two Runge–Kutta steps of order four
each. Two programs:

- *least effort*: minimize ∫ (u/u_max)² dt in the fixed time T = 5 s, from a naive start: a straight
  line from the hanging to the standing state, and no torque;
- *least time*: minimize T + 0.001 ∫ (u/u_max)² dt, the length of an interval being an unknown. The
  small second term makes the torque unique where time alone leaves it open. It starts from the
  trajectory of the least effort. From the straight line both the hybrid solver and IPOPT end at
  points where the violation of the dynamics has a local minimum.

A motor of 1.0 N·m in T = 6 s is hard from the naive start; its rows are printed, and required of
nobody.
"""

import sys

import casadi as ca
import numpy as np
from drawing import compare
from reporting import parser
from solving import FATROP, finish_answers, solve_with_all

from casadi_hybrid.control import Free, Model, MultipleShooting, OptimalControl, RungeKutta

NAME = "pendulum_limits"
SUMMARY = "swing-up of a pendulum in several swings by a weak motor, in the least effort and time"

DURATION, TORQUE, LENGTH, WEIGHT = 5.0, 1.3, 0.5, 9.81
"""s, N·m, m, and N of a pendulum of 1 kg."""


def swing_up(name: str, intervals: int, duration, torque: float = TORQUE) -> OptimalControl:
    """Return the swing-up in a fixed time, or in a free one that is the cost then."""
    plant = Model(name)
    angle = plant.state("theta", scale=np.pi, unit="rad")
    rate = plant.state("omega", scale=2 * np.pi, unit="rad/s")
    u = plant.control("u", lower=-torque, upper=torque, unit="N·m")
    plant.rates(theta=rate, omega=(u - 0.02 * rate - WEIGHT * LENGTH * ca.sin(angle)) / LENGTH**2)
    shooting = MultipleShooting(RungeKutta(2))
    ocp = OptimalControl(plant, duration=duration, intervals=intervals, method=shooting)
    ocp.initial(theta=0, omega=0)
    ocp.final(theta=np.pi, omega=0)
    free = isinstance(duration, Free)
    ocp.minimize("effort", integral=(1e-3 if free else 1) * (u / torque) ** 2)
    ocp.minimize("time", end=ocp.duration if free else 0)
    return ocp


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    N = 30 if arguments.short else 60
    efforts = solve_with_all(swing_up("least effort", N, DURATION), FATROP, short=arguments.short)
    guess = efforts[0].solution
    times = solve_with_all(swing_up("least time", N, Free(DURATION, 0.1)), guess=guess)
    hard = [] if arguments.short else solve_with_all(swing_up("weak motor", N, 6.0, 1.0), FATROP)
    fastest, figures = times[0].solution, {}
    for name, answers in {"effort": efforts, "time": times, "weak": hard}.items():
        if answers:
            pair = (answer.solution for answer in answers[:2])
            figures[name] = compare(*pair, ("theta", "u"), targets={"theta": np.pi})
    return finish_answers(
        arguments,
        efforts,
        times,
        others=hard,
        facts={
            "least time (s)": fastest.duration,
            "share of the least time at full torque": np.mean(abs(fastest["u"]) > 0.999 * TORQUE),
            "torque of gravity m g l (N·m)": WEIGHT * LENGTH,
        },
        figures=figures,
    )


if __name__ == "__main__":
    sys.exit(main())
