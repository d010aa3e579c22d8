"""When a solve has converged, when it is given up, and what else of it a user sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.problem.point.residuals import Tolerances
from casadi_hybrid.utils.inputs import count, positive

METHOD_NAMES = "hybrid", "auto"
"""Names of the default method; the second is an alias."""
RESIDUAL_TOL = 1e-6
"""The tolerance of the unscaled residuals."""
NU_LEAST = 1e-15
"""The least."""


def floor_of(scaled_tol: float, least: float = NU_LEAST) -> float:
    """The least ν aimed at first: small enough for the scaled error to be met at it."""
    return min(1e-9, max(0.1 * scaled_tol, least))


@dataclass(frozen=True)
class Limits:
    """When a solve has converged, when to give up, and how the default method starts and steps.

    Args:
        tolerances: what the unscaled residuals have to meet.
        scaled_tol: what the scaled optimality error has to meet as well, under the default method.
        max_iter: steps.
        max_time: wall-clock seconds of a solve. Making the solver does not count: ``Opti`` and
            ``OptimalControl`` make theirs in their first solve.
        divergence: largest ‖x‖_∞ that still counts as an iterate, and largest −f at a feasible
            point.
        mu_init: the first barrier parameter of a run from x0 alone. None: the mean of
            |∇f + Aᵀy| min(distance to the bound, 1), y by least squares, at most 0.1.
        bound_push: least distance of its start from the bounds, relative to max(1, |bound|) and to
            the distance between them.
        constr_mult_init_max: multipliers by least squares that are larger are no start: zero is.
        max_soc: most second-order corrections of a step (0: none).
        threads: 2 or more: the engine in C factors by two threads where pivots are chosen and
            that takes more than a millisecond or so, to the same bits.

    The four before it have the names and the meaning of IPOPT's options, and but for mu_init (0.1)
    the defaults (Wächter and Biegler 2006, sections 2.3, 2.4, 3.6).

    Raises:
        InputError: for a value out of range.
    """

    tolerances: Tolerances = Tolerances(*[RESIDUAL_TOL] * 3)  # noqa: RUF009
    scaled_tol: float = 1e-8
    max_iter: int = 3000
    max_time: float = np.inf
    divergence: float = 1e20
    mu_init: float | None = None
    bound_push: float = 1e-2
    constr_mult_init_max: float = 1e3
    max_soc: int = 4
    threads: int = 1

    def __post_init__(self) -> None:
        positive(self.scaled_tol, "scaled_tol")
        count(self.max_iter, "max_iter")
        if self.max_time != np.inf:
            positive(self.max_time, "max_time")
        for name in ("divergence", "bound_push"):
            positive(getattr(self, name), name)
        if self.mu_init is not None:
            positive(self.mu_init, "mu_init")
        positive(self.constr_mult_init_max, "constr_mult_init_max", allow_zero=True)
        count(self.max_soc, "max_soc")
        count(self.threads, "threads", at_least=1)
