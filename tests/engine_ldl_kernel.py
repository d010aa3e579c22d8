"""The engine's sparse LDLᵀ behind the interface of the kernels."""

from __future__ import annotations

import ctypes as ct
from typing import Any

import numpy as np

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.basics.sparse import Layout, Sparse
from casadi_hybrid.engine import ldl
from casadi_hybrid.engine.header import C

REFINEMENTS = 3
Operator = Sparse | Matrix


class LdlKernel:
    """A kernel whose numbers are those of the functions of ``c/ldl.h``.

    Args:
        layout: of K.
        library: with the functions of ``c/ldl.h``, declared.
        tables: the analysis; by default made for the first A that is factored.

    Attributes:
        negative: negative eigenvalues of the last factored K.
        singular: whether it was singular to rounding.
        found: all that the factorization found.
        residual: of the last solution, relative to its right-hand side.
    """

    def __init__(self, layout: Layout, library: ct.CDLL, tables: ldl.Tables | None = None) -> None:
        self._layout, self._library = layout, library
        self.negative = 0
        self.singular = False
        self.found = C.hybrid_inertia()
        self.residual = 0.0
        self._values = np.zeros(layout.pattern.rows.size)
        self.tables = tables
        if tables is not None:
            self._reserve(tables)

    def _reserve(self, tables: ldl.Tables) -> None:
        sizes = tables.analysis
        self._factor = np.empty(sizes.factor)
        self._pivots = np.empty(sizes.pivots, dtype=np.int32)
        self._room = np.empty(sizes.room)
        self._given = (ct.byref(sizes), address(self._values), address(self._factor))

    def factor(self, W: Operator, D: Vector, A: Operator, E: float | Vector) -> None:
        """Factor K(D, E·I)."""
        layout, n, values = self._layout, self._layout.n, self._values
        values[:] = 0.0
        values[layout.at_W] = _data(W)[layout.of_W]
        values[layout.at_A] = _data(A)
        values[layout.at_diagonal[:n]] += D
        values[layout.at_diagonal[n:]] = -E
        if self.tables is None:
            K = ldl.Compressed.of(layout)
            partner = ldl.partners(self._library, K, values)
            group, _ = ldl.eliminations(K, partner, np.ones(K.n, bool))
            self.tables = ldl.tables_of(self._library, K, group)
            self._reserve(self.tables)
        self.refactor()

    def refactor(self) -> None:
        """Factor the values that are there."""
        self._library.hybrid_ldl_factor(
            *self._given, address(self._pivots), address(self._room), ct.byref(self.found)
        )
        self.negative = self.found.negative
        self.singular = bool(self.found.singular)

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement."""
        b = np.ascontiguousarray(b, dtype=np.float64)
        x = np.empty(self._layout.size)
        self.residual = self._library.hybrid_ldl_solve(
            *self._given,
            address(self._pivots),
            address(b),
            address(x),
            address(self._room),
            REFINEMENTS,
        )
        return x


def _data(matrix: Any) -> Vector:
    """The entries of a matrix, those of a dense one column by column."""
    return np.asarray(matrix.data if isinstance(matrix, Sparse) else matrix.ravel(order="F"))
