"""The immutable result of a solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from casadi_hybrid.history import History
from casadi_hybrid.inputs import Vector
from casadi_hybrid.residuals import Residuals, Tolerances
from casadi_hybrid.status import PointStatus, StopReason


@dataclass(frozen=True, eq=False)
class Result:
    """The best point found, what it is, and why the solve stopped. Arrays are read-only.

    Attributes:
        x: the best point found (least KKT merit over all iterates).
        multipliers: λ = π, the memory-free multipliers, the same for every split of the
            correction; the residuals below use them. Sign: L = f + λᵀh.
        mu: μ, the paper's dual variable at that iterate (depends on the split).
        effective_multipliers: ν, the effective dual of the paper. λ, μ and ν agree at a solution.
        f, h: objective and constraint values at x.
        residuals: feasibility ‖h‖_∞ and stationarity ‖∇f + J_hᵀλ‖_∞, unscaled.
        stop: why the solve stopped.
        point: what x is.
        detail: a sentence with the particulars of a failure, or empty.
        remarks: what the method found out about the problem.
        iterations: steps taken.
        evaluations: calls of the problem's functions, by kind.
        elapsed: seconds.
        x0, p: the start and the parameters of the solve.
        history: iterates and decisions where they were asked for, else None.
    """

    x: Vector
    multipliers: Vector
    mu: Vector
    effective_multipliers: Vector
    f: float
    h: Vector
    residuals: Residuals
    stop: StopReason
    point: PointStatus
    detail: str
    remarks: tuple[str, ...]
    iterations: int
    evaluations: Mapping[str, int]
    elapsed: float
    tolerances: Tolerances
    method: str
    problem: str
    constraint_names: tuple[str, ...] = field(repr=False)
    variable_names: tuple[str, ...] = field(repr=False)
    x0: Vector = field(repr=False)
    p: Vector = field(repr=False)
    history: History | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("x", "multipliers", "mu", "effective_multipliers", "h", "x0", "p"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def success(self) -> bool:
        """Whether x is a KKT point within tolerance."""
        return self.point is PointStatus.KKT_POINT

    @property
    def lam_g(self) -> Vector:
        """The multipliers under CasADi's name."""
        return self.multipliers

    def __str__(self) -> str:
        worst = int(np.argmax(np.abs(self.h)))
        calls = ", ".join(f"{count} {kind}" for kind, count in self.evaluations.items() if count)
        r, tol = self.residuals, self.tolerances
        rows = [
            ("problem", f"{self.problem}  (n = {self.x.size}, m = {self.h.size})"),
            ("method", self.method),
            ("stopped", f"{self.stop.value}  [{self.stop.name}]"),
            ("point", f"{self.point.value}  [{self.point.name}]"),
            ("objective", f"{self.f:.10g}"),
            (
                "feasibility",
                f"{r.feasibility:.2e}  (tolerance {tol.feasibility:.0e}; largest at "
                f"{self.constraint_names[worst]})",
            ),
            ("stationarity", f"{r.stationarity:.2e}  (tolerance {tol.stationarity:.0e})"),
            ("iterations", f"{self.iterations}  ({calls} evaluations, {self.elapsed:.3g} s)"),
        ]
        if self.detail:
            rows.append(("detail", self.detail))
        rows += [("remark", remark) for remark in self.remarks]
        return "\n".join(f"{label:<13}{text}" for label, text in rows)
