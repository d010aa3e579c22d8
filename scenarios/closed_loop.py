"""Closed loops of :func:`casadi_hybrid.control.simulate`: our predictive controller and others.

At every sampling instant the controller gets a noisy measurement of the plant's state, solves its
problem from the last plan shifted by one interval, and applies the first control. Ours is
:class:`casadi_hybrid.control.MPC`; what it is for other solvers stands here, with their own rule of
what is applied: the new plan, unless its rows are violated by more than :data:`USABLE`; then the
next control of the last usable plan. The plant differs from the model. Every solver controls a
plant of its own under the same noise, so cost and violation can be compared. Times are those of the
solves alone, of ours those of whole steps.
"""

import argparse
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from reporting import TOL, Check, finish, progress
from solving import FATROP, SQP_CLIPPED, STRICT, Peer, judge, make_solver, problem_of

from casadi_hybrid.control import MHE, MPC, OptimalControl, Plant, Run, Solution, simulate
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import Evaluator
from casadi_hybrid.problem.point.kkt import kkt_residuals
from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.verify import Report

USABLE = 1e-3
"""Largest violation (scaled rows) of a plan that is still applied."""

WARM_IPOPT = Peer(
    "IPOPT",
    "ipopt",
    {
        **STRICT.options,
        "ipopt.warm_start_init_point": "yes",
        "ipopt.warm_start_bound_push": 1e-8,
        "ipopt.warm_start_bound_frac": 1e-8,
        "ipopt.warm_start_slack_bound_push": 1e-8,
        "ipopt.warm_start_slack_bound_frac": 1e-8,
        "ipopt.warm_start_mult_bound_push": 1e-8,
        "ipopt.mu_init": 1e-4,
    },
)
"""IPOPT with its options for warm starts."""

PEERS = (WARM_IPOPT, FATROP, SQP_CLIPPED)
"""Who closes the loop besides the hybrid solver."""


def timed(ocp: OptimalControl, solver: Any, arguments: Any, program: Any) -> tuple[Solution, Any]:
    """Return what a peer finds, and its iterations and seconds."""
    began = clock.perf_counter()
    found = solver(**arguments)
    seconds, stats = clock.perf_counter() - began, solver.stats()
    record = SimpleNamespace(iterations=int(stats.get("iter_count", -1)), seconds=seconds)
    return ocp.solution(program, found, stats), record


class Repeated:
    """A peer as a controller, each time from its last usable plan, shifted.

    It keeps its plans, None for one of no use, and its work.
    """

    def __init__(self, ocp: OptimalControl, peer: Peer) -> None:
        # The interface of FATROP takes no multipliers, and hands back those it was given.
        self.ocp, self.primal = ocp, peer.plugin == "fatrop"
        self.solver = make_solver(ocp.program, peer)
        self.solver(**ocp.numbers().arguments)  # untimed: the first call builds functions
        self.plans: list[Solution | None] = []
        self.records: list[Any] = []
        self.warm: dict[str, Any] = {}
        self.age = 0

    def step(self, x: Any, time: float = 0.0, **parameters: Any) -> Any:
        """Solve with these numbers; return the control, and for whose limits it was asked."""
        program = self.ocp.numbers(x, time=time, **parameters)
        plan, record = timed(self.ocp, self.solver, {**program.arguments, **self.warm}, program)
        self.age += 1
        usable = not self.plans or kkt_residual(plan)[0] <= USABLE
        if usable:
            self.controls, self.age = plan.controls, 0
            warm = program.shifted(plan.x, plan.lam_x, plan.lam_g)
            self.warm = {"x0": warm["x0"]} if self.primal else warm
        self.plans.append(plan if usable else None)
        self.records.append(record)
        control = self.controls[:, min(self.age, self.controls.shape[1] - 1)]
        return SimpleNamespace(control=control, asked=(self.ocp, program, {}))


@dataclass(frozen=True)
class Solves:
    """What one solver came to, instant by instant, and the closed loop, where it is one.

    A plan is None at an instant without a new one; records have seconds and iterations; ``more`` is
    for the row of the table.
    """

    label: str
    plans: Sequence[Any] = field(repr=False)
    records: Sequence[Any] = field(repr=False)
    run: Any = field(default=None, repr=False)
    required: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, label: str, run: Run) -> "Solves":
        """Return those of a run of ours."""
        plans = [step.plan if step.status in ("solved", "feasible") else None for step in run.steps]
        return cls(label, plans, [step.record for step in run.steps], run)

    @cached_property
    def residuals(self) -> np.ndarray:
        """Largest KKT residual of every plan, recomputed, with the solver's multipliers."""
        return np.array([np.inf if plan is None else kkt_residual(plan)[1] for plan in self.plans])

    @property
    def worst(self) -> Solution:
        """The plan with the largest KKT residual."""
        return self.plans[int(np.where(np.isinf(self.residuals), -1.0, self.residuals).argmax())]

    @property
    def report(self) -> Report:
        """What the verifier says of that plan."""
        return judge(self.worst)

    def row(self) -> dict[str, Any]:
        """Return the table row as plain values."""
        loop = {} if self.run is None else {"cost": self.run.cost, "violation": self.run.violation}
        return {
            "method": self.label,
            "solved": f"{int((self.residuals <= TOL).sum())}/{len(self.records)}",
            "worst_residual": float(self.residuals.max()),
            **work(self.records),
            **loop,
            **self.more,
        }


