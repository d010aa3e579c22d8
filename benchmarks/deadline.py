"""Does a predictive controller answer in time, and is what it calls feasible feasible?

    python benchmarks/deadline.py [--steps 10000] [--deadline 0.05] [--seed 1] [--clock wall]
    python benchmarks/deadline.py --undisturbed --deadline 0.008

A pendulum is held upright while its model stalls at random: now and then an evaluation sleeps, up
to twice the deadline. In 5 % of the solves the solver fails (it raises, returns NaN, or calls a
wrong point a solution), sometimes the model raises and sometimes a sensor gives NaN. Counted are
steps later than the deadline and one evaluation, and plans that are called feasible and are not,
by a simulation of the plan that shares no code with the controller.

The clock is that of the processor: sleep is only added to it, and what else the machine does is
not in it. Garbage that is due when a step is called is collected before, as in the idle time of a
loop: a step itself puts it off. With ``--clock wall`` evaluations do sleep; then the time that a
step has waited for the processor, wall time less processor time less sleep, is taken off, and
shown.

``--undisturbed`` measures how long steps take on this machine: nothing stalls or fails, the clock
is the wall's, and nothing is taken off, so that the longest step has what the operating system and
other programs did in it.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control import MPC, Model, OptimalControl
from casadi_hybrid.solver.record.answer import altered

DT, INTERVALS, LIMIT, TORQUE = 0.05, 12, 3.0, 4.0


class Pretended:
    """The time of the processor, and of sleep that is not slept."""

    def __init__(self) -> None:
        self.slept = 0.0

    def now(self) -> float:
        """Seconds."""
        return time.thread_time() + self.slept

    def sleep(self, seconds: float) -> None:
        """Let so much time go by."""
        self.slept += seconds


class Garbage:
    """How long Python has collected garbage."""

    def __init__(self) -> None:
        self.spent, self.began = 0.0, 0.0
        gc.callbacks.append(self)

    def __call__(self, phase: str, _info: Any) -> None:
        """A collection begins or ends."""
        if phase == "start":
            self.began = time.perf_counter()
        else:
            self.spent += time.perf_counter() - self.began


class Stall(ca.Callback):
    """1, sooner or later; sometimes an exception."""

    def __init__(self, generator: np.random.Generator, longest: float) -> None:
        ca.Callback.__init__(self)
        self.generator, self.longest, self.quiet = generator, longest, True
        self.slept, self.most, self.began = 0.0, 0.0, 0.0
        self.construct("stall", {"is_diff_in": [False]})

    def eval(self, arguments: Any) -> list[ca.DM]:
        """Sleep at random."""
        draw = 1.0 if self.quiet else self.generator.random()
        if draw < 0.001:
            raise ValueError("the model is broken for once")
        if draw < 0.06:
            began = time.perf_counter()
            time.sleep(self.longest * self.generator.random())
            spent = time.perf_counter() - began
            self.slept, self.most = self.slept + spent, max(self.most, spent)
        return [ca.DM(1.0)]

    def has_jacobian(self) -> bool:
        """The solver asks for it; as nothing is differentiated it is never called."""
        return True

    def get_jacobian(self, name: str, inames: Any, onames: Any, options: Any) -> ca.Function:
        """Zero."""
        x, y = ca.SX.sym("x"), ca.SX.sym("y")
        return ca.Function(name, [x, y], [ca.SX.zeros(1, 1)], inames, onames)


class Breaking:
    """A solver that fails in some of its calls."""

    def __init__(self, solver: Any, generator: np.random.Generator, share: float) -> None:
        self.solver, self.generator, self.share = solver, generator, share
        self.quiet, self.failures = True, 0

    def within(self, *limits: Any, **arguments: Any) -> Any:
        """Solve, or fail."""
        if self.quiet or self.generator.random() >= self.share:
            return self.solver.within(*limits, **arguments)
        self.failures += 1
        kind = self.generator.integers(3)
        if kind == 0:
            raise RuntimeError("the solver is broken for once")
        found = self.solver.within(*limits, **arguments)
        noise = np.nan if kind == 1 else 0.1 * self.generator.standard_normal(found.x.size)
        return altered(found, x=found.x + noise)


class Flaky(OptimalControl):
    """A problem whose solver may fail."""

    generator: np.random.Generator

    @cached_property
    def solver(self) -> Any:
        """The solver behind :class:`Breaking`."""
        return Breaking(super().solver, self.generator, 0.05)


def problem(stall: Stall, generator: np.random.Generator) -> Flaky:
    """The pendulum to be held upright."""
    model = Model("pendulum")
    angle = model.state("angle", unit="rad")
    rate = model.state("rate", lower=-LIMIT, upper=LIMIT, unit="rad/s")
    torque = model.control("torque", lower=-TORQUE, upper=TORQUE)
    model.next(angle=angle + DT * rate, rate=rate + DT * (9.81 * ca.sin(angle) + 4.0 * torque))
    ocp = Flaky(model, duration=DT * INTERVALS, intervals=INTERVALS)
    ocp.generator = generator
    ocp.initial()
    ocp.minimize("distance", sum=angle**2 + 0.1 * rate**2 + 0.01 * torque**2, end=10 * angle**2)
    (late,) = stall.call([angle], False, True)
    ocp.at_end("not far", late * (angle**2 + rate**2), upper=20.0)
    return ocp


def after(x: np.ndarray, u: float) -> np.ndarray:
    """The next state."""
    return np.array([x[0] + DT * x[1], x[1] + DT * (9.81 * np.sin(x[0]) + 4.0 * u)])


def violation(plan: Any, measured: np.ndarray, softened: bool) -> float:
    """By how much a plan violates the model, the measurement and the limits."""
    states, torques = plan.states, plan["torque"]
    gaps = [np.abs(states[:, 0] - measured).max(), np.abs(torques).max() - TORQUE]
    gaps += [np.abs(after(states[:, k], torques[k]) - states[:, k + 1]).max()
             for k in range(INTERVALS)]  # fmt: skip
    if not softened:
        gaps += [np.abs(states[1]).max() - LIMIT, float(states[:, -1] @ states[:, -1]) - 20.0]
    return float(max(gaps))


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--deadline", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--undisturbed", action="store_true", help="nothing stalls or fails")
    parser.add_argument("--clock", choices=("processor", "wall"), default="processor")
    return parser.parse_args()


def main() -> None:
    """Run the loop and print what was counted."""
    given = arguments()
    if given.undisturbed:
        given.clock = "wall"
    if given.clock != "wall":  # for the controller and its solver too
        pretended = Pretended()
        time.perf_counter, time.sleep = pretended.now, pretended.sleep
    garbage = Garbage()
    generator = np.random.default_rng(given.seed)
    stall = Stall(generator, 2.0 * given.deadline)
    ocp = problem(stall, generator)
    mpc = MPC(ocp, deadline=given.deadline, fallback=lambda x, t: [-TORQUE * np.sign(x[0])])
    x = np.array([0.3, 0.0])
    mpc.prepare(x)
    stall.quiet = ocp.solver.quiet = given.undisturbed
    late, waits, over, wrong, nans = [], [], [], 0, 0
    statuses: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for _ in range(given.steps):
        measured = x + 0.01 * generator.standard_normal(2)
        if not given.undisturbed and generator.random() < 0.01:
            measured[generator.integers(2)] = np.nan
            nans += 1
        failures = ocp.solver.failures
        step, wall, beyond, waited = timed(mpc, measured, stall, given, garbage)
        late.append(wall - given.deadline)
        waits.append(waited)
        over.append(beyond)
        statuses[step.status] += 1
        if ocp.solver.failures > failures:
            broken[step.status] += 1
        if step.status in ("solved", "feasible", "softened"):
            wrong += not violation(step.plan, measured, step.status == "softened") <= 1e-3
        x = after(x, step["torque"]) + 0.002 * generator.standard_normal(2)
        if generator.random() < 0.01:
            x[1] += 2.0 * generator.normal()
        if not np.abs(x).max() < 10.0:
            x = np.array([0.3, 0.0])
            statuses["(fell)"] += 1
    seconds = mpc.telemetry()["seconds"]
    print(f"{given.steps} steps, deadline {1e3 * given.deadline:g} ms, clock: {given.clock}")
    print("status:", ", ".join(f"{word} {n}" for word, n in statuses.most_common()))
    print(
        f"sensors gave NaN {nans} times; the solver failed {ocp.solver.failures} times, and then "
        f"the step was: {', '.join(f'{word} {n}' for word, n in broken.most_common())}"
    )
    most = ", ".join(f"{1e3 * one:.2f}" for one in np.sort(seconds)[:-4:-1])
    print(
        f"milliseconds of a step: median {1e3 * np.median(seconds):.2f}, 99 % of them "
        f"{1e3 * np.quantile(seconds, 0.99):.2f}, the longest {most}; waiting for the processor "
        f"at most {1e3 * max(waits):.2f}"
    )
    print(
        f"later than the deadline: {sum(1 for one in late if one > 0)}; than the deadline and one "
        f"evaluation: {sum(1 for one in over if one > 0)}, by at most {1e3 * max(*over, 0):.2f} ms"
    )
    print(f"plans called solved, feasible or softened that are not: {wrong}")


def timed(
    mpc: MPC, measured: np.ndarray, stall: Stall, given: argparse.Namespace, garbage: Garbage
) -> tuple[Any, float, float, float]:
    """A step, its seconds, those beyond the deadline and one evaluation, those of waiting."""
    # What is due before the call is the caller's; without it the call itself may begin it.
    gc.collect(1)
    stall.slept = stall.most = garbage.spent = 0.0
    began, worked = time.perf_counter(), time.thread_time()
    step = mpc.step(measured)
    wall, worked = time.perf_counter() - began, time.thread_time() - worked
    waited = max(0.0, wall - worked - stall.slept) if given.clock == "wall" else 0.0
    beyond = wall - waited - given.deadline - stall.most
    if beyond > 0.0:
        print(
            f"{1e3 * beyond:.2f} ms beyond, in which {1e3 * garbage.spent:.2f} ms went into "
            f"collecting garbage: {step.status}, {step.reason}"
        )
    return step, wall, beyond, waited


if __name__ == "__main__":
    main()
