"""The quasi-definite kernel and its factorizations.

    K(D, E) = [ W + D   Aᵀ ]
              [   A    −E  ],   D, E ≥ 0 diagonal.

E⁻¹ = M is a matrix-valued penalty: eliminating the second row leaves W + D + AᵀMA, the augmented
curvature of the law (:mod:`casadi_hybrid.law`) with base multiplier y and correction M. Its step
with P = (W + D + AᵀMA)⁻¹ and the look-ahead drive D_d = (APAᵀ + R)⁻¹ is the step of
K(D, (R⁻¹ + M)⁻¹), whatever the split of M: E = M⁻¹ without a drive, E = 0, the Newton–KKT step,
for R = 0. For a descent step K must have exactly as many negative eigenvalues as constraint rows.

Two backends behind one interface: LAPACK's Bunch–Kaufman for small problems, and FERAL's sparse
multifrontal LDLᵀ for large ones. Both pivot, so neither needs a regularized K, and both say how
many eigenvalues are negative and whether a pivot was nothing but rounding.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol
from weakref import finalize, ref

import numpy as np

from casadi_hybrid.basics.arrays import all_finite, largest
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.kernel.sparse import Layout

WITHOUT_FERAL = (
    "feral-solver is not installed; without it there is no verification and no derivative of a "
    "solution, and large systems that Python factors are dense"
)
feral = LateModule("feral", WITHOUT_FERAL)
lapack = LateModule("scipy.linalg.lapack")
Operator = Any  # numpy.ndarray or Sparse

REFINEMENTS = 3
_BLOCK = 32  # columns at a time in LAPACK; without the room for it, it takes one at a time
EXACT = 1e-13  # of ‖b‖_∞: a residual that is not refined any more
_ROUNDING = 1e-14  # a pivot of the equilibrated K as small as this has no sign


@cache
def has_feral() -> bool:
    """Whether the sparse kernel can be had."""
    return find_spec("feral") is not None


class Kernel(Protocol):
    """Analysed once for a pattern, factored for many values."""

    negative: int
    """Negative eigenvalues of the last factored K."""
    singular: bool
    """Whether the last factorization met a zero pivot."""

    def factor(self, W: Operator, D: Vector, A: Operator, E: float | Vector) -> None:
        """Factor K(D, E·I)."""
        ...

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement on the same factor."""
        ...


