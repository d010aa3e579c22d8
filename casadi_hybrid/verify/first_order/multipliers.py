"""Multipliers of equations by least squares, and the rank of their Jacobian.

Multipliers of equations have no sign, so that singular values are enough. Multipliers with a sign
are fitted in :mod:`.fit`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.problem.functions import Evaluation

RANK_TOLERANCE = 1e-9
"""Singular values below this fraction of the largest count as zero."""
SETTLING_STEPS = 3
TRUST = 1e-3
ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Fit:
    """Least-squares multipliers and the subspaces of the Jacobian.

    Attributes:
        multipliers: λ of minimum norm among the minimizers of ‖∇f + Jᵀλ‖₂.
        rank: numerical rank of J.
        condition: largest over smallest nonzero singular value of the row-scaled J (1 if rank 0).
        kernel: n×(n − rank), an orthonormal basis Z of ker J.
        free: m×(m − rank), an orthonormal basis of ker Jᵀ: λ may move along it.
    """

    multipliers: Vector
    rank: int
    condition: float
    kernel: Matrix
    free: Matrix

    @property
    def unique(self) -> bool:
        """Full row rank, so that at most one λ satisfies ∇f + Jᵀλ = 0."""
        return bool(self.free.shape[1] == 0)


def fit_multipliers(gradient: Vector, jacobian: Matrix, *, max_rank: int | None = None) -> Fit:
    """Return the minimum-norm least-squares multipliers of ∇f + Jᵀλ = 0, J being m×n.

    The rank is decided on J with its rows scaled to a largest entry of one: the units of a
    constraint must not decide whether it counts. Minimum norm refers to λ itself. The rank is at
    most ``max_rank`` (see :func:`settled_rank`).
    """
    rows = _row_sizes(jacobian)
    U, sigma, Vt = np.linalg.svd(jacobian / rows[:, None])
    rank = _rank(sigma)
    if max_rank is not None:
        rank = min(rank, max_rank)
    multipliers = -(U[:, :rank] / sigma[:rank]) @ (Vt[:rank] @ gradient) / rows
    free = np.linalg.qr(U[:, rank:] / rows[:, None])[0]
    multipliers = multipliers - free @ (free.T @ multipliers)
    condition = float(sigma[0] / sigma[rank - 1]) if rank else 1.0
    for array in (multipliers, free, Vt):
        array.setflags(write=False)
    return Fit(multipliers, rank, condition, Vt[rank:].T, free)


def settled_rank(first: Callable[[Vector], Evaluation], start: Evaluation) -> int:
    """Return the rank of J where h = 0, near a point that violates it a little.

    At a point of a feasible set on which J loses rank the constraints that vanish together have a
    tiny but full Jacobian a tiny distance away, and huge multipliers would then fit any gradient.
    So the rank is read after a few Gauss–Newton steps towards h = 0. Directions in which the
    violation would move x by more than 1e-3·max(1, ‖x‖_∞) are left alone.
    """
    here = start
    rank = int(min(start.B.shape))
    for step in range(SETTLING_STEPS + 1):
        rows = _row_sizes(here.B)
        U, sigma, Vt = np.linalg.svd(here.B / rows[:, None], full_matrices=False)
        rank = min(rank, _rank(sigma))
        noise = ROUNDING * np.maximum(1.0, np.abs(here.B) @ np.abs(here.x))
        if step == SETTLING_STEPS or np.all(np.abs(here.h) <= noise):
            break
        move = (U.T @ (here.h / rows))[:rank] / sigma[:rank]
        move[np.abs(move) > TRUST * max(1.0, float(np.abs(start.x).max()))] = 0.0
        try:
            here = first(here.x - Vt[:rank].T @ move)
        except EvaluationError:
            break
    return rank


def _row_sizes(jacobian: Matrix) -> Vector:
    size = np.abs(jacobian).max(axis=1)
    return np.where(size > 0, size, 1.0)


def _rank(sigma: Vector) -> int:
    return int(np.count_nonzero(sigma > RANK_TOLERANCE * sigma[0]))
