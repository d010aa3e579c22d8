"""The second order on large faces: inertia by sparse factorizations, directions by Lanczos."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from casadi_hybrid.inputs import Vector
from casadi_hybrid.verify.curvature import ROUNDING, Curvature, SecondOrder
from casadi_hybrid.verify.nlp.face import OnFace
from casadi_hybrid.verify.nlp.inertia import count_negative

PENALTIES = (1e-6, 1e-8, 1e-10)
PROJECTION = 1e-12
LANCZOS = 500


def by_factorization(view: OnFace, multipliers: Vector, tol: float) -> SecondOrder | None:
    """The verdict by sparse factorizations, None where they do not decide.

    With as many negative pivots as constraints in K = [H − zI, Âᵀ; Â, −εI], H − zI + ÂᵀÂ/ε is
    positive definite, so every curvature on ker Â exceeds z.
    """
    face = view.face
    dimension = face.free.size - face.rank
    H = view.hessian(view.rows.x[face.free], multipliers)
    largest = float(abs(H).max()) if H.nnz else 0.0
    zero = max(tol, ROUNDING * largest)
    size = max(largest, zero)

    def below(z: float) -> int | None:
        """Curvatures below z: as few as some ε shows."""
        shifted = 0.5 * (H + H.T) / size - z / size * sp.eye_array(face.free.size)
        counts = []
        for epsilon in PENALTIES:
            lower = -epsilon * sp.eye_array(face.sizes.size)
            K = sp.block_array([[shifted, face.scaled.T], [face.scaled, lower]], format="csc")
            negative = count_negative(K)
            if negative is not None:
                counts.append(negative - face.sizes.size)
            if counts and counts[-1] == 0:
                break
        return min(counts, default=None)

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
    K = sp.block_array([[sp.eye_array(n), A.T], [A, -PROJECTION * sp.eye_array(k)]], format="csc")
    factor = spla.splu(K)

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


def without_eigenvalues(verdict: Curvature, multipliers: Vector, tol: float) -> SecondOrder:
    """A verdict that needs none."""
    return SecondOrder(verdict, np.zeros(0), tol, None, multipliers, "fitted")
