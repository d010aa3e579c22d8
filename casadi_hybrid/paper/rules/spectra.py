"""The local model (H_t, B_t) split along y = range(Bᵀ) and z = ker B, for any shape and rank.

With the singular value decomposition B = U Σ Yᵀ (rank r) and Z spanning ker B, write H_yy = YᵀHY,
H_yz = YᵀHZ, H_zz = ZᵀHZ. BᵀMB acts on y alone, so a correction can give H + BᵀMB ≻ 0 exactly when
H_zz ≻ 0 (Finsler's lemma). It then has to lift the Schur complement S of H_zz; for full column
rank there is no z and S is H in the coordinates y.

Each property is computed once, on demand.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from casadi_hybrid.utils.errors import DesignError, NotAugmentableError
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.late import LateModule

blas, lapack = LateModule("scipy.linalg.blas"), LateModule("scipy.linalg.lapack")
RANK_TOLERANCE = 1e-10


def symmetric_eigen(A: Matrix, vectors: bool = True) -> tuple[Vector, Matrix]:
    """Return eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    if A.shape[0] == 0:
        return np.zeros(0), np.zeros((0, 0))
    # LAPACK directly: on small matrices NumPy's wrapper takes several times as long.
    values, W, info = lapack.dsyevd(A, compute_v=vectors)
    if info != 0:
        raise DesignError("an eigenvalue computation did not converge; the model is badly scaled")
    return values, W


def symmetric_eigenvalues(A: Matrix) -> Vector:
    """Return the eigenvalues of a symmetric matrix, ascending."""
    return symmetric_eigen(A, vectors=False)[0]


def symmetric_norm(A: Matrix) -> float:
    """Return ‖A‖₂ of a symmetric matrix."""
    values = symmetric_eigenvalues(A)
    return float(max(-values[0], values[-1]))


class Jacobian:
    """B with its singular value decomposition and numerical rank r.

    Attributes:
        rank, sigma: r, the singular values above 1e-10 of the largest, and these, descending.
        U, Y, Z: m×r, n×r and n×(n−r) orthonormal bases of range(B), range(Bᵀ) and ker B.
    """

    def __init__(self, B: Matrix) -> None:
        # Full matrices: the last n − r rows of Vt span ker B.
        U, sigma, Vt, info = lapack.dgesdd(B, full_matrices=1)
        if info != 0:
            raise DesignError("the singular values of the constraint Jacobian did not converge")
        self.rank = int(np.count_nonzero(sigma > RANK_TOLERANCE * sigma[0])) if sigma[0] > 0 else 0
        self.sigma: Vector = sigma[: self.rank]
        self.U: Matrix = U[:, : self.rank]
        self.Y: Matrix = Vt[: self.rank].T
        self.Z: Matrix = Vt[self.rank :].T


