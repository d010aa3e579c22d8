"""The quasi-definite kernel and its factorizations.

    K(D, E) = [ W + D   Aᵀ ]
              [   A    −E  ],   D, E ≥ 0 diagonal.

E⁻¹ = M is a matrix-valued penalty: eliminating the second row leaves W + D + AᵀMA, the augmented
curvature of the law (:mod:`casadi_hybrid.law`) with base multiplier y and correction M. Its step
with P = (W + D + AᵀMA)⁻¹ and the look-ahead drive D_d = (APAᵀ + R)⁻¹ is the step of
K(D, (R⁻¹ + M)⁻¹), whatever the split of M: E = M⁻¹ without a drive, E = 0, the Newton–KKT step,
for R = 0. For a descent step K must have exactly as many negative eigenvalues as constraint rows.

Two backends behind one interface: LAPACK's Bunch–Kaufman for small problems, and CasADi's sparse
LDLᵀ with a static order (which is also what its C code generation emits) for large ones, with
SuperLU, which pivots, where that is not accurate.
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import finalize

import casadi as ca
import numpy as np
from scipy.linalg import lapack
from scipy.sparse.linalg import splu

from casadi_hybrid.inputs import Vector
from casadi_hybrid.nlp.sparse import Pattern, Sparse

Operator = Any  # numpy.ndarray or Sparse

REFINEMENTS = 3
_POOR = 1e-8  # relative residual above which the factorization without pivoting is given up


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


class Layout:
    """Where the entries of W, D, A and E go in the sparse K, and its symbolic factorization.

    Made once for a pair of patterns and shared by all kernels on them, in all threads.
    """

    def __init__(self, W: Pattern, A: Pattern) -> None:
        m, n = A.shape
        self.n, self.size = n, n + m
        diagonal = np.arange(self.size)
        rows = np.concatenate((W.rows, A.rows + n, A.cols, diagonal))
        cols = np.concatenate((W.cols, A.cols, A.rows + n, diagonal))
        self.pattern, where = Pattern.ordered((self.size, self.size), rows, cols)
        stops = np.cumsum((W.rows.size, A.rows.size, A.rows.size))
        self.at_W, self.at_A, self.at_AT, self.at_diagonal = np.split(where, stops)
        self.sparsity = self.pattern.sparsity
        self._idle: list[ca.Linsol] = []

    def take(self) -> ca.Linsol:
        """Return a factorization object that nobody else uses; :meth:`give_back` it in the end."""
        try:
            return self._idle.pop()
        except IndexError:
            return ca.Linsol("kernel", "ldl", self.sparsity)

    def give_back(self, linsol: ca.Linsol) -> None:
        """Take the object back for the next kernel."""
        self._idle.append(linsol)


class SparseKernel:
    """CasADi's ``ldl``: static fill-reducing order, no pivoting, inertia from the pivot signs.

    Without pivoting K has to be quasi-definite, so both blocks get a little regularization that
    the refinement against the unregularized K removes again.
    """

    REGULARIZATION = 1e-9

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._linsol = layout.take()
        finalize(self, layout.give_back, self._linsol)
        self.negative = 0
        self.singular = False

    def factor(self, W: Operator, D: Vector, A: Operator, E: float) -> None:
        """Factor K(D, E·I)."""
        layout, n = self._layout, self._layout.n
        data = np.zeros(layout.pattern.rows.size)
        data[layout.at_W] = W.data
        data[layout.at_A] = A.data
        data[layout.at_AT] = A.data
        data[layout.at_diagonal[:n]] += D
        data[layout.at_diagonal[n:]] = -E
        self._K = Sparse(layout.pattern, data)
        shifted = data.copy()
        shifted[layout.at_diagonal[:n]] += self.REGULARIZATION
        shifted[layout.at_diagonal[n:]] -= self.REGULARIZATION
        self._values = ca.DM(layout.sparsity, shifted)
        self._pivoted: Any = None
        try:
            self._linsol.nfact(self._values)
            self.negative = int(self._linsol.neig(self._values))
            self.singular = False
        except RuntimeError:
            self.singular = True

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement against the unregularized K.

        Where refinement does not get near, a factorization with pivoting is tried.
        """
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
        return x if now <= _POOR * size else self._with_pivots(b, x, now)

    def _with_pivots(self, b: Vector, x: Vector, error: float) -> Vector:
        """The solution by SuperLU where its residual is below ``error``, that of x; else x."""
        try:
            if self._pivoted is None:
                self._pivoted = splu(self._K.scipy())
            other = np.asarray(self._pivoted.solve(b))
        except RuntimeError:  # exactly singular
            return x
        residual = float(np.abs(b - self._K @ other).max(initial=0.0))
        return x if residual >= error else other

    def _apply(self, b: Vector) -> Vector:
        return np.asarray(self._linsol.solve(self._values, b).full()).ravel()
