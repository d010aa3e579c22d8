"""The data of a solve's result: what every method returns, and what follows from it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import casadi as ca
import numpy as np

from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.graph.derivatives import EXACT
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.point.linearization import Linearization
from casadi_hybrid.problem.point.residuals import Residuals, Tolerances
from casadi_hybrid.problem.point.working_set import WorkingSet, active_sides
from casadi_hybrid.problem.rounding import violations
from casadi_hybrid.solver.record.history import Course
from casadi_hybrid.utils.arrays import changed
from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.status import Conditions, PointStatus, StopReason

Known = TypeVar("Known", bound="Answer")


@dataclass(frozen=True, eq=False, kw_only=True)
class Ending:
    """How a solve ended: what of an :class:`Answer` is there before its arrays are."""

    stop: StopReason
    point: PointStatus
    conditions: Conditions = Conditions.UNKNOWN
    detail: str = ""
    error: EvaluationError | None = None
    iterations: int
    evaluations: Mapping[str, int]
    elapsed: float
    seconds: Mapping[str, float] = field(default_factory=dict, repr=False)
    method: str
    hessian: str = EXACT
    engine: str = "python"
    kernel: str = ""

    @property
    def success(self) -> bool:
        """True where x is a KKT point within tolerance."""
        return self.point is PointStatus.KKT_POINT


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Ending):
    """The best point of min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx, and why the solve stopped.

    Sign: L = f + lam_gᵀg + lam_xᵀx; a multiplier is positive at an active upper bound and negative
    at an active lower one, and of an equation it has either sign. Arrays are read-only.

    Attributes:
        x, f, g: the point, the objective and all rows of the constraints there, equations first.
        lam_x, lam_g: multipliers of the bounds on x and of g; the residuals use them.
        last: ``x0, lam_x0, lam_g0`` of the last iterate, from which ``solve(**result.last)`` and
            ``warm_start=result`` go on. Where no limit has ended the solve it is x; empty for
            methods of Python.
        residuals: first-order residuals of (x, multipliers), unscaled.
        tolerances: what the residuals were held against.
        bounds: those of the solve; rows with lbg = ubg are the equations.
        stop: why the solve stopped.
        point: what x is.
        conditions: second-order conditions seen at x, where it is a KKT point. ``UNKNOWN`` without
            second derivatives or an objective, and where a warm start is a solution already.
        detail: a sentence with the particulars of a failure, or empty.
        error: where the solve failed, the last value of a function of the problem that was not
            finite: which function, which entry, at which x. None where all were.
        remarks: what the method found out about the problem.
        iterations: steps taken.
        evaluations: calls of the problem's functions, by kind.
        elapsed: seconds.
        method, problem: names.
        hessian: what the Hessian of the Lagrangian was: ``"exact"``, ``"given"``,
            ``"gauss-newton"`` or ``"limited-memory"``.
        engine: what ran the iteration: ``"c"``, the engine in C, or ``"python"``.
        kernel: linear solver: ``"ldl-fixed"``, the engine's LDLᵀ in a fixed order, or ``"ldl"``
            if its pivots had to be chosen at least once; empty if Python runs.
        constraint_names, variable_names: one an entry of g and x.
        x0, p: the start and the parameters of the solve.
        certificate: at a point that violates a constraint the slope of the violation
            ½Σω_i v_i² relative to its parts, ‖P Σω_i v_i ∇g_i‖₂ / Σω_i |v_i| ‖∇g_i‖₂, between 0
            and 1: v are the violations of the rows, ω the scales of the solve, P leaves out what
            bounds on x block, and ‖∇g_i‖ is the larger of those at the start and at x. Where
            |Σω_i v_i ∇²g_i|·max(1, |x|), the slope after a move of the size of x, has an entry
            larger than the parts it takes their place. Where it is small (1e-5) no small step
            reduces the violation: the constraints are inconsistent, or x is a local minimum of the
            violation. None at a feasible point, and for methods that do not compute it.
        start, end: first derivatives at the first point (of the last run, where there were
            several) and at the returned one, None where undefined.
        step: the last step before the returned point, None where none was taken.
        seconds: spent in evaluating, by the names of ``evaluations``; empty for methods that do
            not measure it.
        history: the course of the solve where it was recorded, else None.
        limits: when the solve was to end.
        options: of the method itself, as text; empty for the default method.
        patterns: structural nonzeros of J_g and of ∇²ₓₓL, None for the second where there are no
            second derivatives and none were learned.
    """

    for_bounds: ClassVar[bool] = True
    """True for methods that take bounds and inequalities."""

    x: Vector
    f: float
    g: Vector
    lam_x: Vector
    lam_g: Vector
    last: Mapping[str, Vector] = field(default_factory=dict, repr=False)
    residuals: Residuals
    remarks: tuple[str, ...] = ()
    tolerances: Tolerances
    problem: str
    certificate: float | None = None
    bounds: Bounds = field(repr=False)
    constraint_names: tuple[str, ...] = field(repr=False)
    variable_names: tuple[str, ...] = field(repr=False)
    x0: Vector = field(repr=False)
    p: Vector = field(repr=False)
    start: Linearization | None = field(default=None, repr=False)
    end: Linearization | None = field(default=None, repr=False)
    step: Vector | None = field(default=None, repr=False)
    history: Course | None = field(default=None, repr=False)
    limits: Limits | None = field(default=None, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    patterns: tuple[ca.Sparsity, ca.Sparsity | None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.__dict__.update(_locked(self.__dict__))

    @property
    def infeasible(self) -> bool:
        """True where the solve ended at a point from which no small step reduces the violation."""
        stationary = self.point is PointStatus.INFEASIBLE_STATIONARY
        return stationary or self.stop is StopReason.LOCALLY_INFEASIBLE

    @cached_property
    def working_set(self) -> WorkingSet:
        """Which bounds on x and g are active, and on which side."""
        b, near = self.bounds, self.tolerances.feasibility
        return WorkingSet(
            active_sides(self.x, b.lbx, b.ubx, self.lam_x, near),
            active_sides(self.g, b.lbg, b.ubg, self.lam_g, near),
        )

    def violations(self) -> tuple[Vector, Vector]:
        """How far x and g lie outside their bounds: negative below, positive above, else zero."""
        b = self.bounds
        return violations(self.x, b.lbx, b.ubx), violations(self.g, b.lbg, b.ubg)

    def worst(self) -> str:
        """The name of the bound that is violated most, empty where all hold exactly."""
        of_x, of_g = self.violations()
        size = np.abs(np.append(of_g, of_x))
        if not size.max(initial=0.0) > 0.0:  # (false for NaN as well)
            return ""
        return (*self.constraint_names, *self.variable_names)[int(np.argmax(size))]


def altered(result: Known, **others: Any) -> Known:
    """The result with other values in these fields; arrays that stay are shared, not copied."""
    return changed(result, **{**others, **_locked(others)})


def _locked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Read-only copies of the arrays among the values."""
    copies = {name: v.copy() for name, v in values.items() if isinstance(v, np.ndarray)}
    for array in copies.values():
        array.setflags(write=False)
    return copies
