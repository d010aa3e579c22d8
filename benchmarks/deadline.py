"""Seconds of the steps of a predictive controller with a deadline, on this machine.

    python benchmarks/deadline.py [--steps 10000] [--deadline 0.008] [--seed 1]

A noisy pendulum is held upright. Nothing stalls or fails: the longest step has what the operating
system and other programs did in it; waiting is wall time less processor time. Garbage that is due
when a step is called is collected before, as in the idle time of a loop. The tests have stalls and
failures.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter

import casadi as ca
import numpy as np

from casadi_hybrid.control import MPC, Model, OptimalControl

DT, INTERVALS, LIMIT, TORQUE = 0.05, 12, 3.0, 4.0


def controller(deadline: float) -> MPC:
    """The controller that holds the pendulum upright."""
    model = Model("pendulum")
    angle = model.state("angle", unit="rad")
    rate = model.state("rate", lower=-LIMIT, upper=LIMIT, unit="rad/s")
    torque = model.control("torque", lower=-TORQUE, upper=TORQUE)
    model.next(angle=angle + DT * rate, rate=rate + DT * (9.81 * ca.sin(angle) + 4.0 * torque))
    ocp = OptimalControl(model, duration=DT * INTERVALS, intervals=INTERVALS)
    ocp.initial()
    ocp.minimize("distance", sum=angle**2 + 0.1 * rate**2 + 0.01 * torque**2, end=10 * angle**2)
    ocp.at_end("not far", angle**2 + rate**2, upper=20.0)
    return MPC(ocp, deadline=deadline, fallback=lambda x, t: [-TORQUE * np.sign(x[0])])


def main() -> None:
    """Run the loop and print what was counted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--deadline", type=float, default=0.008, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    random, mpc = np.random.default_rng(chosen.seed), controller(chosen.deadline)
    x = np.array([0.3, 0.0])
    mpc.prepare(x)
    seconds, waits, statuses = [], [], Counter[str]()
    for _ in range(chosen.steps):
        measured = x + 0.01 * random.standard_normal(2)
        gc.collect(1)
        wall, worked = time.perf_counter(), time.thread_time()
        step = mpc.step(measured)
        seconds.append(time.perf_counter() - wall)
        waits.append(seconds[-1] - (time.thread_time() - worked))
        statuses[step.status] += 1
        rate = x[1] + DT * (9.81 * np.sin(x[0]) + 4.0 * step["torque"])
        x = np.array([x[0] + DT * x[1], rate]) + 0.002 * random.standard_normal(2)
        if random.random() < 0.01:
            x[1] += 2.0 * random.normal()
        if not np.abs(x).max() < 10.0:
            x = np.array([0.3, 0.0])
            statuses["(fell)"] += 1
    print(f"{chosen.steps} steps, deadline {1e3 * chosen.deadline:g} ms")
    print("status:", ", ".join(f"{word} {count}" for word, count in statuses.most_common()))
    median, most, longest = 1e3 * np.quantile(seconds, (0.5, 0.99, 1.0))
    print(f"milliseconds of a step: median {median:.2f}, 99 % within {most:.2f}, the longest")
    print(f"{longest:.2f}; waiting for the processor at most {1e3 * max(waits):.2f}")
    print(f"later than the deadline: {sum(s > chosen.deadline for s in seconds)}")


if __name__ == "__main__":
    main()