class LocalModel:
    """H = ∇²ₓₓL and B = J_h at one iterate.

    Args:
        H, B: n×n, symmetric; m×n.
        kernel_floor: None refuses an H_zz that is not positive definite
            (:class:`~casadi_hybrid.utils.errors.NotAugmentableError`); δ > 0 lifts its eigenvalues
            to at least δ: A = H + BᵀMB + Z(H_zz₊ − H_zz)Zᵀ.
    """

    def __init__(self, H: Matrix, B: Matrix, kernel_floor: float | None = None) -> None:
        self.H = H
        self.B = B
        self.jacobian = Jacobian(B)
        self.m, self.n = B.shape
        self.rank = self.jacobian.rank
        self.norm_B = float(self.jacobian.sigma[0]) if self.rank else 0.0
        self.kernel_floor = kernel_floor

    @cached_property
    def pinv(self) -> Matrix:
        """B⁺."""
        jacobian = self.jacobian
        return np.asarray((jacobian.Y / jacobian.sigma) @ jacobian.U.T)

    @cached_property
    def kernel(self) -> tuple[Vector, Matrix]:
        """Eigenvalues e of H_zz, ascending, and the n×(n−r) matrix of their directions in x."""
        Z = self.jacobian.Z
        values, W = symmetric_eigen(Z.T @ self.H @ Z)
        return values, Z @ W

    @cached_property
    def lifted_kernel(self) -> Vector:
        """Eigenvalues of H_zz₊; raises NotAugmentableError if they may not be lifted."""
        values, directions = self.kernel
        if self.kernel_floor is not None:
            return np.maximum(values, self.kernel_floor)
        # Finsler: no M makes H + BᵀMB positive definite.
        if values.size and values[0] <= 0:
            raise NotAugmentableError(float(values[0]), directions[:, 0])
        return values

    @cached_property
    def convexification(self) -> Matrix | None:
        """Z(H_zz₊ − H_zz)Zᵀ, or None if it is zero."""
        values, directions = self.kernel
        lift = self.lifted_kernel - values
        return (directions * lift) @ directions.T if lift.any() else None

    def reachable(self, delta: float) -> float:
        """Return min(δ, ½λ_min(H_zz₊)): A ⪰ δI needs δ < λ_min(H_zz₊), as no M acts on ker B."""
        lifted = self.lifted_kernel
        return min(delta, 0.5 * float(lifted[0])) if lifted.size else delta

    def schur(self, delta: float) -> Matrix:
        """Return S = H_yy − H_yz (H_zz₊ − δI)⁻¹ H_zy, r×r, at the reachable δ; or H_yy.

        With H_zz₊ ≻ δI, A ⪰ δI holds exactly when S + YᵀBᵀMBY ⪰ δI: hence the shift.
        """
        Y = self.jacobian.Y
        HY = self.H @ Y
        S = Y.T @ HY
        _, directions = self.kernel
        if directions.shape[1]:
            coupling = HY.T @ directions
            # Directions of the kernel are eigenvectors of H_zz, so its inverse is a division.
            S = S - (coupling / (self.lifted_kernel - self.reachable(delta))) @ coupling.T
        return np.asarray(0.5 * (S + S.T))

    def lift(self, T: Matrix) -> Matrix:
        """Return B⁺ᵀ Y T Yᵀ B⁺, the minimum-norm M with YᵀBᵀMBY = T."""
        scaled = self.jacobian.U / self.jacobian.sigma
        C = scaled @ T @ scaled.T
        # Symmetric to the last bit, as LAPACK's symmetric routines assume.
        return np.asarray(0.5 * (C + C.T))

    def metric_curvature(self, R: Matrix) -> float:
        """Return λ_min of BᵀRB on range(Bᵀ)."""
        BY = self.jacobian.U * self.jacobian.sigma
        return float(symmetric_eigenvalues(BY.T @ R @ BY)[0])

    def curvature(self, C: Matrix) -> Matrix:
        """Return H + BᵀCB, plus the convexification of the kernel."""
        A = self.H + self.B.T @ C @ self.B
        extra = self.convexification
        return A if extra is None else A + extra

    def smallest_dual_curvature(self, A: Matrix) -> float:
        """Return λ⁺_min(B A⁻¹ Bᵀ) for A ≻ 0, the smallest of rank(B) nonzero eigenvalues.

        It is σ²_min of L⁻¹Bᵀ with A = LLᵀ, which separates the m − n zeros of a tall B from small
        eigenvalues.
        """
        L, info = lapack.dpotrf(A, lower=1, clean=1)
        if info != 0:
            raise DesignError("H + BᵀMB is not positive definite, so it has no dual curvature")
        # Not dtrtrs: OpenBLAS runs it in threads whatever the size, which costs milliseconds.
        X = blas.dtrsm(1.0, L, self.B.T, lower=1)
        _, values, _, _ = lapack.dgesdd(X, compute_uv=0)
        return float(values[self.rank - 1] ** 2)
