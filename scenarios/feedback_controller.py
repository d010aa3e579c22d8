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

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from common import AUTO, Judged, Method, apart, solve, solve_with_peer
from feedback_baselines import GradientFeedback, IntegralFeedback
from feedback_plants import Plant, feeder, tanks
from reporting import Check, finish, no_worse_than, parser, table
from solving import IPOPT

from casadi_hybrid.control.feedback import (
    FeedbackController,
    FeedbackLaw,
    HybridFeedback,
    Measured,
    design,
    measure,
    predict,
)
from casadi_hybrid.plotting import DASHES, PALETTE, plot_curves

NAME = "feedback_controller"
SUMMARY = "the law as a controller of two plants with noisy sensors: three splits, three rivals"

RATE = 0.9
"""ρ: an error shrinks to a tenth in 22 steps."""
SPLITS = {"all augmentation": "augmentation", "all memory": "memory", "designed split": "designed"}
BUSES = ((2, "bus 8, noisy voltmeter"), (1, "bus 5, good voltmeter"))


def hybrids(plant: Plant, rate: float = RATE) -> dict[str, FeedbackLaw]:
    """Return the law with its three splits."""
    made = design(plant.B, plant.cost, plant.noise, rate)
    return {
        label: HybridFeedback(made.with_split(split), plant.preferred)
        for label, split in SPLITS.items()
    }


def rivals(plant: Plant) -> dict[str, FeedbackLaw]:
    """Return the usual laws, tuned by the same criterion."""
    model = (plant.B, plant.cost)
    return {
        "integral": IntegralFeedback.tuned(*model, RATE),
        "integral, filtered": IntegralFeedback.tuned(*model, RATE, filtered=True),
        "projected gradient": GradientFeedback.tuned(
            *model, plant.noise, RATE, preferred=plant.preferred
        ),
    }


def quiet(
    controller: FeedbackController, h: Callable[[np.ndarray], np.ndarray], steps: int
) -> np.ndarray:
    """Step without noise and return the inputs, one row a step."""
    rows = [controller.u]
    for _ in range(steps):
        rows.append(controller.step(h(rows[-1][:, None])[:, 0]))
    return np.array(rows)


COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("method", "law", str),
    ("rate", "rate", "{:.4f}".format),
    ("actual", "with the plant", "{:.4f}".format),
    ("designed", "std h: by the model", "{:.5f}".format),
    ("predicted", "predicted", "{:.5f}".format),
    ("measured", "measured", "{:.5f}".format),
    ("spread", "std of all u", "{:.5f}".format),
    ("error", "variances off by", "{:.2%}".format),
)


def row(plant: Plant, label: str, law: FeedbackLaw, rest: np.ndarray, seen: Measured) -> Any:
    """Return what was predicted, by the model and with the plant's own sensitivity, and measured.

    h is the noisy constraint; the last column is the worse of that variance and of the inputs'.
    """
    i = plant.shown
    model = predict(law, plant.noise)
    true = predict(law, plant.noise, plant.sensitivity(rest))
    spread, foreseen = np.trace(seen.inputs), np.trace(true.inputs)
    error = max(abs(spread / foreseen - 1), abs(seen.errors[i, i] / true.errors[i, i] - 1))
    return {
        "method": label,
        "rate": model.rate,
        "actual": true.rate,
        "designed": float(np.sqrt(model.errors[i, i])),
        "predicted": float(np.sqrt(true.errors[i, i])),
        "measured": float(np.sqrt(seen.errors[i, i])),
        "spread": float(np.sqrt(spread)),
        "error": float(error),
    }


class Study:
    """One plant with all laws: quiet and noisy runs, and what they show."""

    def __init__(self, plant: Plant, steps: int) -> None:
        self.plant, self.rows, self.clean, self.noisy = plant, [], {}, {}
        for label, law in (hybrids(plant) | rivals(plant)).items():
            self.clean[label] = quiet(FeedbackController(law, plant.start), plant.h, 700)
            rest = self.clean[label][-1]
            seen = measure(law, plant.h, rest, plant.noise, steps=steps, runs=300)
            self.rows.append(row(plant, label, law, rest, seen))
            self.noisy[label] = seen.first[200:400]  # the first measurement is forgotten

    def apart(self) -> float:
        """Return the largest distance of the splits' inputs without noise."""
        return apart(self.clean[split] for split in SPLITS)


def deviation(law: FeedbackLaw, plant: Plant, at: np.ndarray, drift: float = 0.0) -> np.ndarray:
    """Return the predicted deviation of every constraint around the inputs ``at``."""
    found = predict(law, plant.noise, plant.sensitivity(at), drift=drift**2)
    return np.sqrt(np.diag(found.errors).clip(min=0.0))


def over_rates(study: Study, over: np.ndarray) -> dict[str, Any]:
    """Return the deviations of the noisy constraint over the rate, as shares of its sensor's.

    Of two splits: the third's are the first's.
    """
    plant, i, rest = study.plant, study.plant.shown, study.clean["designed split"][-1]
    laws, sensor = [hybrids(plant, float(rate)) for rate in over], np.sqrt(plant.noise[i])
    return {split: (over, [deviation(law[split], plant, rest)[i] / sensor for law in laws],
                    LOOK[split]) for split in ("all memory", "designed split")}  # fmt: skip


def over_drifts(plant: Plant, i: int, over: np.ndarray) -> dict[str, Any]:
    """Return the deviations of a constraint over the drift of the disturbance, by split."""
    return {split: (over, [deviation(law, plant, plant.start, walk)[i] for walk in over],
                    LOOK[split]) for split, law in hybrids(plant).items()}  # fmt: skip


