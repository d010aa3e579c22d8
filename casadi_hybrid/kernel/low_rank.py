"""A Hessian with a part of low rank that is full, factored by that of its sparse part.

With W = H + U diag(w) Uᵀ, H sparse and U of a few columns, K = K₀ + U diag(w) Uᵀ (U with zeros
below) for the K₀ of H, and by Woodbury's formula

    K⁻¹ = K₀⁻¹ − Z T⁻¹ Zᵀ,    Z = K₀⁻¹U,    T = diag(w)⁻¹ + UᵀZ.

Eliminating either block of [[K₀, U], [Uᵀ, −diag(w)⁻¹]] gives its inertia in two ways, so

    negative(K) = negative(K₀) + negative(−T) − negative(−diag(w)⁻¹).
"""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.arrays import largest
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.kernel.kernel import EXACT, REFINEMENTS, Kernel, Operator
from casadi_hybrid.kernel.sparse import Sparse

_ROUNDING = 1e-14


class LowRank:
    """H + U diag(w) Uᵀ.

    Attributes:
        base: H.
        U, w: n×r and r numbers, none of them zero.
    """

    __slots__ = ("U", "base", "w")
    __array_ufunc__ = None

    def __init__(self, base: Sparse, U: Matrix, w: Vector) -> None:
        self.base, self.U, self.w = base, U, w

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.base.shape

    def ravel(self, order: str = "K") -> Vector:
        """Numbers as large as its entries: those of H, and the diagonal of the rest."""
        return np.concatenate((self.base.data, self.U**2 @ self.w))

    def __matmul__(self, v: Vector) -> Vector:
        return np.asarray(self.base @ v + self.U @ (self.w * (self.U.T @ v)))

    def __mul__(self, factor: float) -> LowRank:
        return LowRank(self.base * factor, self.U, factor * self.w)


class LowRankKernel:
    """The kernel for such matrices, and for sparse ones, on another."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._W: LowRank | None = None
        self.negative, self.singular = 0, False

    def factor(self, W: Operator, D: Vector, A: Operator, E: float | Vector) -> None:
        """Factor K(D, E·I)."""
        kernel = self._kernel
        self._W = W if isinstance(W, LowRank) and W.w.size else None
        kernel.factor(W.base if isinstance(W, LowRank) else W, D, A, E)
        self.negative, self.singular = kernel.negative, kernel.singular
        if self._W is None or self.singular:
            return
        n, r = self._W.U.shape
        self._Z = np.zeros((n + A.shape[0], r))
        for k in range(r):
            self._Z[:, k] = kernel.solve(np.concatenate((self._W.U[:, k], np.zeros(A.shape[0]))))
        T = np.diag(1.0 / self._W.w) + self._W.U.T @ self._Z[:n]
        self._values, self._vectors = np.linalg.eigh(0.5 * (T + T.T))
        sizes = np.abs(self._values)
        self.singular = bool(sizes.min() <= _ROUNDING * sizes.max())
        self.negative += int((self._values > 0).sum()) - int((self._W.w > 0).sum())
        self._rest = D, A, E

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement."""
        if self._W is None:
            return self._kernel.solve(b)
        x = self._once(b)
        D, A, E = self._rest
        n = self._W.U.shape[0]
        for _ in range(REFINEMENTS):
            dw, dy = x[:n], x[n:]
            r = b - np.concatenate((self._W @ dw + D * dw + A.T @ dy, A @ dw - E * dy))
            if largest(r) <= EXACT * largest(b):
                break
            x = x + self._once(r)
        return x

    def _once(self, b: Vector) -> Vector:
        assert self._W is not None
        x = self._kernel.solve(b)
        of_T = self._vectors.T @ (self._W.U.T @ x[: self._W.U.shape[0]]) / self._values
        return np.asarray(x - self._Z @ (self._vectors @ of_T))