def work(records: Sequence[Any]) -> dict[str, float]:
    """Return iterations and times, in ms, of solves."""
    ms = 1e3 * np.array([record.seconds for record in records])
    iterations = [record.iterations for record in records]
    return {
        "mean_iterations": float(np.mean(iterations)),
        "worst_iterations": max(iterations),
        "median_ms": float(np.median(ms)),
        "p99_ms": float(np.percentile(ms, 99)),
        "worst_ms": float(ms.max()),
    }


def rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(error))))


class KeptMHE(MHE):
    """A moving-horizon estimator that keeps its windows."""

    def reset(self, x0: Any = None) -> None:
        """Begin anew."""
        super().reset(x0)
        self.windows: list[Solution] = []

    def step(self, y: Any, u: Any = None, time: float | None = None, **more: Any) -> np.ndarray:
        """Return the state now."""
        estimate = super().step(y, u, time, **more)
        self.windows.append(self.solution)
        return estimate


def again(mhe: KeptMHE, peer: Peer) -> Solves:
    """Return what a peer finds in the same windows, each from the point that ours began at."""
    progress(f"{mhe.model.name}: {len(mhe.windows)} windows with {peer.label} ...")
    solver = make_solver(mhe.ocp.program, peer)
    solver(**mhe.windows[0].program.arguments)  # untimed, as in a loop
    plans, records, warm = [], [], {}
    for window in mhe.windows:
        program = window.program
        plan, record = timed(mhe.ocp, solver, program.arguments | warm, program)
        plans.append(plan)
        records.append(record)
        warm = program.shifted(plan.x, plan.lam_x, plan.lam_g)
        del warm["x0"]
    return Solves(peer.label, plans, records)


LOOP_COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("method", "method", str),
    ("solved", "KKT points", str),
    ("worst_residual", "worst resid.", "{:.1e}".format),
    ("cost", "cost", "{:.6g}".format),
    ("violation", "violation", "{:.1e}".format),
    ("rmse", "level rmse (mm)", "{:.3f}".format),
    ("mean_iterations", "iter mean", "{:.1f}".format),
    ("worst_iterations", "worst", str),
    ("median_ms", "median (ms)", "{:.2f}".format),
    ("p99_ms", "p99", "{:.2f}".format),
    ("worst_ms", "worst", "{:.2f}".format),
)


def run_all(ocp: OptimalControl, plant: Plant, *, short: bool, **experiment: Any) -> list[Solves]:
    """Return the courses of the hybrid solver and of the peers, in short of the first one only.

    ``experiment`` are arguments of :func:`casadi_hybrid.control.simulate`.
    """
    ocp.solve()  # the first call builds functions, before there is a clock
    controllers = {"hybrid": MPC(ocp)}
    controllers |= {peer.label: Repeated(ocp, peer) for peer in (PEERS[:1] if short else PEERS)}
    courses = []
    for label, controller in controllers.items():
        progress(f"{ocp.name}: {experiment['steps']} steps with {label} ...")
        run = simulate(plant, controller, **experiment)
        courses.append(Solves(label, controller.plans, controller.records, run)
                       if courses else Solves.of(label, run))  # fmt: skip
    return courses


def finish_courses(
    arguments: argparse.Namespace, courses: Sequence[Solves], facts: Mapping[str, Any], **rest: Any
) -> int:
    """Finish a scenario of closed loops: the hybrid solver's first, then the reference's.

    Every one of our plans has to be a KKT point, and our course may cost no more. A reference that
    misses a KKT point at any instant sets no bar.
    """
    ours, reference = courses[:2]
    excess = (ours.run.cost - reference.run.cost) / max(1.0, abs(reference.run.cost))
    bar = excess if (reference.residuals <= TOL).all() else -np.inf
    program = ours.worst.program
    apart = float(np.abs(ours.run.states.values - reference.run.states.values).max())
    return finish(
        arguments,
        (program.n, program.m),
        [replace(ours, required=True), *courses[1:]],
        checks=[
            Check("largest KKT residual of a plan of the hybrid solver", ours.residuals.max(), TOL),
            Check(f"cost above that of {reference.label}, relative", bar, 1e-3),
        ],
        facts={
            **facts,
            "largest violation of a limit": str(ours.run.worst or "none"),
            f"largest distance to {reference.label}'s course": apart,
        },
        columns=LOOP_COLUMNS,
        **rest,
    )


def kkt_residual(plan: Solution) -> tuple[float, float]:
    """Return feasibility and the largest KKT residual of a point, with the solver's multipliers."""
    program = plan.program
    bounds = Bounds(program.lbx, program.ubx, program.lbg, program.ubg)
    try:
        _, *of_point = Evaluator(problem_of(program), program.p).first(plan.x)
    except EvaluationError:
        return np.inf, np.inf
    found = kkt_residuals(bounds, plan.x, *of_point, plan.lam_x, plan.lam_g)
    return found.feasibility, max(found.feasibility, found.stationarity, found.complementarity)
