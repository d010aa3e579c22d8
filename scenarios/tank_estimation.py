"""Moving-horizon estimation of three tanks with redundant sensors and an unknown leak.

A pump fills the first tank, each tank drains into the next, and the second one leaks:

    S h_1' = u − q_1,   S h_2' = q_1 − q_2 − q_leak,   S h_3' = q_2 − q_3,
    q_i = a √(2 g h_i),   q_leak = c √(2 g h_2)

Measured every 5 s: three levels (σ = 1 cm) and three flows (σ = 2 ml/s), six numbers for three
states. Over a window of N intervals the estimate solves

    min Σ_k |y_k − y(h_k)|²/σ² + Σ_k |w_k|²/σ_w² + |h_0 − prior|²/σ_0² + (c − c_prior)²/σ_c²
    s.t. h_{k+1} = F(h_k, u_k, c, w_k),   0.02 m ≤ h ≤ 0.8 m,   0 ≤ c ≤ 1 cm²

where w is what levels gain beside the flows, evenly over an interval; the window moves on by one
sample at a time; prior and start come from the window before. The first start is naive: all levels
half full, no leak. The leak opens after a third of the time.
"""

import sys

import casadi as ca
import numpy as np
from closed_loop import LOOP_COLUMNS, WARM_IPOPT, Repeated, Solves
from drawing import TARGET
from matplotlib.figure import Figure
from reporting import TOL, Check, finish, parser, progress, table
from solving import SQP, Peer, no_worse_than, solve_with_all

from casadi_hybrid.control import Model, OptimalControl, Plant, simulate
from casadi_hybrid.plotting import PALETTE, figure, legend_below

NAME = "tank_estimation"
SUMMARY = "moving-horizon estimation of three tanks: redundant sensors, bounds and an unknown leak"

SECTION, OUTLET, PERIOD, LEAK_UNIT = 0.0154, 5e-5, 5.0, 1e-5
"""Section of a tank and of an outlet in m², sampling time in s, unit of the leak's area in m²."""
SIGMA = np.array([0.01, 0.01, 0.01, 2e-6, 2e-6, 2e-6])
"""Standard deviations of the level (m) and flow (m³/s) sensors."""
LOWEST, HIGHEST = 0.02, 0.8


def tanks() -> Model:
    """Return the plant; the disturbance is what a level gains in a period."""
    plant = Model(NAME)
    h = plant.state("h", 3, lower=LOWEST, upper=HIGHEST, scale=0.1, guess=0.4, unit="m")
    w = plant.control("w", 3, scale=1e-3, unit="m")
    pump, leak = plant.reference("pump", unit="m³/s"), plant.parameter("leak")
    speed = ca.sqrt(2.0 * 9.81 * h)
    q, lost = OUTLET * speed, LEAK_UNIT * leak * speed[1]
    plant.rates(h=ca.vertcat(pump - q[0], q[0] - q[1] - lost, q[1] - q[2]) / SECTION + w / PERIOD)
    plant.output("seen", ca.vertcat(h, q))
    return plant


def estimator(N: int, *, sensors: int = 6) -> OptimalControl:
    """Return the estimation over one window, by all sensors or by the first ones."""
    plant = tanks()
    h, w, leak = (plant.symbol(name) for name in ("h", "w", "leak"))
    mhe = OptimalControl(plant, duration=N * PERIOD, intervals=N)
    mhe.free("leak", lower=0, upper=10)
    measured, prior = mhe.reference("measured", 0.4, 6), mhe.parameter("prior", [0.4, 0.4, 0.4, 0])
    sigma = mhe.parameter("sigma", 0.2)
    error = ((measured - plant.symbol("seen")) / SIGMA)[:sensors]
    fit = 0.5 * ca.sumsqr(error) / N
    mhe.minimize("fit", sum=fit, end=fit)
    mhe.minimize("disturbance", sum=0.5 * ca.sumsqr(w / 5e-4) / N)
    mhe.minimize("prior", start=0.5 * ca.sumsqr((h - prior[:3]) / sigma) / N)
    mhe.minimize("prior leak", start=0.5 * (leak - prior[3]) ** 2 / N)
    return mhe


