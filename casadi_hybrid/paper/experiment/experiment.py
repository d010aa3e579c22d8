"""The runs behind the paper's tables: twelve method variants on the synthetic class.

By the paper's measure a run succeeds if it *crosses*: ‖x_t − x*‖ ≤ 1e-3 for some t within the
budget. It need not stay there. On the first fifteen instances, under the printed methods, a run
that has crossed is therefore followed to 1,500 steps or until it has settled.
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
# A run ends after IN_A_ROW steps below this distance; after one step, it may only pass by x*.
SETTLED = 1e-9
IN_A_ROW = 10
SETTLED_STOPS = ("TARGET_REACHED", "CONVERGED")

AS_PRINTED: dict[str, Any] = {"hessian_at": "printed", "dual_start": "multipliers"}


@dataclass(frozen=True, slots=True)
class PaperMethod:
    """A method of the experiment: key, label in tables, and arguments of the solver."""

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
# The paper names the other unit variants too, without numbers.
PRINTED = tuple(m.key for m in PAPER_METHODS if not m.key.endswith("-u") or m.key == "closed-u")
# About the norm at which the closed form begins to fail, a third of the paper's M_max.
NORM_LIMIT = 100.0


def _partial(key: str, label: str, cancellation: rules.Cancellation) -> PaperMethod:
    rule = rules.DesignRule(cancellation, split=rules.BalancedSplit())
    return PaperMethod(key, label, Hybrid(rule, label=key, **AS_PRINTED))


# The paper's "natural extension", with the weighted margin. None is in its tables.
PARTIAL_METHODS = (
    _partial("half", "γ = ½", rules.PartialCancellation(0.5)),
    _partial("least", "γ least ‖M‖", rules.LeastShare()),
    _partial("bounded", f"γ ‖M‖ ≤ {NORM_LIMIT:g}", rules.BoundedShare(NORM_LIMIT)),
)
# The paper's last baseline with the multiplier step of its sources: the penalty c itself.
TEXTBOOK_METHODS = tuple(
    PaperMethod(f"lin-al-{c}", f"Lin. AL {c}", "linearized-al", {"penalty": c, "dual_step": c})
    for c in (10, 20)
)
ALL_METHODS = (*PAPER_METHODS, *PARTIAL_METHODS, *TEXTBOOK_METHODS)
LABELS = {method.key: method.label for method in ALL_METHODS}

Series = NDArray[np.float64]


def _missing() -> Series:
    return np.full(BUDGET + 1, np.nan)


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """One method on one instance."""

    method: str
    condition: float
    seed: int
    # First t ≤ 200 with ‖x_t − x*‖ ≤ each of THRESHOLDS, or None.
    hits: tuple[int | None, ...] = (None,) * len(THRESHOLDS)
    norm_M: float = np.nan  # max_t ‖M_t‖₂ within the budget, NaN without a design
    stop: str = "FAILED"  # reason to stop within the budget, or ITERATION_LIMIT
    # For t = 0 … 200, after the end of the run the last value: ‖x_t − x*‖, ‖h‖₂,
    # ‖∇f + J_hᵀμ_t‖₂, and the same with ν_t.
    errors: Series = field(default_factory=_missing)
    feasibility: Series = field(default_factory=_missing)
    stationarity: Series = field(default_factory=_missing)
    effective: Series = field(default_factory=_missing)
    steps: int = 0  # of the whole run
    over_budget: bool = False  # ended within the budget, as ‖M_t‖₂ had to exceed M_max
    # ‖x_t − x*‖ at t = 1,500 or at an earlier end; NaN without a crossing, None if not followed.
    longest: float | None = None
    failure: str = ""  # error in the computation itself

    @property
    def hit(self) -> int | None:
        """The first t ≤ 200 with ‖x_t − x*‖ ≤ 1e-3: the paper's success."""
        return self.hits[AT]

    @property
    def broke_off(self) -> bool:
        """True if the run ended within the budget without having settled."""
        return self.steps < BUDGET and self.stop not in SETTLED_STOPS

    @property
    def at_end(self) -> bool:
        """True if ‖x_t − x*‖ ≤ 1e-3 at t = 200; False for a run that broke off."""
        return not self.broke_off and bool(self.errors[-1] <= THRESHOLDS[AT])

    @property
    def stays(self) -> bool:
        """True if the run crossed and ‖x_t − x*‖ ≤ 1e-3 for every t from there to 200."""
        hit = self.hit
        return hit is not None and self.at_end and bool((self.errors[hit:] <= 1e-3).all())

    @property
    def arrives(self) -> bool:
        """True if the run crossed and ‖x_t − x*‖ ≤ 1e-3 after 1,500 steps."""
        return self.longest is not None and bool(self.longest <= THRESHOLDS[AT])


def run_method(method: PaperMethod, instance: Instance, *, follow: bool = False) -> Run:
    """Run one method on one instance; an error of any kind makes a failed run."""
    try:
        return _run(method, instance, follow)
    except Exception as error:  # noqa: BLE001 - one cell may fail, the tables may not
        failure = f"{type(error).__name__}: {error}"
        return Run(method.key, instance.condition, instance.seed, failure=failure)


def _run(method: PaperMethod, instance: Instance, follow: bool) -> Run:
    x0, dual = instance.x0, instance.multipliers0
    distances: list[float] = []
    rows: list[tuple[float, ...]] = []

    def record(progress: Any) -> None:  # an IterationProgress
        distances.append(float(np.linalg.norm(progress.x - instance.x_star)))
        if len(rows) <= BUDGET:
            # μ, the paper's dual, depends on the split; ν is the dual of the last primal step.
            at, state = progress.at, progress.state
            slopes = (
                at.gradient + at.B.T @ multipliers for multipliers in (state.mu, state.effective)
            )
            sizes = (float(np.linalg.norm(vector)) for vector in (at.h, *slopes))
            norm_M = float(getattr(progress.correction, "norm_M", np.nan))
            rows.append((distances[-1], *sizes, norm_M))

    def crossed() -> bool:
        return min(distances[: BUDGET + 1]) <= THRESHOLDS[AT]

    def stop(progress: IterationProgress) -> StopReason | None:
        if len(distances) >= IN_A_ROW and max(distances[-IN_A_ROW:]) <= SETTLED:
            return StopReason.TARGET_REACHED
        # follow: a run that has crossed goes on to 1,500 steps.
        unfinished = progress.t < BUDGET or (follow and progress.t < LONG and crossed())
        return None if unfinished else StopReason.ITERATION_LIMIT

    # As in the paper, only the budget stops a run that has not settled.
    options = {**method.options, "tol": 1e-300, "max_iter": LONG, "stopping": [stop]}
    solver = Solver(instance.problem, method.method, **options)
    result = solver.solve(x0, lam_g0=dual, callback=record)
    if not rows:  # the rule failed at the start
        oracle = Oracle(instance.problem.functions, np.zeros(0))
        record(start_progress(oracle, Start(x0, dual)))
    # After its end a run keeps its last values.
    rows += rows[-1:] * (BUDGET + 1 - len(rows))
    errors, feasibility, stationarity, effective, norms = np.array(rows).T
    within = result.iterations < BUDGET
    below = [np.flatnonzero(errors <= threshold) for threshold in THRESHOLDS]
    return Run(
        method.key,
        instance.condition,
        instance.seed,
        tuple(int(steps[0]) if steps.size else None for steps in below),
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
    instance = make_instance(condition, seed, n=n, m=m)
    return [
        run_method(method, instance, follow=seed < FOLLOWED and method.key in PRINTED)
        for method in ALL_METHODS
    ]
