"""Which active constraints depend on others, by the rank of their gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from casadi_hybrid.basics.inputs import Matrix
from casadi_hybrid.basics.sparse import general
from casadi_hybrid.result.answer import Answer
from casadi_hybrid.result.explain.diagnosis import listed

_LARGEST_QR = 5e9  # operations of the factorization beyond which dependence is not looked for

_TERMS = 8  # of a combination, that a sentence names


@dataclass(frozen=True, slots=True)
class Dependence:
    """A gradient of an active constraint that is a combination of others.

    ``combination`` has names and coefficients of rows; the bounds of the variables named in
    ``bounds`` make up the rest.
    """

    index: int
    name: str
    combination: tuple[tuple[str, float], ...]
    bounds: tuple[str, ...]

    def __str__(self) -> str:
        largest = sorted(self.combination, key=lambda part: -abs(part[1]))[:_TERMS]
        parts = [f"{factor:.4g}·∇({name})" for name, factor in self.combination
                 if (name, factor) in largest]  # fmt: skip
        left = len(self.combination) - len(parts)
        if left:
            parts.append(f"{left} more with smaller factors")
        if self.bounds:
            parts.append(f"the bounds on {listed(self.bounds)}")
        return f"∇({self.name}) = {' + '.join(parts) or '0'}".replace("+ -", "− ")


def dependent_constraints(
    result: Answer, tolerance: float | None = None
) -> tuple[Dependence, ...] | None:
    """The active constraints whose gradients depend on those of others at the returned point.

    The gradients of the active rows, without the entries of variables at a bound, are scaled to
    length one; QR with column pivoting of their transpose gives the rank and the combinations.
    Where there is any dependence the multipliers are not unique (or do not exist).

    Args:
        tolerance: a row of length one this close to a combination of others depends on them; by
            default 1e-6, and 1e-2 at a feasible point where the solve failed: where constraints
            degenerate, such points are only near the one at which gradients are dependent.

    Returns:
        None where it is not known: no derivatives, or more than 5e9 operations.
    """
    at, working = result.end, result.working_set
    if at is None:
        return None
    rows: NDArray[np.intp] = np.flatnonzero(working.g)
    columns, pinned = np.flatnonzero(working.x == 0), np.flatnonzero(working.x)
    if float(rows.size) ** 2 * columns.size > _LARGEST_QR:
        return None
    J = sp.csr_array(general(at.J))[rows].toarray()
    whole = np.linalg.norm(J, axis=1)
    A = J[:, columns]
    size = np.linalg.norm(A, axis=1)
    # What is left of a row once the bounds have taken their part may be rounding.
    empty = size <= 1e-12 * whole
    length = np.where(empty | (size == 0.0), 1.0, size)
    A = np.where(empty[:, None], 0.0, A / length[:, None])
    rank, pivots, factors = _row_basis(A, tolerance or rank_tolerance(result))
    found = []
    for k in range(rank, rows.size):
        d = pivots[k]
        weights = factors[:, k - rank] * length[d] / length[pivots[:rank]]
        basis = rows[pivots[:rank]]
        kept = np.abs(weights) > 1e-6 * np.abs(weights).max(initial=0.0)
        rest = J[d] - weights @ J[pivots[:rank]]
        held = pinned[np.abs(rest[pinned]) > 1e-6 * max(whole[d], 1e-300)]
        names = result.constraint_names
        combination = zip((names[i] for i in basis[kept]), weights[kept].tolist(), strict=True)
        bounds = tuple(result.variable_names[i] for i in held)
        found.append(Dependence(int(rows[d]), names[rows[d]], tuple(combination), bounds))
    return tuple(sorted(found, key=lambda one: one.index))


def rank_tolerance(result: Answer) -> float:
    """The default tolerance of :func:`dependent_constraints`."""
    return 1e-6 if result.success or result.certificate is not None else 1e-2


def _row_basis(A: Matrix, tolerance: float) -> tuple[int, NDArray[np.intp], Matrix]:
    """Rank, an order of rows with a basis first, and the other rows' coefficients in it."""
    m, n = A.shape
    if m == 0 or n == 0:
        return 0, np.arange(m), np.zeros((0, m))
    R, pivots = la.qr(A.T, mode="r", pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > tolerance))
    factors = la.solve_triangular(R[:rank, :rank], R[:rank, rank:]) if rank else R[:0]
    return rank, pivots, factors
