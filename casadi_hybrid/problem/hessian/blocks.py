"""Which variables a Lagrangian couples by more than a sum: the blocks of its Hessian."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from casadi_hybrid.utils.late import LateModule
from casadi_hybrid.utils.linear_algebra.sparse import Index

sp = LateModule("scipy.sparse")
csgraph = LateModule("scipy.sparse.csgraph")
LARGE = 200
"""A larger block has no dense matrix where matrices are sparse."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """The diagonal blocks of ∇²ₓₓL, known from which first derivatives depend on which variables.

    In optimal control by multiple shooting each stage has one: rows of one stage depend on the next
    only linearly. ``members`` are the variables of each; those that enter linearly are in none.
    """

    n: int
    members: tuple[Index, ...]

    @classmethod
    def of(cls, first: ca.Function) -> Blocks:
        """Read off (x, p) → f, ∇f, h, J_h."""
        n = first.size1_in(0)
        rows, cols = first.jac_sparsity(1, 0).get_triplet()
        pairs = [np.array([rows, cols], dtype=np.intp)]
        entries, cols = first.jac_sparsity(3, 0).get_triplet()
        J = first.sparsity_out(3)
        of_entry = np.asarray(entries, dtype=np.intp) // max(1, J.size1())
        pairs.append(np.array([of_entry, np.asarray(cols, dtype=np.intp)]))
        i, j = np.concatenate(pairs, axis=1)
        graph = sp.coo_array((np.ones(i.size), (i, j)), shape=(n, n))
        count, label = csgraph.connected_components(graph, directed=False)
        bent = np.zeros(n, dtype=bool)
        bent[i] = bent[j] = True
        order = np.argsort(label, kind="stable")
        cuts = np.searchsorted(label[order], np.arange(1, count))
        members = np.split(order, cuts)
        return cls(n, tuple(np.sort(one) for one in members if bent[one].any()))

    @property
    def sparsity(self) -> ca.Sparsity:
        """Their nonzeros, n×n; of large blocks the diagonal."""
        pattern = np.concatenate(
            [
                np.array(np.meshgrid(b, b)).reshape(2, -1) if b.size <= LARGE else np.array([b, b])
                for b in self.members
            ]
            or [np.zeros((2, 0), dtype=np.intp)],
            axis=1,
        )
        return ca.Sparsity.triplet(self.n, self.n, pattern[0].tolist(), pattern[1].tolist())
