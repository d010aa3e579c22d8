"""Heating of a building whose set points are held through sensors, two of which are noisy.

Six heaters with powers x (kW) warm four zones. In the steady state the zone temperatures are

    T(x) = T_out + K⁻¹ E q(x),    q_i = x_i + 0.02 x_i²  (kW of heat, the last part by radiation),

with the conductances K (kW/K) between zones and to the outside. The cheapest powers that hold the
set points solve min ½ Σ c_i x_i² s.t. h(x) = T(x) − T_set = 0 (K): n = 6, m = 4.

The hybrid law runs as a controller that never stops: every iteration applies new powers. The dual
step reads the zones through their sensors, ĥ_t = h(x_t) + ε_t, and the sensors of two zones are
noisy, ε_t = P_n ε_t. The augmented channel reads the model. The correction M = α(BBᵀ)⁻¹ is one
and the same in every run; only its split M = C₁ + C₂ changes. Without noise all splits give one
trajectory. With noise the law linearized at the solution is, with the memory-free multiplier π,

    dπ⁺ = dπ + η_d(B dx + ε),    dx⁺ = dx − η_x[H dx + Bᵀ(dπ⁺ + M B dx + C₂ ε)],

so ε enters the powers through η_d + C₂, and its stationary covariance solves a Lyapunov equation.
The split with C₂P_n = 0 (no optimism on noisy sensors) is the trajectory of full augmentation, as
the paper's theorem "Hybrid–Aug-Lag equivalence under partial residual-memory noise" says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from common import AUTO, Method, Run, solve, solve_with_peer
from matplotlib.figure import Figure
from reporting import Check, finish, parser, table
from scipy.linalg import solve_discrete_lyapunov
from solving import IPOPT, SLEQP

from casadi_hybrid import Problem, Solver
from casadi_hybrid.iterations import Hybrid
from casadi_hybrid.plotting import PALETTE, figure, line_style
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.rules import ConstantRule

NAME = "noisy_sensors"
SUMMARY = "the noise theorem at work: noisy sensors, and which channel of the correction hears them"

PRICE = np.array([1.0, 1.4, 0.9, 1.2, 1.1, 1.6])
"""c in 1/kW²."""
SET_POINT = np.array([21.0, 20.0, 19.0, 21.5])
OUTSIDE = 3.0
"""Temperatures in °C."""
NOISY = (1, 3)
NOISE = 0.3
"""Standard deviation of the noisy sensors in K."""
ALPHA, ETA_X, ETA_D = 4.0, 0.2, 0.1
"""M = α(BBᵀ)⁻¹ at the solution in 1/K², steps η_x in kW² and η_d in 1/K²."""


def building() -> Problem:
    """Return the problem of the cheapest powers."""
    conductance = np.array([0.20, 0.25, 0.18, 0.22])
    between = np.array(
        [[0, 0.3, 0.1, 0], [0.3, 0, 0.25, 0.1], [0.1, 0.25, 0, 0.3], [0, 0.1, 0.3, 0]]
    )
    K = np.diag(conductance + between.sum(axis=1)) - between
    heats = np.zeros((4, 6))
    heats[[0, 0, 1, 2, 3, 3], range(6)] = 1.0
    heats[1, 1] = heats[2, 3] = 0.3
    x = ca.SX.sym("power", 6)
    heat = x + 0.02 * x**2
    T = OUTSIDE + ca.DM(np.linalg.solve(K, heats)) @ heat
    zones = {f"zone {i + 1}": T[i] - SET_POINT[i] for i in range(4)}
    return Problem(x=x, f=0.5 * ca.dot(ca.DM(PRICE), x**2), h=zones, name=NAME)


@dataclass(frozen=True)
class Noise:
    """ĥ_t = h(x_t) + ε_t with one realization for all runs; rows are t = −1, 0, 1, …"""

    epsilon: np.ndarray

    def __call__(self, t: int, at: Evaluation) -> Evaluation:
        """Return what the step at t sees."""
        return replace(at, measured=at.h + self.epsilon[t + 1])


@dataclass(frozen=True)
class Split:
    """C₂ = M·diag(share): how much of the correction each sensor's optimism carries."""

    label: str
    share: np.ndarray

    def iteration(self, M: np.ndarray, noise: Noise | None = None) -> Hybrid:
        """Return the law with this split."""
        C2 = M * self.share
        rule = ConstantRule(M - C2, C2, ETA_X, ETA_D)
        return Hybrid(rule, label=self.label, disturb=noise)


