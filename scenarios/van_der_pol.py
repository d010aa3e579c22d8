"""A van der Pol oscillator brought to rest with a bounded input and a bound on its speed.

The oscillator with the velocity v and the position y runs into a limit cycle when it is left
alone. The input |u| ≤ 1 shall bring it to rest, with v ≥ −0.25 at all times; without this bound
the least effort would take v to −0.51. All quantities are dimensionless.

    v' = (1 − y²) v − y + u,   y' = v,   v(0) = 0, y(0) = 1,   min ∫ v² + y² + u² dt, 0 ≤ t ≤ 10

Radau collocation of degree 3 on N intervals of constant input; the bound holds at every
collocation point. The start is naive: all unknowns zero.

The problem is the example of direct collocation that comes with CasADi (J. Andersson et al.,
"CasADi: a software framework for nonlinear optimization and optimal control", 2019).
"""

import sys

from drawing import compare
from reporting import Check, parser
from solving import SLEQP, SQP, UNO, finish_answers, solve_with_all

from casadi_hybrid.control import Collocation, Model, OptimalControl

NAME = "van_der_pol"
SUMMARY = "van der Pol oscillator brought to rest, bounded speed and input, by collocation"

DURATION, SLOWEST, START = 10.0, -0.25, (0.0, 1.0)


def oscillator(intervals: int) -> OptimalControl:
    plant = Model(NAME, time_unit="")
    v, y = plant.state("v", lower=SLOWEST), plant.state("y")
    u = plant.control("u", lower=-1, upper=1)
    plant.rates(v=(1 - y**2) * v - y + u, y=v)
    ocp = OptimalControl(plant, duration=DURATION, intervals=intervals, method=Collocation(3))
    ocp.initial(v=START[0], y=START[1])
    ocp.guess(v=0, y=0)
    ocp.minimize("cost", integral=v**2 + y**2 + u**2)
    return ocp


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    ocp = oscillator(24 if arguments.short else 60)
    answers = solve_with_all(ocp, SQP, SLEQP, UNO, short=arguments.short)
    ours, ipopt = (answer.solution for answer in answers[:2])
    error = ours.error(whole=True).largest
    return finish_answers(
        arguments,
        answers,
        checks=[Check("distance of the states from an accurate integration", error, 1e-3)],
        figures={"trajectory": compare(ours, ipopt, ("v", "y", "u"))},
    )


if __name__ == "__main__":
    sys.exit(main())
