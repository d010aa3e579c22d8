"""The runs behind the paper's tables: twelve method variants on the synthetic class.

A run succeeds, by the paper's measure, when ‖x_t − x*‖ ≤ 1e-3 for some t within the budget: when it
*crosses*. To see whether it stays, on the first fifteen instances a run that has crossed is
followed to 1,500 steps or until it has settled, under the methods that are printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.paper import rules
from casadi_hybrid.paper.experiment.generator import Instance, make_instance
from casadi_hybrid.paper.iterations import Hybrid, Iteration
from casadi_hybrid.paper.iterations.base import Start
from casadi_hybrid.paper.iterations.loop import start_progress
from casadi_hybrid.paper.iterations.stopping import IterationProgress
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.solver.solver import Solver
from casadi_hybrid.utils.status import StopReason

BUDGET = 200
LONG = 1500
FOLLOWED = 15
THRESHOLDS = (1e-2, 1e-3, 1e-4)
AT = THRESHOLDS.index(1e-3)
# Below this distance for so many steps in a row a run ends; once, it may only pass by x*.
SETTLED = 1e-9
IN_A_ROW = 10
SETTLED_STOPS = ("TARGET_REACHED", "CONVERGED")

AS_PRINTED: dict[str, Any] = {"hessian_at": "printed", "dual_start": "multipliers"}


@dataclass(frozen=True, slots=True)
class PaperMethod:
    """A method of the experiment: its key, its label in tables, and how the solver makes it."""

    key: str
    label: str
    method: str | Iteration
    options: dict[str, Any] = field(default_factory=dict)


def _pair(key: str, label: str, method: str) -> tuple[PaperMethod, PaperMethod]:
    weighted, unit = ({**AS_PRINTED, "margin": margin} for margin in ("weighted", "unit"))
    return (
        PaperMethod(f"{key}-w", f"{label} W", method, weighted),
        PaperMethod(f"{key}-u", f"{label} U", method, unit),
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
# The paper names unit variants of the others too, but prints nothing of them.
PRINTED = tuple(m.key for m in PAPER_METHODS if not m.key.endswith("-u") or m.key == "closed-u")
# By the norm that the closed form needs where it begins to fail, a third of the paper's M_max.
NORM_LIMIT = 100.0


# The paper's "natural extension", with the weighted margin. None is in its tables.
PARTIAL_METHODS = tuple(
    PaperMethod(key, label, Hybrid(rules.DesignRule(one, split=split), label=key, **AS_PRINTED))
    for split in [rules.BalancedSplit()]
    for key, label, one in (
        ("half", "γ = ½", rules.PartialCancellation(0.5)),
        ("least", "γ least ‖M‖", rules.LeastShare()),
        ("bounded", f"γ ‖M‖ ≤ {NORM_LIMIT:g}", rules.BoundedShare(NORM_LIMIT)),
    )
)
# The paper's last baseline with the multiplier step that its sources have: the penalty c itself.
TEXTBOOK_METHODS = tuple(
    PaperMethod(f"lin-al-{c}", f"Lin. AL {c}", "linearized-al", {"penalty": c, "dual_step": c})
    for c in (10, 20)
)
ALL_METHODS = (*PAPER_METHODS, *PARTIAL_METHODS, *TEXTBOOK_METHODS)
LABELS = {method.key: method.label for method in ALL_METHODS}


Series = NDArray[np.float64]


def _nothing() -> Series:
    return np.full(BUDGET + 1, np.nan)


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """One method on one instance.

    Attributes:
        method, condition, seed: key of the method, and the instance.
        hits: first t ≤ 200 with ‖x_t − x*‖ ≤ each of :data:`THRESHOLDS`, or None.
        norm_M: max_t ‖M_t‖₂ within the budget, NaN for methods without a design.
        stop: name of what ended the run within the budget, or ``"ITERATION_LIMIT"``.
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
    hits: tuple[int | None, ...] = (None,) * len(THRESHOLDS)
    norm_M: float = np.nan
    stop: str = "FAILED"
    errors: Series = field(default_factory=_nothing)
    feasibility: Series = field(default_factory=_nothing)
    stationarity: Series = field(default_factory=_nothing)
    effective: Series = field(default_factory=_nothing)
    steps: int = 0
    over_budget: bool = False
    longest: float | None = None
    failure: str = ""

    @property
    def hit(self) -> int | None:
        """The first t ≤ 200 with ‖x_t − x*‖ ≤ 1e-3: the paper's success."""
        return self.hits[AT]

    @property
    def broke_off(self) -> bool:
        """Whether it ended within the budget without having settled."""
        return self.steps < BUDGET and self.stop not in SETTLED_STOPS

    @property
    def at_end(self) -> bool:
        """Whether ‖x_t − x*‖ ≤ 1e-3 at t = 200, whatever was between; a run that broke off: no."""
        return not self.broke_off and bool(self.errors[-1] <= THRESHOLDS[AT])

    @property
    def stays(self) -> bool:
        """Whether it crossed and ‖x_t − x*‖ ≤ 1e-3 for every t from there to 200."""
        hit = self.hit
        return hit is not None and self.at_end and bool((self.errors[hit:] <= 1e-3).all())

    @property
    def arrives(self) -> bool:
        """Whether it crossed and ‖x_t − x*‖ ≤ 1e-3 after 1,500 steps."""
        return self.longest is not None and bool(self.longest <= THRESHOLDS[AT])


