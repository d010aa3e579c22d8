"""The result of one solve of a nonlinear program, with what a diagnosis of it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.explain.findings import findings
from casadi_hybrid.point.kkt import violations
from casadi_hybrid.point.working_set import WarmStart, WorkingSet, active_sides
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.form import Linearization


@dataclass(frozen=True, eq=False, kw_only=True)
class NlpResult(Result):
    """The best point of min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx. L = f + lam_gᵀg + lam_xᵀx.

    Attributes:
        lam_x: multipliers of the bounds on x. A multiplier is positive at an active upper bound
            and negative at an active lower one.
        bounds: those of the solve.
        certificate: at a point that violates a constraint the slope of the violation
            ½Σω_i v_i² relative to its parts, ‖P Σω_i v_i ∇g_i‖₂ / Σω_i |v_i| ‖∇g_i‖₂, between 0
            and 1: v are the violations of the rows, ω the scales of the solve, P leaves out what
            bounds on x block, and ‖∇g_i‖ is the larger of those at the start and at x. Where
            max |Σω_i v_i ∇²g_i|·max(1, ‖x‖_∞), the slope after a move of the size of x, is larger
            than the parts it takes their place. Where it is small (1e-5) no small step reduces
            the violation: the constraints are inconsistent, or x is a local minimum of their
            violation. None at a feasible point.
        start, end: first derivatives at the first point (of the last attempt, where there were
            several) and at the returned one, None where undefined.
        step: the last step before the returned point, None where none was taken.
        beside: where no multipliers exist, an iterate next to x with those it had.
    """

    lam_x: Vector
    bounds: Bounds = field(repr=False)
    certificate: float | None = None
    start: Linearization | None = field(default=None, repr=False)
    end: Linearization | None = field(default=None, repr=False)
    step: Vector | None = field(default=None, repr=False)
    beside: tuple[Vector, WarmStart] | None = field(default=None, repr=False)

    _residual_rows: ClassVar[tuple[str, ...]] = ("feasibility", "stationarity", "complementarity")

    @cached_property
    def working_set(self) -> WorkingSet:
        """Which bounds on x and g are active, and on which side."""
        b, near = self.bounds, self.tolerances.feasibility
        return WorkingSet(
            active_sides(self.x, b.lbx, b.ubx, self.lam_x, near),
            active_sides(self.g, b.lbg, b.ubg, self.lam_g, near),
        )

    def findings(self) -> tuple[str, ...]:
        """What violates, depends, runs away or is badly scaled, in sentences."""
        return (*findings(self), *super().findings())

    def violations(self) -> tuple[Vector, Vector]:
        """How far x and g lie outside their bounds: negative below, positive above, else zero."""
        b = self.bounds
        return violations(self.x, b.lbx, b.ubx), violations(self.g, b.lbg, b.ubg)

    def worst(self) -> str:
        """The name of the bound that is violated most, empty where all hold exactly."""
        of_x, of_g = map(np.abs, self.violations())
        largest = max(of_x.max(initial=0.0), of_g.max(initial=0.0))
        if not largest > 0.0:
            return ""
        if of_g.max(initial=0.0) == largest:
            return self.constraint_names[int(np.argmax(of_g))]
        return self.variable_names[int(np.argmax(of_x))]
