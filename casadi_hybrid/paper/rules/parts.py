"""Parts of a design besides its cancellation: metric, strength, steps and split.

The paper, "Closed-Form Hybrid Correction Design", and the appendix "Derivation of the Closed-Form
Step Rule" for the steps under

S1: η_x ≤ U_x = κ_x / ‖H + BᵀC_aug B‖₂   (primal curvature)
S2: η_x η_d β ≤ κ_p, β = ‖B‖₂²           (primal–dual product)
S3: η_d ≥ L_d = ‖C_opt‖₂ / κ_ω           (size of the optimistic memory)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from casadi_hybrid.paper.rules.spectra import LocalModel, symmetric_eigenvalues, symmetric_norm
from casadi_hybrid.utils.errors import DesignError, InputError
from casadi_hybrid.utils.inputs import Matrix, as_matrix, one_of, positive, share


class Metric(Protocol):
    """Choice of the residual metric R_t."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return R_t (m×m, symmetric, positive definite on range(B))."""


@dataclass(frozen=True, slots=True)
class IdentityMetric:
    """R = I, the paper's choice in its experiments."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return I."""
        return np.eye(model.m)


@dataclass(frozen=True, slots=True)
class GramMetric:
    """R = (BBᵀ)⁺, which makes BᵀRB the projector on range(Bᵀ)."""

    def matrix(self, model: LocalModel) -> Matrix:
        """Return (BBᵀ)⁺."""
        return model.pinv.T @ model.pinv


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


class Strength(Protocol):
    """Choice of the residual strength α_t for the target curvature δ."""

    @property
    def delta(self) -> float:
        """Target curvature δ."""

    def alpha(self, model: LocalModel, R: Matrix, deficit: float) -> float:
        """Return α_t for the curvature ``deficit`` that the cancellation leaves to be added."""


@dataclass(frozen=True, slots=True)
class TargetCurvature:
    """α = deficit / λ_min(BᵀRB on range(Bᵀ)): the least α that reaches δ there (paper: 0.35).

    Under full cancellation the deficit is δ and this is the paper's α = δ/λ_min(BᵀRB).
    """

    delta: float = 0.35

    def __post_init__(self) -> None:
        positive(self.delta, "delta")

    def alpha(self, model: LocalModel, R: Matrix, deficit: float) -> float:
        """Return α_t; raise :class:`DesignError` if BᵀRB is singular on range(Bᵀ)."""
        if deficit == 0.0:
            return 0.0
        smallest = model.metric_curvature(R) if model.rank else 0.0
        if smallest <= 0:
            raise DesignError(
                "BᵀRB is singular: the residual metric sees no curvature in some direction "
                "of the row space of the constraint Jacobian"
            )
        return deficit / smallest


class Candidate(NamedTuple):
    """Realization of a correction by two channels; ``theta`` is NaN for splits without one."""

    alpha: float
    theta: float
    C_aug: Matrix
    C_opt: Matrix


class Steps(NamedTuple):
    """The two steps, their margin min(a_x η_x, a_d η_d), and the active limit of η_x."""

    eta_x: float
    eta_d: float
    margin: float
    active: str


