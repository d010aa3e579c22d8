"""The runs behind the paper's tables: twelve method variants on the synthetic class.

The paper leaves constants open. The settings here were fitted to its tables: H at μ_t and
λ_0 = μ_0 as Algorithm 1 is printed, the memory started with h_{−1} = h_0 and
C_opt,−1 = C_opt,0, a budget of 200 iterations, and steps 0.05 (σ = 20 for PDHG, penalty 1 for the
linearized augmented Lagrangian) for the baselines (:mod:`casadi_hybrid.paper.fitted` lists all).

By the paper's measure a run succeeds when ‖x_t − x*‖ ≤ 1e-3 for some t within the budget: when it
*crosses*. Whether it stays there is another question. So on the first fifteen instances a run that
has crossed is followed to 1,500 steps or until it has settled, under the methods that the paper
prints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.iterations import Hybrid, Iteration
from casadi_hybrid.law import State
from casadi_hybrid.paper.course import Course, first, padded
from casadi_hybrid.paper.generator import Instance, make_instance
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.rules import (
    BalancedSplit,
    BoundedShare,
    Cancellation,
    DesignRule,
    LeastShare,
    PartialCancellation,
)
from casadi_hybrid.solver import Solver

BUDGET = 200
LONG = 1500
FOLLOWED = 15
THRESHOLDS = (1e-2, 1e-3, 1e-4)
AT = THRESHOLDS.index(1e-3)

AS_PRINTED: dict[str, Any] = {"hessian_at": "printed", "dual_start": "multipliers"}


@dataclass(frozen=True, slots=True)
class PaperMethod:
    """A method of the experiment: its key, its label in tables, and how the solver makes it."""

    key: str
    label: str
    method: str | Iteration
    options: dict[str, Any] = field(default_factory=dict)


def _pair(key: str, label: str, method: str) -> tuple[PaperMethod, PaperMethod]:
    return (
        PaperMethod(f"{key}-w", f"{label} W", method, {**AS_PRINTED, "margin": "weighted"}),
        PaperMethod(f"{key}-u", f"{label} U", method, {**AS_PRINTED, "margin": "unit"}),
    )


PAPER_METHODS: tuple[PaperMethod, ...] = (
    *_pair("aug", "Pure Aug.", "pure-augmented"),
    *_pair("opt", "Pure Opt.", "pure-optimistic"),
    *_pair("grid", "Grid Hyb.", "grid"),
    *_pair("closed", "Closed Hyb.", "closed-form"),
    PaperMethod("ogda", "OGDA", "ogda"),
    PaperMethod("eg", "EG", "extragradient"),
    PaperMethod("pdhg", "PDHG", "pdhg"),
    PaperMethod("lin-al", "Lin. AL", "linearized-al"),
)
LABELS = {method.key: method.label for method in PAPER_METHODS}
# The paper names unit variants of the others too, but prints nothing of them.
PRINTED = tuple(m.key for m in PAPER_METHODS if not m.key.endswith("-u") or m.key == "closed-u")
# By the norm that the closed form needs where it begins to fail, a third of the paper's M_max.
NORM_LIMIT = 100.0


def _partial(key: str, label: str, cancellation: Cancellation) -> PaperMethod:
    rule = DesignRule(cancellation=cancellation, split=BalancedSplit())
    return PaperMethod(key, label, Hybrid(rule, label=key, **AS_PRINTED))


# The paper's "natural extension", with the weighted margin. None is in its tables.
PARTIAL_METHODS: tuple[PaperMethod, ...] = (
    _partial("half", "γ = ½", PartialCancellation(0.5)),
    _partial("least", "γ least ‖M‖", LeastShare()),
    _partial("bounded", f"γ ‖M‖ ≤ {NORM_LIMIT:g}", BoundedShare(NORM_LIMIT)),
)
ALL_METHODS = (*PAPER_METHODS, *PARTIAL_METHODS)
LABELS |= {method.key: method.label for method in PARTIAL_METHODS}


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """One method on one instance.

    Attributes:
        method: key of the method.
        condition, seed: the instance.
        hits: first t ≤ 200 with ‖x_t − x*‖ ≤ each of :data:`THRESHOLDS`, or None.
        norm_M: max_t ‖M_t‖₂ within the budget, NaN for methods without a design.
        stop: name of the reason that ended the run within the budget; of one that did not end,
            ``"ITERATION_LIMIT"``.
        errors: ‖x_t − x*‖ for t = 0 … 200; after the end of the run its last value.
        feasibility, stationarity: ‖h(x_t)‖₂ and ‖∇f(x_t) + J_h(x_t)ᵀμ_t‖₂ likewise.
        effective: the last with ν_t in the place of μ_t.
        steps: steps of the whole run.
        over_budget: whether it ended within the budget because ‖M_t‖₂ had to exceed M_max.
        longest: ‖x_t − x*‖ at t = 1,500, or where the run had settled or ended before; NaN where it
            did not cross, None where it was not to be followed.
        failure: the error where the computation itself failed, else empty.
    """

    method: str
    condition: float
    seed: int
    hits: tuple[int | None, ...]
    norm_M: float
    stop: str
    errors: NDArray[np.float64]
    feasibility: NDArray[np.float64]
    stationarity: NDArray[np.float64]
    effective: NDArray[np.float64]
    steps: int
    over_budget: bool
    longest: float | None
    failure: str = ""

    @property
    def hit(self) -> int | None:
        """The first t ≤ 200 with ‖x_t − x*‖ ≤ 1e-3: the paper's success."""
        return self.hits[AT]

    @property
    def at_end(self) -> bool:
        """Whether ‖x_t − x*‖ ≤ 1e-3 at t = 200, whatever was between; a run that broke off: no."""
        ended = self.steps >= BUDGET or self.stop in SETTLED_STOPS
        return ended and bool(self.errors[-1] <= THRESHOLDS[AT])

    @property
    def stays(self) -> bool:
        """Whether it crossed and ‖x_t − x*‖ ≤ 1e-3 for every t from there to 200."""
        hit = self.hit
        return hit is not None and self.at_end and bool((self.errors[hit:] <= 1e-3).all())

    @property
    def arrives(self) -> bool:
        """Whether it crossed and ‖x_t − x*‖ ≤ 1e-3 after 1,500 steps."""
        return self.longest is not None and bool(self.longest <= THRESHOLDS[AT])


