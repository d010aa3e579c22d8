"""Tolerances, limits and settings of a solve by the default method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.problem.point.residuals import Tolerances
from casadi_hybrid.utils.inputs import count, positive

# Names of the default method; the second is an alias.
METHOD_NAMES = "hybrid", "auto"
# Default tolerance of the unscaled residuals.
RESIDUAL_TOL = 1e-6


def floor_of(scaled_tol: float) -> float:
    """Smallest barrier parameter ν of the first phase: the scaled tolerance can be met at it."""
    return min(1e-9, max(0.1 * scaled_tol, 1e-15))


@dataclass(frozen=True)
class Limits:
    """Tolerances, limits and settings of a solve.

    ``mu_init``, ``bound_push``, ``constr_mult_init_max`` and ``max_soc`` have the names and the
    meaning of IPOPT's options (Wächter and Biegler 2006, sections 2.3, 2.4, 3.6). The defaults are
    IPOPT's too, except that of ``mu_init`` (0.1 in IPOPT).

    Args:
        tolerances: tolerances of the unscaled residuals.
        scaled_tol: tolerance of the scaled optimality error, for the default method.
        max_iter: largest number of iterations.
        max_time: wall-clock seconds of a solve, without the construction of the solver. ``Opti``
            and ``OptimalControl`` construct it in their first solve.
        divergence: largest ‖x‖_∞ of an iterate, and largest −f at a feasible point.
        mu_init: first barrier parameter of a start from x0 alone. None: the mean of
            |∇f + Aᵀy| min(distance to the bound, 1) with least-squares y, at most 0.1.
        bound_push: smallest distance of the start from the bounds, relative to max(1, |bound|) and
            to the distance between the bounds.
        constr_mult_init_max: largest accepted least-squares multiplier; zeros replace larger ones.
        max_soc: largest number of second-order corrections of a step (0: none).
        threads: with 2 or more, a pivoting factorization of more than about a millisecond uses two
            threads, with identical bits.

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
