"""The local model (H_t, B_t) and its spectral facts, each computed once and only if asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from casadi_hybrid.errors import DesignError
from casadi_hybrid.inputs import Matrix, Vector


def symmetric_eigenvalues(A: Matrix) -> Vector:
    """Eigenvalues of a symmetric matrix, ascending.

    Straight to LAPACK: on the small matrices of a design rule NumPy's wrapper costs several times
    the computation, and a design needs half a dozen of these.
    """
    values, _, info = lapack.dsyevd(A, compute_v=0)
    if info != 0:
        raise DesignError("an eigenvalue computation did not converge; the model is badly scaled")
    return np.asarray(values, dtype=np.float64)


def symmetric_norm(A: Matrix) -> float:
    """‖A‖₂ of a symmetric matrix."""
    values = symmetric_eigenvalues(A)
    return float(max(-values[0], values[-1]))


class LocalModel:
    """H = ∇²ₓₓL and B = J_h at one iterate.

    One singular value decomposition of B serves the rank, B†, ‖B‖₂ and every metric built on it.

    Attributes:
        H: n×n, symmetric.
        B: m×n.
    """

    def __init__(self, H: Matrix, B: Matrix) -> None:
        self.H = H
        self.B = B
        self.m, self.n = B.shape

    @cached_property
    def svd(self) -> tuple[Matrix, Vector, Matrix]:
        """Economy U, σ, Vᵀ of B."""
        U, sigma, Vt, info = lapack.dgesdd(self.B, full_matrices=0)
        if info != 0:
            raise DesignError("the singular values of the constraint Jacobian did not converge")
        return U, sigma, Vt

    @cached_property
    def rank(self) -> int:
        """Numerical rank of B."""
        sigma = self.svd[1]
        threshold = sigma[0] * max(self.m, self.n) * np.finfo(float).eps
        return int(np.count_nonzero(sigma > threshold))

    @cached_property
    def norm_B(self) -> float:
        """‖B‖₂."""
        return float(self.svd[1][0])

    @cached_property
    def pinv(self) -> Matrix:
        """B†."""
        U, sigma, Vt = self.svd
        r = self.rank
        return np.asarray((Vt[:r].T / sigma[:r]) @ U[:, :r].T)

    def require_full_column_rank(self) -> None:
        """Raise :class:`DesignError` unless rank B = n, as the paper's design assumes."""
        if self.rank < self.n:
            raise DesignError(
                f"the constraint Jacobian has rank {self.rank} < n = {self.n}, so the "
                "cancellation B†ᵀHB† cannot reach every direction; use a rule for "
                "rank-deficient Jacobians or a constant correction"
            )

    def curvature(self, C: Matrix) -> Matrix:
        """H + BᵀCB."""
        return self.H + self.B.T @ C @ self.B

    def smallest_dual_curvature(self, A: Matrix) -> float:
        """λ⁺_min(B A⁻¹ Bᵀ) for A ≻ 0: the smallest of its rank(B) nonzero eigenvalues.

        They are the squared singular values of L⁻¹Bᵀ with A = LLᵀ; taken this way the m − n
        zeros of a tall B never meet the rounding errors of the small ones.
        """
        L, info = lapack.dpotrf(A, lower=1, clean=1)
        if info != 0:
            raise DesignError("H + BᵀMB is not positive definite, so it has no dual curvature")
        X, _ = lapack.dtrtrs(L, self.B.T, lower=1)
        _, values, _, _ = lapack.dgesdd(X, compute_uv=0)
        return float(values[self.rank - 1] ** 2)