class DenseKernel:
    """LAPACK dsytrf: symmetric indefinite with pivoting; the pivot blocks give the inertia."""

    def __init__(self, m: int, n: int) -> None:
        self._K = np.zeros((n + m, n + m), order="F")
        self._work = max(1, _BLOCK * (n + m))
        # Views of the parts of K, made once.
        self._of_W, self._of_A, self._of_AT = self._K[:n, :n], self._K[n:, :n], self._K[:n, n:]
        diagonal = self._K.reshape(-1, order="F")[:: n + m + 1]
        self._of_D, self._of_E = diagonal[:n], diagonal[n:]
        self.negative = 0
        self.singular = False

    def factor(self, W: Operator, D: Vector, A: Operator, E: float | Vector) -> None:
        """Factor K(D, E·I)."""
        of_D = self._of_D
        self._of_W[:] = W
        if self._of_E.size:
            self._of_A[:] = A
            self._of_AT[:] = A.T
            self._of_E[:] = -E
        of_D += D
        self._decompose()

    def factor_entries(self, layout: Layout, values: Vector) -> None:
        """Factor K with these entries of its lower triangle, in the order of a layout."""
        rows, cols = layout.pattern.rows, layout.pattern.cols
        self._K[rows, cols] = values
        self._K[cols, rows] = values
        self._decompose()

    def _decompose(self) -> None:
        self._ldl, self._pivots, info = lapack.dsytrf(self._K, lower=1, lwork=self._work)
        pivots = self._ldl.diagonal()
        below = pivots < 0
        pairs, where = 0, self._pivots
        if where.item(where.argmin()) < 0:
            # A 2×2 pivot block of Bunch and Kaufman is indefinite: one negative eigenvalue each.
            single = where > 0
            below &= single
            pairs = (where.size - int(np.count_nonzero(single))) // 2
        self.negative = int(np.count_nonzero(below)) + pairs
        self.singular = info > 0 or not all_finite(pivots)

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement."""
        x, _ = lapack.dsytrs(self._ldl, self._pivots, b, lower=1)
        target = EXACT * largest(b)
        for _ in range(REFINEMENTS):
            r = b - self._K.dot(x)
            if largest(r) <= target:
                break
            x = x + lapack.dsytrs(self._ldl, self._pivots, r, lower=1)[0]
        return np.asarray(x)


def _matrix(layout: Layout, values: Vector) -> Any:
    """The symmetric matrix with these entries."""
    rows = layout.pattern.rows.astype(np.int64)
    return feral.CscMatrix(layout.size, layout.starts, rows, values)


def _factorization(layout: Layout) -> Any:
    """A new factorization object, its elimination order chosen.

    FERAL chooses it by the first numbers it sees. Those are the same for all objects of this
    layout, so that a solve does not depend on what was solved before it.
    """
    solver = feral.Solver(parallel=False, scaling="inf_norm")
    values = np.cos(np.arange(layout.pattern.rows.size))
    values[layout.at_diagonal[: layout.n]] = 1.0
    values[layout.at_diagonal[layout.n :]] = 0.0
    solver.factor(_matrix(layout, values))
    return solver


@dataclass(eq=False)
class _Lease:
    """A factorization object of one thread, and whether a kernel uses it."""

    solver: Any
    free: bool = True

    def end(self) -> None:
        self.free = True


class _Pool(threading.local):
    """The factorization objects of one thread: FERAL's may be used and dropped by no other."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[ref[Layout], list[_Lease]]] = {}

    def lease(self, layout: Layout) -> _Lease:
        """An object that no other kernel uses; those of layouts that are gone are dropped."""
        for key in [key for key, (of, _) in self._kept.items() if of() is None]:
            del self._kept[key]
        leases = self._kept.setdefault(id(layout), (ref(layout), []))[1]
        lease = next((one for one in leases if one.free), None)
        if lease is None:
            lease = _Lease(_factorization(layout))
            leases.append(lease)
        lease.free = False
        return lease


_pool = _Pool()


class SparseKernel:
    """FERAL: multifrontal LDLᵀ with equilibration and delayed pivots (Duff and Reid, 1983)."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        lease = _pool.lease(layout)
        finalize(self, lease.end)
        self._solver = lease.solver
        self._K = _matrix(layout, np.zeros(layout.pattern.rows.size))
        self.negative = 0
        self.singular = False

    def factor(self, W: Operator, D: Vector, A: Operator, E: float | Vector) -> None:
        """Factor K(D, E·I)."""
        layout, n = self._layout, self._layout.n
        data = np.zeros(layout.pattern.rows.size)
        data[layout.at_W] = W.data[layout.of_W]
        data[layout.at_A] = A.data
        data[layout.at_diagonal[:n]] += D
        data[layout.at_diagonal[n:]] = -E
        self.factor_entries(layout, data)

    def factor_entries(self, layout: Layout, values: Vector) -> None:
        """Factor K with these entries of its lower triangle, in the order of its own layout."""
        assert layout is self._layout
        self._K.set_values(values)
        solver = self._solver
        try:
            _, inertia = solver.factor(self._K)
        except (feral.FeralError, ValueError):  # numbers beyond the range of floating point
            self.singular = True
            return
        self.negative = inertia.n_neg
        self.singular = inertia.n_zero > 0 or solver.min_pivot_magnitude <= _ROUNDING

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement."""
        x = self._solver.solve(b)
        size = largest(b)
        error = np.inf
        for _ in range(REFINEMENTS):
            r = b - self._K.symv(x)
            now = largest(r)
            if now <= EXACT * size or now > 0.5 * error:
                break
            error = now
            x = x + self._solver.solve(r)
        return np.asarray(x)