LOOK: dict[str, dict[str, Any]] = {
    "all augmentation": {"color": PALETTE[0], "linestyle": "-", "linewidth": 2.6, "marker": ""},
    "all memory": {"color": PALETTE[1], "linestyle": "-", "linewidth": 1.0, "marker": ""},
    "designed split": {"color": PALETTE[7], "linestyle": DASHES[3], "linewidth": 1.6, "marker": ""},
}
"""Of the splits; two lie on each other, so one is wide and the other is dotted."""


def after_a_step(plant: Plant, later: Plant) -> dict[str, np.ndarray]:
    """Return the constraints, one row a step, after the plant has become another one."""
    errors = {}
    for label, law in hybrids(plant).items():
        controller = FeedbackController(law, plant.start)
        quiet(controller, plant.h, 400)
        errors[label] = later.h(quiet(controller, later.h, 60).T).T
    return errors


def optimum(plant: Plant) -> tuple[Judged, Judged]:
    """Return the cheapest inputs for the true map, by the default method and by IPOPT."""
    method = Method(f"{AUTO}, {plant.name}", "auto", required=True)
    return (solve(plant.problem, method, plant.start, [], max_iter=100),
            solve_with_peer(plant.problem, plant.start, [],
                            replace(IPOPT, label=f"IPOPT, {plant.name}")))  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when the predictions hold and the splits do as the theorems say."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    steps = 400 if arguments.short else 1600
    plants = (feeder(), tanks())
    first, second = studies = [Study(plant, steps) for plant in plants]
    best = [optimum(plant) for plant in plants]
    designs = [hybrids(plant)["designed split"].design for plant in plants]
    rows = {r["method"]: r for r in first.rows}
    alike = [first.noisy[label] for label in ("all augmentation", "designed split")]
    factor = (rows["designed split"]["measured"] / rows["all memory"]["measured"]) ** 2
    rest = second.clean["designed split"][-1]
    cheapest = [run.result for run, _ in best]
    cost = float(second.plant.problem.functions.first(rest, [])[0]) / cheapest[1].f - 1
    checks = [
        *(no_worse_than(run, peer) for run, peer in best),
        Check("feeder: splits apart without noise (Mvar)", first.apart(), 1e-9),
        Check("feeder: inputs at rest from the optimum (Mvar)",
              float(np.abs(first.clean["designed split"][-1] - cheapest[0].x).max()), 1e-5),
        Check("feeder: C_opt Pn = 0 apart from full augmentation with noise (Mvar)",
              apart(alike), 1e-9),
        Check("largest entry of C_opt Pn, both plants",
              max(np.abs(made.projected).max() for made in designs), 1e-12),
        Check("tanks: levels at rest from their set points (cm)",
              float(np.abs(second.plant.h(rest[:, None])).max()), 1e-6),
        Check("measured against predicted variances, relative, the worst of all laws",
              max(r["error"] for s in studies for r in s.rows), 0.15 if arguments.short else 0.05),
        Check("feeder: variance of the designed split over that of all memory", factor, 0.6),
    ]  # fmt: skip
    facts = {
        "tanks: splits apart without noise, as B is not the plant's (largest, any input)":
            second.apart(),
        "tanks: cost at rest above the optimum's, relative": cost,
        **{s.plant.name: s.rows for s in studies},
    }  # fmt: skip
    stepped = after_a_step(plants[0], feeder(1.3))
    of_rate = {"xlabel": "rate ρ designed for", "ylabel": "std of the noisy h\nover its sensor's"}
    of_drift = {
        "xlabel": "drift (% of nominal a step)",
        "ylabel": f"std of the\n{plants[0].outputs}",
    }
    figures = {
        "trajectories": plot_curves(
            # Memory, which swings widest, goes below the others.
            {title: {split: (range(120), runs[split][:120, 3], LOOK[split])
                     for split in ("all memory", "all augmentation", "designed split")}
             for title, runs in {"feeder, no noise": first.clean,
                                 "feeder, noise, settled": first.noisy}.items()},
            height=2.8, xlabel="step", ylabel="fourth reactive power (Mvar)"),
        "rates": plot_curves(
            {s.plant.name: over_rates(s, np.linspace(0.5, 0.97, 25)) for s in studies},
            height=2.8, ylim=(0, None), **of_rate),
        "load_step": plot_curves(
            {title: {split: (range(len(errors)), errors[:, i], LOOK[split])
                     for split, errors in stepped.items()} for i, title in BUSES},
            height=2.8, xlabel="step after the loads have risen", ylabel=plants[0].outputs),
        "drift": plot_curves(
            {title: over_drifts(plants[0], i, np.geomspace(1e-3, 1e-1, 25)) for i, title in BUSES},
            height=2.8, xscale="log", yscale="log", **of_drift),
    }  # fmt: skip
    tables = {f"{s.plant.name}: noise in the steady state; std of the noisy {s.plant.outputs}":
              table(s.rows, COLUMNS) for s in studies}  # fmt: skip
    return finish(
        arguments,
        (sum(plant.problem.n for plant in plants), sum(plant.problem.m for plant in plants)),
        [answer.row for pair in best for answer in pair],
        {run.label: run.report for run, _ in best},
        checks=checks,
        facts=facts,
        figures=figures,
        tables=tables,
    )


if __name__ == "__main__":
    sys.exit(main())
