"""A stirred tank reactor taken from a cold steady state to an unstable one, without overheating.

An exothermic reaction A → B of first order in a tank with the feed q (concentration c_f, at T_f)
and a cooling jacket at T_c. Concentration c and temperature T obey

    c'  = q/V (c_f − c) − k(T) c,                                k(T) = k₀ exp(−E/(R T))
    T'  = q/V (T_f − T) + H/(ρ c_p) k(T) c + UA/(V ρ c_p) (T_c − T)
    T_c' = u

in minutes, kelvin and moles a litre. At T = 320 K less than a tenth of the feed reacts. The set
point T = 350 K converts half of it and is unstable: with a constant jacket the reactor, one kelvin
below, cools down, and one kelvin above it flashes to 424 K first. The temperature must stay below
353 K, that of the jacket within 285 … 310 K, and it changes by at most 20 K a minute.

    min ∫ ((c − c*)/0.1)² + 0.1 (u/20)² dt,  0 ≤ t ≤ 6 min

Radau collocation of degree 3 on N intervals of constant rate u; the limits hold at every
collocation point. The start is naive: the set point at all times, and no change of the jacket.

Data: D. E. Seborg, T. F. Edgar, D. A. Mellichamp, "Process Dynamics and Control", Wiley.
"""

import sys
from typing import Any

import casadi as ca
from drawing import compare
from reporting import Check, parser
from solving import SLEQP, SQP, UNO, finish_answers, solve_with_all

from casadi_hybrid.control import Collocation, Model, OptimalControl, steady

NAME = "reactor"
SUMMARY = "stirred tank reactor taken to an unstable set point below a limit of temperature"

EXCHANGE, FEED, FEED_TEMPERATURE, HEAT, COOLING = 1.0, 1.0, 350.0, 5e4 / 239.0, 5e4 / 23900.0
"""q/V (1/min), c_f (mol/l), T_f (K), H/(ρ c_p) (K l/mol), UA/(V ρ c_p) (1/min)."""
HOTTEST, COLDEST, RATE = 353.0, 285.0, 20.0
"""Of the tank and of the jacket in K, K/min."""


def stirred_tank(jacket: float = 310.0, coldest: float = 273.0) -> Model:
    """Return the plant, with the highest temperature of its jacket and the lowest of the tank."""
    tank = Model(NAME, time_unit="min")
    c = tank.state("c", lower=0, upper=FEED, scale=0.1, unit="mol/l")
    T = tank.state("T", lower=coldest, upper=HOTTEST, scale=10, unit="K")
    cooling = tank.state("Tc", lower=COLDEST, upper=jacket, scale=10, unit="K")
    u = tank.control("u", lower=-RATE, upper=RATE, scale=RATE, unit="K/min")
    heat, frequency = tank.parameter("heat", 1.0), tank.parameter("frequency", 1.0)
    reaction = frequency * (7.2e10 * ca.exp(-8750.0 / T)) * c
    exchanged = EXCHANGE * (FEED_TEMPERATURE - T) + COOLING * (cooling - T)
    tank.rates(c=EXCHANGE * (FEED - c) - reaction, T=exchanged + heat * HEAT * reaction, Tc=u)
    return tank


def price(tank: Model) -> Any:
    """Return what a minute costs."""
    away = (tank.symbol("c") - steady(tank, T=350, u=0)["c"]) / 0.1
    return away**2 + 0.1 * (tank.symbol("u") / RATE) ** 2


def change(intervals: int) -> OptimalControl:
    tank = stirred_tank()
    ocp = OptimalControl(tank, duration=6.0, intervals=intervals, method=Collocation(3))
    ocp.initial(**steady(tank, T=320, u=0).states)
    ocp.guess(**steady(tank, T=350, u=0).states)
    ocp.minimize("cost", integral=price(tank))
    return ocp


def main(argv: list[str] | None = None) -> int:
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    ocp = change(24 if arguments.short else 60)
    answers = solve_with_all(ocp, SQP, SLEQP, UNO, short=arguments.short)
    ours, ipopt = (answer.solution for answer in answers[:2])
    # Every interval from the state found at its beginning: over the whole horizon the unstable set
    # point would magnify the error of the first interval by many orders.
    goal, error = steady(ocp.model, T=350, u=0), ours.error(integrator="cvodes")["T"].max()
    targets = {"c": goal["c"], "T": goal["T"]}
    return finish_answers(
        arguments,
        answers,
        checks=[Check("distance of the temperature from an accurate integration (K)", error, 1e-2)],
        facts={
            "highest temperature (K)": float(ours["T"].max()),
            "concentration at the end (mol/l)": float(ours["c"][-1]),
            "set point (mol/l)": goal["c"],
        },
        figures={"trajectory": compare(ours, ipopt, ("c", "T", "Tc", "u"), targets=targets)},
    )


if __name__ == "__main__":
    sys.exit(main())
