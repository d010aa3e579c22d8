"""The data of a solve's result, the same under every method."""

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

AnyAnswer = TypeVar("AnyAnswer", bound="Answer")


@dataclass(frozen=True, eq=False, kw_only=True)
class Ending:
    """The end of a solve: the fields of an :class:`Answer` that need none of its arrays."""

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
        """True if x is a KKT point within tolerance."""
        return self.point is PointStatus.KKT_POINT


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Ending):
    """The best point of min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx, and why the solve stopped.

    Sign: L = f + lam_gᵀg + lam_xᵀx; a multiplier is positive at an active upper bound and negative
    at an active lower one, and of an equation it has either sign. Arrays are read-only.

    Attributes:
        x, f, g: the point, the objective and all rows of the constraints there, equations first.
        lam_x, lam_g: multipliers of the bounds on x and of g; the residuals use them.
        last: ``x0, lam_x0, lam_g0`` from which ``solve(**result.last)`` and ``warm_start=result``
            continue: the last iterate if a limit ended the solve, else x. Empty for methods in
            Python.
        residuals: first-order residuals of (x, multipliers), unscaled.
        tolerances: limits of the residuals.
        bounds: bounds of the solve; rows with lbg = ubg are the equations.
        stop: reason to stop.
        point: status of x.
        conditions: second-order conditions at a KKT point x. ``UNKNOWN`` without second derivatives
            or an objective, and if the warm start was a solution already.
        detail: a sentence with the particulars of a failure, or empty.
        error: after a failure, the last value of a function of the problem that was not finite:
            function, entry and x. None if all were finite.
        remarks: sentences of the method about the problem.
        iterations: steps taken.
        evaluations: calls of the problem's functions, by kind.
        elapsed: seconds.
        method, problem: names.
        hessian: kind of the Hessian of the Lagrangian: ``"exact"``, ``"given"``,
            ``"gauss-newton"`` or ``"limited-memory"``.
        engine: ``"c"`` for the core in C, or ``"python"``.
        kernel: linear solver: ``"ldl-fixed"``, LDLᵀ in a fixed order, or ``"ldl"`` if its pivots
            had to be chosen at least once; empty for methods in Python.
        constraint_names, variable_names: one an entry of g and x.
        x0, p: the start and the parameters of the solve.
        certificate: at an infeasible point the slope of the violation ½Σω_i v_i² relative to its
            parts, ‖P Σω_i v_i ∇g_i‖₂ / Σω_i |v_i| ‖∇g_i‖₂, between 0 and 1: v are the violations of
            the rows, ω the scales of the solve, P omits directions that bounds on x block, and
            ‖∇g_i‖ is the larger of the norms at the start and at x. If an entry of
            |Σω_i v_i ∇²g_i|·max(1, |x|), the slope after a move of the size of x, is larger than
            the parts it takes their place. A small value (1e-5) means that no small step reduces
            the violation: the constraints are inconsistent, or x is a local minimum of the
            violation. None at a feasible point, and for methods that do not compute it.
        start, end: first derivatives at the first point (of the last phase) and at the returned
            one, None if undefined.
        step: the last step before the returned point, None without one.
        seconds: spent in evaluations, by the names of ``evaluations``; empty if not measured.
        history: the course of the solve if recorded, else None.
        limits: limits of the solve.
        options: of the method itself, as text; empty for the default method.
        patterns: structural nonzeros of J_g and of ∇²ₓₓL; None for the second without second
            derivatives and without an approximation of them.
    """

    for_bounds: ClassVar[bool] = True
    """True for methods that accept bounds and inequalities."""

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
        """True if no small step from the returned point reduces the violation."""
        stationary = self.point is PointStatus.INFEASIBLE_STATIONARY
        return stationary or self.stop is StopReason.LOCALLY_INFEASIBLE

    @cached_property
    def working_set(self) -> WorkingSet:
        """Active bounds on x and g, with their sides."""
        b, near = self.bounds, self.tolerances.feasibility
        return WorkingSet(
            active_sides(self.x, b.lbx, b.ubx, self.lam_x, near),
            active_sides(self.g, b.lbg, b.ubg, self.lam_g, near),
        )

    def violations(self) -> tuple[Vector, Vector]:
        """Distances of x and g outside their bounds: negative below, positive above, else zero."""
        b = self.bounds
        return violations(self.x, b.lbx, b.ubx), violations(self.g, b.lbg, b.ubg)

    def worst(self) -> str:
        """Name of the bound that is violated most, empty if all hold exactly."""
        of_x, of_g = self.violations()
        # Rows first, in the order of the names below.
        size = np.abs(np.append(of_g, of_x))
        if not size.max(initial=0.0) > 0.0:  # (false for NaN as well)
            return ""
        return (*self.constraint_names, *self.variable_names)[int(np.argmax(size))]


def altered(result: AnyAnswer, **others: Any) -> AnyAnswer:
    """Return a result with other values in these fields; other arrays are shared, not copied."""
    return changed(result, **{**others, **_locked(others)})


def _locked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Read-only copies of the arrays among the values."""
    # The arrays may belong to a caller, and a result never changes.
    copies = {name: v.copy() for name, v in values.items() if isinstance(v, np.ndarray)}
    for array in copies.values():
        array.setflags(write=False)
    return copies
