"""When a solve has converged, and when it is given up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.basics.inputs import count, positive
from casadi_hybrid.point.residuals import Tolerances

RESIDUAL_TOL = 1e-6
"""The tolerance of the unscaled residuals."""
NU_START = 0.1
"""The first barrier parameter ν."""
NU_LEAST = 1e-15
"""The least."""


def floor_of(scaled_tol: float, least: float = NU_LEAST) -> float:
    """The least ν aimed at first: small enough for the scaled error to be met at it."""
    return min(1e-9, max(0.1 * scaled_tol, least))


@dataclass(frozen=True)
class Limits:
    """When a solve has converged, and when to give up.

    Args:
        tolerances: what the unscaled residuals have to meet.
        scaled_tol: what the scaled optimality error has to meet as well, under the default method.
        max_iter: steps.
        max_time: wall-clock seconds.
        divergence: largest ‖x‖_∞ that still counts as an iterate; what else it limits is said at
            the tests (:class:`~casadi_hybrid.iterations.stopping.DivergenceTest`,
            :class:`~casadi_hybrid.result.record.Watch`).

    Raises:
        InputError: for a value out of range.
    """

    tolerances: Tolerances = Tolerances(*[RESIDUAL_TOL] * 3)  # noqa: RUF009
    scaled_tol: float = 1e-8
    max_iter: int = 3000
    max_time: float = np.inf
    divergence: float = 1e20

    def __post_init__(self) -> None:
        positive(self.scaled_tol, "scaled_tol")
        count(self.max_iter, "max_iter")
        if self.max_time != np.inf:
            positive(self.max_time, "max_time")
        positive(self.divergence, "divergence")
