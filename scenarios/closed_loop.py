"""Nonlinear model predictive control in closed loop, with the same steps for every solver.

At every sampling instant the controller gets a noisy measurement of the plant's state, solves its
program from the last solution shifted by one interval, and applies the first input. The plant
differs from the model. Every solver controls a plant of its own under the same noise, so cost and
violation can be compared; times are those of the solves alone.

One rule for every solver decides what is applied: the new plan, unless its rows are violated by
more than :data:`USABLE`; then the next input of the last usable plan.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from program import Program
from reporting import TOL, Check, finish, progress
from solving import IPOPT, Peer, judge, make_solver

from casadi_hybrid.verify import Report

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


@dataclass(frozen=True)
class Loop:
    """A controller's program, the plant it meets and the experiment.

    Args:
        program: its first solve starts from ``program.x0``.
        state: name of the parameter that takes the measured state.
        input: name of the variable whose first column is applied, in physical units.
        plant: (x, u) → the true state one sampling time later.
        start: true state at the beginning.
        steps: number of sampling instants.
        noise: standard deviation of the measurement, a number or one per state.
        cost: (x, u) → what one step of the true plant costs.
        violation: (x, u) → by how much the true plant violates its limits, 0 where it does not.
        parameters: k → values of further parameters at instant k.
        push: k → jump of the true state right before instant k, a number or one per state.
        seed: of the noise.
    """

    program: Program
    state: str
    input: str
    plant: Callable[[np.ndarray, np.ndarray], Any]
    start: np.ndarray
    steps: int
    noise: Any = 0.0
    cost: Callable[[np.ndarray, np.ndarray], float] = lambda x, u: 0.0
    violation: Callable[[np.ndarray, np.ndarray], float] = lambda x, u: 0.0
    parameters: Callable[[int], Mapping[str, Any]] = lambda k: {}
    push: Callable[[int], Any] = lambda k: 0.0
    seed: int = 0


@dataclass(frozen=True)
class Course:
    """What happened in one closed loop.

    Attributes:
        label: the solver.
        states, inputs: of the plant, one row per instant.
        iterations, seconds: of every solve.
        residuals: largest KKT residual of every solve, recomputed, with the solver's multipliers.
        feasibility: largest violation of every plan.
        cost: sum over the steps.
        violation: largest over the steps.
        plans: the variables by name of every usable plan, in physical units.
        worst: program, point and multipliers of the solve with the largest KKT residual.
    """

    label: str
    states: np.ndarray
    inputs: np.ndarray
    iterations: np.ndarray
    seconds: np.ndarray
    residuals: np.ndarray
    feasibility: np.ndarray
    cost: float
    violation: float
    plans: list[dict[str, np.ndarray]] = field(repr=False)
    worst: tuple[Program, np.ndarray, np.ndarray, np.ndarray] = field(repr=False)

    @cached_property
    def report(self) -> Report:
        """The verifier's verdict on the solve with the largest KKT residual."""
        return judge(*self.worst)

    @property
    def solved(self) -> np.ndarray:
        """Whether the plan of each instant is a KKT point."""
        return self.residuals <= TOL

    def row(self) -> dict[str, Any]:
        """Return the table row as plain values; times in ms."""
        ms = 1e3 * self.seconds
        return {
            "method": self.label,
            "solved": f"{int(self.solved.sum())}/{self.solved.size}",
            "worst_residual": float(self.residuals.max()),
            "cost": self.cost,
            "violation": self.violation,
            "mean_iterations": float(self.iterations.mean()),
            "worst_iterations": int(self.iterations.max()),
            "median_ms": float(np.median(ms)),
            "p99_ms": float(np.percentile(ms, 99)),
            "worst_ms": float(ms.max()),
        }


LOOP_COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("method", "method", str),
    ("solved", "KKT points", str),
    ("worst_residual", "worst resid.", "{:.1e}".format),
    ("cost", "cost", "{:.6g}".format),
    ("violation", "violation", "{:.1e}".format),
    ("mean_iterations", "iter mean", "{:.1f}".format),
    ("worst_iterations", "worst", str),
    ("median_ms", "median (ms)", "{:.2f}".format),
    ("p99_ms", "p99", "{:.2f}".format),
    ("worst_ms", "worst", "{:.2f}".format),
)


