"""Two plants whose constraints are measured, not computed, held by the hybrid law with noise.

**A feeder**, linear: six inverters with the reactive powers u (Mvar) hold the voltages of three
buses, h(u) = v₀ + B u − 100 % (% of nominal), at the least ½ Σ cᵢuᵢ². The loads, and with them v₀,
are not known to the controller, and two of the three voltmeters are noisy.

**Four tanks**, mildly nonlinear: two pumps (V) and two valves (shares of 10 %) hold the levels of
the two lower tanks, h_i(u) = (q_i(u)/a_i)²/(2g) − level (cm). The outlets' areas and the pumps'
gains are not those that the controller's B was computed with, an unknown stream runs into tank 1,
and the gauge of tank 1 is noisy.

Once the plant has settled the controller measures ĥ_t = h(u_t) + ε_t and steps the law. `design`
gives M, its split and both steps for the least variance of the inputs at the rate ρ. Three splits
of that M: all in the augmented channel, all in the memory, and the designed one, C_opt P_n = 0.
Beside them are integral feedback, the same with a filter, and projected gradient feedback, each
with its best gains at the same rate. Lyapunov's equation of the closed loop predicts every
variance, and a simulation measures it.

What comes out. Without noise the three splits are one trajectory, as the paper's theorem says;
with it their variances differ by a factor of two. All memory is integral feedback, to the last
digits, and augmentation has the variance of integral feedback with the best filter: the model in
the augmented channel is that filter. The price of not listening is paid when the disturbance moves,
which the memory sees at once. Hence the designed split, which is deaf to the noisy sensors alone.
Where the disturbance drifts fast against the noise, listening to all is better: it says so.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from common import AUTO, Method, apart, solve, solve_with_peer
from feedback_baselines import integral, tuned_gradient
from reporting import Check, finish, no_worse_than, parser, table
from solving import IPOPT

from casadi_hybrid import Problem
from casadi_hybrid.control.feedback import FeedbackLaw, HybridFeedback, design, measure, predict
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.utils.output.plotting import DASHES, PALETTE, plot_curves

NAME = "feedback_controller"
SUMMARY = "the law as a controller of two plants with noisy sensors: three splits, three rivals"

RATE = 0.9
"""ρ: an error shrinks to a tenth in 22 steps."""
SPLITS = {"all augmentation": "augmentation", "all memory": "memory", "designed split": "designed"}
LOOK: dict[str, dict[str, Any]] = {
    "all memory": {"color": PALETTE[1], "linestyle": "-", "linewidth": 1.0, "marker": ""},
    "all augmentation": {"color": PALETTE[0], "linestyle": "-", "linewidth": 2.6, "marker": ""},
    "designed split": {"color": PALETTE[7], "linestyle": DASHES[3], "linewidth": 1.6, "marker": ""},
}
"""Of the splits; two lie on each other, so one is wide and the other is dotted."""


@dataclass(frozen=True)
class Plant:
    """A plant as it is, and what its controller knows of it.

    Attributes:
        name: for tables and figures.
        outputs: what h is, with its unit.
        u, truth: symbols of the inputs, n, and the true constraints h(u), m.
        B: the sensitivity that the controller was given, m×n.
        cost, preferred: H and u_r of the objective ½(u − u_r)ᵀH(u − u_r).
        noise: variances of the sensors, m.
        start: the inputs at the start.
        shown: the noisy constraint, which tables and figures show.
    """

    name: str
    outputs: str
    u: ca.SX
    truth: ca.SX
    B: np.ndarray
    cost: np.ndarray
    preferred: np.ndarray
    noise: np.ndarray
    start: np.ndarray
    shown: int

    def h(self, u: np.ndarray) -> np.ndarray:
        """The true constraints, n×k to m×k: one column a run."""
        return self.problem.functions.residual(u, []).full()

    def sensitivity(self, u: np.ndarray) -> np.ndarray:
        """The true ∂h/∂u at u, m×n, which the controller does not know."""
        return Oracle(self.problem.functions, []).first(u).B

    @cached_property
    def problem(self) -> Problem:
        """The cheapest inputs by the true constraints: what the controller should find."""
        away = self.u - self.preferred
        f = 0.5 * ca.bilin(ca.DM(self.cost), away, away)
        return Problem(x=self.u, f=f, h=self.truth, name=self.name)


def feeder() -> Plant:
    """Six inverters hold three voltages of a 12.66 kV feeder with eight buses in a row.

    The linear power flow: a reactive power at bus j raises the voltage of bus i by the reactance
    that the paths to both share, over the voltage. The loads' reactive powers are an unknown
    disturbance at the inputs of the plant.
    """
    reactance = np.array([0.45, 0.38, 0.50, 0.42, 0.55, 0.47, 0.52, 0.60])  # Ω, section by section
    inverters, pilots = np.array([2, 3, 4, 6, 7, 8]), np.array([3, 5, 8])
    along = np.cumsum(reactance)
    shared = along[np.minimum.outer(np.arange(8), np.arange(8))] * 100 / 12.66**2  # % per Mvar
    loads = np.array([0.10, 0.25, 0.15, 0.30, 0.20, 0.35, 0.25, 0.40])  # Mvar
    B, u = shared[np.ix_(pilots - 1, inverters - 1)], ca.SX.sym("u", 6)
    return Plant(
        "feeder",
        outputs="voltage error (% of nominal)",
        u=u,
        truth=B @ u - shared[pilots - 1] @ loads,
        B=B,
        cost=np.diag([1.0, 1.4, 0.9, 1.2, 1.1, 1.6]),  # 1/Mvar²
        preferred=np.zeros(6),
        noise=np.array([0.2, 0.0, 0.2]) ** 2,  # %²; bus 5 has a good voltmeter
        start=np.zeros(6),
        shown=2,
    )


def tanks() -> Plant:
    """Two pumps and two valves hold the lower levels of four tanks in the steady state.

    Pump 1 fills tank 1 and, past a valve with the share γ₁, tank 4 above tank 2; pump 2 fills tank
    2 and tank 3 above tank 1. u = (pump voltages in V, γ₁ and γ₂ in shares of 10 %).
    """
    u, nominal = ca.SX.sym("u", 4), np.array([3.0, 3.0, 7.0, 6.0])
    areas, gains = np.array([0.071, 0.057]), np.array([3.33, 3.35])  # cm², cm³/(V s)

    def height(areas: np.ndarray, gains: np.ndarray, leak: float) -> ca.SX:
        one, two = gains[0] * u[0], gains[1] * u[1]  # cm³/s
        first = 0.1 * u[2] * one + (1 - 0.1 * u[3]) * two + leak
        second = 0.1 * u[3] * two + (1 - 0.1 * u[2]) * one
        return (ca.vertcat(first, second) / areas) ** 2 / (2 * 981.0) - np.array([12.4, 12.7])  # cm

    known = ca.Function("B", [u], [ca.jacobian(height(areas, gains, 0.0), u)])
    return Plant(
        "tanks",
        outputs="level error (cm)",
        u=u,
        truth=height(areas * [1.05, 0.96], gains * [0.95, 1.04], 0.6),
        B=known(nominal).full(),
        cost=np.diag([1.0, 1.2, 0.3, 0.3]),
        preferred=np.array([2.5, 2.5, 7.0, 6.0]),
        noise=np.array([0.3, 0.0]) ** 2,  # cm²; the jet of tank 3 falls on the gauge of tank 1
        start=nominal,
        shown=0,
    )


def laws(plant: Plant) -> dict[str, FeedbackLaw]:
    """Return the law with its three splits, and the usual laws tuned by the same criterion."""
    model = plant.B, plant.cost
    made = design(*model, plant.noise, RATE)
    return {
        **{label: HybridFeedback(made.with_split(split), plant.preferred)
           for label, split in SPLITS.items()},
        "integral": integral(*model, RATE),
        "integral, filtered": integral(*model, RATE, filtered=True),
        "projected gradient": tuned_gradient(*model, plant.noise, RATE, plant.preferred),
    }  # fmt: skip


COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("method", "law", str),
    ("actual", "rate with the plant", "{:.4f}".format),
    ("designed", "std h: by the model", "{:.5f}".format),
    ("predicted", "predicted", "{:.5f}".format),
    ("measured", "measured", "{:.5f}".format),
    ("spread", "std of all u", "{:.5f}".format),
    ("error", "variances off by", "{:.2%}".format),
)


class Study:
    """One plant with all laws: quiet and noisy runs, and a row of the table for each.

    A row has what was predicted, by the model and with the plant's own sensitivity, and what was
    measured. h is the noisy constraint; the error is the worse of that variance and of the inputs'.
    """

    def __init__(self, plant: Plant, steps: int) -> None:
        self.plant, self.rows, self.clean, self.noisy, i = plant, [], {}, {}, plant.shown
        for label, law in laws(plant).items():
            alone = measure(law, plant.h, plant.start, 0 * plant.noise, steps=501, runs=1)
            self.clean[label] = alone.first
            rest = self.clean[label][-1]
            seen = measure(law, plant.h, rest, plant.noise, steps=steps, runs=300)
            self.noisy[label] = seen.first[200:400]  # the first measurement is forgotten
            model = predict(law, plant.noise)
            true = predict(law, plant.noise, plant.sensitivity(rest))
            found = np.array([np.trace(seen.inputs), seen.errors[i, i]])
            foreseen = np.array([np.trace(true.inputs), true.errors[i, i]])
            self.rows.append({
                "method": label,
                "actual": true.rate,
                "designed": np.sqrt(model.errors[i, i]),
                "predicted": np.sqrt(foreseen[1]),
                "measured": np.sqrt(found[1]),
                "spread": np.sqrt(found[0]),
                "error": np.abs(found / foreseen - 1).max(),
            })  # fmt: skip


def over_drifts(plant: Plant, i: int, over: np.ndarray) -> dict[str, Any]:
    """Return the predicted deviations of a constraint over the disturbance's drift, by split."""
    B, law = plant.sensitivity(plant.start), laws(plant)
    return {split: (over, [predict(law[split], plant.noise, B, drift=walk**2).errors[i, i] ** 0.5
                           for walk in over], look)
            for split, look in LOOK.items()}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the predictions hold and the splits do as the theorems say."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    plants = (feeder(), tanks())
    first, second = studies = [Study(plant, 400 if arguments.short else 1600) for plant in plants]
    best = [solve(plant.problem, Method(f"{AUTO}, {plant.name}", "auto", required=True),
                  plant.start, [], max_iter=100) for plant in plants]  # fmt: skip
    peers = [solve_with_peer(plant.problem, plant.start, [],
                             replace(IPOPT, label=f"IPOPT, {plant.name}"))
             for plant in plants]  # fmt: skip
    variance = {row["method"]: row["measured"] ** 2 for row in first.rows}
    rest, cheapest = [study.clean["designed split"][-1] for study in studies], best[1].solution.f
    cost = float(second.plant.problem.functions.first(rest[1], [])[0]) / cheapest - 1
    checks = [
        *map(no_worse_than, best, peers),
        Check("feeder: splits apart without noise (Mvar)",
              apart(first.clean[split] for split in SPLITS), 1e-9),
        Check("feeder: inputs at rest from the optimum (Mvar)",
              np.abs(rest[0] - best[0].solution.x).max(), 1e-5),
        Check("feeder: C_opt Pn = 0 apart from full augmentation with noise (Mvar)",
              apart(first.noisy[split] for split in ("all augmentation", "designed split")), 1e-9),
        Check("tanks: levels at rest from their set points (cm)",
              np.abs(second.plant.h(rest[1])).max(), 1e-6),
        Check("measured against predicted variances, relative, the worst of all laws",
              max(r["error"] for s in studies for r in s.rows), 0.15 if arguments.short else 0.05),
        Check("feeder: variance of the designed split over that of all memory",
              variance["designed split"] / variance["all memory"], 0.6),
    ]  # fmt: skip
    figures = {
        "trajectories": plot_curves(
            {title: {split: (range(120), runs[split][:120, 3], look)
                     for split, look in LOOK.items()}
             for title, runs in {"feeder, no noise": first.clean,
                                 "feeder, noise, settled": first.noisy}.items()},
            height=2.8, xlabel="step", ylabel="fourth reactive power (Mvar)"),
        "drift": plot_curves(
            {title: over_drifts(plants[0], i, np.geomspace(1e-3, 1e-1, 25))
             for i, title in ((2, "bus 8, noisy voltmeter"), (1, "bus 5, good voltmeter"))},
            height=2.8, xscale="log", yscale="log", xlabel="drift (% of nominal a step)",
            ylabel=f"std of the\n{plants[0].outputs}"),
    }  # fmt: skip
    return finish(
        arguments,
        (sum(plant.problem.n for plant in plants), sum(plant.problem.m for plant in plants)),
        [answer for pair in zip(best, peers, strict=True) for answer in pair],
        checks=checks,
        facts={
            "tanks: splits apart without noise, as B is not the plant's (largest, any input)":
                apart(second.clean[split] for split in SPLITS),
            "tanks: cost at rest above the optimum's, relative": cost,
        },
        figures=figures,
        tables={f"{s.plant.name}: noise in the steady state; std of the noisy {s.plant.outputs}":
                table(s.rows, COLUMNS) for s in studies},
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
