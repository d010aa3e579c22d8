"""Cancellation of local curvature by a correction, for any shape and rank of B.

S = W diag(e) Wᵀ is the Schur complement of the kernel block
(:mod:`casadi_hybrid.paper.rules.spectra`; H itself, in the coordinates y, for full column
rank), C = B⁺ᵀ Y T Yᵀ B⁺ the minimum-norm matrix with BᵀCB = YTYᵀ. Each rule is a choice of T. The
curvature still missing for S + YᵀBᵀMBY ⪰ δI is its *deficit*, which the strength α makes up. Then
A_M ⪰ δI, or ⪰ min(δ, ½λ_min(H_zz)) I with a kernel, whose curvature no M can raise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from casadi_hybrid.paper.rules.spectra import LocalModel, symmetric_eigen
from casadi_hybrid.utils.inputs import Matrix, share


class Cancelled(NamedTuple):
    """C_can (m×m, symmetric) and the curvature that is still missing on range(Bᵀ)."""

    C: Matrix
    deficit: float


class Cancellation(Protocol):
    """Builds the matrix that removes local curvature."""

    def cancel(self, model: LocalModel, delta: float) -> Cancelled:
        """Return C_can for the target curvature δ."""


@dataclass(frozen=True, slots=True)
class FullCancellation:
    """T = −S, full cancellation. For full column rank this is the paper's −B†ᵀHB†. Deficit δ."""

    def cancel(self, model: LocalModel, delta: float) -> Cancelled:
        """Return C_can."""
        if model.rank == model.n:  # the same matrix with fewer roundings
            C = -(model.pinv.T @ model.H @ model.pinv)
            return Cancelled(0.5 * (C + C.T), delta)
        return Cancelled(model.lift(-model.schur(delta)), delta)


@dataclass(frozen=True, slots=True)
class NegativeCancellation:
    """T = W diag(max(−e, 0)) Wᵀ, negative curvature only. Deficit δ."""

    def cancel(self, model: LocalModel, delta: float) -> Cancelled:
        """Return C_can."""
        e, W = symmetric_eigen(model.schur(delta))
        return Cancelled(model.lift((W * np.maximum(-e, 0.0)) @ W.T), delta)


@dataclass(frozen=True, slots=True)
class FloorCancellation:
    """T = W diag(max(e, δ) − e) Wᵀ: the least T with S + T ⪰ δI, in every unitary norm.

    If the singular values of B differ, another T may need a smaller M
    (:class:`LeastNormCancellation`). Deficit 0.
    """

    def cancel(self, model: LocalModel, delta: float) -> Cancelled:
        """Return C_can."""
        e, W = symmetric_eigen(model.schur(delta))
        return Cancelled(model.lift((W * (np.maximum(e, delta) - e)) @ W.T), 0.0)


@dataclass(frozen=True, slots=True)
class LeastNormCancellation:
    """M = U[Σ⁻¹(δI − S)Σ⁻¹]₊Uᵀ: the least M that reaches δ. Deficit 0.

    S + YᵀBᵀMBY ⪰ δI says UᵀMU ⪰ G = Σ⁻¹(δI − S)Σ⁻¹, so by Weyl no eigenvalue of UᵀMU lies below
    that of G, and [G]₊ is least in every unitary norm: by up to cond(B)² less than the floor's.
    """

    def cancel(self, model: LocalModel, delta: float) -> Cancelled:
        """Return C_can."""
        sigma = model.jacobian.sigma
        missing = delta * np.eye(model.rank) - model.schur(delta)
        g, W = symmetric_eigen(missing / np.outer(sigma, sigma))
        UW = model.jacobian.U @ W
        # [G]₊ keeps the positive part of G: BᵀMB may exceed what is missing, never fall short.
        C = (UW * np.maximum(g, 0.0)) @ UW.T
        return Cancelled(0.5 * (C + C.T), 0.0)


@dataclass(frozen=True, slots=True)
class PartialCancellation:
    """T = −γS, 0 ≤ γ ≤ 1 (the paper's proposed extension). Deficit δ + (1 − γ)max(0, −e_min).

    γ = 0 cancels nothing and is the classical penalty, made just large enough.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        share(self.gamma, "gamma")

    def cancel(self, model: LocalModel, delta: float) -> Cancelled:
        """Return C_can."""
        S = model.schur(delta)
        # What is not cancelled, at most (1 − γ)·max(0, −e_min), the strength makes up.
        lowest = max(0.0, -float(symmetric_eigen(S)[0].min(initial=0.0)))
        return Cancelled(model.lift(-self.gamma * S), delta + (1.0 - self.gamma) * lowest)
