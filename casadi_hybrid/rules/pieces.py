"""The small pieces a design rule is made of: cancellation, metric, strength.

Each is a frozen value with one method on a :class:`~casadi_hybrid.rules.spectra.LocalModel`.
Section numbers refer to the paper's "Closed-Form Hybrid Correction Design".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from casadi_hybrid.errors import DesignError, InputError
from casadi_hybrid.inputs import Matrix, as_matrix, positive
from casadi_hybrid.rules.spectra import LocalModel, symmetric_eigenvalues


class Cancellation(Protocol):
    """Builds the matrix that removes local curvature."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return C_can (m×m, symmetric)."""
        ...


class Metric(Protocol):
    """Chooses the residual metric R_t."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return R_t (m×m, symmetric positive semidefinite)."""
        ...


@dataclass(frozen=True, slots=True)
class FullCancellation:
    """C_can = −B†ᵀ H B†, so that H + BᵀC_can B = 0. Needs full column rank."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return C_can; raise :class:`DesignError` when rank B < n."""
        model.require_full_column_rank()
        pinv = model.pinv
        C = -(pinv.T @ model.H @ pinv)
        return 0.5 * (C + C.T)


@dataclass(frozen=True, slots=True)
class NoCancellation:
    """C_can = 0: only the residual metric corrects, M = αR (the classical penalty)."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return the zero matrix."""
        return np.zeros((model.m, model.m))


@dataclass(frozen=True, slots=True)
class IdentityMetric:
    """R = I, the paper's choice in its experiments."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return I."""
        return np.eye(model.m)


@dataclass(frozen=True, slots=True)
class GramMetric:
    """R = (BBᵀ)⁺, so that BᵀRB is the projector on the row space of B: no ill-conditioning left."""

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
    """α = δ / λ_min(BᵀRB): the least α with H + Bᵀ(C_can + αR)B ⪰ δI under full cancellation.

    Args:
        delta: target curvature δ > 0 (paper: 0.35).
    """

    delta: float = 0.35

    def __post_init__(self) -> None:
        positive(self.delta, "delta")

    def alpha(self, model: LocalModel, R: Matrix) -> float:
        """Return α_t; raise :class:`DesignError` when BᵀRB is singular."""
        smallest = float(symmetric_eigenvalues(model.B.T @ R @ model.B)[0])
        if smallest <= 0:
            raise DesignError(
                "BᵀRB is singular: the residual metric sees no curvature in some direction "
                "of the row space of the constraint Jacobian"
            )
        return self.delta / smallest


@dataclass(frozen=True, slots=True)
class GivenStrength:
    """α given by the user."""

    value: float

    def __post_init__(self) -> None:
        positive(self.value, "alpha")

    def alpha(self, model: LocalModel, R: Matrix) -> float:
        """Return the given α."""
        return self.value


Strength = TargetCurvature | GivenStrength
