"""Sparse matrices on a fixed pattern: new values in every iteration, the structure once.

A general sparse library checks and converts its index arrays whenever a matrix is made, which
costs more than all arithmetic of a mid-sized iteration. Here a :class:`Pattern` is made once and
shared, and a :class:`Sparse` is a pattern with an array of values. It has what the iterations use
of a NumPy matrix: ``A @ v`` and ``A.T @ v``, both also by ``dot``, which is the quicker way for
small arrays, and ``A.shape``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import distinct, rough_sum
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import LateModule

sp = LateModule("scipy.sparse")
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries lie, in column-major order: entry k is at (rows[k], cols[k])."""

    shape: tuple[int, int]
    rows: Index
    cols: Index

    @classmethod
    def of(cls, sparsity: ca.Sparsity) -> Pattern:
        """Return the pattern of a CasADi sparsity."""
        rows, cols = sparsity.get_triplet()
        shape = (sparsity.size1(), sparsity.size2())
        return cls(shape, np.array(rows, dtype=np.intp), np.array(cols, dtype=np.intp))

    @classmethod
    def ordered(cls, shape: tuple[int, int], rows: Index, cols: Index) -> tuple[Pattern, Index]:
        """Return the pattern of entries given in any order, and where each of them went.

        Entries at one place are merged.
        """
        keys, position = distinct(cols * np.intp(shape[0]) + rows)
        return cls(shape, keys % shape[0], keys // shape[0]), position

    def block(self, rows: Index, cols: Index) -> tuple[Pattern, Index]:
        """Return the pattern of a block (``rows``, ``cols`` increasing), and its entries here."""
        new_row = np.full(self.shape[0], -1, dtype=np.intp)
        new_col = np.full(self.shape[1], -1, dtype=np.intp)
        new_row[rows], new_col[cols] = np.arange(rows.size), np.arange(cols.size)
        r, c = new_row[self.rows], new_col[self.cols]
        kept = np.flatnonzero((r >= 0) & (c >= 0))
        return Pattern((rows.size, cols.size), r[kept], c[kept]), kept

    @property
    def sparsity(self) -> ca.Sparsity:
        """The same as a CasADi sparsity."""
        rows, cols = self.rows.tolist(), self.cols.tolist()
        return ca.Sparsity.triplet(*self.shape, rows, cols)


class Layout:
    """Where the entries of W, D, A and E go in the lower triangle of the sparse K.

    Made once for a pair of patterns and shared by all kernels on them, in all threads.

    Attributes:
        n, size: rows of W, and of K.
        pattern: of the lower triangle of K.
        of_W: the entries of W in it.
        at_W, at_A, at_diagonal: where those of W, of A, and of D and E go.
    """

    def __init__(self, W: Pattern, A: Pattern) -> None:
        m, n = A.shape
        self.n, self.size = n, n + m
        self.of_W = np.flatnonzero(W.rows >= W.cols)
        diagonal = np.arange(self.size)
        rows = np.concatenate((W.rows[self.of_W], A.rows + n, diagonal))
        cols = np.concatenate((W.cols[self.of_W], A.cols, diagonal))
        self.pattern, where = Pattern.ordered((self.size, self.size), rows, cols)
        of_W, of_A = self.of_W.size, A.rows.size
        self.at_W, self.at_A = where[:of_W], where[of_W : of_W + of_A]
        self.at_diagonal = where[of_W + of_A :]


class Sparse:
    """A matrix: a shared pattern and its values.

    Attributes:
        pattern: where the entries lie.
        data: their values, in the pattern's order.
    """

    __slots__ = ("data", "pattern")
    __array_ufunc__ = None  # NumPy refuses `array @ Sparse` and `number * Sparse`

    def __init__(self, pattern: Pattern, data: Vector) -> None:
        self.pattern = pattern
        self.data = data

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def T(self) -> Transposed:
        """The transpose, for products with vectors."""
        return Transposed(self)

    def __matmul__(self, v: Vector) -> Vector:
        pattern = self.pattern
        return _sums(pattern.rows, self.data * v[pattern.cols], pattern.shape[0])

    dot = __matmul__

    def scipy(self) -> Any:
        """The same as a :class:`scipy.sparse.csc_array`."""
        pattern = self.pattern
        counts = np.bincount(pattern.cols, minlength=pattern.shape[1])
        starts = np.concatenate(([0], np.cumsum(counts)))
        return sp.csc_array((self.data, pattern.rows, starts), shape=pattern.shape)


class Transposed:
    """The transpose of a :class:`Sparse`, without a copy."""

    __slots__ = ("_of",)

    def __init__(self, of: Sparse) -> None:
        self._of = of

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self._of.pattern.shape
        return n, m

    def __matmul__(self, v: Vector) -> Vector:
        data, pattern = self._of.data, self._of.pattern
        return _sums(pattern.cols, data * v[pattern.rows], pattern.shape[1])

    dot = __matmul__


def is_sparse(matrix: Any) -> bool:
    """Whether the matrix is a :class:`Sparse` rather than a NumPy array."""
    return isinstance(matrix, Sparse)


def general(matrix: Any) -> Any:
    """The matrix as a NumPy or SciPy array, for what is done once a solve."""
    return matrix.scipy() if is_sparse(matrix) else np.asarray(matrix)


def magnitudes(matrix: Any) -> Any:
    """The matrix of absolute values."""
    return Sparse(matrix.pattern, np.abs(matrix.data)) if is_sparse(matrix) else np.abs(matrix)


def sum_of_entries(matrix: Any) -> float:
    """The sum of all |entries|, which is quicker than the largest and no less."""
    return rough_sum(matrix.data if is_sparse(matrix) else matrix.ravel(order="K"))


def row_maxima(matrix: Any) -> Vector:
    """The largest |entry| of every row."""
    if is_sparse(matrix):
        largest = np.zeros(matrix.shape[0])
        np.maximum.at(largest, matrix.pattern.rows, np.abs(matrix.data))
        return largest
    return np.asarray(np.abs(matrix).max(axis=1, initial=0.0))


def _sums(where: Index, values: Vector, size: int) -> Vector:
    """Sum the values that go to each of ``size`` places."""
    return np.asarray(np.bincount(where, values, minlength=size), dtype=np.float64)
