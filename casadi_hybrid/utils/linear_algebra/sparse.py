"""Sparse matrices on a fixed pattern, computed once; each solve has new values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.utils.arrays import distinct
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.late import LateModule

sp = LateModule("scipy.sparse")
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pattern:
    """Places of the entries in column-major order: entry k is at (rows[k], cols[k])."""

    shape: tuple[int, int]
    rows: Index
    cols: Index

    @classmethod
    def of(cls, sparsity: ca.Sparsity) -> Pattern:
        """Return the pattern of a CasADi sparsity."""
        cols = np.repeat(np.arange(sparsity.size2()), np.diff(sparsity.colind()))
        return cls(sparsity.shape, np.array(sparsity.row(), dtype=np.intp), cols)

    def sparsity(self) -> ca.Sparsity:
        """Return the pattern as a CasADi sparsity."""
        begins = starts(self.cols, self.shape[1])
        return ca.Sparsity(*self.shape, begins.tolist(), self.rows.tolist())

    @classmethod
    def ordered(cls, shape: tuple[int, int], rows: Any, cols: Any) -> tuple[Pattern, Index]:
        """Return the pattern of unordered entries, merged, and the index of each entry in it."""
        # These keys sort the entries by columns, then by rows.
        keys, position = distinct(cols * np.intp(shape[0]) + rows)
        return cls(shape, keys % shape[0], keys // shape[0]), position

    def block(self, rows: Index, cols: Index) -> tuple[Pattern, Index]:
        """Return the pattern of a block, and the indices of its entries in this pattern."""
        # rows and cols increase, so the column-major order is kept.
        new_row = np.full(self.shape[0], -1, dtype=np.intp)
        new_col = np.full(self.shape[1], -1, dtype=np.intp)
        new_row[rows], new_col[cols] = np.arange(rows.size), np.arange(cols.size)
        r, c = new_row[self.rows], new_col[self.cols]
        inside = np.flatnonzero((r >= 0) & (c >= 0))
        return Pattern((rows.size, cols.size), r[inside], c[inside]), inside


def starts(places: Index, size: int) -> NDArray[np.int64]:
    """Index of the first entry of each column or row, followed by the number of entries."""
    return np.concatenate(([0], np.cumsum(np.bincount(places, minlength=size))))


class Layout:
    """Lower triangle of the sparse matrix K = [W + D, Aᵀ; A, E]."""

    def __init__(self, W: Pattern, A: Pattern) -> None:
        m, n = A.shape
        self.n, self.size = n, n + m  # rows of W and of K
        self.of_W = np.flatnonzero(W.rows >= W.cols)  # entries of W in the lower triangle
        diagonal = np.arange(self.size)
        # Every diagonal entry is present, as the factorization in C asks.
        rows = np.concatenate((W.rows[self.of_W], A.rows + n, diagonal))
        cols = np.concatenate((W.cols[self.of_W], A.cols, diagonal))
        pattern, where = Pattern.ordered((self.size, self.size), rows, cols)
        entries = starts(pattern.cols, self.size), pattern.rows, pattern.cols
        self.starts, self.rows, self.cols = (array.astype(np.int32) for array in entries)
        of_W, of_A = self.of_W.size, A.rows.size
        # Indices in K of these entries, of A, and of D and E.
        self.at_W, self.at_A = where[:of_W], where[of_W : of_W + of_A]
        self.at_diagonal = where[of_W + of_A :]


class Sparse(NamedTuple):
    """A matrix: a shared pattern and the values in the order of the pattern."""

    pattern: Pattern
    data: Vector

    def scipy(self) -> Any:
        """Return the matrix as a :class:`scipy.sparse.csc_array`."""
        pattern = self.pattern
        begins = starts(pattern.cols, pattern.shape[1])
        return sp.csc_array((self.data, pattern.rows, begins), shape=pattern.shape)


def general(matrix: Any) -> Any:
    """Return the matrix as a NumPy or SciPy array."""
    return matrix.scipy() if isinstance(matrix, Sparse) else np.asarray(matrix)
