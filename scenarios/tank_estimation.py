"""Moving-horizon estimation of three tanks with redundant sensors and an unknown leak.

A pump fills the first tank, each tank drains into the next, and the second one leaks:

    S h_1' = u − q_1,   S h_2' = q_1 − q_2 − q_leak,   S h_3' = q_2 − q_3,
    q_i = a √(2 g h_i),   q_leak = c √(2 g h_2)

Measured every 5 s: three levels (σ = 1 cm) and three flows (σ = 2 ml/s), six numbers for three
states. The leak opens after a third of the time. :class:`casadi_hybrid.control.MHE` explains the
last N periods by levels of 0.02 … 0.8 m, by what they gain beside the flows (0.5 mm a period) and
by a leak of 0 … 1 cm², which may change by 5 mm² a period; what was measured before is in the
covariance of an extended Kalman filter. It begins with half-full levels (± 20 cm) and no leak.

IPOPT solves the same windows from the same starts. A second estimator does not believe in
the flow sensors.
"""

import sys
from dataclasses import replace

import casadi as ca
import numpy as np
from closed_loop import LOOP_COLUMNS, WARM_IPOPT, KeptMHE, Solves, again, rms
from reporting import TOL, Check, finish, parser, progress

from casadi_hybrid.control import Model, Plant, Run, simulate

NAME = "tank_estimation"
SUMMARY = "moving-horizon estimation of three tanks: redundant sensors, bounds and an unknown leak"

SECTION, OUTLET, PERIOD = 0.0154, 5e-5, 5.0
"""Section of a tank and of an outlet in m², sampling time in s."""
NOISE, PROCESS = {"h": 0.01, "flow": 2e-6}, 5e-4
"""Standard deviations of the level (m) and flow (m³/s) sensors; of what a level gains (m)."""


def tanks() -> Model:
    plant = Model(NAME)
    h = plant.state("h", 3, lower=0.02, upper=0.8, scale=0.1, guess=0.4, unit="m")
    pump = plant.control("pump", scale=1e-4, unit="m³/s")
    leak = plant.parameter("leak", scale=10.0, unit="mm²")
    speed = ca.sqrt(2.0 * 9.81 * h)
    q, lost = OUTLET * speed, 1e-6 * leak * speed[1]
    plant.rates(h=ca.vertcat(pump - q[0], q[0] - q[1] - lost, q[1] - q[2]) / SECTION)
    plant.output("flow", q, unit="m³/s")
    return plant


def pump(time: float, h: np.ndarray) -> float:
    """Return what the pump gives, whatever the levels are."""
    return 1.2e-4 + 0.5e-4 * float(np.sign(np.sin(2 * np.pi * time / (40 * PERIOD))))


def estimator(N: int, noise=NOISE) -> KeptMHE:
    leak = {"std": 10.0, "lower": 0.0, "upper": 100.0, "drift": 5.0, "scale": 10.0}
    return KeptMHE(tanks(), PERIOD, N, outputs=list(NOISE), noise=noise, process=PROCESS,
                   prior=0.2, free={"leak": leak})  # fmt: skip


def estimated(mhe: KeptMHE, steps: int, label: str) -> tuple[Run, Solves]:
    """Return the run, of which all that is true and measured does not depend on the estimator."""
    progress(f"{NAME}: {steps} windows with {label} ...")
    mhe.ocp.solver(**mhe.ocp.program.arguments)  # the first call builds functions
    opened = {"leak": lambda time: 25.0 * (time >= steps // 3 * PERIOD)}
    plant = Plant(tanks(), PERIOD, parameters=opened, outputs=list(NOISE))
    run = simulate(plant, pump, mhe, steps=steps, x0=[0.30, 0.25, 0.20], noise=NOISE,
                   process_noise=PROCESS)  # fmt: skip
    return run, Solves(label, mhe.windows, mhe.records)


def levels(solves: Solves) -> np.ndarray:
    """Return the levels at the end of every window, a column a time."""
    return np.array([window["h"][:, -1] for window in solves.plans]).T


def rmse(error: np.ndarray) -> float:
    """Return the root mean square in mm over all levels and times, without the first ones."""
    return 1e3 * rms(error[:, error.shape[1] // 8 :])


def main(argv: list[str] | None = None) -> int:
    """Run the scenario; 0 when every window is solved and redundancy helps, else 1."""
    arguments = parser(NAME, SUMMARY).parse_args(argv)
    N, steps = (10, 40) if arguments.short else (20, 160)
    mhe = estimator(N)
    run, ours = estimated(mhe, steps, "hybrid")
    ipopt = again(mhe, WARM_IPOPT)
    levels_only = estimated(estimator(N, {"h": 0.01, "flow": 1.0}), steps, "hybrid, levels only")[1]
    found = [replace(s, required=s is ours, more={"rmse": rmse(levels(s) - run["h"][:, :-1])})
             for s in (ours, ipopt, levels_only)]  # fmt: skip
    errors = [solves.more["rmse"] for solves in found]
    sensors = rmse(run.measured["h"] - run["h"][:, :-1])
    apart = np.abs(levels(ours) - levels(ipopt)).max()
    checks = [
        Check("windows of ours that are no KKT points", float((ours.residuals > TOL).sum()), 0),
        Check("estimates of ours and IPOPT apart (m)", apart, 1e-6),
        Check("error of the estimate over error of the sensors", errors[0] / sensors, 1.0),
    ]
    if not arguments.short:  # which is too short for this one to be more than chance
        gain = errors[0] / errors[-1]
        checks.append(Check("error with all sensors over error with levels only", gain, 1.0))
    program = ours.worst.program
    return finish(
        arguments,
        (program.n, program.m),
        found,
        checks=checks,
        facts={
            "rmse of the level sensors (mm)": sensors,
            "leak at the end, true (mm²)": 25.0,
            "leak at the end, estimated (mm²)": float(run["leak"][-steps // 5 :].mean()),
        },
        figures={"levels": run.plot(["h"]), "leak": run.plot(["leak"])},
        columns=LOOP_COLUMNS,
    )


if __name__ == "__main__":
    sys.exit(main())