def run_method(method: PaperMethod, instance: Instance, *, follow: bool = False) -> Run:
    """Run one method on one instance; an error of any kind makes a run that says so.

    ``follow``: go on to 1,500 steps where the run has crossed within the budget.
    """
    try:
        return _run(method, instance, follow)
    except Exception as error:  # noqa: BLE001 - one cell may fail, the tables may not
        return _failed(method, instance.condition, instance.seed, error)


def _failed(method: PaperMethod, condition: float, seed: int, error: Exception) -> Run:
    return Run(method.key, condition, seed, failure=f"{type(error).__name__}: {error}")


def _run(method: PaperMethod, instance: Instance, follow: bool) -> Run:
    x0, dual = instance.x0, instance.multipliers0
    distances: list[float] = []
    rows: list[tuple[float, ...]] = []

    def take(now: Any) -> None:  # an IterationProgress
        distances.append(float(np.linalg.norm(now.x - instance.x_star)))
        if len(rows) <= BUDGET:
            # μ, the paper's dual, depends on the split; with ν the step to this iterate was taken.
            at, duals = now.at, (now.state.mu, now.state.effective)
            slopes = (at.gradient + at.B.T @ each for each in duals)
            sizes = (float(np.linalg.norm(each)) for each in (at.h, *slopes))
            rows.append((distances[-1], *sizes, float(getattr(now.correction, "norm_M", np.nan))))

    def crossed() -> bool:
        return min(distances[: BUDGET + 1]) <= THRESHOLDS[AT]

    def ends(now: IterationProgress) -> StopReason | None:
        if len(distances) >= IN_A_ROW and max(distances[-IN_A_ROW:]) <= SETTLED:
            return StopReason.TARGET_REACHED
        goes_on = now.t < BUDGET or (follow and now.t < LONG and crossed())
        return None if goes_on else StopReason.ITERATION_LIMIT

    # The paper stops at nothing but the budget; so do these runs, short of settled ones.
    options = {**method.options, "tol": 1e-300, "max_iter": LONG, "stopping": [ends]}
    solver = Solver(instance.problem, method.method, **options)
    result = solver.solve(x0, lam_g0=dual, callback=take)
    if not rows:  # the rule failed at the start
        oracle = Oracle(instance.problem.functions, np.zeros(0))
        take(start_progress(oracle, Start(x0, dual)))
    rows += rows[-1:] * (BUDGET + 1 - len(rows))
    errors, feasibility, stationarity, effective, norms = np.array(rows).T
    within = result.iterations < BUDGET
    reached = [np.flatnonzero(errors <= threshold) for threshold in THRESHOLDS]
    return Run(
        method.key,
        instance.condition,
        instance.seed,
        tuple(int(at[0]) if at.size else None for at in reached),
        float(np.nanmax(norms)) if np.isfinite(norms).any() else np.nan,
        result.stop.name if within else "ITERATION_LIMIT",
        errors,
        feasibility,
        stationarity,
        effective,
        result.iterations,
        within and "norm budget" in result.detail,
        (distances[-1] if crossed() else np.nan) if follow else None,
    )


def run_instance(key: tuple[float, int, int, int]) -> list[Run]:
    """Run every method on the instance (condition, seed, n, m)."""
    condition, seed, n, m = key
    try:
        instance = make_instance(condition, seed, n=n, m=m)
    except Exception as error:  # noqa: BLE001 - as above
        return [_failed(method, condition, seed, error) for method in ALL_METHODS]
    return [
        run_method(method, instance, follow=seed < FOLLOWED and method.key in PRINTED)
        for method in ALL_METHODS
    ]
