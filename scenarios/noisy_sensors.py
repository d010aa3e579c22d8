"""Heating of a building whose set points are held through sensors, two of which are noisy.

Six heaters with powers x (kW) warm four zones. In the steady state the zone temperatures are

    T(x) = T_out + K⁻¹ E q(x),    q_i = x_i + 0.02 x_i²  (kW of heat, the last part by radiation),

with the conductances K (kW/K) between zones and to the outside. The cheapest powers that hold the
set points solve min ½ Σ c_i x_i² s.t. h(x) = T(x) − T_set = 0 (K): n = 6, m = 4.

The hybrid law runs as a controller that never stops: every iteration applies new powers. The dual
step reads the zones through their sensors, ĥ_t = h(x_t) + ε_t, and the sensors of two zones are
noisy, ε_t = P_n ε_t. The augmented channel reads the model. The correction M = α(BBᵀ)⁻¹ is one
and the same in every run; only its split M = C_aug + C_opt changes. Without noise all splits give
one trajectory. With noise the law linearized at the solution is, with the memory-free multiplier π,

    dπ⁺ = dπ + η_d(B dx + ε),    dx⁺ = dx − η_x[H dx + Bᵀ(dπ⁺ + M B dx + C_opt ε)],

so ε enters the powers through η_d + C_opt, and its stationary covariance solves a Lyapunov
equation. The split with C_opt P_n = 0 (no optimism on noisy sensors) is the trajectory of full
augmentation, as the paper's theorem "Hybrid–Aug-Lag equivalence under partial residual-memory
noise" says.
"""

import sys
from dataclasses import replace

import casadi as ca
import numpy as np
from common import AUTO, Method, apart, conclude, references, solve
from matplotlib.figure import Figure
from reporting import Check, parser, table

from casadi_hybrid import Problem, Result
from casadi_hybrid.control.feedback import FeedbackDesign, HybridFeedback, design, measure, predict
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.iterations.law import Correction
from casadi_hybrid.iterations.rules import ConstantRule
from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "noisy_sensors"
SUMMARY = "the noise theorem at work: noisy sensors, and which channel of the correction hears them"

PRICE = np.array([1.0, 1.4, 0.9, 1.2, 1.1, 1.6])
"""c in 1/kW²."""
SET_POINT, OUTSIDE = np.array([21.0, 20.0, 19.0, 21.5]), 3.0
"""Temperatures in °C."""
NOISY, NOISE = np.array([False, True, False, True]), 0.3
"""Which sensors are noisy, and their standard deviation in K."""
ALPHA, ETA_X, ETA_D = 4.0, 0.2, 0.1
"""M = α(BBᵀ)⁻¹ at the solution in 1/K², steps η_x in kW² and η_d in 1/K²."""
SPLITS = {
    "augmentation only, C_opt = 0": np.zeros(4),
    "optimism on clean sensors, C_opt Pn = 0": (~NOISY).astype(float),
    "half and half, C_opt = M/2": np.full(4, 0.5),
    "optimism on noisy sensors only": NOISY.astype(float),
    "optimism only, C_opt = M": np.ones(4),
}
"""What the columns of C_opt carry of M, sensor by sensor."""
COLUMNS = (
    ("method", "split", str),
    ("gain", "max |C_opt Pn|", "{:.2g}".format),
    ("apart", "|x - x of row 1|", "{:.1e}".format),
    ("measured", "std (kW) measured", "{:.4f}".format),
    ("predicted", "predicted", "{:.4f}".format),
)


def building() -> Problem:
    """Return the problem of the cheapest powers."""
    between = np.zeros((4, 4))
    between[[0, 0, 1, 1, 2], [1, 2, 2, 3, 3]] = 0.3, 0.1, 0.25, 0.1, 0.3
    between += between.T
    K = np.diag(between @ np.ones(4) + np.array([0.20, 0.25, 0.18, 0.22])) - between
    heats = np.zeros((4, 6))
    heats[[0, 0, 1, 2, 3, 3], range(6)] = 1.0
    heats[1, 1] = heats[2, 3] = 0.3
    x = ca.SX.sym("power", 6)
    T = OUTSIDE + ca.DM(np.linalg.solve(K, heats)) @ (x + 0.02 * x**2)
    zones = {f"zone {i + 1}": T[i] - SET_POINT[i] for i in range(4)}
    return Problem(x=x, f=0.5 * ca.dot(ca.DM(PRICE), x**2), h=zones, name=NAME)


def split_law(made: FeedbackDesign, label: str, share: np.ndarray) -> Method:
    """Return the law with C_opt = M·diag(share) as a method."""
    split = made.with_split(share).correction
    rule = ConstantRule(split.C_aug, split.C_opt, ETA_X, ETA_D)
    return Method(label, Hybrid(rule, label=label), required=True)


