"""Sparse symmetric systems: FERAL's multifrontal LDLᵀ with equilibration and delayed pivots.

For what is factored once: systems of the verifiers and of solution derivatives.
"""

from __future__ import annotations

from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.late import LateModule

WITHOUT_FERAL = (
    "feral-solver is not installed; without it there is no verification and no derivative of a "
    "solution"
)
feral = LateModule("feral", WITHOUT_FERAL)
sp = LateModule("scipy.sparse")
_REFINEMENTS = 3
_EXACT = 1e-13  # of ‖b‖_∞: a residual that is not refined any more
SINGULAR = 1e-12
"""Relative distance to a singular matrix below which a matrix counts as one.

What rounding leaves of a zero eigenvalue is 1e-16 times the growth in the elimination: up to 1e-12
was seen. A matrix this close to a singular one keeps four digits of a solution at best.
"""
_INVERSE_STEPS = 2


@cache
def has_feral() -> bool:
    """Whether the sparse factorization can be had."""
    return find_spec("feral") is not None


class Inertia(NamedTuple):
    """How many eigenvalues are positive, negative and zero.

    Only a pivot that is exactly zero counts as a zero eigenvalue. Those that are zero but for
    rounding count with the sign it leaves them, so ask only about a matrix shifted off them.
    """

    positive: int
    negative: int
    zero: int


class SymmetricFactor:
    """The factors of a sparse symmetric matrix, of its lower triangle: its inertia, and solutions.

    Made, used and dropped within one function: FERAL's objects belong to the thread that made
    them. Each chooses its own elimination order, so that no result depends on earlier ones.

    Raises:
        FloatingPointError: for entries that are not finite, or factors that are not.
    """

    def __init__(self, matrix: Any) -> None:
        entries = sp.coo_array(matrix)
        if not np.isfinite(entries.data).all():
            raise FloatingPointError("the matrix has entries that are not finite")
        size = entries.shape[0]
        lower = entries.row >= entries.col
        diagonal = np.arange(size)
        # FERAL wants every diagonal entry, and sums entries that come twice.
        K = feral.CscMatrix.from_triplet(
            size,
            np.concatenate((entries.row[lower], diagonal)).astype(np.int64),
            np.concatenate((entries.col[lower], diagonal)).astype(np.int64),
            np.concatenate((entries.data[lower], np.zeros(size))),
        )
        self._matrix = entries.tocsr()
        self._solver = feral.Solver(parallel=False)
        try:
            _, found = self._solver.factor(K)
        except feral.FeralError as error:
            raise FloatingPointError(f"the matrix could not be factored: {error}") from error
        self.inertia = Inertia(found.n_pos, found.n_neg, found.n_zero)

    @cached_property
    def singular(self) -> bool:
        """Whether the equilibrated matrix is singular to within :data:`SINGULAR`.

        Its distance to a singular one comes from two steps of inverse iteration. The pivots do not
        tell: of a singular matrix the smallest may be 1e-7, the rest of the smallness lies in L.
        """
        size = self._matrix.shape[0]
        if size == 0 or self.inertia.zero:
            return self.inertia.zero > 0
        scale = self._solver.factors().scaling
        v = np.cos(np.arange(size))
        growth = 1.0
        for _ in range(_INVERSE_STEPS):
            v = self._solver.solve(v / scale) / scale
            growth = float(np.abs(v).max())
            v = v / growth
        return not growth * SINGULAR < 1.0

    def solve(self, b: Vector | Matrix) -> Any:
        """Solve K x = b for one right-hand side, or for one per column.

        Refined until the residual is 1e-13 of b, or does not halve: then it is the rounding of
        K x. Where K is singular the result means nothing.
        """
        if b.size == 0:
            return b.copy()
        x = self._solver.solve(b)
        residual = b - self._matrix @ x
        error = _sizes(residual)
        for _ in range(_REFINEMENTS):
            if np.all(error <= _EXACT * _sizes(b)):
                break
            moved = x + self._solver.solve(residual)
            left = b - self._matrix @ moved
            now = _sizes(left)
            better = now < error
            halved = np.any(now <= 0.5 * error)
            x, residual = np.where(better, moved, x), np.where(better, left, residual)
            error = np.where(better, now, error)
            if not halved:
                break
        return x


def inertia(matrix: Any) -> Inertia | None:
    """The inertia of a sparse symmetric matrix, None where it cannot be factored."""
    try:
        return SymmetricFactor(matrix).inertia
    except FloatingPointError:
        return None


def _sizes(columns: Any) -> Any:
    return np.abs(columns).max(axis=0, initial=0.0)
