"""The runs behind the paper's tables: twelve method variants on the synthetic class.

The paper leaves constants open. The settings here were fitted to its tables: H at μ_t and
λ_0 = μ_0 as Algorithm 1 is printed, the memory started with h_{−1} = h_0 and
C_opt,−1 = C_opt,0, a budget of 200 iterations, and steps 0.05 (σ = 20 for PDHG, penalty 1 for the
linearized augmented Lagrangian) for the baselines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.course.history import History
from casadi_hybrid.paper.generator import Instance, make_instance
from casadi_hybrid.solver import Solver
from casadi_hybrid.stopping import DistanceTest

BUDGET = 200
THRESHOLDS = (1e-2, 1e-3, 1e-4)
# Below this distance a run tells nothing new; it ends there and keeps its last error.
SETTLED = 1e-9

_AS_PRINTED: dict[str, Any] = {"hessian_at": "printed", "dual_start": "multipliers"}


@dataclass(frozen=True, slots=True)
class PaperMethod:
    """A method of the experiment: its key, its label in tables, and how the solver makes it."""

    key: str
    label: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def designed(self) -> bool:
        """Whether it designs a correction matrix."""
        return "margin" in self.options


def _pair(key: str, label: str, method: str) -> tuple[PaperMethod, PaperMethod]:
    return (
        PaperMethod(f"{key}-w", f"{label} W", method, {**_AS_PRINTED, "margin": "weighted"}),
        PaperMethod(f"{key}-u", f"{label} U", method, {**_AS_PRINTED, "margin": "unit"}),
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


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """One method on one instance.

    Attributes:
        method: key of the method.
        condition, seed: the instance.
        hits: first t with ‖x_t − x*‖ ≤ each of :data:`THRESHOLDS`, or None.
        norm_M: max_t ‖M_t‖₂, NaN for methods without a design.
        feasibility, stationarity: residuals at the best point.
        stop: name of the stop reason.
        errors: ‖x_t − x*‖ for t = 0 … 200; after the end of the run its last value.
    """

    method: str
    condition: float
    seed: int
    hits: tuple[int | None, ...]
    norm_M: float
    feasibility: float
    stationarity: float
    stop: str
    errors: NDArray[np.float64]


def run_method(method: PaperMethod, instance: Instance) -> Run:
    """Run one method on one instance for the paper's budget."""
    solver = Solver(
        instance.problem,
        method.method,
        # The paper stops at nothing but the budget; so do these runs, short of settled ones.
        tol=1e-300,
        max_iter=BUDGET,
        stopping=[DistanceTest(instance.x_star, SETTLED)],
        **method.options,
    )
    result = solver.solve(instance.x0, lam_g0=instance.multipliers0, history=True)
    errors = np.full(BUDGET + 1, np.linalg.norm(instance.x0 - instance.x_star))
    norm_M = np.nan
    if isinstance(result.history, History):
        found = np.linalg.norm(result.history.x - instance.x_star, axis=1)
        errors[: found.size] = found
        errors[found.size :] = found[-1]
        if method.designed and result.history.corrections:
            norm_M = float(np.max(result.history.design("norm_M")))
    hits = tuple(_first(errors <= threshold) for threshold in THRESHOLDS)
    return Run(
        method.key,
        instance.condition,
        instance.seed,
        hits,
        norm_M,
        result.residuals.feasibility,
        result.residuals.stationarity,
        result.stop.name,
        errors,
    )


def run_instance(key: tuple[float, int, int, int]) -> list[Run]:
    """Run every method on the instance (condition, seed, n, m)."""
    condition, seed, n, m = key
    instance = make_instance(condition, seed, n=n, m=m)
    return [run_method(method, instance) for method in PAPER_METHODS]


def _first(reached: NDArray[np.bool_]) -> int | None:
    where = np.flatnonzero(reached)
    return int(where[0]) if where.size else None
