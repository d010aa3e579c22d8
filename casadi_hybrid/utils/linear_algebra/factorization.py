"""Sparse symmetric systems by FERAL: multifrontal LDLᵀ with equilibration and delayed pivots.

Used for matrices that are factored once: in the verifier and for solution derivatives.
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
_EXACT = 1e-13  # largest residual, relative to ‖b‖_∞, that is not refined
# Relative distance to a singular matrix below which a matrix counts as singular. Rounding leaves
# 1e-16 times the growth in the elimination of a zero eigenvalue, at most 1e-12 in experiments. So
# close to a singular matrix a solution has at most four correct digits.
SINGULAR = 1e-12
_INVERSE_STEPS = 2


@cache
def has_feral() -> bool:
    """True if FERAL is installed."""
    return find_spec("feral") is not None


class Inertia(NamedTuple):
    """Numbers of positive, negative and zero eigenvalues."""

    # Only a pivot of exactly zero counts as zero, and rounding gives a zero eigenvalue any sign. So
    # shift a matrix away from its zero eigenvalues before.
    positive: int
    negative: int
    zero: int


class SymmetricFactor:
    """Factors of a sparse symmetric matrix, from its lower triangle; raises FloatingPointError."""

    def __init__(self, matrix: Any) -> None:
        # Create, use and drop this object in one function: FERAL's belong to their thread.
        entries = sp.coo_array(matrix)
        if not np.isfinite(entries.data).all():
            raise FloatingPointError("the matrix has entries that are not finite")
        size = entries.shape[0]
        lower = entries.row >= entries.col
        diagonal = np.arange(size)
        # FERAL needs every diagonal entry, and sums repeated entries.
        K = feral.CscMatrix.from_triplet(
            size,
            np.concatenate((entries.row[lower], diagonal)).astype(np.int64),
            np.concatenate((entries.col[lower], diagonal)).astype(np.int64),
            np.concatenate((entries.data[lower], np.zeros(size))),
        )
        self._matrix = entries.tocsr()
        # A solver of its own has its own elimination order: no result depends on earlier ones.
        self._solver = feral.Solver(parallel=False)
        try:
            _, counts = self._solver.factor(K)
        except feral.FeralError as error:
            raise FloatingPointError(f"the matrix could not be factored: {error}") from error
        self.inertia = Inertia(counts.n_pos, counts.n_neg, counts.n_zero)

    @cached_property
    def singular(self) -> bool:
        """True if the equilibrated matrix is singular to within :data:`SINGULAR`."""
        size = self._matrix.shape[0]
        if size == 0 or self.inertia.zero:
            return self.inertia.zero > 0
        # Pivots are no measure: a singular matrix may have none below 1e-7, but large entries in L.
        scale = self._solver.factors().scaling
        # Inverse iteration on the scaled matrix: 1/growth tends to its smallest |eigenvalue|.
        v = np.cos(np.arange(size))
        growth = 1.0
        for _ in range(_INVERSE_STEPS):
            v = self._solver.solve(v / scale) / scale
            growth = float(np.abs(v).max())
            v = v / growth
        # NaN counts as singular.
        return not growth * SINGULAR < 1.0

    def solve(self, b: Vector | Matrix) -> Any:
        """Solve K x = b for one or several right-hand sides; without meaning for a singular K."""
        if b.size == 0:
            return b.copy()
        x = self._solver.solve(b)
        residual = b - self._matrix @ x
        error = _sizes(residual)
        # A residual that a refinement does not halve is the rounding error of K x.
        for _ in range(_REFINEMENTS):
            if np.all(error <= _EXACT * _sizes(b)):
                break
            refined = x + self._solver.solve(residual)
            new_residual = b - self._matrix @ refined
            new_error = _sizes(new_residual)
            # Each column keeps its better solution.
            better = new_error < error
            halved = np.any(new_error <= 0.5 * error)
            x, residual = np.where(better, refined, x), np.where(better, new_residual, residual)
            error = np.where(better, new_error, error)
            if not halved:
                break
        return x


def inertia(matrix: Any) -> Inertia | None:
    """Inertia of a sparse symmetric matrix; None if the factorization fails."""
    try:
        return SymmetricFactor(matrix).inertia
    except FloatingPointError:
        return None


def _sizes(columns: Any) -> Any:
    """‖·‖_∞ of each column."""
    return np.abs(columns).max(axis=0, initial=0.0)
