"""The quasi-definite kernel and its factorizations.

    K(D, E) = [ W + D   Aᵀ ]
              [   A    −E  ],   D, E ≥ 0 diagonal.

E⁻¹ = M is a matrix-valued penalty: eliminating the second row leaves W + D + AᵀMA, the augmented
curvature of the law with base multiplier y and correction M. E → 0 is the Newton–KKT step. For a
descent step K must have exactly as many negative eigenvalues as it has constraint rows.

Two backends behind one interface: LAPACK's Bunch–Kaufman for small problems, and CasADi's sparse
LDLᵀ with a static order (which is also what its C code generation emits) for large ones.
"""

from __future__ import annotations

from typing import Any, Protocol

import casadi as ca
import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from casadi_hybrid.inputs import Vector

Operator = Any  # numpy.ndarray or scipy.sparse.csc_array: both have @, .T and .data

REFINEMENTS = 3


class Kernel(Protocol):
    """Analysed once for a pattern, factored for many values."""

    negative: int
    """Negative eigenvalues of the last factored K."""
    singular: bool
    """Whether the last factorization met a zero pivot."""

    def factor(self, W: Operator, D: Vector, A: Operator, E: float) -> None:
        """Factor K(D, E·I)."""
        ...

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement on the same factor."""
        ...


def make_kernel(W: Operator, A: Operator) -> Kernel:
    """Return the kernel for operators of this kind (dense or sparse)."""
    return SparseKernel(W, A) if sp.issparse(A) else DenseKernel(*A.shape)


class DenseKernel:
    """LAPACK dsytrf: symmetric indefinite with pivoting; the pivot blocks give the inertia."""

    def __init__(self, m: int, n: int) -> None:
        self._n = n
        self._K = np.zeros((n + m, n + m), order="F")
        self._diagonal = np.arange(n)
        self._lower = np.arange(n, n + m)
        self.negative = 0
        self.singular = False

    def factor(self, W: Operator, D: Vector, A: Operator, E: float) -> None:
        """Factor K(D, E·I)."""
        n, K = self._n, self._K
        K[:n, :n] = W
        K[self._diagonal, self._diagonal] += D
        K[n:, :n] = A
        K[:n, n:] = A.T
        K[n:, n:] = 0.0
        K[self._lower, self._lower] = -E
        self._ldl, self._pivots, info = lapack.dsytrf(K, lower=1)
        diagonal = np.diagonal(self._ldl)
        single = self._pivots > 0
        # A 2×2 pivot block of Bunch and Kaufman is indefinite: one negative eigenvalue each.
        pairs = (single.size - int(np.count_nonzero(single))) // 2
        self.negative = int(np.count_nonzero(diagonal[single] < 0)) + pairs
        self.singular = info > 0 or not np.isfinite(diagonal).all()

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement."""
        x, _ = lapack.dsytrs(self._ldl, self._pivots, b, lower=1)
        target = 1e-13 * float(np.abs(b).max(initial=0.0))
        for _ in range(REFINEMENTS):
            r = b - self._K @ x
            if float(np.abs(r).max(initial=0.0)) <= target:
                break
            x = x + lapack.dsytrs(self._ldl, self._pivots, r, lower=1)[0]
        return np.asarray(x)


class SparseKernel:
    """CasADi's ``ldl``: static fill-reducing order, no pivoting, inertia from the pivot signs.

    Without pivoting K has to be quasi-definite, so both blocks get a little regularization that
    the refinement against the unregularized K removes again.
    """

    REGULARIZATION = 1e-9

    def __init__(self, W: Operator, A: Operator) -> None:
        m, n = A.shape
        self._n, self._m = n, m
        ones = sp.csc_array((np.ones(W.indices.size), W.indices, W.indptr), shape=W.shape)
        link = sp.csc_array((np.ones(A.indices.size), A.indices, A.indptr), shape=A.shape)
        pattern = sp.block_array(
            [[ones + sp.eye_array(n), link.T], [link, sp.eye_array(m)]], format="csc"
        )
        pattern.sort_indices()
        size = n + m
        columns = np.repeat(np.arange(size), np.diff(pattern.indptr))
        keys = columns.astype(np.int64) * size + pattern.indices
        self._pattern = pattern

        def where(rows: Any, cols: Any) -> Any:
            return np.searchsorted(keys, cols.astype(np.int64) * size + rows)

        w_cols = np.repeat(np.arange(n), np.diff(W.indptr))
        a_cols = np.repeat(np.arange(n), np.diff(A.indptr))
        self._at_W = where(W.indices, w_cols)
        self._at_A = where(A.indices + n, a_cols)
        self._at_AT = where(a_cols, A.indices + n)
        everything = np.arange(size)
        self._at_diagonal = where(everything, everything)
        sparsity = ca.Sparsity(size, size, pattern.indptr.tolist(), pattern.indices.tolist())
        self._sparsity = sparsity
        self._linsol = ca.Linsol("kernel", "ldl", sparsity)
        self.negative = 0
        self.singular = False

    def factor(self, W: Operator, D: Vector, A: Operator, E: float) -> None:
        """Factor K(D, E·I)."""
        n = self._n
        data = np.zeros(self._pattern.indices.size)
        data[self._at_W] = W.data
        data[self._at_A] = A.data
        data[self._at_AT] = A.data
        data[self._at_diagonal[:n]] += D
        data[self._at_diagonal[n:]] = -E
        self._K = sp.csc_array((data, self._pattern.indices, self._pattern.indptr),
                               shape=self._pattern.shape)  # fmt: skip
        shifted = data.copy()
        shifted[self._at_diagonal[:n]] += self.REGULARIZATION
        shifted[self._at_diagonal[n:]] -= self.REGULARIZATION
        self._values = ca.DM(self._sparsity, shifted)
        try:
            self._linsol.nfact(self._values)
            self.negative = int(self._linsol.neig(self._values))
            self.singular = False
        except RuntimeError:
            self.singular = True

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement against the unregularized K."""
        x = self._apply(b)
        size = float(np.abs(b).max(initial=0.0))
        error = np.inf
        for _ in range(4 * REFINEMENTS):
            r = b - self._K @ x
            now = float(np.abs(r).max(initial=0.0))
            if now <= 1e-12 * size or now > 0.5 * error:
                break
            error = now
            x = x + self._apply(r)
        return x

    def _apply(self, b: Vector) -> Vector:
        return np.asarray(self._linsol.solve(self._values, b).full()).ravel()
