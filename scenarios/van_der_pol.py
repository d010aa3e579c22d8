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

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from drawing import LIMIT, Panel, compare
from matplotlib.figure import Figure
from program import Program
from reporting import Check, parser
from solving import SLEQP, SQP, UNO, Answer, finish_answers, no_worse_than, solve_with_all
from transcription import Transcription, exact_step

from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "van_der_pol"
SUMMARY = "van der Pol oscillator brought to rest, bounded speed and input, by collocation"

DURATION = 10.0
START = np.array([0.0, 1.0])
SLOWEST = -0.25
INPUT = 1.0


def dynamics(x: Any, u: Any) -> Any:
    """Return the derivative of the state (v, y) under the input u."""
    return ca.vertcat((1 - x[1] ** 2) * x[0] - x[1] + u[0], x[0])


def oscillator(intervals: int) -> Program:
    """Return the optimal control problem as a nonlinear program."""
    lower = np.array([SLOWEST, -np.inf])
    ocp = Transcription(NAME)
    X = ocp.variable("state", 2, intervals + 1, lower=lower)
    U = ocp.variable("input", 1, intervals, lower=-INPUT, upper=INPUT)
    initial = ocp.parameter("initial", START)
    ocp.constrain("initial state", X[:, 0] - initial)
    ocp.collocate(
        "dynamics",
        dynamics,
        X,
        U,
        DURATION / intervals,
        cost=lambda x, u: ca.sumsqr(x) + ca.sumsqr(u),
        lower=lower,
    )
    return ocp.build()


def simulated(inputs: np.ndarray) -> np.ndarray:
    """Return the states at the ends of the intervals, by an integrator of variable order."""
    step = exact_step(dynamics, 2, 1, DURATION / inputs.size, tolerance=1e-12)
    states = [START]
    for u in inputs:
        states.append(step(states[-1], u).full().ravel())
    return np.array(states).T


def draw_plane(ours: Answer) -> Figure:
    """Plot the way to rest beside the way that the oscillator goes by itself."""
    fig, axes = figure(1, 1, height=3.4, width=4.4)
    ax = axes[0, 0]
    free = simulated(np.zeros(200))
    ax.plot(free[1], free[0], color=PALETTE[6], linestyle="-.", label="no input")
    v, y = ours.values["state"]
    ax.plot(y, v, color=PALETTE[0], linewidth=2.2, label="hybrid")
    ax.axhline(SLOWEST, label="limit", **LIMIT)
    ax.plot(*START[::-1], "s", color="#000000", markersize=6, label="start")
    ax.set(xlabel="position $y$", ylabel="speed $v$", aspect="equal")
    legend_below(fig, ax, columns=4)
    return fig


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the answer is a KKT point no worse than IPOPT's, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    intervals = 24 if arguments.short else 60
    program = oscillator(intervals)
    answers = solve_with_all(program, () if arguments.short else (SQP, SLEQP, UNO))
    ours, ipopt = answers[:2]
    states, inputs = ours.values["state"], ours.values["input"]
    points = ours.values["dynamics points"]
    error = float(np.abs(simulated(inputs.ravel()) - states).max())
    panels = (
        Panel("speed $v$", "state", 0, (SLOWEST,)),
        Panel("position $y$", "state", 1),
        Panel("input $u$", "input", 0, (-INPUT, INPUT)),
    )
    time = np.linspace(0.0, DURATION, intervals + 1)
    return finish_answers(
        arguments,
        NAME,
        answers,
        checks=[
            no_worse_than(ours, ipopt),
            Check("distance of the states from an accurate integration", error, 1e-3),
        ],
        facts={
            "smallest speed": float(min(states[0].min(), points[0].min())),
            "distance to IPOPT's point": float(np.abs(ours.x - ipopt.x).max()),
        },
        figures={
            "trajectory": compare(time, panels, ours, ipopt, label="time"),
            "plane": draw_plane(ours),
        },
    )


if __name__ == "__main__":
    sys.exit(main())