class Experiment:
    """What happened in the plant: pump, true levels and leak, and what the sensors said."""

    def __init__(self, samples: int, seed: int = 0) -> None:
        """Simulate the plant with CVODES; the leak opens after a third of the time."""
        k = np.arange(samples)
        self.pump = 1.2e-4 + 0.5e-4 * np.sign(np.sin(2 * np.pi * k / 40.0))
        self.leak = np.where(k < samples // 3, 0.0, 2.5)
        known = {name: lambda time, values=values: values[min(round(time / PERIOD), samples - 1)]
                 for name, values in (("pump", self.pump), ("leak", self.leak))}  # fmt: skip
        plant = Plant(tanks(), PERIOD, parameters=known, outputs=["seen"])
        run = simulate(plant, lambda time, seen: np.zeros(3), steps=samples, x0=[0.30, 0.25, 0.20],
                       noise=SIGMA, process_noise=5e-4, seed=seed)  # fmt: skip
        self.levels, self.measured = run["h"][:, :-1].T, run.measured["seen"].T

    def window(self, first: int, N: int) -> dict[str, np.ndarray]:
        """Return what was known in the window that begins with the sample ``first``."""
        part = slice(first, first + N + 1)
        return {"measured": self.measured[part].T, "pump": self.pump[None, part]}


class Estimates(Solves):
    """The end of every window by one solver: levels and leak."""

    def __init__(self, mhe: OptimalControl, seen: Experiment, label: str, peer: Peer | None = None):
        """Move the window over the experiment, each solve warm from the one before."""
        N = mhe.intervals
        progress(f"{NAME}: {len(seen.pump) - N} windows with {label} ...")
        estimate, solves, prior = Repeated(mhe, peer), [], {}
        for first in range(len(seen.pump) - N):
            solves.append(estimate.step(**seen.window(first, N), **prior))
            plan = solves[-1].plan
            # The second level of this window is the first of the next.
            prior = {"prior": [*plan["h"][:, 1], plan["leak"][0]], "sigma": 0.01}
        super().__init__(label, solves)
        self.levels = np.array([solve.plan["h"][:, -1] for solve in solves])
        self.leak = np.array([solve.plan["leak"][0] for solve in solves])
        self.true = seen.levels[N:]

    def row(self):
        """See :meth:`Solves.row`; levels in mm."""
        return {**super().row(), "rmse": 1e3 * rmse(self.levels, self.true)}


def rmse(estimate: np.ndarray, true: np.ndarray) -> float:
    """Return the root mean square error over all levels and times."""
    return float(np.sqrt(np.mean((estimate - true) ** 2)))


def draw(seen: Experiment, N: int, ours: Estimates) -> Figure:
    """Plot levels and leak over time: sensors, truth, estimate, and the bound of the leak."""
    fig, axes = figure(4, 1, height=1.5, sharex=True)
    time, dashed = PERIOD * np.arange(len(seen.pump)), {"color": PALETTE[1], "linestyle": "--"}
    for i, ax in enumerate(axes[:3, 0]):
        ax.plot(time, seen.measured[:, i], ".", color="#999999", markersize=3, label="sensor")
        ax.plot(time, seen.levels[:, i], color="#000000", linewidth=1.0, label="truth")
        ax.plot(time[N:], ours.levels[:, i], label="estimate (hybrid)", **dashed)
        ax.set_ylabel(f"level $h_{i + 1}$ (m)")
    leak = axes[3, 0]
    leak.plot(time, 10.0 * seen.leak, color="#000000", linewidth=1.0)
    leak.plot(time[N:], 10.0 * ours.leak, **dashed)
    leak.axhline(0.0, label="lower bound", **TARGET)
    leak.set(xlabel="time (s)", ylabel="leak (mm²)")
    leak.legend(fontsize=8, loc="upper left")
    fig.align_ylabels()
    legend_below(fig, axes[0, 0])
    return fig


def main(argv: list[str] | None = None) -> int:
    """Run the scenario; 0 when every window is solved and redundancy helps, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    N, samples = (10, 40) if arguments.short else (20, 160)
    seen, mhe = Experiment(samples), estimator(N)
    cold = solve_with_all(mhe, SQP, **seen.window(0, N))
    peers = {"hybrid": None, "IPOPT": WARM_IPOPT, "SQP (qrqp)": SQP}
    runs = [Estimates(mhe, seen, label, peer) for label, peer in peers.items()]
    levels_only = Estimates(estimator(N, sensors=3), seen, "hybrid, levels only")
    ours, ipopt = runs[:2]
    error, sensors = rmse(ours.levels, ours.true), rmse(seen.measured[N:, :3], ours.true)
    steady = slice(-len(ours.true) // 4, None)
    apart = np.abs(ours.levels - ipopt.levels).max()
    checks = [
        no_worse_than(*cold[:2]),
        Check("windows of ours that are no KKT points", float((ours.residuals > TOL).sum()), 0),
        Check("estimates of ours and IPOPT apart (m)", apart, 1e-6),
        Check("error of the estimate over error of the sensors", error / sensors, 1.0),
    ]
    if not arguments.short:  # which is too short for this one to be more than chance
        gain = error / rmse(levels_only.levels, ours.true)
        checks.append(Check("error with all sensors over error with levels only", gain, 1.0))
    return finish(
        arguments,
        (mhe.program.n, mhe.program.m),
        [run.row() for run in (*runs, levels_only)],
        {"hybrid": cold[0].report},
        checks=checks,
        facts={
            "rmse of the level sensors (mm)": 1e3 * sensors,
            "leak at the end, true (mm²)": 10.0 * float(np.mean(seen.leak[steady])),
            "leak at the end, estimated (mm²)": 10.0 * float(np.mean(ours.leak[steady])),
        },
        tables={"first window, from a cold start": table([answer.row() for answer in cold])},
        figures={"estimates": draw(seen, N, ours)},
        columns=LOOP_COLUMNS,
    )


if __name__ == "__main__":
    sys.exit(main())
