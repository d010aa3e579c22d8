"""The least curvature over the critical directions, where some rows are weakly active."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.linalg import null_space

from casadi_hybrid.basics.inputs import Matrix, Vector

INSIDE = 1e-9


def least_on_cone(R: Matrix, W: Matrix) -> tuple[float, Vector | None, bool]:
    """The least yᵀRy over unit y with W y ≤ 0, by its faces.

    Returns:
        The least value found, its y (None where none was found: the cone is {0}), and whether it
        is the least for sure: repeated eigenvalues leave that open.
    """
    least, best = np.inf, None
    unresolved = [np.inf]
    for count in range(len(W) + 1):
        for chosen in combinations(range(len(W)), count):
            Y = null_space(W[list(chosen)]) if chosen else np.eye(R.shape[0])
            if Y.shape[1] == 0:
                continue
            values, vectors = np.linalg.eigh(Y.T @ R @ Y)
            inside = [in_cone(W, y) for y in (Y @ vectors).T]
            gap = INSIDE * max(1.0, float(np.abs(values).max()))
            for value, y in zip(values, inside, strict=True):
                repeated = np.count_nonzero(np.abs(values - value) <= gap) > 1
                if y is None and repeated:
                    unresolved.append(float(value))
                elif y is not None and value < least:
                    least, best = float(value), y
    return least, best, min(unresolved) >= least


def in_cone(W: Matrix, y: Vector) -> Vector | None:
    """y or −y where W y ≤ 0, else None."""
    for candidate in (y, -y):
        if (W @ candidate <= INSIDE).all():
            return np.asarray(candidate)
    return None
