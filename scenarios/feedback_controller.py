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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from common import AUTO, Answer, Method, apart, solve, solve_with_peer
from feedback_baselines import GradientFeedback, IntegralFeedback
from feedback_plants import Plant, feeder, tanks
from matplotlib.figure import Figure
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
from casadi_hybrid.plotting import DASHES, PALETTE, figure, legend_below, plot_curves

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


def quiet(law: FeedbackLaw, h: Callable[[np.ndarray], np.ndarray], u: np.ndarray,
          steps: int, before: FeedbackController | None = None) -> np.ndarray:  # fmt: skip
    """Step without noise and return the inputs, one row a step; goes on with a given controller."""
    controller = before or FeedbackController(law, u)
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
    i = plant.shown[0]
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
        self.plant = plant
        self.splits = hybrids(plant)
        self.clean = {label: quiet(law, plant.h, plant.start, 700)
                      for label, law in self.splits.items()}  # fmt: skip
        self.noisy: dict[str, np.ndarray] = {}
        self.rows = []
        for label, law in (self.splits | rivals(plant)).items():
            rest = quiet(law, plant.h, plant.start, 700)[-1]
            seen = measure(law, plant.h, rest, plant.noise, steps=steps, runs=300)
            self.rows.append(row(plant, label, law, rest, seen))
            self.noisy[label] = seen.first[200:400]  # the first measurement is forgotten


def deviation(
    law: FeedbackLaw, plant: Plant, at: np.ndarray, steps: int = 0, drift: float = 0.0
) -> np.ndarray:
    """Return the deviation of every constraint around the inputs ``at``; measured over steps."""
    if steps:
        found = measure(law, plant.h, at, plant.noise, drift=drift**2, steps=steps, runs=300)
    else:
        found = predict(law, plant.noise, plant.sensitivity(at), drift=drift**2)
    return np.sqrt(np.diag(found.errors).clip(min=0.0))


def over_rates(study: Study, over: np.ndarray, steps: int = 0) -> dict[str, np.ndarray]:
    """Return the deviations of the noisy constraint over the rate, as shares of its sensor's.

    Of two splits: the third's are the first's.
    """
    plant, i, rest = study.plant, study.plant.shown[0], study.clean["designed split"][-1]
    laws = [hybrids(plant, float(rate)) for rate in over]
    return {label: np.array([deviation(law[label], plant, rest, steps)[i] for law in laws])
            / np.sqrt(plant.noise[i]) for label in ("all memory", "designed split")}  # fmt: skip


def over_drifts(plant: Plant, i: int, over: np.ndarray, steps: int = 0) -> dict[str, np.ndarray]:
    """Return the deviations of a constraint over the drift of the disturbance, by split."""
    return {label: np.array([deviation(law, plant, plant.start, steps, walk)[i] for walk in over])
            for label, law in hybrids(plant).items()}  # fmt: skip


LOOK: dict[str, dict[str, Any]] = {
    "all augmentation": {"color": PALETTE[0], "linestyle": "-", "linewidth": 2.6, "marker": ""},
    "all memory": {"color": PALETTE[1], "linestyle": "-", "linewidth": 1.0, "marker": ""},
    "designed split": {"color": PALETTE[7], "linestyle": DASHES[3], "linewidth": 1.6, "marker": ""},
}
"""Of the splits; two lie on each other, so one is wide and the other is dotted."""
MARK = {"all augmentation": "o", "all memory": "s", "designed split": "x"}

Courses = Mapping[str, np.ndarray]


def courses(plants: Sequence[Plant], clean: Sequence[Courses], noisy: Sequence[Courses]) -> Figure:
    """Plot one input of each plant for the three splits, without noise and with it."""
    fig, axes = figure(len(plants), 2, height=2.5, sharey="row")
    for row, plant, pair in zip(axes, plants, zip(clean, noisy, strict=True), strict=True):
        # Memory, which swings widest, goes below the others.
        for ax, runs, title in zip(row, pair, ("no noise", "noise, settled"), strict=True):
            for split in ("all memory", "all augmentation", "designed split"):
                ax.plot(runs[split][:, plant.shown[1]], label=split, **LOOK[split])
            ax.set_title(f"{plant.name}, {title}", fontsize=10)
            ax.set_xlabel("step")
        row[0].set_ylabel(plant.inputs)
    legend_below(fig, axes[0, 0])
    return fig


def variances(plants: Sequence[Plant], rows: Sequence[Sequence[Mapping[str, Any]]]) -> Figure:
    """Plot the predicted and the measured deviation of the noisy constraint, law by law."""
    fig, axes = figure(1, len(plants), height=3.0, sharey=True)
    for ax, plant, laws in zip(axes[0], plants, rows, strict=True):
        y = np.arange(len(laws))
        predicted, measured = ([row[key] for row in laws] for key in ("predicted", "measured"))
        ax.barh(y, predicted, height=0.6, color=PALETTE[4], label="predicted (Lyapunov)")
        ax.plot(measured, y, "o", color=PALETTE[7], markersize=5, label="measured")
        ax.set_yticks(y, [row["method"] for row in laws])
        ax.set(xlabel=f"std of the\n{plant.outputs}")
        ax.set_title(plant.name, fontsize=10)
        ax.grid(False, axis="y")
    axes[0, 0].invert_yaxis()
    legend_below(fig, axes[0, 0])
    return fig


