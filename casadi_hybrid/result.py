"""The immutable result of a solve: what every solver of the package returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np

from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.course.history import Course, History
from casadi_hybrid.point.residuals import Residuals, Tolerances

Known = TypeVar("Known", bound="Result")


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """The best point found, what it is, and why the solve stopped. Arrays are read-only.

    Sign: L = f + lam_gᵀg, with further terms for what else a problem has.

    Attributes:
        x, f, g: the point, the objective and the constraint functions there.
        lam_g: multipliers of g; the residuals use them.
        residuals: first-order residuals of (x, multipliers), unscaled.
        tolerances: what the residuals were held against.
        stop: why the solve stopped.
        point: what x is.
        detail: a sentence with the particulars of a failure, or empty.
        error: where the solve failed, the last value of a function of the problem that was not
            finite: which function, which entry, at which x. None where all were.
        remarks: what the method found out about the problem.
        iterations: steps taken.
        evaluations: calls of the problem's functions, by kind.
        elapsed: seconds.
        method, problem: names.
        constraint_names, variable_names: one an entry of g and x.
        x0, p: the start and the parameters of the solve.
        history: the course of the solve where it was recorded, else None.
    """

    x: Vector
    f: float
    g: Vector
    lam_g: Vector
    residuals: Residuals
    stop: StopReason
    point: PointStatus
    detail: str = ""
    error: EvaluationError | None = None
    remarks: tuple[str, ...] = ()
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
    history: Course | None = field(default=None, repr=False)

    _residual_rows: ClassVar[tuple[str, ...]] = ("feasibility", "stationarity")

    def __post_init__(self) -> None:
        self.__dict__.update(_locked(self.__dict__))

    @property
    def success(self) -> bool:
        """Whether x is a KKT point within tolerance."""
        return self.point is PointStatus.KKT_POINT

    def worst(self) -> str:
        """The name of the constraint that is violated most, empty where all hold exactly."""
        size = np.abs(self.g)
        # (false for NaN as well)
        return self.constraint_names[int(np.argmax(size))] if size.max(initial=0.0) > 0.0 else ""

    def findings(self) -> tuple[str, ...]:
        """What there is to say beside the statuses and residuals, in sentences."""
        return tuple(f"Remark: {remark}." for remark in self.remarks)

    def explain(self) -> str:
        """Say in sentences how the solve ended, what the point is, and what stood in the way."""
        worst = self.worst()
        kinds = []
        for kind in self._residual_rows:
            place = f" at {worst}" if kind == "feasibility" and worst else ""
            tolerance = getattr(self.tolerances, kind)
            kinds.append(
                f"{kind} {getattr(self.residuals, kind):.2e}{place} (at most {tolerance:g})"
            )
        lines = [
            f"Stopped after {self.iterations} iterations: {self.stop.value}.",
            f"The point: {self.point.value}.",
            f"The objective: f(x) = {self.f:.10g}."
            if np.isfinite(self.f)
            else "The objective is not known there.",
            f"Residuals: {', '.join(kinds)}.",
        ]
        undefined = self._undefined_start()
        if self.detail and not undefined:
            lines.append(f"Detail: {self.detail}.")
        return "\n".join([*lines, *undefined, *self.findings()])

    def _undefined_start(self) -> list[str]:
        """Which function is not defined at the start, and what to do; else nothing."""
        error = self.error
        if error is None or self.stop is not StopReason.EVALUATION_ERROR or self.iterations:
            return []
        moved = error.x is not None and not np.array_equal(error.x, self.x0)
        bounded = hasattr(self, "bounds")
        if moved and not bounded:
            return []  # a trial point of the first step
        said = f"At the start{', moved inside its bounds' if moved else ''}: {error.fault()}."
        written = "or write the function so that it is defined there."
        if not bounded:
            return [said, f"Start from another x0, {written}"]
        bound = "bound the variables so that the argument stays in its domain"
        return [said, f"Start from another x0, {bound},", written]

    def __str__(self) -> str:
        calls = ", ".join(f"{count} {kind}" for kind, count in self.evaluations.items() if count)
        rows = [
            ("problem", f"{self.problem}  (n = {self.x.size}, m = {self.g.size})"),
            ("method", self.method),
            ("stopped", f"{self.stop.value}  [{self.stop.name}]"),
            ("point", f"{self.point.value}  [{self.point.name}]"),
            ("objective", f"{self.f:.10g}"),
        ]
        worst = self.worst()
        places = {"feasibility": f"; largest at {worst}" if worst else ""}
        for kind in self._residual_rows:
            value, tolerance = getattr(self.residuals, kind), getattr(self.tolerances, kind)
            rows.append((kind, f"{value:.2e}  (tolerance {tolerance:.0e}{places.get(kind, '')})"))
        took = f"{self.iterations}  ({calls or 'no'} evaluations, {self.elapsed:.3g} s)"
        rows.append(("iterations", took))
        if self.detail:
            rows.append(("detail", self.detail))
        rows += [("remark", remark) for remark in self.remarks]
        width = 1 + max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}{text}" for label, text in rows)


def altered(result: Known, **others: Any) -> Known:
    """The result with other values in these fields; arrays that stay are shared, not copied."""
    return changed(result, **{**others, **_locked(others)})


def _locked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Read-only copies of the arrays among the values."""
    copies = {name: v.copy() for name, v in values.items() if isinstance(v, np.ndarray)}
    for array in copies.values():
        array.setflags(write=False)
    return copies


@dataclass(frozen=True, eq=False, kw_only=True)
class EqualityResult(Result):
    """The result of :class:`~casadi_hybrid.Solver`, for min f s.t. h = 0 (``g`` is h).

    x has the least KKT merit of all iterates.

    Attributes:
        mu: μ, the paper's dual variable at that iterate (depends on the split).
        effective_multipliers: ν, the effective dual of the paper. λ, μ and ν agree at a solution.
        history: iterates and decisions where they were asked for, else None.
    """

    mu: Vector
    effective_multipliers: Vector
    history: History | None = field(default=None, repr=False)

    @property
    def h(self) -> Vector:
        """The constraint values h(x)."""
        return self.g

    @property
    def multipliers(self) -> Vector:
        """λ = π, the memory-free multipliers: the same for every split of the correction."""
        return self.lam_g
