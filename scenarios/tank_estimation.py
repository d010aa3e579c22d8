"""Moving-horizon estimation of three tanks with redundant sensors and an unknown leak.

A pump fills the first tank, each tank drains into the next, and the second one leaks:

    S h_1' = u − q_1,   S h_2' = q_1 − q_2 − q_leak,   S h_3' = q_2 − q_3,
    q_i = a √(2 g h_i),   q_leak = c √(2 g h_2)

Measured every 5 s: three levels (σ = 1 cm) and three flows (σ = 2 ml/s), six numbers for three
states. The leak opens after a third of the time. `MHE` explains the last 20 periods by levels of
0.02 … 0.8 m, by a gain of each level beside the flows (σ = 0.5 mm a period) and by a leak of
0 … 1 cm², which may change by 5 mm² a period. The estimate is compared with the sensors and with a
second estimator, which does not believe in the flow sensors.
"""

import sys

import casadi as ca
import numpy as np

from casadi_hybrid.control import MHE, Model, OptimalControl, Plant, Run, simulate
from casadi_hybrid.verify import verify

PERIOD, STEPS = 5.0, 160  # s
NOISE = {"h": 0.01, "flow": 2e-6}  # m, m³/s
PROCESS = 5e-4  # m


def tanks() -> Model:
    """Return the plant in SI units, its leak in mm²."""
    plant = Model("tank_estimation")
    h = plant.state("h", 3, lower=0.02, upper=0.8, scale=0.1, guess=0.4, unit="m")
    pump = plant.control("pump", scale=1e-4, unit="m³/s")
    leak = plant.parameter("leak", scale=10.0, unit="mm²")
    speed = ca.sqrt(2.0 * 9.81 * h)
    q, lost = 5e-5 * speed, 1e-6 * leak * speed[1]
    plant.rates(h=ca.vertcat(pump - q[0], q[0] - q[1] - lost, q[1] - q[2]) / 0.0154)
    plant.output("flow", q, unit="m³/s")
    return plant


def pump(time: float, h: np.ndarray) -> float:
    return 1.2e-4 + 0.5e-4 * float(np.sign(np.sin(2 * np.pi * time / (40 * PERIOD))))


def estimator(flow_noise: float = NOISE["flow"]) -> MHE:
    """Return the estimator; a large ``flow_noise`` is disbelief in the flow sensors."""
    leak = {"std": 10.0, "lower": 0.0, "upper": 100.0, "drift": 5.0, "scale": 10.0}
    noise = NOISE | {"flow": flow_noise}
    return MHE(tanks(), PERIOD, 20, outputs=list(NOISE), noise=noise, process=PROCESS,
               prior=0.2, free={"leak": leak})  # fmt: skip


def problem() -> OptimalControl:
    """Return the problem of a full window."""
    return estimator().ocp


def simulated(mhe: MHE) -> Run:
    """Return the run; truth and measurements do not depend on the estimator."""
    opened = {"leak": lambda time: 25.0 * (time >= STEPS // 3 * PERIOD)}
    plant = Plant(tanks(), PERIOD, parameters=opened, outputs=list(NOISE))
    return simulate(plant, pump, mhe, steps=STEPS, x0=[0.30, 0.25, 0.20], noise=NOISE,
                    process_noise=PROCESS)  # fmt: skip


def rms(error: np.ndarray) -> float:
    """Return the root mean square in mm over levels and times, after the first eighth."""
    return 1e3 * float(np.sqrt(np.mean(error[:, STEPS // 8 : STEPS] ** 2)))


def main() -> bool:
    """Simulate, check and draw; return True if windows are accepted and redundancy helps."""
    mhe = estimator()
    run, levels_only = simulated(mhe), simulated(estimator(flow_noise=1.0))
    print(run, end="\n\n")
    report = verify(mhe.ocp, mhe.solution)  # the last window
    print(report, end="\n\n")
    print(f"{STEPS - run.failed} of {STEPS} windows solved")
    sensors = rms(run.measured.rows("h") - run["h"][:, :-1])
    both, alone = (rms(r.estimation_error().rows("h")) for r in (run, levels_only))
    print(f"error of the level sensors {sensors:.2f} mm, of the estimate {both:.2f} mm, "
          f"of levels alone {alone:.2f} mm")  # fmt: skip
    print(f"leak at the end 25 mm², estimated {run['leak'][-STEPS // 5 :].mean():.1f} mm²")
    run.plot(["h", "leak"], path="tank_estimation.png")
    return report.accepted and run.failed == 0 and both < min(sensors, alone)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
