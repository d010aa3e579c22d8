"""Closed loops of :func:`casadi_hybrid.control.simulate` with the same steps for every solver.

At every sampling instant the controller gets a noisy measurement of the plant's state, solves its
problem from the last solution shifted by one interval, and applies the first control. The plant
differs from the model. Every solver controls a plant of its own under the same noise, so cost and
violation can be compared; times are those of the solves alone. A user would take
:class:`casadi_hybrid.control.MPC`, which has our solver only.

One rule for every solver decides what is applied: the new plan, unless its rows are violated by
more than :data:`USABLE`; then the next control of the last usable plan.
"""

from __future__ import annotations

import argparse
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from reporting import TOL, Check, finish, progress
from solving import FATROP, IPOPT, SQP_CLIPPED, Peer, judge, make_solver

from casadi_hybrid.control import OptimalControl, Plant, Program, Run, Solution, simulate

USABLE = 1e-3
"""Largest violation (scaled rows) of a plan that is still applied."""

WARM_IPOPT = Peer(
    "IPOPT",
    "ipopt",
    {
        **IPOPT.options,
        "ipopt.warm_start_init_point": "yes",
        "ipopt.warm_start_bound_push": 1e-8,
        "ipopt.warm_start_bound_frac": 1e-8,
        "ipopt.warm_start_slack_bound_push": 1e-8,
        "ipopt.warm_start_slack_bound_frac": 1e-8,
        "ipopt.warm_start_mult_bound_push": 1e-8,
        "ipopt.mu_init": 1e-4,
        "ipopt.bound_relax_factor": 0.0,
    },
)
"""IPOPT with its options for warm starts; without its widening of bounds, which alone would leave
KKT residuals above the tolerance of the table."""

PEERS = (WARM_IPOPT, FATROP, SQP_CLIPPED)
"""Who closes the loop besides the hybrid solver."""


@dataclass(frozen=True)
class Solved:
    """A plan, the seconds it took, its largest violation and its largest KKT residual.

    Attributes:
        used: the plan in use: this one where it is usable, else the last that was.
        control: what that has for now.
    """

    plan: Solution
    seconds: float
    feasibility: float
    residual: float
    used: Solution = field(repr=False)
    control: np.ndarray

    @property
    def status(self) -> str:
        """Whether the plan is applied."""
        return "solved" if self.used is self.plan else "last plan"


class Repeated:
    """One solver, called again and again, each time from its last usable solution, shifted."""

    def __init__(self, ocp: OptimalControl, peer: Peer | None = None) -> None:
        self.ocp = ocp
        # The interface of FATROP takes no multipliers, and hands back those it was given.
        self.primal = peer is not None and peer.plugin == "fatrop"
        self.solver = make_solver(ocp.program, peer)
        self.residuals = KktResiduals(ocp.program)
        self.reset()

    def reset(self) -> None:
        """Begin anew, from the problem's own guess."""
        self.warm: dict[str, Any] = {}
        self.used: Solution | None = None
        self.age = 0

    def step(self, x: Any = None, time: float = 0.0, **parameters: Any) -> Solved:
        """Solve with these numbers."""
        program = self.ocp.numbers(x, time=time, **parameters)
        if self.used is None:
            self.solver(**program.arguments)  # untimed: the first call builds functions
        began = clock.perf_counter()
        found = self.solver(**{**program.arguments, **self.warm})
        seconds = clock.perf_counter() - began
        plan = self.ocp.solution(program, found, self.solver.stats())
        feasibility, residual = self.residuals(plan)
        self.age += 1
        if feasibility <= USABLE or self.used is None:
            self.used, self.age = plan, 0
            warm = program.shifted(plan.x, plan.lam_x, plan.lam_g)
            self.warm = {"x0": warm["x0"]} if self.primal else warm
        controls = self.used.controls
        control = controls[:, min(self.age, controls.shape[1] - 1)]
        return Solved(plan, seconds, feasibility, residual, self.used, control)


@dataclass(frozen=True)
class Solves:
    """What the solves of one solver took, instant by instant."""

    label: str
    solves: Sequence[Solved] = field(repr=False)

    @property
    def residuals(self) -> np.ndarray:
        """Largest KKT residual of every solve, recomputed, with the solver's multipliers."""
        return np.array([solve.residual for solve in self.solves])

    @property
    def seconds(self) -> np.ndarray:
        """Of every solve."""
        return np.array([solve.seconds for solve in self.solves])

    @property
    def worst(self) -> Solution:
        """The plan with the largest KKT residual."""
        return self.solves[int(self.residuals.argmax())].plan

    def row(self) -> dict[str, Any]:
        """Return the table row as plain values; times in ms."""
        ms, solved = 1e3 * self.seconds, self.residuals <= TOL
        iterations = [int(solve.plan.stats.get("iter_count", -1)) for solve in self.solves]
        return {
            "method": self.label,
            "solved": f"{int(solved.sum())}/{solved.size}",
            "worst_residual": float(self.residuals.max()),
            "mean_iterations": float(np.mean(iterations)),
            "worst_iterations": max(iterations),
            "median_ms": float(np.median(ms)),
            "p99_ms": float(np.percentile(ms, 99)),
            "worst_ms": float(ms.max()),
        }


