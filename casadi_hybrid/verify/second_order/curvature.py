"""Curvature at a KKT point: the reduced Hessian ZᵀHZ (Z = ker J), and feasible paths.

For rank J < m multipliers are not unique and H = ∇²f + Σ λ_i ∇²h_i depends on the choice. Positive
curvature with any λ that satisfies ∇f + Jᵀλ = 0 still proves a strict minimizer, because
L(·, λ) = f on the feasible set. Negative curvature then counts only if f falls along a feasible
path.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.linear_algebra.factorization import SymmetricFactor
from casadi_hybrid.verify.first_order.face import Face

ROUNDING = 1e-12  # curvature that is rounding, relative to the Hessian's terms
SEARCH_STEPS = 50
STEPS = (0.1, 0.03, 0.01)  # lengths of steps along a path, in units of max(1, ‖x‖_∞)
CORRECTIONS = 20
PATH_ROUNDING = 1e-13


class Curvature(Enum):
    """The second-order verdict on a KKT point."""

    STRICT_MINIMIZER = "a strict local minimizer: curvature is positive on ker J"
    CRITICAL_CONE = "a strict local minimizer: curvature is positive on the critical cone"
    VERTEX = "a strict local minimizer: every direction leaves a binding constraint to first order"
    ISOLATED_POINT = "an isolated feasible point (ker J = {0}), so the second order holds trivially"
    DEGENERATE = "zero curvature on ker J: minimality is neither proved nor refuted"
    NEGATIVE_CURVATURE = "a saddle point or a maximizer: curvature is negative on ker J"
    DESCENT = "no minimizer: curvature is zero and f falls along a feasible path"
    UNDECIDED = "not decided: neither multipliers that prove a minimum nor a way down were found"
    UNDEFINED = "not known: the Hessian is not defined at this point"
    UNAVAILABLE = "not known to be a minimizer: there are no exact second derivatives"


NO_MINIMIZER = (Curvature.NEGATIVE_CURVATURE, Curvature.DESCENT)


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """The second-order condition at x.

    Attributes:
        verdict: the verdict, valid at a KKT point only.
        zero: eigenvalues of ZᵀHZ in [−zero, zero] count as zero.
        multipliers: the λ at which H was evaluated.
        inertia: numbers of positive, negative and zero eigenvalues of ZᵀHZ.
        smallest: smallest eigenvalue, None if it was not computed.
        direction: unit vector of R^n in ker J with the smallest curvature, None without.
        chosen: source of λ: ``"fitted"``, ``"given"`` or ``"searched"``.
        near: names of near limits that count as active here.
    """

    verdict: Curvature
    zero: float
    multipliers: Vector
    inertia: tuple[int, int, int] = (0, 0, 0)
    smallest: float | None = None
    direction: Vector | None = None
    chosen: str = "fitted"
    near: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for array in (self.direction, self.multipliers):
            if array is not None:
                array.setflags(write=False)


class ReducedHessian:
    """ZᵀH(λ)Z on a small face as a function of λ, with the size of the terms of H."""

    def __init__(self, face: Face) -> None:
        self._face, self.Z = face, face.fit.kernel
        self._objective = self._hessian(np.zeros(face.constraints.size))

    def _hessian(self, multipliers: Vector) -> Matrix:
        return np.asarray(self._face.hessian(multipliers).toarray())

    def reduced(self, multipliers: Vector) -> tuple[Matrix, float]:
        """Return ZᵀH(λ)Z and the curvature that counts as zero: ``tol``, or rounding."""
        hessian = self._hessian(multipliers)
        terms = max(_norm(self._objective), _norm(hessian - self._objective))
        return self.Z.T @ hessian @ self.Z, max(self._face.instance.tol, ROUNDING * terms)

    def judge(self, multipliers: Vector, chosen: str = "fitted") -> SecondOrder:
        """Return the verdict that holds if these are the only multipliers."""
        reduced, zero = self.reduced(multipliers)
        values, vectors = np.linalg.eigh(reduced)
        positive, negative = (int(np.count_nonzero(sign * values > zero)) for sign in (1, -1))
        inertia = positive, negative, values.size - positive - negative
        verdict = Curvature.STRICT_MINIMIZER
        if positive < values.size:
            verdict = Curvature.NEGATIVE_CURVATURE if negative else Curvature.DEGENERATE
        direction = self.Z @ vectors[:, 0]
        return SecondOrder(verdict, zero, multipliers, inertia, float(values[0]), direction, chosen)

    def search(self, fitted: Vector, signs: Vector) -> SecondOrder:
        """Look for a λ with ∇f + Jᵀλ unchanged and ZᵀH(λ)Z positive definite."""
        face, Z, free = self._face, self.Z, self._face.fit.free
        base, zero = self.reduced(fitted)
        # λ = λ_fit + N y with N = ker Jᵀ leaves ∇f + Jᵀλ as it is. H is affine in λ, so the
        # smallest eigenvalue is a concave function of y.
        parts = [Z.T @ (self._hessian(column) - self._objective) @ Z for column in free.T]
        y = np.zeros(len(parts))
        best, best_value = y, -np.inf
        target = max(10 * zero, 0.1 * _norm(base))
        for _ in range(SEARCH_STEPS):
            hessian = base + sum(a * R for a, R in zip(y, parts, strict=True))
            values, vectors = np.linalg.eigh(hessian)
            allowed = (signs * face.complete(fitted + free @ y) >= 0.0).all()
            if allowed and values[0] > best_value:
                best, best_value = y, float(values[0])
            # A supergradient: the derivative of vᵀHv for the eigenvector v held.
            gradient = np.array([vectors[:, 0] @ R @ vectors[:, 0] for R in parts])
            size = float(gradient @ gradient)
            if best_value >= target or size <= zero**2:
                break
            # Polyak's step towards the positive target.
            y = y + (target - values[0]) / size * gradient
        return self.judge(fitted + free @ best, "searched")


def _norm(A: Matrix) -> float:
    return float(np.abs(A).sum(axis=1).max())


def by_inertia(face: Face, multipliers: Vector) -> SecondOrder:
    """Return the verdict that holds if these are the only multipliers."""
    H = face.hessian(multipliers)
    largest = float(abs(H).max()) if H.nnz else 0.0
    zero = max(face.instance.tol, ROUNDING * largest)

    # With independent rows K = [H − zI, Âᵀ; Â, 0] has a negative eigenvalue for each row. One
    # eigenvalue ≤ 0 more belongs to each curvature ≤ z on ker Â (Nocedal and Wright, theorem 16.3).
    # A corner of −εI for dependent rows adds ÂᵀÂ/ε to H − zI: K still shows all curvatures ≤ z, and
    # at worst more.
    def factor(shift: float) -> SymmetricFactor:
        shifted = H - shift * sp.eye_array(face.free.size)
        return SymmetricFactor(face.augmented(shifted / max(largest, zero)))

    def up_to(z: float) -> int:
        """Count the curvatures ≤ z."""
        inertia = factor(z).inertia
        return inertia.negative + inertia.zero - face.constraints.size

    # Curvatures in (−∞, zero], and in (−∞, −zero].
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
    direction = _nearest(factor(shift), face.free.size)
    least = float(direction @ (H @ direction))
    inside = np.abs(face.scaled @ direction).max(initial=0.0) <= 1e-8
    if not inside or least >= -zero:
        return replace(verdict, verdict=Curvature.UNDECIDED)
    negative = Curvature.NEGATIVE_CURVATURE
    return replace(verdict, verdict=negative, direction=direction, smallest=least)


def _nearest(factor: SymmetricFactor, n: int) -> Vector:
    """Return the unit vector of ker Â whose curvature is nearest to the shift, by Lanczos."""

    def solve(v: Any) -> Vector:
        right = np.zeros(sum(factor.inertia))
        right[:n] = v.ravel()
        return np.asarray(factor.solve(right)[:n])

    # A fixed start, since ARPACK's own is random.
    start = solve(np.cos(np.arange(n)))
    if n > 1:
        # The largest eigenvalue of the inverse belongs to the curvature nearest above the shift.
        inverse = spla.LinearOperator((n, n), solve, dtype=float)
        with suppress(spla.ArpackNoConvergence):
            start = spla.eigsh(inverse, k=1, which="LA", v0=start)[1][:, 0]
    return np.asarray(start / np.linalg.norm(start))


def falls_along(
    face: Face, start: Evaluation, direction: Vector, multipliers: Vector, residual: float
) -> Vector | None:
    """Return ±direction if f falls along it at every length of :data:`STEPS`, else None."""
    unit = max(1.0, float(np.abs(start.x).max()))
    for d in (direction, -direction):
        if all(_falls(face, start, t * unit * d, multipliers, residual) for t in STEPS):
            return np.asarray(d)
    return None


def _falls(
    face: Face, start: Evaluation, step: Vector, multipliers: Vector, residual: float
) -> bool:
    end = _pull_back(face, start.x + step, start.h)
    if end is None:
        return False
    # Violations of h may lower f by λᵀh, and the slope left at x by residual·|step|.
    moved, length = end.x - start.x, float(np.linalg.norm(step))
    margin = PATH_ROUNDING * max(1.0, abs(start.f), abs(end.f))
    margin += float(np.abs(multipliers) @ (np.abs(start.h) + np.abs(end.h)))
    margin += 2 * residual * float(np.abs(moved).sum())
    # A point that was pulled back to the start, or far away, shows nothing.
    stayed = 0.5 * length <= np.linalg.norm(moved) <= 2 * length
    return bool(stayed and end.f < start.f - margin)


def _pull_back(face: Face, x: Vector, reference: Vector) -> Evaluation | None:
    """Return to h = 0, or to the violation of the judged point itself; None if neither is met."""
    for _ in range(CORRECTIONS):
        try:
            trial = face.first(x)
        except EvaluationError:
            return None
        rounding = PATH_ROUNDING * np.maximum(1.0, np.abs(trial.B) @ np.abs(x))
        if np.all(np.abs(trial.h) <= np.maximum(rounding, np.abs(reference))):
            return trial
        # Gauss–Newton step of least norm.
        x = x - np.linalg.lstsq(trial.B, trial.h, rcond=None)[0]
    return None
