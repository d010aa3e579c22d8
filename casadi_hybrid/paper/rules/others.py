"""Rules besides the paper's design: given channels, matrix steps, and whitened residuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from casadi_hybrid.paper.law import Correction
from casadi_hybrid.paper.rules.cancellations import Cancellation, FloorCancellation
from casadi_hybrid.paper.rules.design import Design, DesignRule
from casadi_hybrid.paper.rules.parts import StepRule, TargetCurvature
from casadi_hybrid.paper.rules.spectra import Jacobian, LocalModel, symmetric_eigen, symmetric_norm
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.errors import DesignError
from casadi_hybrid.utils.inputs import Matrix, as_matrix, one_of, positive, share

_EPS = float(np.finfo(float).eps)
_WHITE = DesignRule(strength=TargetCurvature(3.0), steps=StepRule(kappa_x=0.5))


@dataclass(frozen=True, eq=False)
class ConstantRule:
    """The paper's ALG(C, Ω): constant matrices C_aug = C and C_opt = Ω, and constant steps.

    Args:
        C_aug, C_opt: the augmented and the optimistic channel, m×m, or a number c for cI.
        eta_x, eta_d: η_x, η_d > 0, or metrics P (n×n) and D (m×m).
    """

    C_aug: Any = 0.0
    C_opt: Any = 0.0
    eta_x: Any = 0.01
    eta_d: Any = 0.01

    needs_hessian = False

    def __post_init__(self) -> None:
        for name in ("eta_x", "eta_d"):
            if np.ndim(getattr(self, name)) == 0:
                positive(getattr(self, name), name)

    def decide(self, at: Evaluation, t: int) -> Correction:
        """Return the constant correction, checked against the shape of B."""
        return _checked(self, *at.B.shape)


@lru_cache(maxsize=16)
def _checked(rule: ConstantRule, m: int, n: int) -> Correction:
    """Return the correction of a rule for one shape, checked once: a check costs like a step."""

    def step(name: str, size: int) -> float | Matrix:
        value = getattr(rule, name)
        return float(value) if np.ndim(value) == 0 else as_matrix(value, (size, size), name)

    C_aug, C_opt = (as_matrix(getattr(rule, name), (m, m), name) for name in ("C_aug", "C_opt"))
    return Correction(C_aug, C_opt, step("eta_x", n), step("eta_d", m))


@dataclass(frozen=True)
class ScheduleRule:
    """Correction by a function of the iterate and the iteration, ``schedule(at, t)``.

    No split changes the trajectory if M_t and the steps depend on split-invariant data alone.
    """

    schedule: Callable[[Evaluation, int], Correction]
    needs_hessian: bool = False

    def decide(self, at: Evaluation, t: int) -> Correction:
        """Return the correction of iteration t."""
        return self.schedule(at, t)


@dataclass(frozen=True)
class MatrixRule:
    """P = A_M⁻¹, D = (B P Bᵀ)⁺ = B⁺ᵀ S₊ B⁺, for any shape and rank of B.

    S₊ is the Schur complement of the kernel block of A_M.

    - ``drive="memory"`` (D1), v = D h: superlinear in two steps, overshoots far away.
    - ``drive="lookahead"`` (D2), v = D(h − Bw) with w = P(g + Bᵀ(π + M h)): the Newton–KKT step
      with the reduced Hessian made positive definite, for any M. Quadratic.

    Neither has a safeguard.

    Args:
        cancellation: choice of M; its deficit, times (BBᵀ)⁺, is added.
        delta: target curvature δ; also the floor of the kernel's curvature.
        drive, optimistic_share: D1 or D2; s in [0, 1], C_opt = sM, without effect on the iterates.
    """

    cancellation: Cancellation = field(default_factory=FloorCancellation)
    delta: float = 0.1
    drive: str = "lookahead"
    optimistic_share: float = 0.0

    needs_hessian = True

    def __post_init__(self) -> None:
        positive(self.delta, "delta")
        one_of(self.drive, "drive", ("memory", "lookahead"))
        share(self.optimistic_share, "optimistic_share")

    def decide(self, at: Evaluation, t: int) -> Correction:
        """Return M, P and D; :class:`DesignError` when A_M is singular to working precision."""
        assert at.hessian is not None
        model = LocalModel(at.hessian, at.B, kernel_floor=self.delta)
        M, deficit = self.cancellation.cancel(model, self.delta)
        if deficit:
            # B⁺ᵀB⁺ = (BBᵀ)⁺ adds the deficit on range(Bᵀ) exactly.
            M = M + deficit * (model.pinv.T @ model.pinv)
        e, W = symmetric_eigen(model.curvature(M))
        # A_M⁻¹ below would have no correct digit.
        if e[0] <= _EPS * e[-1]:
            raise DesignError(
                f"H + BᵀMB has eigenvalues from {e[0]:.3g} to {e[-1]:.3g} after the correction and "
                "is singular to working precision: the iterates have gone too far for steps "
                "without safeguards; start closer or use the default method"
            )
        P = (W / e) @ W.T
        # σ outside the inverse, for accuracy: cond(B)² does not enter.
        S = np.linalg.inv(model.jacobian.Y.T @ P @ model.jacobian.Y)
        D = model.lift(np.asarray(S, dtype=np.float64))
        s = self.optimistic_share
        return Correction((1.0 - s) * M, s * M, P, D, lookahead=self.drive == "lookahead")


@dataclass(frozen=True)
class WhitenedRule:
    """The paper's rule applied to the whitened residual T h, T = (BBᵀ)^{+½}.

    TB has all its singular values equal to one, so neither ‖M‖ nor the steps feel cond(B):

        C = T C′ T,   M = T M′ T,   v = η_d (BBᵀ)⁺ h,

    with C′, M′, η_x, η_d designed for (H, TB) under scalar steps and S1–S3.

    Args:
        inner: the design in whitened coordinates; its norm budget applies to M′. The default
            is the paper's closed-form rule with δ = 3 and κ_x = 0.5, from a scan over 25
            problems of the paper's class at three condition levels and 16 with m < n. The
            paper's δ fails from more starts, and its κ_x is four times slower if S1 binds.
    """

    inner: DesignRule = _WHITE

    needs_hessian = True

    def decide(self, at: Evaluation, t: int) -> Design:
        """Return the design mapped back; raises like the inner rule."""
        assert at.hessian is not None
        jacobian = Jacobian(at.B)
        if jacobian.rank == 0:
            raise DesignError("the constraint Jacobian is zero; no residual can be corrected")
        T = (jacobian.U / jacobian.sigma) @ jacobian.U.T
        # TB = UYᵀ without the singular values.
        white = LocalModel(at.hessian, jacobian.U @ jacobian.Y.T, self.inner.kernel_floor)
        design = self.inner.design(white)
        # The dual of the whitened residual is T⁻¹π: its step η_d T h is η_d T² h for π.
        C_aug, C_opt, eta_d = T @ design.C_aug @ T, T @ design.C_opt @ T, design.eta_d * (T @ T)
        norm_M = symmetric_norm(C_aug + C_opt)
        return replace(design, C_aug=C_aug, C_opt=C_opt, eta_d=eta_d, norm_M=norm_M)
