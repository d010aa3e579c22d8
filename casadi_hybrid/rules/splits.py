"""How the total correction M is divided between the augmented and the optimistic channel.

A split proposes candidates (α, θ, C_aug, C_opt); most propose one, the grid oracle proposes many
and the design keeps the candidate with the largest margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Matrix, positive
from casadi_hybrid.rules.spectra import LocalModel, symmetric_norm


class Candidate(NamedTuple):
    """One way to realize a correction; ``theta`` is NaN where the split has none."""

    alpha: float
    theta: float
    C_aug: Matrix
    C_opt: Matrix


class SafetyConstants(NamedTuple):
    """κ_x, κ_p, κ_ω of the step restrictions S1–S3."""

    kappa_x: float
    kappa_p: float
    kappa_omega: float


class Split(Protocol):
    """Proposes realizations of C_can + αR."""

    def candidates(
        self,
        model: LocalModel,
        C_can: Matrix,
        alpha: float,
        R: Matrix,
        kappa: SafetyConstants,
    ) -> Iterator[Candidate]:
        """Yield candidates in order of preference."""
        ...


def divide(C_can: Matrix, alpha: float, theta: float, R: Matrix) -> Candidate:
    """C_aug = C_can + θαR, C_opt = (1 − θ)αR."""
    return Candidate(alpha, theta, C_can + (theta * alpha) * R, ((1 - theta) * alpha) * R)


@dataclass(frozen=True, slots=True)
class PureAugmented:
    """C_aug = M, C_opt = 0: the augmented Lagrangian endpoint."""

    def candidates(
        self, model: LocalModel, C_can: Matrix, alpha: float, R: Matrix, kappa: SafetyConstants
    ) -> Iterator[Candidate]:
        """Yield the one candidate."""
        yield Candidate(alpha, np.nan, C_can + alpha * R, np.zeros_like(R))


@dataclass(frozen=True, slots=True)
class PureOptimistic:
    """C_aug = 0, C_opt = M: the optimistic endpoint."""

    def candidates(
        self, model: LocalModel, C_can: Matrix, alpha: float, R: Matrix, kappa: SafetyConstants
    ) -> Iterator[Candidate]:
        """Yield the one candidate."""
        yield Candidate(alpha, np.nan, np.zeros_like(R), C_can + alpha * R)


@dataclass(frozen=True, slots=True)
class GivenSplit:
    """θ given by the user, 0 ≤ θ ≤ 1."""

    theta: float

    def __post_init__(self) -> None:
        if positive(self.theta, "theta", allow_zero=True) > 1:
            raise InputError(f"theta must lie in [0, 1], got {self.theta!r}")

    def candidates(
        self, model: LocalModel, C_can: Matrix, alpha: float, R: Matrix, kappa: SafetyConstants
    ) -> Iterator[Candidate]:
        """Yield the one candidate."""
        yield divide(C_can, alpha, self.theta, R)


@dataclass(frozen=True, slots=True)
class ClosedFormSplit:
    """The balance of S1 against S3:

    θ = κ_x‖R‖‖B‖² / (κ_x‖R‖‖B‖² + κ_p κ_ω ‖BᵀRB‖).
    """

    def candidates(
        self, model: LocalModel, C_can: Matrix, alpha: float, R: Matrix, kappa: SafetyConstants
    ) -> Iterator[Candidate]:
        """Yield the one candidate."""
        augmented = kappa.kappa_x * symmetric_norm(R) * model.norm_B**2
        optimistic = kappa.kappa_p * kappa.kappa_omega * symmetric_norm(model.B.T @ R @ model.B)
        yield divide(C_can, alpha, augmented / (augmented + optimistic), R)


@dataclass(frozen=True, slots=True)
class GridSplit:
    """The grid oracle: α over multiples of the closed-form α, θ over a grid of [0, 1].

    The largest strength comes first: the weighted margin does not depend on α, so the first of
    equals is kept and the order decides.
    """

    strengths: tuple[float, ...] = (4.0, 2.0, 1.0)
    thetas: tuple[float, ...] = tuple(i / 10 for i in range(11))

    def candidates(
        self, model: LocalModel, C_can: Matrix, alpha: float, R: Matrix, kappa: SafetyConstants
    ) -> Iterator[Candidate]:
        """Yield every pair, strengths outermost."""
        for factor in self.strengths:
            for theta in self.thetas:
                yield divide(C_can, factor * alpha, theta, R)
