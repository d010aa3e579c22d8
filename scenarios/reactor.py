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

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from drawing import Panel, compare
from program import Program
from reporting import Check, parser
from solving import SLEQP, SQP, UNO, finish_answers, no_worse_than, solve_with_all
from transcription import Transcription, exact_step

NAME = "reactor"
SUMMARY = "stirred tank reactor taken to an unstable set point below a limit of temperature"


@dataclass(frozen=True)
class Reactor:
    """The plant (minutes, kelvin, litres, moles, joules, grams) and its limits."""

    exchange: float = 1.0
    """q/V, 1/min"""
    feed: float = 1.0
    """c_f, mol/l"""
    feed_temperature: float = 350.0
    frequency: float = 7.2e10
    """k₀, 1/min"""
    activation: float = 8750.0
    """E/R, K"""
    heat: float = 5e4 / (1000.0 * 0.239)
    """H/(ρ c_p), K l/mol"""
    cooling: float = 5e4 / (100.0 * 1000.0 * 0.239)
    """UA/(V ρ c_p), 1/min"""
    hottest: float = 353.0
    jacket: tuple[float, float] = (285.0, 310.0)
    rate: float = 20.0
    """K/min"""

    def speed(self, temperature: Any) -> Any:
        """Return k(T) in 1/min."""
        return self.frequency * ca.exp(-self.activation / temperature)

    def dynamics(self, x: Any, u: Any) -> Any:
        """Return the derivative of the state (c, T, T_c) under the rate u of the jacket."""
        reaction = self.speed(x[1]) * x[0]
        return ca.vertcat(
            self.exchange * (self.feed - x[0]) - reaction,
            self.exchange * (self.feed_temperature - x[1])
            + self.heat * reaction
            + self.cooling * (x[2] - x[1]),
            u[0],
        )

    def steady(self, temperature: float) -> np.ndarray:
        """Return the state (c, T, T_c) that stays at the temperature."""
        k = float(self.speed(temperature))
        c = self.exchange * self.feed / (self.exchange + k)
        gained = self.exchange * (self.feed_temperature - temperature) + self.heat * k * c
        return np.array([c, temperature, temperature - gained / self.cooling])

    def program(self, intervals: int, duration: float) -> Program:
        """Return the change of the set point as a nonlinear program."""
        cold, goal = self.steady(320.0), self.steady(350.0)
        unit = np.array([0.1, 10.0, 10.0])
        bounds = {
            "lower": np.array([0.0, 273.0, self.jacket[0]]),
            "upper": np.array([self.feed, self.hottest, self.jacket[1]]),
            "start": goal,
            "unit": unit,
        }

        def cost(x: Any, u: Any) -> Any:
            return ((x[0] - goal[0]) / 0.1) ** 2 + 0.1 * (u[0] / self.rate) ** 2

        ocp = Transcription(NAME)
        X = ocp.variable("state", 3, intervals + 1, **bounds)
        U = ocp.variable("rate", 1, intervals, lower=-self.rate, upper=self.rate, unit=self.rate)
        initial = ocp.parameter("initial", cold)
        ocp.constrain("initial state", X[:, 0] - initial, unit=unit)
        ocp.collocate("dynamics", self.dynamics, X, U, duration / intervals, cost=cost, **bounds)
        return ocp.build()


def error_of_intervals(plant: Reactor, states: np.ndarray, rates: np.ndarray, dt: float) -> float:
    """Return the largest distance (K, or 0.01 mol/l) from an accurate integration.

    Every interval is integrated from the state found at its beginning: over the whole horizon the
    unstable set point would magnify the error of the first interval by many orders.
    """
    step = exact_step(plant.dynamics, 3, 1, dt, tolerance=1e-12)
    ends = step(states[:, :-1], rates[None, :]).full()
    return float(np.abs((states[:, 1:] - ends) / [[0.01], [1.0], [1.0]]).max())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the answer is a KKT point no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    plant = Reactor()
    duration, intervals = 6.0, 24 if arguments.short else 60
    program = plant.program(intervals, duration)
    answers = solve_with_all(program, () if arguments.short else (SQP, SLEQP, UNO))
    ours, ipopt = answers[:2]
    states, rates = ours.values["state"], ours.values["rate"].ravel()
    error = error_of_intervals(plant, states, rates, duration / intervals)
    goal = plant.steady(350.0)
    panels = (
        Panel("$c$ (mol/l)", "state", 0, target=goal[0]),
        Panel("$T$ (K)", "state", 1, (plant.hottest,), target=goal[1]),
        Panel("$T_c$ (K)", "state", 2, plant.jacket, target=goal[2]),
        Panel("$u$ (K/min)", "rate", 0, (-plant.rate, plant.rate)),
    )
    time = np.linspace(0.0, duration, intervals + 1)
    return finish_answers(
        arguments,
        NAME,
        answers,
        checks=[
            no_worse_than(ours, ipopt),
            Check("distance of the states from an accurate integration (K)", error, 1e-2),
        ],
        facts={
            "highest temperature (K)": float(states[1].max()),
            "concentration at the end (mol/l)": float(states[0, -1]),
            "set point (mol/l)": float(goal[0]),
            "distance to IPOPT's point": float(np.abs(ours.x - ipopt.x).max()),
        },
        figures={"trajectory": compare(time, panels, ours, ipopt, label="time (min)")},
    )


if __name__ == "__main__":
    sys.exit(main())
