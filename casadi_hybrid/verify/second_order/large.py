"""The second order on large faces: inertia by sparse factorizations, directions by Lanczos."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from casadi_hybrid.basics.factorization import SymmetricFactor, inertia
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.face import DEPENDENT, OnFace
from casadi_hybrid.verify.second_order.curvature import (
    ROUNDING,
    Curvature,
    SecondOrder,
    without_eigenvalues,
)

PROJECTION = 1e-12
"""Keeps dependent rows from making the projection singular; two rounds leave the square of it."""
LANCZOS = 500


def by_factorization(view: OnFace, multipliers: Vector) -> SecondOrder | None:
    """The verdict by sparse factorizations, None where they do not decide.

    K = [H − zI, Âᵀ; Â, 0] with independent rows has as many eigenvalues ≤ 0 as there are rows, and
    one more for each curvature ≤ z on ker Â. Dependent rows would leave zeros of their own. Then
    the zero block is −εI: each row still has its negative eigenvalue, and H − zI + ÂᵀÂ/ε has the
    others. That is never less than H − zI on ker Â: K shows all curvatures ≤ z, and at worst more.
    """
    face = view.face
    rows = face.sizes.size
    epsilon = 0.0 if face.rank == rows else DEPENDENT
    dimension = face.free.size - face.rank
    H = view.hessian(view.x, multipliers)
    largest = float(abs(H).max()) if H.nnz else 0.0
    zero = max(view.instance.tol, ROUNDING * largest)
    size = max(largest, zero)

    def below(z: float) -> int | None:
        """Curvatures ≤ z."""
        shifted = 0.5 * (H + H.T) / size - z / size * sp.eye_array(face.free.size)
        corner = -epsilon * sp.eye_array(rows)
        found = inertia(sp.block_array([[shifted, face.scaled.T], [face.scaled, corner]]))
        return None if found is None else found.negative + found.zero - rows

    flat = below(zero)
    if flat is None:
        return None
    falling = below(-zero) if flat else 0
    if falling is None:
        return None
    found = replace(
        without_eigenvalues(Curvature.STRICT_MINIMIZER, multipliers, zero),
        counted=(dimension - flat, falling, flat - falling),
    )
    if falling == 0:
        return replace(found, verdict=Curvature.DEGENERATE) if flat else found
    direction = _falling_direction(H, face.scaled, zero)
    if direction is None:
        return None
    least = np.array([direction @ (H @ direction)])
    return replace(
        found, verdict=Curvature.NEGATIVE_CURVATURE, direction=direction, eigenvalues=least
    )


def _falling_direction(H: Any, A: Any, zero: float) -> Vector | None:
    """A unit vector d of ker A with dᵀHd < −zero, by Lanczos on the projected Hessian."""
    k, n = A.shape
    if n < 2:
        return None
    factor = SymmetricFactor(
        sp.block_array([[sp.eye_array(n), A.T], [A, -PROJECTION * sp.eye_array(k)]])
    )

    def project(v: Vector) -> Vector:
        for _ in range(2):
            v = factor.solve(np.concatenate((v, np.zeros(k))))[:n]
        return v

    operator = spla.LinearOperator((n, n), lambda v: project(H @ project(v.ravel())), dtype=float)
    start = project(np.cos(np.arange(n)))
    try:
        vectors = spla.eigsh(operator, k=1, which="SA", v0=start, tol=1e-4, maxiter=LANCZOS)[1]
    except spla.ArpackNoConvergence:
        return None
    direction = project(vectors[:, 0])
    size = float(np.linalg.norm(direction))
    if size < 0.5:
        return None
    direction /= size
    inside = float(np.abs(A @ direction).max(initial=0.0)) <= 1e-8
    return direction if inside and direction @ (H @ direction) < -zero else None