def splits() -> list[Split]:
    """Return the splits of the table: what the columns of C₂ carry of M, sensor by sensor."""
    noisy = np.isin(np.arange(4), NOISY)
    return [
        Split("augmentation only, C₂ = 0", np.zeros(4)),
        Split("optimism on clean sensors, C₂Pₙ = 0", (~noisy).astype(float)),
        Split("half and half, C₂ = M/2", np.full(4, 0.5)),
        Split("optimism on noisy sensors only", noisy.astype(float)),
        Split("optimism only, C₂ = M", np.ones(4)),
    ]


@dataclass(frozen=True)
class Outcome:
    """One split: its run without noise, and what noise does to the powers."""

    split: Split
    clean: Run
    powers: np.ndarray
    measured: float
    predicted: float

    def row(self, reference: np.ndarray, M: np.ndarray) -> dict[str, Any]:
        """Return the row of the noise table; the reference is the first split's powers."""
        seen = (M * self.split.share)[:, NOISY]
        return {
            "method": self.split.label,
            "gain": float(np.abs(seen).max()),
            "apart": float(np.abs(self.powers - reference).max()),
            "measured": self.measured,
            "predicted": self.predicted,
        }


NOISE_COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("method", "split", str),
    ("gain", "max |C2 Pn|", "{:.2g}".format),
    ("apart", "|x - x of row 1|", "{:.1e}".format),
    ("measured", "std (kW) measured", "{:.4f}".format),
    ("predicted", "predicted", "{:.4f}".format),
)


def predicted_deviation(at: Evaluation, M: np.ndarray, C2: np.ndarray) -> float:
    """Return the root mean variance of the powers by the Lyapunov equation, in kW."""
    H, B = at.hessian, at.B
    m, n = B.shape
    drive = ETA_D * np.eye(m)
    A = np.block(
        [
            [np.eye(n) - ETA_X * (H + B.T @ (M + drive) @ B), -ETA_X * B.T],
            [drive @ B, np.eye(m)],
        ]
    )
    P = np.diag(np.isin(np.arange(m), NOISY).astype(float))
    G = NOISE * np.vstack((-ETA_X * B.T @ (drive + C2), drive)) @ P
    covariance = solve_discrete_lyapunov(A, G @ G.T)
    return float(np.sqrt(np.trace(covariance[:n, :n]) / n))


def noisy_powers(problem: Problem, iteration: Hybrid, at: Evaluation, lam: Any, T: int) -> Any:
    """Run T noisy iterations from the solution and return the powers, one row each."""
    points: list[np.ndarray] = []
    # No tolerance: the controller goes on, whatever the residual happens to be.
    solver = Solver(problem, iteration, tol=1e-300, max_iter=T)
    solver.solve(at.x, lam_g0=lam, callback=lambda progress: points.append(progress.state.x))
    return np.array(points)