def deviations(
    over: np.ndarray, predicted: Courses, at: np.ndarray, measured: Courses
) -> dict[str, tuple[Any, ...]]:
    """Return the curves of a panel of ``plot_curves``: what is predicted, and measured as dots."""
    curves: dict[str, tuple[Any, ...]] = {}
    for split, values in predicted.items():
        dots = {"color": LOOK[split]["color"], "linestyle": "", "marker": MARK[split]}
        curves[f"{split}, predicted"] = over, values, LOOK[split]
        curves[f"{split}, measured"] = at, measured[split], dots
    return curves


def after_a_step(plant: Plant, later: Plant) -> dict[str, np.ndarray]:
    """Return the constraints, one row a step, after the plant has become another one."""
    errors = {}
    for label, law in hybrids(plant).items():
        controller = FeedbackController(law, plant.start)
        rest = quiet(law, plant.h, plant.start, 400, controller)[-1]
        errors[label] = later.h(quiet(law, later.h, rest, 60, controller).T).T
    return errors


def optimum(plant: Plant) -> tuple[Answer, Answer]:
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
    silent = max(np.abs(s.splits["designed split"].design.projected).max() for s in studies)
    rows = {r["method"]: r for r in first.rows}
    alike = [first.noisy[label] for label in ("all augmentation", "designed split")]
    factor = (rows["designed split"]["measured"] / rows["all memory"]["measured"]) ** 2
    rest = second.clean["designed split"][-1]
    cheapest = [run.result for run, _ in best]
    cost = float(second.plant.problem.functions.first(rest, [])[0]) / cheapest[1].f - 1
    checks = [
        *(no_worse_than(run, peer) for run, peer in best),
        Check("feeder: splits apart without noise (Mvar)", apart(first.clean.values()), 1e-9),
        Check("feeder: inputs at rest from the optimum (Mvar)",
              float(np.abs(first.clean["designed split"][-1] - cheapest[0].x).max()), 1e-5),
        Check("feeder: C_opt Pn = 0 apart from full augmentation with noise (Mvar)",
              apart(alike), 1e-9),
        Check("largest entry of C_opt Pn, both plants", float(silent), 1e-12),
        Check("tanks: levels at rest from their set points (cm)",
              float(np.abs(second.plant.h(rest[:, None])).max()), 1e-6),
        Check("measured against predicted variances, relative, the worst of all laws",
              max(r["error"] for s in studies for r in s.rows), 0.15 if arguments.short else 0.05),
        Check("feeder: variance of the designed split over that of all memory", factor, 0.6),
    ]  # fmt: skip
    facts = {
        "tanks: splits apart without noise, as B is not the plant's (largest, any input)":
            apart(second.clean.values()),
        "tanks: cost at rest above the optimum's, relative": cost,
        **{s.plant.name: s.rows for s in studies},
    }  # fmt: skip
    lines, points = np.linspace(0.5, 0.97, 25), np.array([0.6, 0.75, 0.9])
    walks, few = np.geomspace(1e-3, 1e-1, 25), np.array([2e-3, 1e-2, 5e-2])
    stepped = after_a_step(plants[0], feeder(1.3))
    of_rate = {"xlabel": "rate ρ designed for", "ylabel": "std of the noisy h\nover its sensor's"}
    made = {
        "trajectories": courses(plants, [{k: run[:120] for k, run in s.clean.items()}
                                         for s in studies], [s.noisy for s in studies]),
        "variances": variances(plants, [s.rows for s in studies]),
        "rates": plot_curves(
            {s.plant.name: deviations(lines, over_rates(s, lines),
                                      points, over_rates(s, points, steps // 3))
             for s in studies}, height=2.8, columns=2, ylim=(0, None), **of_rate),
        "load_step": plot_curves(
            {title: {split: (range(len(errors)), errors[:, i], LOOK[split])
                     for split, errors in stepped.items()} for i, title in BUSES},
            height=2.8, xlabel="step after the loads have risen", ylabel=plants[0].outputs),
        "drift": plot_curves(
            {title: deviations(walks, over_drifts(plants[0], i, walks),
                               few, over_drifts(plants[0], i, few, steps // 3))
             for i, title in BUSES},
            height=2.8, xscale="log", yscale="log", xlabel="drift (% of nominal a step)",
            ylabel=f"std of the\n{plants[0].outputs}"),
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
        figures=made,
        tables=tables,
    )


if __name__ == "__main__":
    sys.exit(main())
