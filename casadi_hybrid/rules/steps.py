"""The step rule: the largest weighted margin under the restrictions S1–S3.

S1: η_x ≤ κ_x / ‖H + BᵀC_aug B‖₂   (primal curvature)
S2: η_x η_d ‖B‖² ≤ κ_p             (primal–dual product)
S3: ‖C_opt‖₂ ≤ κ_ω η_d             (size of the optimistic memory)

The paper, appendix "Derivation of the Closed-Form Step Rule".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from casadi_hybrid.basics.inputs import one_of, positive
from casadi_hybrid.rules.spectra import LocalModel, symmetric_norm
from casadi_hybrid.rules.splits import Candidate, SafetyConstants

BALANCE, S1, S3 = "balance", "S1", "S3"


class Steps(NamedTuple):
    """The two steps, their margin min(a_x η_x, a_d η_d), and what limited η_x."""

    eta_x: float
    eta_d: float
    margin: float
    active: str


@dataclass(frozen=True, slots=True)
class StepRule:
    """η_x = min{ √(a_d κ_p / (a_x‖B‖²)), S1, S3 }, η_d = κ_p / (η_x‖B‖²).

    S3 is left out when C_opt = 0: a channel that is not used restricts nothing.

    Args:
        kappa_x, kappa_p, kappa_omega: safety constants (paper: 0.08, 0.20, 8.0).
        margin: ``"weighted"``, a_x = ½λ_min(A_M) and a_d = λ⁺_min(B A_M⁻¹ Bᵀ), or ``"unit"``,
            a_x = a_d = 1.
        s1: ``"used"`` leaves S1 out when C_aug = 0, as S3 is for C_opt = 0; ``"printed"`` keeps
            it, η_x ≤ κ_x/‖H‖, as the paper prints it. Its results for the pure optimistic method
            need the former.
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

    @property
    def constants(self) -> SafetyConstants:
        """κ_x, κ_p, κ_ω."""
        return SafetyConstants(self.kappa_x, self.kappa_p, self.kappa_omega)

    def steps(self, model: LocalModel, candidate: Candidate, a_x: float, a_d: float) -> Steps:
        """Return the steps for one candidate.

        When S1 or S3 caps η_x, every η_d between the balance and S2 has the same margin; the
        largest is taken, as in the paper.
        """
        beta = model.norm_B**2
        balance = np.sqrt(a_d * self.kappa_p / (a_x * beta))
        s1 = s3 = np.inf
        if self.s1 == "printed" or candidate.C_aug.any():
            s1 = self.kappa_x / max(symmetric_norm(model.curvature(candidate.C_aug)), 1e-300)
        if candidate.C_opt.any():
            size = symmetric_norm(candidate.C_opt)
            s3 = self.kappa_p * self.kappa_omega / (size * beta)
        eta_x = float(min(balance, s1, s3))
        active = BALANCE if eta_x == balance else S1 if eta_x == s1 else S3
        eta_d = self.kappa_p / (eta_x * beta)
        return Steps(eta_x, eta_d, min(a_x * eta_x, a_d * eta_d), active)
