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
to the inertia as it does for the exact Hessian. The default method has the same in C
(``problem/quasi_newton.c``). What the Lagrangian couples by a sum alone
(:mod:`casadi_hybrid.problem.hessian.blocks`) has curvature of its own, so each block learns from
its part of s and y: in optimal control by multiple shooting a step teaches as many stages as there
are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.problem.hessian.blocks import Blocks
from casadi_hybrid.utils.arrays import largest
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.linear_algebra.sparse import Index

Stack = NDArray[np.float64]
MEMORY = 20
"""Pairs that are remembered."""
_SKIPPED = 1e-8
# A shorter step shows more of the errors of slopes than of curvature (relative to 1 + ‖x‖_∞).
_LEAST, _LEAST_DIFFERENCED = 1e-11, 1e-6


class QuasiNewton:
    """The Hessian of σf + λᵀg as far as the points of one solve have shown it.

    Args:
        blocks: those of the Hessian.
        differenced: whether slopes are finite differences.
        skipped: pairs with |rᵀs| of at most this part of ‖r‖‖s‖ are left out, so that no update is
            larger than the misfit ‖r‖/‖s‖ divided by it.
    """

    def __init__(
        self, blocks: Blocks, *, differenced: bool = False, skipped: float = _SKIPPED
    ) -> None:
        self._skipped = skipped
        self._shortest = _LEAST_DIFFERENCED if differenced else _LEAST
        self._n = blocks.n
        sizes = sorted({one.size for one in blocks.members})
        self._stacks: list[Index] = [
            np.array([b for b in blocks.members if b.size == size]) for size in sizes
        ]
        self._places: list[tuple[Vector, Vector, Matrix]] = []

    def see(self, x: Vector, gradient: Vector, J: Matrix) -> None:
        """Remember a point, if it is another one than the last."""
        if not self._places or largest(x - self._places[-1][0]) > self._least(x):
            self._places = [*self._places[-MEMORY:], (x, gradient, J)]

    def hessian(self, objective: float, lam: Vector) -> Stack:
        """The matrix for these multipliers."""
        slopes = [objective * gradient + J.T @ lam for _, gradient, J in self._places]
        s = np.diff([x for x, _, _ in self._places], axis=0)
        y = np.diff(slopes, axis=0)
        least = self._least(self._places[-1][0])
        full = np.zeros((self._n, self._n))
        for members in self._stacks:
            B = _matrices(s, y, members, least, self._skipped)
            full[members[:, :, None], members[:, None, :]] = B
        return full

    def _least(self, x: Vector) -> float:
        return self._shortest * (1.0 + largest(x))


def _matrices(s: Stack, y: Stack, members: Index, least: float, skipped: float) -> Stack:
    """B for blocks of one size, blocks×size×size, from pairs s and y, q×n.

    A step of a block shorter than ``least`` teaches nothing.
    """
    S, Y = s[:, members].swapaxes(0, 1), y[:, members].swapaxes(0, 1)
    R, w = np.zeros_like(S), np.zeros(S.shape[:2])  # r_k and 1/r_kᵀs_k, zero where left out
    for k in range(S.shape[1]):
        step = S[:, k]
        along = w[:, :k] * np.einsum("bki,bi->bk", R[:, :k], step)
        r = Y[:, k] - step - np.einsum("bki,bk->bi", R[:, :k], along)
        rs = np.einsum("bi,bi->b", r, step)
        sizes = np.linalg.norm(r, axis=1) * np.linalg.norm(step, axis=1)
        good = (np.abs(step).max(axis=1) > least) & (np.abs(rs) > skipped * sizes)
        R[good, k] = r[good]
        w[good, k] = 1.0 / rs[good]
    B: Stack = np.einsum("bki,bkj->bij", R, w[:, :, None] * R)
    B[:, np.arange(members.shape[1]), np.arange(members.shape[1])] += 1.0
    return B