def run_loop(loop: Loop, peer: Peer | None = None, **options: Any) -> Course:
    """Close the loop with the hybrid solver (no peer) or with a peer."""
    label = "hybrid" if peer is None else peer.label
    progress(f"{loop.program.name}: {loop.steps} steps with {label} ...")
    solver = make_solver(loop.program, peer, **options)
    residuals = KktResiduals(loop.program)
    rng = np.random.default_rng(loop.seed)
    x = np.asarray(loop.start, dtype=float)
    program, warm = loop.program, {}
    records: list[tuple[Any, ...]] = []
    plans: list[dict[str, np.ndarray]] = []
    age, largest = 0, 0.0
    for k in range(loop.steps):
        x = x + loop.push(k)
        measured = x + loop.noise * rng.standard_normal(x.size)
        program = program.with_parameters(**{loop.state: measured}, **loop.parameters(k))
        began = time.perf_counter()
        found = solver(**{**program.arguments, **warm})
        seconds = time.perf_counter() - began
        point, lam_x, lam_g = (found[key].full().ravel() for key in ("x", "lam_x", "lam_g"))
        feasibility, residual = residuals(program, point, lam_x, lam_g)
        if feasibility <= USABLE or not plans:
            plans.append(program.unpack(point))
            warm, age = program.shifted(point, lam_x, lam_g), 0
        else:
            plans.append(plans[-1])
            age += 1
        u = np.atleast_2d(plans[-1][loop.input])
        u = u[:, min(age, u.shape[1] - 1)]
        after = np.asarray(loop.plant(x, u), dtype=float).ravel()
        iterations = int(solver.stats().get("iter_count", -1))
        records.append((x, u, iterations, seconds, residual, feasibility))
        if residual >= largest:
            largest, worst = residual, (program, point, lam_x, lam_g)
        x = after
    states, inputs, iterations, seconds, residual, feasibility = map(
        np.array, zip(*records, strict=True)
    )
    pairs = list(zip([*states[1:], x], inputs, strict=True))
    return Course(
        label,
        np.vstack((states, x)),
        inputs,
        iterations,
        seconds,
        residual,
        feasibility,
        float(sum(loop.cost(x, u) for x, u in pairs)),
        float(max(loop.violation(x, u) for x, u in pairs)),
        plans,
        worst,
    )


def loop_checks(ours: Course, reference: Course, *, cost: float = 1e-3) -> list[Check]:
    """The checks that every one of our plans is a KKT point and that our course costs no more.

    A reference that misses a KKT point at any instant sets no bar.
    """
    excess = (ours.cost - reference.cost) / max(1.0, abs(reference.cost))
    bar = excess if reference.solved.all() else -np.inf
    return [
        Check("largest KKT residual of a plan of the hybrid solver", ours.residuals.max(), TOL),
        Check(f"cost above that of {reference.label}, relative", bar, cost),
    ]


def finish_courses(
    arguments: argparse.Namespace, name: str, loop: Loop, courses: Sequence[Course], **rest: Any
) -> int:
    """Finish a scenario of closed loops: the hybrid solver's first, then the reference's."""
    ours, reference = courses[:2]
    return finish(
        arguments,
        name,
        (loop.program.n, loop.program.m),
        [course.row() for course in courses],
        {ours.label: ours.report},
        checks=loop_checks(ours, reference),
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

    def __call__(
        self, program: Program, x: np.ndarray, lam_x: np.ndarray, lam_g: np.ndarray
    ) -> tuple[float, float]:
        """Return both, the multipliers being the solver's own."""
        g, slope = (value.full().ravel() for value in self._function(x, program.p, lam_g))
        v = np.concatenate((x, g))
        lower = np.concatenate((program.lbx, program.lbg))
        upper = np.concatenate((program.ubx, program.ubg))
        lam = np.concatenate((lam_x, lam_g))
        outside = np.maximum(np.maximum(lower - v, v - upper), 0.0)
        bound = np.where(lam > 0, upper, lower)
        gap = np.where(np.isfinite(bound), np.abs(v - bound), 1.0)
        slack = np.where(lower < upper, np.abs(lam) * gap, 0.0)
        feasibility = float(outside.max())
        worst = max(feasibility, float(np.abs(slope + lam_x).max()), float(slack.max(initial=0.0)))
        return feasibility, worst if np.isfinite(worst) else np.inf