def with_noise(
    problem: Problem, found: Result, made: FeedbackDesign, share: np.ndarray, steps: int
) -> tuple[np.ndarray, dict[str, float]]:
    """Step the law as a controller from the solution; return the powers (kW), one row each.

    And the root of their mean variance, measured and by Lyapunov's equation. The sensors' noise is
    the same for all splits.
    """

    def zones(x: np.ndarray) -> np.ndarray:
        return problem.functions.residual(x, []).full().reshape(-1, *x.shape[1:])

    law = HybridFeedback(made.with_split(share), gradient=lambda x: (PRICE * x.T).T, model=zones,
                         first=zones(found.x))  # fmt: skip
    seen = measure(law, zones, found.x, made.noise, steps=3 * steps // 4, settle=steps // 4, runs=1)
    covariances = {"measured": seen.inputs, "predicted": predict(law, made.noise).inputs}
    return seen.first, {name: float(np.sqrt(np.diag(inputs).mean()))
                        for name, inputs in covariances.items()}  # fmt: skip


def draw(powers: dict[str, np.ndarray], best: np.ndarray, shares, sweep) -> Figure:
    """Plot a noisy heater's power for three splits, and the deviation over the share of C_opt."""
    fig, ((left, right),) = figure(1, 2, height=3.2)
    labels, heater = list(powers), 3
    for i, color, width, dash in ((4, 1, 0.8, "-"), (0, 0, 2.2, "-"), (1, 7, 1.0, "--")):
        style = {"color": PALETTE[color], "linewidth": width, "linestyle": dash}
        left.plot(powers[labels[i]][:400, heater], label=labels[i], **style)
    left.axhline(best[heater], color="#7F7F7F", linestyle=":", linewidth=1.0, label="optimum")
    left.set(xlabel="iteration", ylabel=f"power of heater {heater + 1} (kW)")
    foreseen, measured = ([row[key] for row in sweep] for key in ("predicted", "measured"))
    right.plot(shares, foreseen, color=PALETTE[2], label="predicted (Lyapunov)")
    right.plot(shares, measured, "o", color=PALETTE[2], label="measured")
    right.set_ylim(bottom=0.0)
    right.set(xlabel="share of M in C_opt on noisy sensors", ylabel="std of the powers (kW)")
    legend_below(fig, left, right, columns=2)
    return fig


def main(argv: list[str] | None = None) -> int:
    """Run the scenario; 0 when all splits solve the problem and the theorem holds, else 1."""
    arguments = parser(NAME, SUMMARY, budget=True).parse_args(argv)
    T = arguments.max_iter or (2_000 if arguments.short else 8_000)
    problem, start = building(), np.ones(6)
    runs = [solve(problem, Method(AUTO, "auto", required=True), start, [], max_iter=100)]
    found = runs[0].result
    at = runs[0].at
    steps = Correction(ALPHA * np.linalg.inv(at.B @ at.B.T), np.zeros((4, 4)), ETA_X, ETA_D)
    made = replace(design(at.B, at.hessian, (NOISE * NOISY) ** 2, 0.9), correction=steps)
    powers, rows = {}, []
    for label, share in SPLITS.items():
        method = split_law(made, label, share)
        runs.append(solve(problem, method, start, [], max_iter=20_000, keep_points=True))
        powers[label], deviations = with_noise(problem, found, made, share, T)
        away = np.abs(powers[label] - next(iter(powers.values()))).max()
        row = {"method": label, "gain": np.abs((made.M * share)[:, NOISY]).max(), "apart": away}
        rows.append(row | deviations)
    shares = np.linspace(0.0, 1.0, 3 if arguments.short else 9)
    sweep = [
        with_noise(problem, found, made, np.where(NOISY, share, 1.0), T)[1] for share in shares
    ]
    error = max(abs(row["measured"] / row["predicted"] - 1.0) for row in rows)
    quiet = rows[1]["measured"] / rows[4]["measured"]
    return conclude(
        arguments,
        problem,
        runs,
        references(problem, start, []),
        checks=[
            Check("splits apart without noise (kW)", apart(run.trace.points for run in runs), 1e-9),
            Check(
                "C_opt Pn = 0 apart from full augmentation with noise (kW)", rows[1]["apart"], 1e-9
            ),
            Check("measured against predicted deviation, relative", error, 0.25),
            Check("deviation with C_opt Pn = 0 over that of optimism only", quiet, 0.5),
        ],
        tables={f"{T} iterations from the solution with noisy sensors": table(rows, COLUMNS)},
        facts={"noise": rows},
        figures={"noise": draw(powers, found.x, shares, sweep)},
    )


if __name__ == "__main__":
    sys.exit(main())
