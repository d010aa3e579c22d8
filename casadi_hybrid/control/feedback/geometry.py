r"""Geometry of B and H: the cheapest way to move h, and the directions that do not.

For a plant with the steady-state sensitivity B = ∂h/∂u (m×n, full row rank) and the objective's
Hessian H (n×n), let N be an orthonormal basis of ker B. The *cheapest lift*

.. math:: E = B^† - N (N^T H N)^{-1} N^T H B^†

moves the constraints by y at the least cost ½uᵀHu: BE = I and NᵀHE = 0. Then EᵀHE is the curvature
of the least cost as a function of y, and HN and E split H into two blocks without a coupling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import null_space

from casadi_hybrid.control.model.noise import ROUNDING, symmetric
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Matrix, as_matrix, positive, real_array


@dataclass(frozen=True, eq=False)
class Geometry:
    """Sensitivity B and Hessian H with the cheapest lift."""

    B: Matrix  # ∂h/∂u, m×n, full row rank
    H: Matrix  # n×n, positive definite on ker B
    kernel: Matrix  # N, n×(n−m), orthonormal basis of ker B
    lift: Matrix  # E, n×m, the cheapest lift
    inside: Matrix  # NᵀHN, (n−m)×(n−m), positive definite

    @property
    def least_norm(self) -> Matrix:
        """B†, n×m: the lift of the least norm."""
        return np.asarray(np.linalg.pinv(self.B), dtype=np.float64)

    def moved(self, sensitivity: Matrix) -> Matrix:
        """T, m×m: the optimal inputs move by −E T w if a plant of that sensitivity moves by w."""
        # Optimal by the model: NᵀH du = 0 gives du = E y; the plant demands B du + w = 0.
        return np.asarray(np.linalg.inv(sensitivity @ self.lift), dtype=np.float64)


def geometry(sensitivity: Any, hessian: Any) -> Geometry:
    """Return the geometry of B, m×n, and H, n×n and symmetric (a number c stands for c·I)."""
    B = real_array(sensitivity, "sensitivity")
    if B.ndim != 2 or not B.size:
        raise InputError(
            f"sensitivity has shape {B.shape}; give the m×n matrix ∂h/∂u, a row per constraint"
        )
    B = as_matrix(B, (B.shape[0], B.shape[1]), "sensitivity")
    m, n = B.shape
    values = np.linalg.svd(B, compute_uv=False)
    # Full row rank: the inputs can move every constraint by itself.
    if m > n or values[-1] <= ROUNDING * values[0]:
        raise InputError(
            f"sensitivity has {m} row(s) but rank {int((values > ROUNDING * values[0]).sum())}: "
            f"{n} input(s) cannot hold every constraint at zero; leave constraints out"
        )
    H = symmetric(hessian, n, "hessian")
    N = null_space(B)
    inside = N.T @ H @ N
    least = np.linalg.eigvalsh(inside)[0] if n > m else np.inf
    if least <= ROUNDING * np.linalg.norm(H):
        raise InputError(
            f"hessian has the curvature {least:.3g} along inputs that do not move the constraints; "
            "it must be positive there: add a cost on these inputs"
        )
    pinv: Any = np.linalg.pinv(B)
    # E = B† − N (NᵀHN)⁻¹ NᵀH B†; without a kernel B† = B⁻¹ is the only lift.
    lift = pinv - N @ np.linalg.solve(inside, N.T @ H @ pinv) if n > m else pinv
    return Geometry(B, H, N, lift, inside)


def below_one(rate: float) -> float:
    """Return a rate, refusing one outside (0, 1)."""
    rho = positive(rate, "rate")
    if rho >= 1:
        raise InputError(f"rate must be below 1, got {rate!r}: the error shrinks by it in a step")
    return rho
