"""Robust predictive control of a stirred tank reactor whose reaction nobody knows exactly.

The plant of :mod:`reactor`: an exothermic reaction A → B in a cooled tank, with concentration c,
temperature T and the temperature T_c of the jacket, in minutes, kelvin and moles a litre,

    c'  = q/V (c_f − c) − k(T) c,                                k(T) = κ k₀ exp(−E/(R T))
    T'  = q/V (T_f − T) + η H/(ρ c_p) k(T) c + UA/(V ρ c_p) (T_c − T)
    T_c' = u,   |u| ≤ 20 K/min,   285 K ≤ T_c ≤ 320 K

The heat of reaction and the frequency factor are known to 5 %: η and κ lie in 0.95 … 1.05. From a
cold steady state at 320 K the reactor is to convert half of its feed, near an unstable steady state
at 350 K, and must stay below 353 K on the way. Every 0.1 min a controller looks 2 min ahead:

    min ∫ ((c − c*)/0.1)² + 0.1 (u/20)² dt + 30 Σ_k s_k,   T_k ≤ 353 K + s_k,  s_k ≥ 0

The nominal controller believes in η = κ = 1. The robust one has that scenario and the four corners
side by side, and one first control for all of them: whatever the reaction turns out to be, the
limit can still be held afterwards. Both meet the same plants: the five scenarios, and reactions
drawn from the whole range, which are in no scenario. The price of the limit is a linear one, high
enough that a plan exceeds it only where it must.

The nominal controller heats as long as its own reaction could just be caught. Where the true one is
stronger, the reactor flashes. The plans would have to run through the flash, and at many of these
instants the solver finds none within 60 iterations; the last plan goes on, which cools. The table
counts these as what they are, no KKT points; how many they are hangs on the last bit, for the
flash makes 1e-13 in a start another end of the solve. Nothing is lost by them: the fastest cooling
from the first of them on does not hold the limit either, which is computed.

The horizons are transcribed by multiple shooting, two Runge–Kutta steps an interval; the plants
are integrated by CVODES.
"""

import sys
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from closed_loop import Solves
from drawing import LIMIT
from matplotlib.figure import Figure
from reactor import COLDEST, HOTTEST, RATE, price, stirred_tank
from reporting import TOL, Check, Column, parser, progress, table
from solving import STRICT, finish_answers, solve

from casadi_hybrid.control import (
    MPC,
    MultipleShooting,
    OptimalControl,
    Plant,
    Run,
    RungeKutta,
    Scenarios,
    Soft,
    simulate,
    steady,
)
from casadi_hybrid.control.mpc.problem import Problem
from casadi_hybrid.utils.output.plotting import PALETTE, figure, legend_below

NAME = "robust_reactor"
SUMMARY = "robust predictive control: a reactor kept below its limit whatever the reaction is like"

PERIOD = 0.1
"""Of the controller in min."""
UNSURE = 0.05
"""By which part of themselves the heat of reaction and the frequency factor may differ."""
PRICE, ITERATIONS = 30.0, 60
"""Of a kelvin above the limit at one instant; most iterations of a step."""
NEAR = 1e-3
"""By how many kelvins a temperature may be above the limit and count as at it."""


def nominal(intervals: int = 20) -> OptimalControl:
    tank = stirred_tank(jacket=320, coldest=-np.inf)
    # Of every solve, also where the last one came to no plan and MPC(iterations=) has no limit:
    # once the reaction has run away there is none, and a solve would take two thousand.
    ocp = OptimalControl(tank, duration=PERIOD * intervals, intervals=intervals,
                         method=MultipleShooting(RungeKutta(2)),
                         solver={"max_iter": ITERATIONS})  # fmt: skip
    ocp.initial(**steady(tank, T=320, u=0).states)
    ocp.minimize("cost", integral=price(tank))
    ocp.soften("T", Soft(linear=PRICE))
    return ocp


def corners() -> dict[str, dict[str, float]]:
    """Return the scenarios: the nominal one and the ends of both ranges."""
    ends = product((1.0 - UNSURE, 1.0 + UNSURE), repeat=2)
    return {"nominal": {}} | {
        f"heat {heat:g}, frequency {frequency:g}": {"heat": heat, "frequency": frequency}
        for heat, frequency in ends
    }


def reactions(drawn: int) -> list[dict[str, float]]:
    """Return the true reactions: those of the scenarios, and some from between, by seed."""
    between = np.random.default_rng(0).uniform(1.0 - UNSURE, 1.0 + UNSURE, (drawn, 2))
    return [*corners().values(), *({"heat": h, "frequency": f} for h, f in between.tolist())]


def row(label: str, courses: Sequence[Solves]) -> dict[str, Any]:
    together = Solves(label, [plan for course in courses for plan in course.plans],
                      [record for course in courses for record in course.records])  # fmt: skip
    costs = [course.run.cost for course in courses]
    temperatures = np.array([course.run["T"] for course in courses])
    hot = temperatures > HOTTEST + NEAR
    return together.row() | {
        "worst_residual": together.residuals[together.residuals <= TOL].max(),
        "cost": np.mean(costs),
        "worst_cost": max(costs),
        "hottest": temperatures.max(),
        "plants": f"{hot.any(axis=1).sum()}/{len(courses)}",
        "violations": hot.sum(),
    }


