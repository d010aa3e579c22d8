"""Nonlinear model predictive control in closed loop, with the same steps for every solver.

At every sampling instant the controller gets a noisy measurement of the plant's state, solves its
problem from the last solution shifted by one interval, and applies the first control. The plant
differs from the model. Every solver controls a plant of its own under the same noise, so cost and
violation can be compared; times are those of the solves alone.

One rule for every solver decides what is applied: the new plan, unless its rows are violated by
more than :data:`USABLE`; then the next control of the last usable plan.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from reporting import TOL, Check, finish, progress
from solving import IPOPT, Peer, judge, make_solver

from casadi_hybrid.control import Integrator, Model, OptimalControl, Program, Solution

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


def exact_step(model: Model, dt: float, *, tolerance: float = 1e-9) -> Callable[..., Any]:
    """Return (x, u, p=the declared values) → x(dt) by CVODES, as a plant to simulate.

    Columns side by side are stepped one by one.
    """
    sizes = [model.size(kind) for kind in ("state", "algebraic", "control", "parameter")]
    nothing = ca.Function("nothing", [ca.SX.sym("a", n) for n in (*sizes, 1)], [ca.SX(0, 1)])
    options = {"abstol": tolerance, "reltol": tolerance}
    step = Integrator("cvodes", options).function(model, nothing)
    declared = np.concatenate([np.zeros(0), *(np.ravel(v) for v in model.values.values())])

    def move(x: Any, u: Any, p: Any = declared) -> np.ndarray:
        u = ca.DM(u)
        return np.asarray(step(x, ca.DM(0, 1), u, u, p, 0.0, dt)[0]).squeeze()

    return move


def simulated(model: Model, x0: Any, inputs: Any, dt: float, **options: Any) -> np.ndarray:
    """Return the states at the ends of intervals of constant inputs, a column a time."""
    step, states = exact_step(model, dt, **options), [np.asarray(x0, dtype=float)]
    for u in np.atleast_2d(inputs).T:
        states.append(step(states[-1], u))
    return np.array(states).T


class Repeated:
    """One solver, called again and again, each time from its last usable solution, shifted."""

    def __init__(self, ocp: OptimalControl, peer: Peer | None = None) -> None:
        self.ocp = ocp
        # The interface of FATROP takes no multipliers, and hands back those it was given.
        self.primal = peer is not None and peer.plugin == "fatrop"
        self.solver = make_solver(ocp.program, peer)
        self.residuals = KktResiduals(ocp.program)
        self.warm: dict[str, Any] = {}

    def __call__(self, x0: Any = None, **parameters: Any) -> Solved:
        """Solve with these numbers."""
        program = self.ocp.numbers(x0, **parameters)
        began = time.perf_counter()
        found = self.solver(**{**program.arguments, **self.warm})
        seconds = time.perf_counter() - began
        plan = self.ocp.solution(program, found, self.solver.stats())
        solved = Solved(plan, seconds, *self.residuals(plan))
        if solved.usable or not self.warm:
            warm = program.shifted(plan.x, plan.lam_x, plan.lam_g)
            self.warm = {"x0": warm["x0"]} if self.primal else warm
        return solved


@dataclass(frozen=True)
class Solved:
    """A plan, the seconds it took, its largest violation and its largest KKT residual."""

    plan: Solution
    seconds: float
    feasibility: float
    residual: float

    @property
    def usable(self) -> bool:
        """Whether the plan may be applied."""
        return self.feasibility <= USABLE


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
class Loop:
    """A controller's problem, the plant it meets and the experiment.

    Args:
        ocp: the problem, whose initial state is the measured one.
        plant: (x, u) → the true state one sampling time later.
        start: true state at the beginning.
        steps: number of sampling instants.
        noise: standard deviation of the measurement, a number or one per state.
        cost: (k, x, u) → what the step to instant k of the true plant costs.
        violation: x → by how much the true plant violates its limits, 0 where it does not.
        parameters: k → values of further parameters at instant k.
        push: instants at which the true state jumps, with the jump.
        seed: of the noise.
    """

    ocp: OptimalControl
    plant: Callable[[np.ndarray, np.ndarray], np.ndarray]
    start: np.ndarray
    steps: int
    noise: Any
    cost: Callable[[int, np.ndarray, np.ndarray], Any]
    violation: Callable[[np.ndarray], float]
    parameters: Callable[[int], Mapping[str, Any]] = lambda k: {}
    push: Mapping[int, np.ndarray] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class Course(Solves):
    """What happened in one closed loop.

    Attributes:
        states, inputs: of the plant, one row per instant.
        plans: the plan in use at every instant.
        cost: sum over the steps.
        violation: largest over the steps.
    """

    states: np.ndarray
    inputs: np.ndarray
    plans: Sequence[Solution] = field(repr=False)
    cost: float
    violation: float

    def row(self) -> dict[str, Any]:
        """See :meth:`Solves.row`."""
        return {**super().row(), "cost": self.cost, "violation": self.violation}


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


def run_loop(loop: Loop, peer: Peer | None = None) -> Course:
    """Close the loop with the hybrid solver (no peer) or with a peer."""
    label = "hybrid" if peer is None else peer.label
    progress(f"{loop.ocp.name}: {loop.steps} steps with {label} ...")
    controller = Repeated(loop.ocp, peer)
    rng = np.random.default_rng(loop.seed)
    states, inputs, solves, plans, age = [np.asarray(loop.start, dtype=float)], [], [], [], 0
    for k in range(loop.steps):
        states[k] = states[k] + loop.push.get(k, 0.0)
        measured = states[k] + loop.noise * rng.standard_normal(states[k].size)
        solves.append(controller(measured, **loop.parameters(k)))
        fresh = solves[k].usable or not plans
        plans.append(solves[k].plan if fresh else plans[-1])
        age = 0 if fresh else age + 1
        controls = plans[-1].controls
        inputs.append(controls[:, min(age, controls.shape[1] - 1)])
        states.append(loop.plant(states[k], inputs[k]))
    pairs = zip(range(1, loop.steps + 1), states[1:], inputs, strict=True)
    cost = float(sum(float(loop.cost(k, x, u)) for k, x, u in pairs))
    violation = max(float(loop.violation(x)) for x in states[1:])
    return Course(label, solves, np.array(states), np.array(inputs), plans, cost, violation)


def run_all(loop: Loop, *peers: Peer, short: bool = False) -> list[Course]:
    """Return the courses of the hybrid solver and of the peers, in short of the first one only."""
    return [run_loop(loop, peer) for peer in (None, *(peers[:1] if short else peers))]


def loop_checks(ours: Course, reference: Course, *, cost: float = 1e-3) -> list[Check]:
    """The checks that every one of our plans is a KKT point and that our course costs no more.

    A reference that misses a KKT point at any instant sets no bar.
    """
    excess = (ours.cost - reference.cost) / max(1.0, abs(reference.cost))
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
    apart = float(np.abs(ours.states - reference.states).max())
    return finish(
        arguments,
        (program.n, program.m),
        [course.row() for course in courses],
        {ours.label: judge(ours.worst)},
        checks=loop_checks(ours, reference),
        facts={**facts, f"largest distance to {reference.label}'s course": apart},
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