@dataclass(frozen=True, slots=True)
class StepRule:
    """η_x = min{√(a_dκ_p/(a_xβ)), U_x, κ_p/(βL_d)}, the last for C_opt ≠ 0; η_d = κ_p/(η_xβ).

    Args:
        kappa_x, kappa_p, kappa_omega: safety constants (paper: 0.08, 0.20, 8.0).
        margin: ``"weighted"``, a_x = ½λ_min(A_M) and a_d = λ⁺_min(B A_M⁻¹ Bᵀ), or ``"unit"``,
            a_x = a_d = 1.
        s1: ``"used"`` leaves S1 out when C_aug = 0; ``"printed"`` keeps it, η_x ≤ κ_x/‖H‖. The
            paper prints the latter; its results for the pure optimistic method need the former.
    """

    kappa_x: float = 0.08
    kappa_p: float = 0.20
    kappa_omega: float = 8.0
    margin: str = "weighted"
    s1: str = "used"

    def __post_init__(self) -> None:
        for name in ("kappa_x", "kappa_p", "kappa_omega"):
            positive(getattr(self, name), name)
        one_of(self.margin, "margin", ("weighted", "unit"))
        one_of(self.s1, "s1", ("used", "printed"))

    def choose(self, model: LocalModel, candidate: Candidate, a_x: float, a_d: float) -> Steps:
        """Return the steps of the largest margin for one candidate.

        When S1 or S3 caps η_x, η_d is not unique; the largest that S2 allows is taken.
        """
        beta = model.norm_B**2
        # With S2 as an equality the margin min(a_x η_x, a_d κ_p/(η_x β)) is largest at the balance.
        limits = {"balance": np.sqrt(a_d * self.kappa_p / (a_x * beta))}
        if self.s1 == "printed" or candidate.C_aug.any():
            curvature = symmetric_norm(model.curvature(candidate.C_aug))
            # 1e-300: a curvature of zero sets no limit.
            limits["S1"] = self.kappa_x / max(curvature, 1e-300)
        if candidate.C_opt.any():
            # S3 is a lower bound of η_d, and by S2 an upper bound of η_x.
            size = symmetric_norm(candidate.C_opt)
            limits["S3"] = self.kappa_p * self.kappa_omega / (size * beta)
        active = min(limits, key=limits.__getitem__)
        eta_x = float(limits[active])
        # S2 as an equality: the largest η_d, which also meets S3.
        eta_d = self.kappa_p / (eta_x * beta)
        return Steps(eta_x, eta_d, min(a_x * eta_x, a_d * eta_d), active)


class Undivided(NamedTuple):
    """Undivided correction M = C_can + αR on a local model, for the κ of a step rule."""

    model: LocalModel
    C_can: Matrix
    alpha: float
    R: Matrix
    kappa: StepRule

    @property
    def M(self) -> Matrix:
        """C_can + αR."""
        return self.C_can + self.alpha * self.R

    def divided(self, theta: float, times: float = 1.0) -> Candidate:
        """Return C_aug = C_can + θαR, C_opt = (1 − θ)αR, with a multiple of α."""
        alpha, C_can, R = times * self.alpha, self.C_can, self.R
        return Candidate(alpha, theta, C_can + (theta * alpha) * R, ((1 - theta) * alpha) * R)


class Split(Protocol):
    """Division of a correction between the channels."""

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield candidates; the design keeps the first one of the largest margin."""


@dataclass(frozen=True, slots=True)
class PureAugmented:
    """C_aug = M, C_opt = 0: the augmented Lagrangian endpoint."""

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield the one candidate."""
        yield Candidate(of.alpha, np.nan, of.M, np.zeros_like(of.R))


@dataclass(frozen=True, slots=True)
class PureOptimistic:
    """C_aug = 0, C_opt = M: the optimistic endpoint."""

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield the one candidate."""
        yield Candidate(of.alpha, np.nan, np.zeros_like(of.R), of.M)


@dataclass(frozen=True, slots=True)
class GivenSplit:
    """θ given by the user, 0 ≤ θ ≤ 1."""

    theta: float

    def __post_init__(self) -> None:
        share(self.theta, "theta")

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield the one candidate."""
        yield of.divided(self.theta)


@dataclass(frozen=True, slots=True)
class ClosedFormSplit:
    """The balance of S1 against S3: θ = κ_x‖R‖β / (κ_x‖R‖β + κ_p κ_ω ‖BᵀRB‖)."""

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield the one candidate."""
        B, R, kappa = of.model.B, of.R, of.kappa
        augmented = kappa.kappa_x * symmetric_norm(R) * of.model.norm_B**2
        optimistic = kappa.kappa_p * kappa.kappa_omega * symmetric_norm(B.T @ R @ B)
        yield of.divided(augmented / (augmented + optimistic))


@dataclass(frozen=True, slots=True)
class GridSplit:
    """The grid oracle: α over multiples of the closed-form α, θ over a grid of [0, 1].

    The weighted margin does not depend on α: of equal margins the first, the largest α, is kept.
    """

    strengths: tuple[float, ...] = (4.0, 2.0, 1.0)
    thetas: tuple[float, ...] = tuple(i / 10 for i in range(11))

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield every pair, strengths in the outer loop."""
        return (of.divided(theta, times) for times in self.strengths for theta in self.thetas)
