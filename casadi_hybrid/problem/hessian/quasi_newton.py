r"""Curvature learned from first derivatives: symmetric rank-one updates in every block.

Of the last points x_0, …, x_q of a solve f's gradient and the Jacobian are remembered, not the
slopes of a Lagrangian. So s_k = x_{k+1} − x_k and

    y_k = σ(∇f_{k+1} − ∇f_k) + (J_{k+1} − J_k)ᵀλ

fit whatever multipliers λ and weight σ of the objective are asked for, and the matrix follows the
multipliers as the exact one does; also a restoration, whose multipliers have nothing to do with
those before it, begins with what is known. It is made anew at each point, from the oldest pair to
the newest (Conn, Gould and Toint, Math. Programming 50, 1991):

    B = I + Σ_k r_k r_kᵀ/r_kᵀs_k,    r_k = y_k − B_k s_k,

a pair with |r_kᵀs_k| next to nothing left out. Where the curvature is constant these matrices have
all of it after as many steps as there are variables, negative curvature included; the kernel sees
to the inertia as it does for the exact Hessian. What the Lagrangian couples by a sum alone
(:mod:`casadi_hybrid.problem.hessian.blocks`) has curvature of its own, so each block learns from
its part of s and y: in optimal control by multiple shooting a step teaches as many stages as there
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import largest
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.low_rank import LowRank
from casadi_hybrid.kernel.sparse import Index, Pattern, Sparse
from casadi_hybrid.problem.evaluator import Operator
from casadi_hybrid.problem.hessian.blocks import LARGE, Blocks

Stack = NDArray[np.float64]
MEMORY = 20
"""Pairs that are remembered."""
_SKIPPED = 1e-8
# A shorter step shows more of the errors of slopes than of curvature (relative to 1 + ‖x‖_∞).
_LEAST, _LEAST_DIFFERENCED = 1e-11, 1e-6


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known of the problem's functions at one point."""

    x: Vector
    gradient: Vector
    J: Operator


class QuasiNewton:
    """The Hessian of σf + λᵀg as far as the points of one solve have shown it.

    Args:
        blocks: those of the Hessian.
        pattern: where its matrices have entries; None for dense ones.
        differenced: whether slopes are finite differences.
        skipped: pairs with |rᵀs| of at most this part of ‖r‖‖s‖ are left out, so that no update is
            larger than the misfit ‖r‖/‖s‖ divided by it.
    """

    def __init__(
        self,
        blocks: Blocks,
        pattern: Pattern | None,
        *,
        differenced: bool = False,
        skipped: float = _SKIPPED,
    ) -> None:
        self._skipped = skipped
        self._shortest = _LEAST_DIFFERENCED if differenced else _LEAST
        self._n, self._pattern = blocks.n, pattern
        # In dense matrices a block of any size is as good as another.
        limit = LARGE if pattern is not None else blocks.n
        sizes = sorted({one.size for one in blocks.members})
        stacks = [np.array([b for b in blocks.members if b.size == size]) for size in sizes]
        self._small: list[Index] = [s for s in stacks if s.shape[1] <= limit]
        self._large: list[Index] = [one for s in stacks if s.shape[1] > limit for one in s]
        self._where: list[Index] = []
        if pattern is not None:
            keys = pattern.cols * self._n + pattern.rows
            for s in self._small:
                places = s[:, None, :] * self._n + s[:, :, None]
                self._where.append(np.searchsorted(keys, places.ravel()))
            self._ones = np.flatnonzero(pattern.rows == pattern.cols)
        self._places: list[_Place] = []

    def forget(self) -> bool:
        """Keep the last point alone; whether there were others."""
        known = len(self._places) > 1
        del self._places[:-1]
        return known

    def see(self, x: Vector, gradient: Vector, J: Operator) -> None:
        """Remember a point, if it is another one than the last."""
        if self._places:
            step = largest(x - self._places[-1].x)
            if step <= self._least(x):
                return
        self._places = [*self._places[-MEMORY:], _Place(x, gradient, J)]

    def hessian(self, objective: float, lam: Vector) -> Operator:
        """The matrix for these multipliers: an array, or on the pattern."""
        slopes = [objective * one.gradient + one.J.T @ lam for one in self._places]
        s = np.diff([one.x for one in self._places], axis=0)
        y = np.diff(slopes, axis=0)
        least = self._least(self._places[-1].x)
        if self._pattern is None:
            full = np.zeros((self._n, self._n))
            for members in self._small:
                full[members[:, :, None], members[:, None, :]] = _matrices(
                    s, y, members, least, self._skipped
                )
            return full
        data = np.zeros(self._pattern.rows.size)
        data[self._ones] = 1.0
        for members, where in zip(self._small, self._where, strict=True):
            data[where] = _matrices(s, y, members, least, self._skipped).ravel()
        H = Sparse(self._pattern, data)
        if not self._large:
            return H
        columns, weights = [np.zeros((self._n, 0))], [np.zeros(0)]
        for one in self._large:
            R, w = _updates(s, y, one[None, :], least, self._skipped)
            used = np.flatnonzero(w[0])
            # Of weight one: of as many sizes as the steps, they would look like a singular matrix.
            U = np.zeros((self._n, used.size))
            U[one] = R[0, used].T * np.sqrt(np.abs(w[0, used]))
            columns.append(U)
            weights.append(np.sign(w[0, used]))
        return LowRank(H, np.hstack(columns), np.concatenate(weights))

    def _least(self, x: Vector) -> float:
        """A shorter step teaches nothing."""
        return self._shortest * (1.0 + largest(x))


def _updates(
    s: Stack, y: Stack, members: Index, least: float, skipped: float
) -> tuple[Stack, Stack]:
    """r_k and 1/r_kᵀs_k for blocks of one size, zero where the pair is left out.

    Args:
        s, y: all pairs, q×n.
        members: variables of each block, blocks×size.
        least: a shorter step of a block teaches nothing.
        skipped: least |rᵀs| of a pair, a part of ‖r‖‖s‖.

    Returns:
        blocks×q×size and blocks×q numbers.
    """
    S, Y = s[:, members].swapaxes(0, 1), y[:, members].swapaxes(0, 1)
    R, w = np.zeros_like(S), np.zeros(S.shape[:2])
    for k in range(S.shape[1]):
        step = S[:, k]
        along = w[:, :k] * np.einsum("bki,bi->bk", R[:, :k], step)
        r = Y[:, k] - step - np.einsum("bki,bk->bi", R[:, :k], along)
        rs = np.einsum("bi,bi->b", r, step)
        sizes = np.linalg.norm(r, axis=1) * np.linalg.norm(step, axis=1)
        good = (np.abs(step).max(axis=1) > least) & (np.abs(rs) > skipped * sizes)
        R[good, k] = r[good]
        w[good, k] = 1.0 / rs[good]
    return R, w


def _matrices(s: Stack, y: Stack, members: Index, least: float, skipped: float) -> Stack:
    """B of each block, blocks×size×size."""
    R, w = _updates(s, y, members, least, skipped)
    B: Stack = np.einsum("bki,bkj->bij", R, w[:, :, None] * R)
    B[:, np.arange(members.shape[1]), np.arange(members.shape[1])] += 1.0
    return B
