"""Second order on large faces by sparse factorizations of the KKT matrix."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from casadi_hybrid.basics.factorization import SymmetricFactor
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.face import Face, OnFace
from casadi_hybrid.verify.second_order.curvature import ROUNDING, Curvature, SecondOrder


def by_inertia(view: OnFace, multipliers: Vector) -> SecondOrder:
    """Return the verdict that holds if these are the only multipliers.

    K = [H − zI, Âᵀ; Â, 0] with independent rows has as many eigenvalues ≤ 0 as there are rows, and
    one more for each curvature ≤ z on ker Â (Nocedal and Wright, theorem 16.3). A corner of −εI for
    dependent rows adds ÂᵀÂ/ε to H − zI: K still shows all curvatures ≤ z, and at worst more.
    """
    face, H = view.face, view.hessian(multipliers)
    largest = float(abs(H).max()) if H.nnz else 0.0
    zero = max(view.instance.tol, ROUNDING * largest)

    def factor(shift: float) -> SymmetricFactor:
        shifted = H - shift * sp.eye_array(face.free.size)
        return SymmetricFactor(face.augmented(shifted / max(largest, zero)))

    def up_to(z: float) -> int:
        """Count the curvatures ≤ z."""
        inertia = factor(z).inertia
        return inertia.negative + inertia.zero - face.constraints.size

    flat = up_to(zero)
    falling = up_to(-zero) if flat else 0
    inertia = face.free.size - face.rank - flat, falling, flat - falling
    verdict = SecondOrder(Curvature.STRICT_MINIMIZER, zero, multipliers, inertia)
    if not falling:
        return replace(verdict, verdict=Curvature.DEGENERATE) if flat else verdict
    shift = -10 * zero
    while up_to(shift):
        shift *= 10
    # The least curvature is the nearest to this shift, which lies below all.
    direction = _nearest(factor(shift), face)
    least = None if direction is None else float(direction @ (H @ direction))
    if least is None or least >= -zero:
        return replace(verdict, verdict=Curvature.UNDECIDED)
    return replace(
        verdict, verdict=Curvature.NEGATIVE_CURVATURE, direction=direction, smallest=least
    )


def _nearest(factor: SymmetricFactor, face: Face) -> Vector | None:
    """Return the unit vector of ker Â whose curvature is nearest to the shift, by Lanczos."""
    n, padding = face.free.size, np.zeros(face.constraints.size)
    if n == 1:
        return np.ones(1)

    def solve(v: Any) -> Vector:
        solution: Vector = factor.solve(np.concatenate((v.ravel(), padding)))
        return solution[:n]

    inverse = spla.LinearOperator((n, n), solve, dtype=float)
    with suppress(spla.ArpackNoConvergence):
        vector = spla.eigsh(inverse, k=1, which="LA", v0=solve(np.cos(np.arange(n))))[1][:, 0]
        if np.abs(face.scaled @ vector).max(initial=0.0) <= 1e-8:
            return np.asarray(vector)
    return None
