"""The engine's sparse LDLᵀ by pieces, and random systems for it."""

import ctypes as ct
from typing import Any

import numpy as np

from casadi_hybrid.core.binding import ldl
from casadi_hybrid.core.header import C
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.sparse import Layout, Pattern, Sparse

REFINEMENTS = 3
GUARD = 7  # the entry behind each piece of memory
Problem = tuple[np.ndarray, np.ndarray, np.ndarray, float]
"""W, D, A and E of K = [W + D, A'; A, -E]."""


class LdlKernel:
    """The functions of ``ldl.h`` with the memory that they ask for.

    Args:
        layout: of K.
        library: with these functions, declared.
        group: turn of each row in the elimination; by default chosen for the first values.
        threads: of a factorization.

    Attributes:
        tables: the analysis, a ``hybrid_ldl``.
        found: the ``hybrid_inertia`` of the last factorization.
        residual: of the last solution, relative to its right-hand side.
    """

    def __init__(
        self, layout: Layout, library: ct.CDLL, group: Any = None, threads: int = 2
    ) -> None:
        self.layout, self.library, self.group = layout, library, group
        self.at_once = ct.cast(library.hybrid_at_once, ct.c_void_p) if threads > 1 else None
        self.found, self.residual = C.hybrid_inertia(), 0.0
        self.values, self.tables = np.zeros(layout.rows.size), None

    def analyze(self) -> None:
        """Choose the order by the present values, unless it is given, and reserve memory."""
        if self.group is None:
            partner = ldl.partners(self.library, self.layout, self.values)
            self.group, _ = ldl.eliminations(self.layout, partner, np.ones(self.layout.n, bool))
        self.tables, self.arrays = ldl.tables_of(self.library, self.layout, self.group)
        sizes = self.tables.factor, self.tables.room
        self.factors, self.room = (np.full(size + 1, float(GUARD)) for size in sizes)
        self.pivots = np.full(self.tables.pivots + 1, GUARD, dtype=np.int32)

    @property
    def beyond_is_untouched(self) -> bool:
        return all(memory[-1] == GUARD for memory in (self.factors, self.pivots, self.room))

    def factor(self, W: Sparse, D: Vector, A: Sparse, E: float) -> None:
        """Factor K; the first one is analyzed."""
        layout, n, values = self.layout, self.layout.n, self.values
        values[:] = 0.0
        values[layout.at_W] = np.asarray(W.data)[layout.of_W]
        values[layout.at_A] = A.data
        values[layout.at_diagonal[:n]] += D
        values[layout.at_diagonal[n:]] = -E
        if self.tables is None:
            self.analyze()
        arrays = (self.values, self.factors, self.pivots, self.room)
        given = ct.byref(self.tables), *map(address, arrays)
        self.library.hybrid_ldl_factor(*given, self.at_once, ct.byref(self.found))

    def solve(self, b: Vector) -> Vector:
        """Solve K x = b with iterative refinement."""
        x = np.empty(self.layout.size)
        arrays = (self.values, self.factors, self.pivots, np.ascontiguousarray(b), x, self.room)
        given = ct.byref(self.tables), *map(address, arrays)
        self.residual = self.library.hybrid_ldl_solve(*given, REFINEMENTS)
        return x


class Fixed:
    """K in a fixed order: its factor, and solutions by it."""

    def __init__(self, library: ct.CDLL, problem: Problem) -> None:
        K = layout_of(problem)
        partner = ldl.partners(library, K, entries(problem, K))
        order = ldl.eliminations(K, partner, np.diag(problem[0]) != 0)[1]
        self.tables, self.arrays = ldl.tables_of(library, K, order, fixed=True)
        self.library, self.layout, self.found = library, K, C.hybrid_inertia()
        self.factors = np.empty(max(1, self.tables.factor))
        self.room = np.empty(max(1, 2 * K.size))
        self.factor(problem)

    def factor(self, problem: Problem) -> None:
        """Factor K with these values, in the same order."""
        arrays = entries(problem, self.layout), self.factors, self.room
        given = ct.byref(self.tables), *map(address, arrays)
        self.library.hybrid_fixed_factor(*given, ct.byref(self.found))

    def solve(self, b: np.ndarray) -> np.ndarray:
        x = np.array(b)
        arrays = map(address, (self.factors, x, self.room))
        self.library.hybrid_fixed_solve(ct.byref(self.tables), *arrays)
        return x


def pattern_of(M: np.ndarray) -> Pattern:
    cols, rows = np.nonzero(M.T)
    return Pattern(M.shape, rows, cols)


def sparse(M: np.ndarray) -> Sparse:
    pattern = pattern_of(M)
    return Sparse(pattern, M[pattern.rows, pattern.cols])


def layout_of(problem: Problem) -> Layout:
    return Layout(pattern_of(problem[0]), pattern_of(problem[2]))


def entries(problem: Problem, K: Layout) -> np.ndarray:
    return np.ascontiguousarray(whole(problem)[K.rows, K.cols])


def factored(library: ct.CDLL, problem: Problem, **options: Any) -> LdlKernel:
    """A kernel that has factored K; the options are those of :class:`LdlKernel`."""
    W, D, A, E = problem
    kernel = LdlKernel(layout_of(problem), library, **options)
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