SETTLED_STOPS = ("TARGET_REACHED", "CONVERGED")


def run_method(method: PaperMethod, instance: Instance, *, follow: bool = False) -> Run:
    """Run one method on one instance; an error of any kind makes a run that says so.

    Args:
        method, instance: what to run.
        follow: go on to 1,500 steps where the run has crossed within the budget.
    """
    try:
        return _run(method, instance, follow)
    except Exception as error:  # noqa: BLE001 - one cell may fail, the tables may not
        return failed(method.key, instance.condition, instance.seed, error)


def failed(key: str, condition: float, seed: int, error: Exception) -> Run:
    """The run of a computation that raised."""
    nothing = np.full(BUDGET + 1, np.nan)
    return Run(
        key,
        condition,
        seed,
        hits=(None,) * len(THRESHOLDS),
        norm_M=np.nan,
        stop="FAILED",
        errors=nothing,
        feasibility=nothing,
        stationarity=nothing,
        effective=nothing,
        steps=0,
        over_budget=False,
        longest=None,
        failure=f"{type(error).__name__}: {error}",
    )


def _run(method: PaperMethod, instance: Instance, follow: bool) -> Run:
    course = Course(instance.x_star, THRESHOLDS[AT], BUDGET, LONG if follow else BUDGET)
    solver = Solver(
        instance.problem,
        method.method,
        # The paper stops at nothing but the budget; so do these runs, short of settled ones.
        tol=1e-300,
        max_iter=LONG,
        stopping=[course.ends],
        **method.options,
    )
    result = solver.solve(instance.x0, lam_g0=instance.multipliers0, callback=course.watch)
    if not course.distances:  # the rule failed at the start
        at = Oracle(instance.problem.functions, np.zeros(0)).first(instance.x0)
        dual = instance.multipliers0
        course.take(State(instance.x0, dual, np.zeros_like(dual), dual), at)
    errors = padded(course.distances, BUDGET + 1)
    return Run(
        method.key,
        instance.condition,
        instance.seed,
        tuple(first(errors <= threshold) for threshold in THRESHOLDS),
        float(np.nanmax(course.norms)) if np.isfinite(course.norms).any() else np.nan,
        result.stop.name if result.iterations < BUDGET else "ITERATION_LIMIT",
        errors,
        padded(course.feasibility, BUDGET + 1),
        padded(course.stationarity, BUDGET + 1),
        padded(course.effective, BUDGET + 1),
        result.iterations,
        result.iterations < BUDGET and "norm budget" in result.detail,
        (course.distances[-1] if course.crossed else np.nan) if follow else None,
    )


def run_instance(key: tuple[float, int, int, int]) -> list[Run]:
    """Run every method on the instance (condition, seed, n, m)."""
    condition, seed, n, m = key
    try:
        instance = make_instance(condition, seed, n=n, m=m)
    except Exception as error:  # noqa: BLE001 - as above
        return [failed(method.key, condition, seed, error) for method in ALL_METHODS]
    return [
        run_method(method, instance, follow=seed < FOLLOWED and method.key in PRINTED)
        for method in ALL_METHODS
    ]