LOOP_COLUMNS: tuple[Column, ...] = (
    ("method", "controller", str),
    ("solved", "KKT points", str),
    ("worst_residual", "their worst resid.", "{:.1e}".format),
    ("cost", "cost mean", "{:.4f}".format),
    ("worst_cost", "worst", "{:.4f}".format),
    ("hottest", "hottest (K)", "{:.3f}".format),
    ("plants", "plants too hot", str),
    ("violations", "instants", str),
    ("mean_iterations", "iter mean", "{:.1f}".format),
    ("worst_iterations", "worst", str),
    ("median_ms", "median (ms)", "{:.2f}".format),
    ("worst_ms", "worst", "{:.2f}".format),
)


def controlled(label: str, problem: Problem, plants: Sequence[Mapping[str, float]],
               steps: int) -> list[Solves]:  # fmt: skip
    # The limit is soft already; the other limits are the jacket's and hold by themselves.
    mpc, model, courses = MPC(problem, soften=None), problem.model, []
    x0 = steady(model, T=320, u=0).states
    for reaction in plants:
        progress(f"{NAME}: {label} controller, {steps} steps ({reaction or 'as believed'}) ...")
        plant = Plant(model, PERIOD, parameters=reaction)
        run = simulate(plant, mpc, steps=steps, x0=x0, cost=PERIOD * price(model))
        courses.append(Solves.of(label, run))
    return courses


def fully_cooled(run: Run, reaction: Mapping[str, float]) -> float:
    """Return the largest temperature in K with full cooling from the first unsolved step on.

    It is infinite where there is no such step.
    """
    unsolved = [k for k, status in enumerate(run.status) if status != "solved"]
    if not unsolved:
        return np.inf
    cooled = simulate(Plant(nominal().model, PERIOD, parameters=reaction),
                      lambda time, x: max(-RATE, (COLDEST - x[2]) / PERIOD), steps=20,
                      x0=run.states[:, unsolved[0]])  # fmt: skip
    return float(cooled["T"].max())


def draw(loops: Mapping[str, Sequence[Solves]]) -> Figure:
    """Plot temperatures of tank and jacket of all plants over time, a column a controller."""
    fig, axes = figure(2, len(loops), height=2.2, sharex=True, sharey="row")
    for (tank, jacket), (name, courses) in zip(axes.T, loops.items(), strict=True):
        for run in (one.run for one in courses):
            hot = bool(run["T"].max() > HOTTEST + NEAR)
            style = {"color": PALETTE[3 if hot else 0], "ls": "-." if hot else "-", "lw": 1.0}
            label = "plant that exceeds the limit" if hot else "plant that keeps the limit"
            tank.plot(run.times, run["T"], **style, label=label)
            tank.fill_between(run.times, HOTTEST, np.maximum(run["T"], HOTTEST),
                              color=PALETTE[3], alpha=0.4, linewidth=0)  # fmt: skip
            jacket.plot(run.times, run["Tc"], **style)
        tank.axhline(HOTTEST, **LIMIT, label="limit")
        hottest = max(course.run["T"].max() for course in courses)
        tank.set_title(f"{name} controller, up to {hottest:.0f} K", fontsize=10)
        jacket.set_xlabel("time (min)")
    axes[0, 0].set(ylabel="temperature $T$ (K)", ylim=(318.0, 362.0))
    axes[1, 0].set_ylabel("coolant $T_c$ (K)")
    legend_below(fig, axes[0, 0])
    return fig


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when robust plans are KKT points and keep the limit that others miss."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    short = arguments.short
    steps, plants = (16, reactions(0)[::4]) if short else (40, reactions(4))
    robust = Scenarios(nominal(), corners(), name=NAME)
    answers = [solve(robust), solve(robust, STRICT)]
    loops = {label: controlled(label, problem, plants, steps)
             for label, problem in (("nominal", nominal()), ("robust", robust))}  # fmt: skip
    rows = [row(*loop) for loop in loops.items()]
    unaware, aware = (row["hottest"] for row in rows)
    cooled = [fully_cooled(course.run, plant)
              for course, plant in zip(loops["nominal"], plants, strict=True)]  # fmt: skip
    return finish_answers(
        arguments,
        answers,
        checks=[
            Check("largest KKT residual of a plan of the robust controller",
                  max(float(course.residuals.max()) for course in loops["robust"]), TOL),
            Check("hottest plant under the robust controller, above the limit (K)",
                  aware - HOTTEST, NEAR),
            Check("hottest plant under the nominal controller, below the limit (K)",
                  HOTTEST - unaware, -1.0),
            Check("nominal: limit above what full cooling from the first instant without a "
                  "solution leads to (K)", HOTTEST - min(cooled), 0.0),
        ],
        facts={"loops": rows},
        tables={f"Closed loops of {len(plants)} plants": table(rows, LOOP_COLUMNS)},
        figures={"temperatures": draw(loops)},
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
