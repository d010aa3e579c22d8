"""The small pieces a design rule is made of: metric and strength.

Each is a frozen value with one method on a :class:`~casadi_hybrid.rules.spectra.LocalModel`.
Section numbers refer to the paper's "Closed-Form Hybrid Correction Design".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from casadi_hybrid.basics.errors import DesignError, InputError
from casadi_hybrid.basics.inputs import Matrix, as_matrix, positive
from casadi_hybrid.rules.spectra import LocalModel, symmetric_eigenvalues


class Metric(Protocol):
    """Chooses the residual metric R_t."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return R_t (m×m, symmetric, positive definite on range(B))."""
        ...


class Strength(Protocol):
    """Chooses the residual strength α_t."""

    @property
    def delta(self) -> float:
        """The curvature aimed at."""
        ...

    def alpha(self, model: LocalModel, R: Matrix, deficit: float) -> float:
        """Return α_t, where ``deficit`` is the curvature the cancellation leaves to be added."""
        ...


@dataclass(frozen=True, slots=True)
class IdentityMetric:
    """R = I, the paper's choice in its experiments."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return I."""
        return np.eye(model.m)


@dataclass(frozen=True, slots=True)
class GramMetric:
    """R = (BBᵀ)⁺, so that BᵀRB is the projector on range(Bᵀ): no ill-conditioning left."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return (BBᵀ)⁺."""
        pinv = model.pinv
        return pinv.T @ pinv


@dataclass(frozen=True, eq=False)
class FixedMetric:
    """R given by the user: symmetric positive definite, m×m, or a number for a multiple of I."""

    R: Matrix

    def matrix(self, model: LocalModel) -> Matrix:
        """Return R after checking it against m."""
        R = as_matrix(self.R, (model.m, model.m), "R")
        if not np.allclose(R, R.T) or symmetric_eigenvalues(R)[0] <= 0:
            raise InputError("R must be symmetric positive definite")
        return R


@dataclass(frozen=True, slots=True)
class TargetCurvature:
    """α = deficit / λ_min(BᵀRB on range(Bᵀ)): the least α that reaches δ on range(Bᵀ).

    Under full cancellation the deficit is δ and this is the paper's α = δ/λ_min(BᵀRB).

    Args:
        delta: target curvature δ > 0 (paper: 0.35).
    """

    delta: float = 0.35

    def __post_init__(self) -> None:
        positive(self.delta, "delta")

    def alpha(self, model: LocalModel, R: Matrix, deficit: float) -> float:
        """Return α_t; raise :class:`DesignError` when R does not see all of range(Bᵀ)."""
        if deficit == 0.0:
            return 0.0
        smallest = model.metric_curvature(R) if model.rank else 0.0
        if smallest <= 0:
            raise DesignError(
                "BᵀRB is singular: the residual metric sees no curvature in some direction "
                "of the row space of the constraint Jacobian"
            )
        return deficit / smallest


@dataclass(frozen=True, slots=True)
class GivenStrength:
    """α given by the user, whatever curvature results.

    Args:
        value: α > 0.
        delta: the curvature the cancellation aims at where it needs one.
    """

    value: float
    delta: float = 1e-3

    def __post_init__(self) -> None:
        positive(self.value, "alpha")
        positive(self.delta, "delta")

    def alpha(self, model: LocalModel, R: Matrix, deficit: float) -> float:
        """Return the given α."""
        return self.value
