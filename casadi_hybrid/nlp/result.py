"""The result of one solve of a nonlinear program, with what a diagnosis of it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from casadi_hybrid.inputs import Vector
from casadi_hybrid.nlp.residuals import violations
from casadi_hybrid.nlp.standard import Bounds, Linearization
from casadi_hybrid.result import Result


@dataclass(frozen=True, eq=False, kw_only=True)
class NlpResult(Result):
    """The best point of min f s.t. lbg ≤ g ≤ ubg, lbx ≤ x ≤ ubx. L = f + lam_gᵀg + lam_xᵀx.

    Attributes:
        lam_x: multipliers of the bounds on x. A multiplier is positive at an active upper bound
            and negative at an active lower one.
        bounds: those of the solve.
        certificate: at a point that violates a constraint the size of the slope of the violation,
            ‖P(J̃ᵀv)‖₂/‖v‖₂ with v the violations of the rows, each scaled to gradients of at most
            100 at the start, J̃ their Jacobian and P leaving out what bounds on x block. Where it
            is small (1e-5) no small step reduces the violation: the constraints are inconsistent,
            or x is a local minimum of their violation. None at a feasible point.
        start, end: first derivatives at the first and the returned point, None where undefined.
        step: the last step before the returned point, None where none was taken.
    """

    lam_x: Vector
    bounds: Bounds = field(repr=False)
    certificate: float | None = None
    start: Linearization | None = field(default=None, repr=False)
    end: Linearization | None = field(default=None, repr=False)
    step: Vector | None = field(default=None, repr=False)

    _residual_rows: ClassVar[tuple[str, ...]] = ("feasibility", "stationarity", "complementarity")

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
