"""The engine's sparse LDLᵀ by pieces, and random systems for it."""

import ctypes as ct
from typing import Any

import numpy as np

from casadi_hybrid.core.binding import ldl
from casadi_hybrid.core.header import C
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.linear_algebra.sparse import Layout, Pattern, Sparse

REFINEMENTS = 3
Operator = Sparse | Matrix
Problem = tuple[np.ndarray, np.ndarray, np.ndarray, float]


class LdlKernel:
    """A kernel whose numbers are those of the functions of ``c/ldl.h``.

    Args:
        layout: of K.
        library: with the functions of ``c/ldl.h``, declared.
        tables: the analysis; by default made for the first A that is factored.
        threads: of a factorization.

    Attributes:
        negative: negative eigenvalues of the last factored K.
        singular: whether it was singular to rounding.
        found: all that the factorization found.
        residual: of the last solution, relative to its right-hand side.
    """

    def __init__(
        self, layout: Layout, library: ct.CDLL, tables: Any = None, threads: int = 2
    ) -> None:
        self._layout, self._library = layout, library
        self._at_once = ct.cast(library.hybrid_at_once, ct.c_void_p) if threads > 1 else None
        self.negative = 0
        self.singular = False
        self.found = C.hybrid_inertia()
        self.residual = 0.0
        self._values = np.zeros(layout.rows.size)
        self.tables = tables
        if tables is not None:
            self._reserve(tables)

    def _reserve(self, sizes: Any) -> None:
        self._factor, self._room = np.full(sizes.factor + 1, 7.0), np.full(sizes.room + 1, 7.0)
        self._pivots = np.full(sizes.pivots + 1, 7, dtype=np.int32)
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
            partner = ldl.partners(self._library, layout, values)
            group, _ = ldl.eliminations(layout, partner, np.ones(n, bool))
            self.tables, self._arrays = ldl.tables_of(self._library, layout, group)
            self._reserve(self.tables)
        self.refactor()

    def beyond_is_untouched(self) -> bool:
        """Whether what lies behind the memory is as it was."""
        return all(one[-1] == 7 for one in (self._factor, self._pivots, self._room))

    def refactor(self) -> None:
        """Factor the values that are there."""
        self._library.hybrid_ldl_factor(
            *self._given, address(self._pivots), address(self._room), self._at_once,
            ct.byref(self.found),
        )  # fmt: skip
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


def pattern_of(M: np.ndarray) -> Pattern:
    cols, rows = np.nonzero(M.T)
    return Pattern(M.shape, rows, cols)


def sparse(M: np.ndarray) -> Sparse:
    pattern = pattern_of(M)
    return Sparse(pattern, M[pattern.rows, pattern.cols])


def factored(library: ct.CDLL, problem: Problem, threads: int = 2) -> LdlKernel:
    W, D, A, E = problem
    kernel = LdlKernel(Layout(pattern_of(W), pattern_of(A)), library, threads=threads)
    kernel.factor(sparse(W), D, sparse(A), E)
    return kernel


def whole(problem: Problem) -> np.ndarray:
    W, D, A, E = problem
    return np.block([[W + np.diag(D), A.T], [A, -E * np.eye(A.shape[0])]])


def equilibrated(K: np.ndarray) -> np.ndarray:
    scale = np.ones(K.shape[0])
    for _ in range(8):
        most = np.abs(K * scale[:, None] * scale).max(axis=1)
        scale /= np.sqrt(np.where(most > 0, most, 1.0))
    return K * scale[:, None] * scale


def random_problem(seed: int) -> Problem:
    """All shapes: without curvature, rank-deficient, with empty rows, pinned variables, E > 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    m = int(rng.integers(0, n + 3))
    density = rng.choice([0.05, 0.1, 0.3, 1.0])
    W = rng.standard_normal((n, n)) * (rng.random((n, n)) < density)
    W = W + W.T
    if rng.random() < 0.2:
        W[:] = 0.0
    elif rng.random() < 0.3:
        W = W @ W.T
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < density)
    if m and rng.random() < 0.2:
        A[rng.integers(m)] = 0.0
    if m > 1 and rng.random() < 0.2:
        A[0] = A[-1]
    D = np.zeros(n) if rng.random() < 0.5 else rng.random(n) * 10 ** rng.uniform(-8, 8, n)
    if rng.random() < 0.3:
        D[rng.random(n) < 0.3] = 1e14 * max(1.0, np.abs(W).max())
    return W, D, A, 0.0 if rng.random() < 0.7 else 10 ** rng.uniform(-10, 0)


class Fixed:
    """K in a fixed order: its factor, and solutions by it."""

    def __init__(self, library: ct.CDLL, problem: Problem) -> None:
        W, _, A, _ = problem
        K = Layout(pattern_of(W), pattern_of(A))
        curved = np.diag(W) != 0
        partner = ldl.partners(library, K, self._values(problem, K))
        group = ldl.eliminations(K, partner, curved)[1]
        self.tables, self._arrays = ldl.tables_of(library, K, group, fixed=True)
        self._library, self._values_of_K = library, self._values(problem, K)
        self.found = C.hybrid_inertia()
        self._factor = np.empty(max(1, self.tables.factor))
        self._room = np.empty(max(1, 2 * K.size))
        library.hybrid_fixed_factor(
            ct.byref(self.tables), self._values_of_K.ctypes.data, self._factor.ctypes.data,
            self._room.ctypes.data, ct.byref(self.found),
        )  # fmt: skip

    @staticmethod
    def _values(problem: Problem, K: Layout) -> np.ndarray:
        return np.ascontiguousarray(whole(problem)[K.rows, K.cols])

    def solve(self, b: np.ndarray) -> np.ndarray:
        x = np.array(b)
        self._library.hybrid_fixed_solve(
            ct.byref(self.tables), self._factor.ctypes.data, x.ctypes.data,
            self._room.ctypes.data,
        )  # fmt: skip
        return x
