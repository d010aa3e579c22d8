"""The local model split along y = range(Bᵀ) and z = ker B, for any shape and rank of B.

With the singular value decomposition B = U_r Σ_r V_rᵀ and Z spanning ker B, write Y = V_r and
H_yy = YᵀHY, H_yz = YᵀHZ, H_zz = ZᵀHZ. BᵀMB acts on y alone, so a correction can give
H + BᵀMB ≻ 0 exactly when H_zz ≻ 0 (Finsler's lemma); what it must then lift is the Schur
complement S = H_yy − H_yz H_zz⁻¹ H_zy.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from casadi_hybrid.errors import DesignError
from casadi_hybrid.inputs import Matrix, Vector


def symmetric_eigen(A: Matrix) -> tuple[Vector, Matrix]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix (0×0 allowed)."""
    if A.shape[0] == 0:
        return np.zeros(0), np.zeros((0, 0))
    values, vectors, info = lapack.dsyevd(A)
    if info != 0:
        raise DesignError("an eigenvalue computation did not converge; the model is badly scaled")
    return values, vectors


class Jacobian:
    """B with its full singular value decomposition and numerical rank.

    Args:
        B: m×n.
        rank_tolerance: singular values below this fraction of the largest count as zero.
    """

    def __init__(self, B: Matrix, rank_tolerance: float = 1e-10) -> None:
        self.B = B
        self.m, self.n = B.shape
        U, sigma, Vt, info = lapack.dgesdd(B, full_matrices=1)
        if info != 0:
            raise DesignError("the singular values of the constraint Jacobian did not converge")
        floor = rank_tolerance * sigma[0] if sigma.size else 0.0
        self.rank = int(np.count_nonzero(sigma > floor)) if sigma.size and sigma[0] > 0 else 0
        self.sigma: Vector = sigma[: self.rank]
        self.U: Matrix = U[:, : self.rank]
        self.Y: Matrix = Vt[: self.rank].T
        self.Z: Matrix = Vt[self.rank :].T
        self.weakest: Vector = Vt[min(self.m, self.n) - 1]

    def least_squares_multipliers(self, gradient: Vector) -> Vector:
        """λ = −B⁺ᵀ∇f: the least-norm minimizer of ‖∇f + Bᵀλ‖₂."""
        return np.asarray(-self.U @ ((self.Y.T @ gradient) / self.sigma))

    def residual_coordinates(self, h: Vector) -> Vector:
        """U_rᵀh: the part of h that a step can change to first order."""
        return np.asarray(self.U.T @ h)


class RangeKernel:
    """H in the coordinates of a :class:`Jacobian`.

    Attributes:
        jacobian: B and its decomposition.
        H: n×n, symmetric.
    """

    def __init__(self, H: Matrix, jacobian: Jacobian) -> None:
        self.H = H
        self.jacobian = jacobian

    @cached_property
    def kernel(self) -> tuple[Vector, Matrix]:
        """Eigenvalues e of ZᵀHZ, ascending, and the n×(n−r) matrix ZW of their directions."""
        Z = self.jacobian.Z
        values, W = symmetric_eigen(Z.T @ self.H @ Z)
        return values, Z @ W

    def negative_direction(self, delta: float = 0.0) -> tuple[float, Vector] | None:
        """(curvature, direction) of the least curvature on ker B when it is ≤ δ, else None."""
        values, directions = self.kernel
        if values.size == 0 or values[0] > delta:
            return None
        return float(values[0]), directions[:, 0]

    def schur(self, delta: float) -> tuple[Matrix, Matrix, Vector]:
        """Return (S, H_yz in the kernel eigenbasis, lifted kernel eigenvalues max(e, δ)).

        S = H_yy − H_yz H_zz₊⁻¹ H_zy with the kernel's eigenvalues lifted to at least δ.
        """
        Y = self.jacobian.Y
        values, directions = self.kernel
        lifted = np.maximum(values, delta)
        HY = self.H @ Y
        coupling = HY.T @ directions
        S = Y.T @ HY - (coupling / lifted) @ coupling.T
        return 0.5 * (S + S.T), coupling, lifted
