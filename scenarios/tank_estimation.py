"""Moving-horizon estimation of three tanks with redundant sensors and an unknown leak.

A pump fills the first tank, each tank drains into the next, and the second one leaks:

    S h_1' = u − q_1,   S h_2' = q_1 − q_2 − q_leak,   S h_3' = q_2 − q_3,
    q_i = a √(2 g h_i),   q_leak = c √(2 g h_2)

Measured every 5 s: three levels (σ = 1 cm) and three flows (σ = 2 ml/s), six numbers for three
states. Over a window of N intervals the estimate solves

    min Σ_k |y_k − y(h_k)|²/σ² + Σ_k |w_k|²/σ_w² + |h_0 − prior|²/σ_0² + (c − c_prior)²/σ_c²
    s.t. h_{k+1} = F(h_k, u_k, c) + w_k,   0.02 m ≤ h ≤ 0.8 m,   0 ≤ c ≤ 1 cm²

and moves on by one sample at a time; prior and start come from the window before. The first start
is naive: all levels half full, no leak. The leak opens after a third of the time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from closed_loop import WARM_IPOPT, KktResiduals
from matplotlib.figure import Figure
from program import Program
from reporting import TOL, Check, finish, parser, progress, table
from solving import SQP, Answer, Peer, make_solver, no_worse_than, solve_with_all
from transcription import Transcription, exact_step, runge_kutta

from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "tank_estimation"
SUMMARY = "moving-horizon estimation of three tanks: redundant sensors, bounds and an unknown leak"

SECTION, OUTLET, GRAVITY = 0.0154, 5e-5, 9.81
"""Section of a tank and of an outlet in m², gravity in m/s²."""
PERIOD = 5.0
"""Sampling time in s."""
LEAK_UNIT = 1e-5
"""Areas of the leak are estimated in this unit, m²."""
SIGMA = np.array([0.01, 0.01, 0.01, 2e-6, 2e-6, 2e-6])
"""Standard deviations of the level (m) and flow (m³/s) sensors."""
LOWEST, HIGHEST = 0.02, 0.8


def flows(h: Any) -> Any:
    """Return the three outflows in m³/s."""
    return OUTLET * ca.sqrt(2.0 * GRAVITY * h)


def dynamics(h: Any, u: Any) -> Any:
    """Return the rates of the levels; u is pump flow (m³/s) and leak (in LEAK_UNIT)."""
    q = flows(h)
    leak = u[1] * LEAK_UNIT * ca.sqrt(2.0 * GRAVITY * h[1])
    return ca.vertcat(u[0] - q[0], q[0] - q[1] - leak, q[1] - q[2]) / SECTION


def estimator(N: int, *, redundant: bool = True) -> Program:
    """Return the estimation over one window; ``redundant`` uses the flow sensors too."""
    mhe = Transcription(NAME)
    X = mhe.variable("level", 3, N + 1, lower=LOWEST, upper=HIGHEST, start=0.4, unit=0.1)
    W = mhe.variable("disturbance", 3, N, unit=1e-3)
    leak = mhe.variable("leak", lower=0.0, upper=10.0)
    measured = mhe.parameter("measured", np.full((6, N + 1), 0.4))
    pump = mhe.parameter("pump", np.zeros((1, N)))
    prior = mhe.parameter("prior", np.full(3, 0.4))
    prior_leak = mhe.parameter("prior leak", 0.0)
    sigma_prior = mhe.parameter("sigma prior", 0.2)
    step = runge_kutta(dynamics, PERIOD)
    ends = [step(X[:, k], ca.vertcat(pump[k], leak)) + W[:, k] for k in range(N)]
    mhe.constrain("dynamics", X[:, 1:] - ca.horzcat(*ends), unit=0.1)
    sensors = 6 if redundant else 3
    for k in range(N + 1):
        seen = ca.vertcat(X[:, k], flows(X[:, k]))
        error = (measured[:, k] - seen) / ca.DM(SIGMA)
        mhe.minimize(0.5 * ca.sumsqr(error[:sensors]) / N)
    mhe.minimize(0.5 * ca.sumsqr(W / 5e-4) / N)
    mhe.minimize(0.5 * ca.sumsqr((X[:, 0] - prior) / sigma_prior) / N)
    mhe.minimize(0.5 * (leak - prior_leak) ** 2 / N)
    return mhe.build()


@dataclass(frozen=True)
class Experiment:
    """What happened in the plant: pump, true levels and leak, and what the sensors said."""

    pump: np.ndarray
    levels: np.ndarray
    leak: np.ndarray
    measured: np.ndarray


def experiment(samples: int, seed: int = 0) -> Experiment:
    """Simulate the plant with CVODES; the leak opens after a third of the time."""
    rng = np.random.default_rng(seed)
    plant = exact_step(dynamics, 3, 2, PERIOD)
    k = np.arange(samples)
    pump = 1.2e-4 + 0.5e-4 * np.sign(np.sin(2 * np.pi * k / 40.0))
    leak = np.where(k < samples // 3, 0.0, 2.5)
    levels = [np.array([0.30, 0.25, 0.20])]
    for i in range(samples - 1):
        after = plant(levels[-1], [pump[i], leak[i]]).full().ravel()
        levels.append(np.clip(after + 5e-4 * rng.standard_normal(3), LOWEST, HIGHEST))
    true = np.array(levels)
    seen = np.hstack((true, np.array([np.array(flows(ca.DM(h)).full()).ravel() for h in true])))
    return Experiment(pump, true, leak, seen + SIGMA * rng.standard_normal(seen.shape))


@dataclass(frozen=True)
class Estimates:
    """The end of every window by one solver: levels and leak, and what each solve took."""

    label: str
    levels: np.ndarray
    leak: np.ndarray
    iterations: np.ndarray
    seconds: np.ndarray
    residuals: np.ndarray

    def row(self, true: np.ndarray) -> dict[str, Any]:
        """Return the table row; levels in mm, times in ms."""
        ms = 1e3 * self.seconds
        return {
            "method": self.label,
            "solved": f"{int((self.residuals <= TOL).sum())}/{self.residuals.size}",
            "rmse": 1e3 * rmse(self.levels, true),
            "mean_iterations": float(self.iterations.mean()),
            "worst_iterations": int(self.iterations.max()),
            "median_ms": float(np.median(ms)),
            "p99_ms": float(np.percentile(ms, 99)),
            "worst_ms": float(ms.max()),
        }


COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("method", "method", str),
    ("solved", "KKT points", str),
    ("rmse", "level rmse (mm)", "{:.3f}".format),
    ("mean_iterations", "iter mean", "{:.1f}".format),
    ("worst_iterations", "worst", str),
    ("median_ms", "median (ms)", "{:.2f}".format),
    ("p99_ms", "p99", "{:.2f}".format),
    ("worst_ms", "worst", "{:.2f}".format),
)


def rmse(estimate: np.ndarray, true: np.ndarray) -> float:
    """Return the root mean square error over all levels and times."""
    return float(np.sqrt(np.mean((estimate - true) ** 2)))


def window(program: Program, seen: Experiment, first: int, N: int) -> Program:
    """Return the program of the window that begins with sample ``first``."""
    return program.with_parameters(
        measured=seen.measured[first : first + N + 1].T, pump=seen.pump[None, first : first + N]
    )


def estimate(
    program: Program, seen: Experiment, N: int, label: str, peer: Peer | None
) -> Estimates:
    """Move the window over the experiment, each solve warm from the one before."""
    progress(f"{program.name}: {len(seen.pump) - N} windows with {label} ...")
    solver, residuals = make_solver(program, peer), KktResiduals(program)
    warm: dict[str, Any] = {}
    records = []
    for first in range(len(seen.pump) - N):
        program = window(program, seen, first, N)
        began = time.perf_counter()
        found = solver(**{**program.arguments, **warm})
        seconds = time.perf_counter() - began
        x, lam_x, lam_g = (found[key].full().ravel() for key in ("x", "lam_x", "lam_g"))
        values = program.unpack(x)
        _, worst = residuals(program, x, lam_x, lam_g)
        count = int(solver.stats().get("iter_count", -1))
        records.append((values["level"][:, -1], float(values["leak"][0]), count, seconds, worst))
        warm = program.shifted(x, lam_x, lam_g)
        # The second level of this window is the first of the next.
        prior = {"prior": values["level"][:, 1], "prior leak": values["leak"]}
        program = program.with_parameters(**prior, **{"sigma prior": 0.01})
    return Estimates(label, *(np.array(column) for column in zip(*records, strict=True)))


def draw(seen: Experiment, N: int, ours: Estimates) -> Figure:
    """Plot levels and leak over time: sensors, truth, estimate, and the bound of the leak."""
    fig, axes = figure(4, 1, height=1.5, sharex=True)
    time_s = PERIOD * np.arange(len(seen.pump))
    for i in range(3):
        ax = axes[i, 0]
        ax.plot(time_s, seen.measured[:, i], ".", color="#999999", markersize=3, label="sensor")
        ax.plot(time_s, seen.levels[:, i], color="#000000", linewidth=1.0, label="truth")
        ax.plot(time_s[N:], ours.levels[:, i], "--", color=PALETTE[1], label="estimate (hybrid)")
        ax.set_ylabel(f"$h_{i + 1}$ (m)")
    ax = axes[3, 0]
    ax.plot(time_s, 10.0 * seen.leak, color="#000000", linewidth=1.0)
    ax.plot(time_s[N:], 10.0 * ours.leak, "--", color=PALETTE[1])
    ax.axhline(0.0, color=PALETTE[0], linewidth=1.0, linestyle=":", label="lower bound")
    ax.set(xlabel="time (s)", ylabel="leak (mm²)")
    ax.legend(fontsize=8, loc="upper left")
    fig.align_ylabels()
    legend_below(fig, axes[0, 0])
    return fig


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenario; 0 when every window is solved and redundancy helps, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    N, samples = (10, 40) if arguments.short else (20, 160)
    seen = experiment(samples)
    program, plain = estimator(N), estimator(N, redundant=False)
    cold = solve_with_all(window(program, seen, 0, N), (SQP,))
    peers: dict[str, Peer | None] = {"hybrid": None, "IPOPT": WARM_IPOPT, "SQP (qrqp)": SQP}
    runs = [estimate(program, seen, N, label, peer) for label, peer in peers.items()]
    levels_only = estimate(plain, seen, N, "hybrid, levels only", None)
    true = seen.levels[N:]
    return _report(arguments, seen, N, cold, [*runs, levels_only], true, program)


def _report(
    arguments: Any,
    seen: Experiment,
    N: int,
    cold: Sequence[Answer],
    runs: Sequence[Estimates],
    true: np.ndarray,
    program: Program,
) -> int:
    ours, ipopt, *_, levels_only = runs
    rows = [run.row(true) for run in runs]
    sensors = rmse(seen.measured[N:, :3], true)
    steady = slice(-len(true) // 4, None)
    apart = max(float(np.abs(ours.levels - ipopt.levels).max()),
                LEAK_UNIT * float(np.abs(ours.leak - ipopt.leak).max()))  # fmt: skip
    gain = rmse(ours.levels, true) / rmse(levels_only.levels, true)
    # The short run is too short for this one to be more than chance.
    redundancy = (
        []
        if arguments.short
        else [Check("error with all sensors over error with levels only", gain, 1.0)]
    )
    return finish(
        arguments,
        NAME,
        (program.n, program.m),
        rows,
        {"hybrid": cold[0].report},
        checks=[
            *redundancy,
            no_worse_than(cold[0], cold[1]),
            Check("windows of ours that are no KKT points", float((ours.residuals > TOL).sum()), 0),
            Check("estimates of ours and IPOPT apart (m)", apart, 1e-6),
            Check("error of the estimate over error of the sensors",
                  rmse(ours.levels, true) / sensors, 1.0),
        ],
        facts={
            "rmse of the level sensors (mm)": 1e3 * sensors,
            "leak at the end, true (mm²)": 10.0 * float(np.mean(seen.leak[steady])),
            "leak at the end, estimated (mm²)": 10.0 * float(np.mean(ours.leak[steady])),
        },
        tables={"first window, from a cold start": table([answer.row() for answer in cold])},
        figures={"estimates": draw(seen, N, ours)},
        columns=COLUMNS,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
