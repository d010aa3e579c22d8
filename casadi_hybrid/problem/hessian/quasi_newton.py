r"""Quasi-Newton Hessians: symmetric rank-one updates of every diagonal block.

The gradients of f and the Jacobians of the last points x_0, …, x_q are stored, not the gradients of
a Lagrangian. So the pairs s_k = x_{k+1} − x_k and

    y_k = σ(∇f_{k+1} − ∇f_k) + (J_{k+1} − J_k)ᵀλ

fit any multipliers λ and objective weight σ: the matrix follows the multipliers as the exact one
does, also in a restoration phase. At each point it is rebuilt from the oldest pair to the newest
(Conn, Gould and Toint, Math. Programming 50, 1991):

    B = I + Σ_k r_k r_kᵀ/r_kᵀs_k,    r_k = y_k − B_k s_k,

without the pairs of negligible |r_kᵀs_k|. For constant curvature the matrices are exact after n
steps, negative curvature included; the core corrects the inertia as for the exact Hessian. The
default method has the same updates in C (``problem/quasi_newton.c``).

Each block of :class:`Blocks` is updated from its part of s and y. In multiple shooting one step
updates the blocks of all stages.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.utils.arrays import largest
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.late import LateModule
from casadi_hybrid.utils.linear_algebra.sparse import Index

sp = LateModule("scipy.sparse")
csgraph = LateModule("scipy.sparse.csgraph")
Stack = NDArray[np.float64]
# Largest block with a dense sparsity pattern; a larger one has its diagonal alone.
LARGE = 200
# Number of stored pairs.
MEMORY = 20
# Least |rᵀs|/(‖r‖‖s‖) of a pair that is used: Nocedal and Wright (6.26) suggest this number.
_SKIPPED = 1e-8
# Shorter steps, relative to 1 + ‖x‖_∞, show errors of the gradients more than curvature.
_SHORTEST, _SHORTEST_DIFFERENCED = 1e-11, 1e-6


@dataclass(frozen=True, eq=False)
class Blocks:
    """Diagonal blocks of ∇²ₓₓL: variables that a row or the objective couples nonlinearly."""

    n: int
    members: tuple[Index, ...]  # variables of each block; linear ones are in no block

    @classmethod
    def of(cls, first: ca.Function) -> Blocks:
        """Find the blocks of (x, p) → f, ∇f, h, J_h."""
        n = first.size1_in(0)
        # Variables i and j are coupled if ∇f_i depends on x_j, or an entry in column i of J_h.
        gradient_rows, gradient_cols = first.jac_sparsity(1, 0).get_triplet()
        entries, jacobian_cols = first.jac_sparsity(3, 0).get_triplet()
        # CasADi counts the entries of J_h by columns: entry k lies in column k // m.
        height = max(1, first.size1_out(3))
        i = np.append(gradient_rows, np.asarray(entries, dtype=np.intp) // height).astype(np.intp)
        j = np.append(gradient_cols, jacobian_cols).astype(np.intp)
        graph = sp.coo_array((np.ones(i.size), (i, j)), shape=(n, n))
        count, label = csgraph.connected_components(graph, directed=False)
        nonlinear = np.zeros(n, dtype=bool)
        nonlinear[i] = nonlinear[j] = True
        order = np.argsort(label, kind="stable")
        components = np.split(order, np.searchsorted(label[order], np.arange(1, count)))
        return cls(n, tuple(np.sort(block) for block in components if nonlinear[block].any()))

    @property
    def sparsity(self) -> ca.Sparsity:
        """Nonzeros of the blocks, n×n; of large blocks the diagonal."""
        pairs = [np.zeros((2, 0), dtype=np.intp)]
        for block in self.members:
            dense = block.size <= LARGE
            grid = np.meshgrid(block, block) if dense else (block, block)
            pairs.append(np.array(grid).reshape(2, -1))
        rows, cols = np.concatenate(pairs, axis=1).tolist()
        return ca.Sparsity.triplet(self.n, self.n, rows, cols)


class QuasiNewton:
    """Quasi-Newton Hessian of σf + λᵀg from the points of one solve."""

    def __init__(
        self, blocks: Blocks, *, differenced: bool = False, skipped: float = _SKIPPED
    ) -> None:
        # No update exceeds the misfit ‖r‖/‖s‖ of its pair divided by this.
        self._skipped = skipped
        self._relative = _SHORTEST_DIFFERENCED if differenced else _SHORTEST
        self._n = blocks.n
        sizes = sorted({block.size for block in blocks.members})
        self._stacks: list[Index] = [
            np.array([block for block in blocks.members if block.size == size]) for size in sizes
        ]
        self._points: list[tuple[Vector, Vector, Matrix]] = []

    def see(self, x: Vector, gradient: Vector, J: Matrix) -> None:
        """Store a point, unless it equals the last one."""
        if not self._points or largest(x - self._points[-1][0]) > self._shortest(x):
            # One point more than pairs.
            self._points = [*self._points[-MEMORY:], (x, gradient, J)]

    def hessian(self, objective: float, lam: Vector) -> Stack:
        """The n×n matrix for the weight σ of the objective and the multipliers λ."""
        gradients = [objective * gradient + J.T @ lam for _, gradient, J in self._points]
        s = np.diff([x for x, _, _ in self._points], axis=0)
        y = np.diff(gradients, axis=0)
        shortest = self._shortest(self._points[-1][0])
        hessian = np.zeros((self._n, self._n))
        for members in self._stacks:  # blocks of one size are updated together
            B = _matrices(s, y, members, shortest, self._skipped)
            hessian[members[:, :, None], members[:, None, :]] = B
        return hessian

    def _shortest(self, x: Vector) -> float:
        return self._relative * (1.0 + largest(x))


def _matrices(s: Stack, y: Stack, members: Index, shortest: float, skipped: float) -> Stack:
    """B for blocks of one size, blocks×size×size, from pairs s and y, q×n."""
    S, Y = s[:, members].swapaxes(0, 1), y[:, members].swapaxes(0, 1)
    R, w = np.zeros_like(S), np.zeros(S.shape[:2])  # r_k and 1/r_kᵀs_k, zero if skipped
    for k in range(S.shape[1]):
        step = S[:, k]
        along = w[:, :k] * np.einsum("bki,bi->bk", R[:, :k], step)
        # r_k = y_k − B_k s_k with B_k = I + Σ_j w_j r_j r_jᵀ, which is never formed.
        r = Y[:, k] - step - np.einsum("bki,bk->bi", R[:, :k], along)
        rs = np.einsum("bi,bi->b", r, step)
        sizes = np.linalg.norm(r, axis=1) * np.linalg.norm(step, axis=1)
        # A block that hardly moved shows rounding, not curvature.
        good = (np.abs(step).max(axis=1) > shortest) & (np.abs(rs) > skipped * sizes)
        R[good, k] = r[good]
        w[good, k] = 1.0 / rs[good]
    B: Stack = np.einsum("bki,bkj->bij", R, w[:, :, None] * R)
    B[:, np.arange(members.shape[1]), np.arange(members.shape[1])] += 1.0
    return B
