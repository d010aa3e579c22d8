"""The face of the feasible set on which some rows hold with equality.

Active bounds leave variables out; the other active rows are constraints on the free ones. Rank and
kernel of their Jacobian come from singular values where it is small, from sparse and QR
factorizations where it is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr, solve_triangular

from casadi_hybrid.inputs import Vector
from casadi_hybrid.verify.multipliers import RANK_TOLERANCE, Fit, fit_multipliers
from casadi_hybrid.verify.nlp.rows import Indices, Rows

DENSE_LIMIT = 500
"""Up to this many free variables and rows the singular values are computed."""
DEPENDENT = 1e-10
"""Eigenvalues of ÂÂᵀ below this count as zero (Â has rows with entries up to one)."""


@dataclass(frozen=True, eq=False)
class Face:
    """The variables that active bounds leave free and the active constraints on them.

    Attributes:
        free: indices of the variables without an active bound.
        constraints: indices of the active constraints, into g.
        gradient: ∂f/∂x_free.
        jacobian: their J_g, sparse.
    """

    free: Indices
    constraints: Indices
    gradient: Vector
    jacobian: Any

    @property
    def small(self) -> bool:
        """Whether dense linear algebra is the faster way."""
        return bool(max(self.jacobian.shape) <= DENSE_LIMIT)

    @cached_property
    def fit(self) -> Fit:
        """Rank, kernel and cokernel of the Jacobian; its multipliers know no signs."""
        k, n = self.jacobian.shape
        if k == 0 or n == 0:
            return Fit(np.zeros(k), 0, 1.0, np.eye(n), np.eye(k))
        if self.small:
            return fit_multipliers(self.gradient, self.jacobian.toarray())
        return self._fit_by_qr()

    @cached_property
    def rank(self) -> int:
        """Numerical rank of the Jacobian; by the inertia of ÂÂᵀ − 1e-10 I where it is large."""
        if self.small:
            return self.fit.rank
        k = self.sizes.size
        below = count_negative(self.scaled @ self.scaled.T - DEPENDENT * sp.eye_array(k))
        return self.fit.rank if below is None else k - below

    @cached_property
    def sizes(self) -> Vector:
        """Largest entry of each row of the Jacobian; 1 for a row of zeros."""
        largest = abs(self.jacobian).max(axis=1).toarray().ravel()
        return np.where(largest > 0, largest, 1.0)

    @cached_property
    def scaled(self) -> Any:
        """The Jacobian with rows whose largest entry is one."""
        return sp.diags_array(1.0 / self.sizes) @ self.jacobian

    def _fit_by_qr(self) -> Fit:
        """Rank and kernels by QR with pivoting, without multipliers."""
        k = self.sizes.size
        Q, R, order = qr(self.scaled.T.toarray(), pivoting=True)
        pivots = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(pivots > RANK_TOLERANCE * pivots[0]))
        free = np.zeros((k, k - rank))
        if rank < k:
            free[order[:rank]] = -solve_triangular(R[:rank, :rank], R[:rank, rank:])
            free[order[rank:]] = np.eye(k - rank)
            free = np.linalg.qr(free / self.sizes[:, None])[0]
        condition = float(pivots[0] / pivots[rank - 1]) if rank else 1.0
        return Fit(np.zeros(k), rank, condition, Q[:, rank:], free)


def make_face(rows: Rows, active: Indices) -> Face:
    """The face on which the rows in ``active`` hold with equality."""
    n = rows.n
    free = np.setdiff1d(np.arange(n), active[active < n])
    constraints = active[active >= n] - n
    jacobian = rows.jacobian[constraints + n][:, free].tocsr()
    return Face(free, constraints, rows.gradient[free], jacobian)


def count_negative(matrix: Any) -> int | None:
    """Negative eigenvalues of a sparse symmetric matrix, from the pivots of LDLᵀ.

    There is no pivoting, so a factor that does not solve is not believed: None.
    """
    matrix = matrix.tocsc()
    matrix.sort_indices()
    size = matrix.shape[0]
    sparsity = ca.Sparsity(size, size, matrix.indptr.tolist(), matrix.indices.tolist())
    solver = ca.Linsol("inertia", "ldl", sparsity)
    values = ca.DM(sparsity, matrix.data)
    exact = np.cos(np.arange(size))
    right = matrix @ exact
    try:
        solver.nfact(values)
        negative = int(solver.neig(values))
        found = np.asarray(solver.solve(values, right).full()).ravel()
    except RuntimeError:
        return None
    scale = float((abs(matrix) @ np.abs(found)).max() + np.abs(right).max())
    close = bool(np.abs(matrix @ found - right).max() <= 1e-8 * scale)
    return negative if close else None
