"""Inertia of sparse symmetric matrices, from the pivots of CasADi's LDLᵀ."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np


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
