"""One unit of the study: one instance, every rule, judged by the problem's own functions.

- m ≥ n, full rank: the constraints determine x*. Success is the first hit ‖x_t − x*‖₂ ≤ 1e-3, and
  the number of iterations is the hitting time.
- m < n, full rank: success is a KKT point, x* or another, with unscaled residuals ‖h‖_∞ ≤ 1e-8 and
  ‖∇f + J_hᵀλ‖_∞ ≤ 1e-8 for the multipliers λ of the rule. All iterations count.

A rule that raises, or whose process ends, is a failed trial with the message.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.paper.experiment.generator import Instance, make_instance
from casadi_hybrid.paper.iterations.base import residuals_at
from casadi_hybrid.paper.iterations.methods import ITERATIONS
from casadi_hybrid.paper.iterations.stopping import DistanceTest
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.solver.methods import make_method
from casadi_hybrid.solver.record.history import Progress
from casadi_hybrid.solver.result import Result
from casadi_hybrid.solver.solver import Solver
from casadi_hybrid.utils.errors import EvaluationError, InputError, in_a_sentence
from casadi_hybrid.utils.inputs import count

HIT = 1e-3
TOL = 1e-8
# Designed rules reject curvature ≤ 0 on ker B unless they may lift it; matrix rules lift to 0.1.
KERNEL_FLOOR = 0.1
RULES = ("auto", "whitened", "closed-form", "matrix-lookahead", "matrix-memory")


class Unit(NamedTuple):
    """One instance of a study; ``radius`` is the distance of the start from x*."""

    n: int
    m: int
    radius: float
    condition: float
    seed: int

    @property
    def by_distance(self) -> bool:
        """True if success is the first hit of x*."""
        return self.m >= self.n

    def instance(self) -> Instance:
        """Make the instance."""
        return make_instance(self.condition, self.seed, n=self.n, m=self.m, radius=self.radius)


@dataclass(frozen=True)
class Settings:
    """Settings of the rules.

    Args:
        rules: names of methods.
        budget: largest number of iterations of a run.

    Raises:
        InputError: for an unknown or repeated rule, one that needs options, or a budget below 1.
    """

    rules: tuple[str, ...] = RULES
    budget: int = 500

    def __post_init__(self) -> None:
        if not self.rules:
            raise InputError("no rule was named; give at least one, such as auto")
        for i, rule in enumerate(self.rules):
            make_method(rule, {})
            if rule in self.rules[:i]:
                raise InputError(f"the rule {rule!r} is named twice")
        count(self.budget, "budget", at_least=1)

    def to_dict(self) -> dict[str, Any]:
        """Return every setting of a unit's results, ready for JSON."""
        constants = {"hit": HIT, "tol": TOL, "kernel_floor": KERNEL_FLOOR}
        return {**asdict(self), "rules": list(self.rules), **constants}


@dataclass(frozen=True, slots=True)
class Trial:
    """One rule on one instance.

    Attributes:
        rule, success: name of the method; see the module's docstring.
        iterations: the hitting time, or the steps of the whole run without a hit.
        stop, point: names of the two statuses of the result.
        feasibility, stationarity, distance: residuals of the returned point, evaluated anew (NaN
            if the functions are not defined), and its ‖x − x*‖₂.
        first, second: evaluations of (f, ∇f, h, J_h), without and with ∇²L.
        elapsed: seconds; the only entry that differs between two runs.
        error: message of an exception, or empty.
    """

    rule: str
    success: bool = False
    iterations: int = 0
    stop: str = "RAISED"
    point: str = "NONE"
    feasibility: float = np.nan
    stationarity: float = np.nan
    distance: float = np.nan
    first: int = 0
    second: int = 0
    elapsed: float = field(default=np.nan, compare=False)
    error: str = ""


def run_unit(settings: Settings, unit: Unit) -> tuple[Trial, ...]:
    """Run every rule on the unit's instance; a rule that raises is a failed trial."""
    trials = []
    instance = None
    for rule in settings.rules:
        try:
            instance = unit.instance() if instance is None else instance
            trials.append(_run(rule, settings, unit, instance))
        except Exception as error:  # noqa: BLE001, every error belongs into the row
            trials.append(Trial(rule, error=in_a_sentence(error)))
    return tuple(trials)


def succeeded(unit: Unit, hit: int | None, residuals: Residuals) -> bool:
    """Return True for a success; NaN never is one."""
    # m ≥ n: the constraints determine x*, so a hit is enough; else any KKT point counts.
    if unit.by_distance:
        return hit is not None
    # A comparison with NaN is false.
    return residuals.feasibility <= TOL and residuals.stationarity <= TOL


def _run(rule: str, settings: Settings, unit: Unit, instance: Instance) -> Trial:
    options: dict[str, Any] = {"tol": TOL, "max_iter": settings.budget}
    if unit.by_distance:
        options["stopping"] = [DistanceTest(instance.x_star, HIT)]
        # σ_min = 1/κ: at a larger residual the run could end before the distance is reached.
        options["tol"] = min(TOL, 0.1 * HIT / unit.condition)
    elif rule in ITERATIONS and "kernel_floor" in ITERATIONS[rule][0]:
        options["kernel_floor"] = KERNEL_FLOOR
    solver = Solver(instance.problem, rule, **options)
    # The first hit only; the run goes on by the solver's own tests.
    hits: list[int] = []

    def watch(progress: Progress) -> None:
        if not hits and np.linalg.norm(progress.x - instance.x_star) <= HIT:
            hits.append(progress.t)

    # The default method takes given multipliers for a warm start from a solution nearby.
    multipliers = None if rule == "auto" else instance.multipliers0
    result = solver.solve(instance.x0, lam_g0=multipliers, callback=watch)
    residuals = _residuals(result, instance)
    hit = hits[0] if hits and unit.by_distance else None
    return Trial(
        rule=rule,
        success=succeeded(unit, hit, residuals),
        iterations=result.iterations if hit is None else hit,
        stop=result.stop.name,
        point=result.point.name,
        feasibility=residuals.feasibility,
        stationarity=residuals.stationarity,
        distance=float(np.linalg.norm(result.x - instance.x_star)),
        first=result.evaluations["first"],
        second=result.evaluations["second"],
        elapsed=result.elapsed,
    )


def _residuals(result: Result, instance: Instance) -> Residuals:
    """Evaluate the problem's functions anew, independently of the solver's record."""
    oracle = Oracle(instance.problem.functions, np.zeros(0))
    try:
        return residuals_at(oracle.first(result.x), result.lam_g)
    except EvaluationError:
        return Residuals(np.nan, np.nan)