def draw(outcomes: Sequence[Outcome], best: np.ndarray, shares: Any, sweep: Any) -> Figure:
    """Plot a noisy heater's power for three splits, and the deviation over the share of C₂."""
    fig, axes = figure(1, 2, height=3.2)
    left, right = axes[0]
    shown = [outcomes[i] for i in (4, 0, 1)]
    heater = 3
    for i, outcome in enumerate(shown):
        style = {"color": PALETTE[(1, 0, 7)[i]], "linewidth": (0.8, 2.2, 1.0)[i]}
        style["linestyle"] = ("-", "-", "--")[i]
        left.plot(outcome.powers[:400, heater], label=outcome.split.label, **style)
    left.axhline(best[heater], color="#7F7F7F", linestyle=":", linewidth=1.0)
    left.set(xlabel="iteration", ylabel=f"power of heater {heater + 1} (kW)")
    measured, foreseen = np.array(sweep).T
    right.plot(shares, foreseen, color=PALETTE[0], label="predicted (Lyapunov)")
    right.plot(shares, measured, **{**line_style(1), "linestyle": ""}, marker="o", label="measured")
    right.set_ylim(bottom=0.0)
    right.set(xlabel="share of M in $C_2$ on noisy sensors", ylabel="std of the powers (kW)")
    handles = [*left.get_lines()[:3], *right.get_lines()]
    fig.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return fig


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when all splits solve the problem and the theorem holds, else 1."""
    arguments = parser(NAME, SUMMARY, budget=True).parse_args(argv)
    T = arguments.max_iter or (2_000 if arguments.short else 8_000)
    problem, start = building(), np.ones(6)
    default = solve(problem, Method(AUTO, "auto", required=True), start, [], max_iter=100)
    x, lam = default.result.x, default.result.lam_g
    at = Oracle(problem.functions, np.zeros(0)).second(x, lam)
    M = ALPHA * np.linalg.inv(at.B @ at.B.T)
    epsilon = np.zeros((T + 2, 4))
    epsilon[1:, NOISY] = NOISE * np.random.default_rng(0).standard_normal((T + 1, len(NOISY)))
    noise = Noise(epsilon)

    def disturbed(split: Split) -> tuple[np.ndarray, float, float]:
        """Return the powers under noise, their deviation, and the predicted one."""
        powers = noisy_powers(problem, split.iteration(M, noise), at, lam, T)
        spread = powers[powers.shape[0] // 4 :].std(axis=0)
        foreseen = predicted_deviation(at, M, M * split.share)
        return powers, float(np.sqrt(np.mean(spread**2))), foreseen

    def outcome(split: Split) -> Outcome:
        method = Method(split.label, split.iteration(M), required=True)
        clean = solve(problem, method, start, [], max_iter=20_000, keep_points=True)
        return Outcome(split, clean, *disturbed(split))

    outcomes = [outcome(split) for split in splits()]
    shares = np.linspace(0.0, 1.0, 3 if arguments.short else 9)
    on_noisy = np.isin(np.arange(4), NOISY)
    swept = [disturbed(Split("", np.where(on_noisy, s, 1.0)))[1:] for s in shares]
    return _report(arguments, problem, default, outcomes, M, shares, swept)


def _report(
    arguments: argparse.Namespace,
    problem: Problem,
    default: Run,
    outcomes: Sequence[Outcome],
    M: np.ndarray,
    shares: np.ndarray,
    swept: Sequence[tuple[float, float]],
) -> int:
    full, silent, worst = outcomes[0], outcomes[1], outcomes[4]
    rows = [outcome.row(full.powers, M) for outcome in outcomes]
    title = f"{len(full.powers) - 1} iterations from the solution with noisy sensors"
    courses = [np.array(outcome.clean.trace.points) for outcome in outcomes]
    apart = max(float(np.abs(course - courses[0]).max()) for course in courses)
    error = max(abs(o.measured / o.predicted - 1.0) for o in outcomes)
    peers = [solve_with_peer(problem, np.ones(6), [], peer) for peer in (IPOPT, SLEQP)]
    runs = [default, *(outcome.clean for outcome in outcomes)]
    return finish(
        arguments,
        (problem.n, problem.m),
        [*(run.row() for run in runs), *(peer.row for peer in peers)],
        {run.method.label: run.report for run in runs},
        checks=[
            peers[0].bar_for(default),
            Check("splits apart without noise (kW)", apart, 1e-9),
            Check("C2 Pn = 0 apart from full augmentation with noise (kW)", rows[1]["apart"], 1e-9),
            Check("measured against predicted deviation, relative", error, 0.25),
            Check("deviation with C2 Pn = 0 over that of optimism only",
                  silent.measured / worst.measured, 0.5),
        ],
        tables={title: table(rows, NOISE_COLUMNS)},
        facts={"noise": rows},
        figures={"noise": draw(outcomes, default.result.x, shares, swept)},
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