@dataclass(frozen=True)
class Course(Solves):
    """One closed loop; ``course["q"]`` is what the true plant did.

    Attributes:
        run: its record; the plan in use at step k is ``run.steps[k].used``.
    """

    run: Run = field(repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a true trajectory by name."""
        return self.run[name]

    def signal(self, name: str) -> Any:
        """Return what has the limits and the unit of a trajectory."""
        return self.run.limits[name]

    def row(self) -> dict[str, Any]:
        """See :meth:`Solves.row`."""
        return {**super().row(), "cost": self.run.cost, "violation": self.run.violation}


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


def run_all(
    ocp: OptimalControl,
    plant: Plant,
    peers: Sequence[Peer] = PEERS,
    *,
    short: bool = False,
    **experiment: Any,
) -> list[Course]:
    """Return the courses of the hybrid solver and of the peers, in short of the first one only.

    ``experiment`` are arguments of :func:`casadi_hybrid.control.simulate`.
    """
    courses = []
    for peer in (None, *(peers[:1] if short else peers)):
        label = "hybrid" if peer is None else peer.label
        progress(f"{ocp.name}: {experiment['steps']} steps with {label} ...")
        run = simulate(plant, Repeated(ocp, peer), **experiment)
        courses.append(Course(label, run.steps, run))
    return courses


def loop_checks(ours: Course, reference: Course, *, cost: float = 1e-3) -> list[Check]:
    """The checks that every one of our plans is a KKT point and that our course costs no more.

    A reference that misses a KKT point at any instant sets no bar.
    """
    excess = (ours.run.cost - reference.run.cost) / max(1.0, abs(reference.run.cost))
    bar = excess if (reference.residuals <= TOL).all() else -np.inf
    return [
        Check("largest KKT residual of a plan of the hybrid solver", ours.residuals.max(), TOL),
        Check(f"cost above that of {reference.label}, relative", bar, cost),
    ]


def finish_courses(
    arguments: argparse.Namespace,
    courses: Sequence[Course],
    facts: Mapping[str, Any],
    **rest: Any,
) -> int:
    """Finish a scenario of closed loops: the hybrid solver's first, then the reference's."""
    ours, reference = courses[:2]
    program = ours.worst.program
    apart = float(np.abs(ours.run.states.values - reference.run.states.values).max())
    return finish(
        arguments,
        (program.n, program.m),
        [course.row() for course in courses],
        {ours.label: judge(ours.worst)},
        checks=loop_checks(ours, reference),
        facts={
            **facts,
            "largest violation of a limit": str(ours.run.worst or "none"),
            f"largest distance to {reference.label}'s course": apart,
        },
        columns=LOOP_COLUMNS,
        **rest,
    )


class KktResiduals:
    """Feasibility and the largest KKT residual of a point, from the program's own functions."""

    def __init__(self, program: Program) -> None:
        nlp = program.nlp
        lam = type(nlp["x"]).sym("lam", program.m)
        slope = ca.gradient(nlp["f"] + ca.dot(lam, nlp["g"]), nlp["x"])
        self._function = ca.Function("kkt", [nlp["x"], nlp["p"], lam], [nlp["g"], slope])

    def __call__(self, plan: Solution) -> tuple[float, float]:
        """Return both, the multipliers being the solver's own."""
        program, x = plan.program, plan.x
        g, slope = (value.full().ravel() for value in self._function(x, program.p, plan.lam_g))
        v = np.concatenate((x, g))
        lower = np.concatenate((program.lbx, program.lbg))
        upper = np.concatenate((program.ubx, program.ubg))
        lam = np.concatenate((plan.lam_x, plan.lam_g))
        outside = np.maximum(np.maximum(lower - v, v - upper), 0.0)
        bound = np.where(lam > 0, upper, lower)
        gap = np.where(np.isfinite(bound), np.abs(v - bound), 1.0)
        slack = np.where(lower < upper, np.abs(lam) * gap, 0.0)
        feasibility = float(outside.max())
        stationarity = float(np.abs(slope + plan.lam_x).max())
        worst = max(feasibility, stationarity, float(slack.max(initial=0.0)))
        return feasibility, worst if np.isfinite(worst) else np.inf
