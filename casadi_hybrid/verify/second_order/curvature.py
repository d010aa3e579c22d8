"""Second-order conditions: what the reduced Hessian ZᵀHZ (Z = ker J) says about a KKT point.

For rank J = m they are the textbook ones (Nocedal and Wright, Numerical Optimization, section
12.5). For rank J < m multipliers are not unique and H = ∇²f + Σ λ_i ∇²h_i may depend on the choice.
Positive curvature with any λ that satisfies ∇f + Jᵀλ = 0 still proves a strict minimizer, because
L(·, λ) = f on the feasible set. Negative curvature proves nothing by itself, so it counts only if f
is seen to fall along a feasible path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.verify.first_order.face import OnFace

ROUNDING = 1e-12
"""Curvature below this fraction of the Hessian's terms is rounding."""
SEARCH_STEPS = 50
PATHS = 20
"""Flat directions that are followed at most."""
STEPS = (0.1, 0.03, 0.01)
"""Lengths of a walk along a path, in units of max(1, ‖x‖_∞)."""
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
    """The reduced Hessian at x.

    Attributes:
        verdict: what it means for a KKT point; it means nothing elsewhere.
        eigenvalues: of ZᵀHZ, ascending; empty if ker J = {0} or H is undefined.
        zero: eigenvalues in [−zero, zero] count as zero.
        direction: unit vector of R^n in ker J with the smallest curvature, None without.
        multipliers: the λ at which H was evaluated.
        chosen: where that λ comes from: ``"fitted"``, ``"given"`` or ``"searched"``.
        counted: the inertia where it comes from a factorization; then eigenvalues holds the
            least one at most.
        near: names of limits that x is off, and that count as active in this.
    """

    verdict: Curvature
    eigenvalues: Vector
    zero: float
    direction: Vector | None
    multipliers: Vector
    chosen: str
    counted: tuple[int, int, int] | None = None
    near: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for array in (self.eigenvalues, self.direction, self.multipliers):
            if array is not None:
                array.setflags(write=False)

    @property
    def inertia(self) -> tuple[int, int, int]:
        """Numbers of positive, negative and zero eigenvalues of ZᵀHZ."""
        if self.counted is not None:
            return self.counted
        e = self.eigenvalues
        positive = int(np.count_nonzero(e > self.zero))
        negative = int(np.count_nonzero(e < -self.zero))
        return positive, negative, e.size - positive - negative

    @property
    def smallest(self) -> float | None:
        """Smallest eigenvalue of ZᵀHZ, None where there is none."""
        return float(self.eigenvalues[0]) if self.eigenvalues.size else None


class ReducedHessian:
    """ZᵀH(λ)Z on a face as a function of λ, with the size of the terms of H."""

    def __init__(self, view: OnFace) -> None:
        self._view, self.Z = view, view.face.fit.kernel
        self._objective = self._hessian(np.zeros(view.face.constraints.size))

    def _hessian(self, multipliers: Vector) -> Matrix:
        hessian = self._view.hessian(self._view.x, multipliers).toarray()
        return np.asarray(0.5 * (hessian + hessian.T))

    def reduced(self, multipliers: Vector) -> tuple[Matrix, float]:
        """Return ZᵀH(λ)Z and what counts as zero beside it: ``tol``, or rounding."""
        hessian = self._hessian(multipliers)
        terms = max(_norm(self._objective), _norm(hessian - self._objective))
        return self.Z.T @ hessian @ self.Z, max(self._view.instance.tol, ROUNDING * terms)

    def constraint_part(self, multipliers: Vector) -> Matrix:
        """Return Zᵀ(Σ λ_i ∇²h_i)Z."""
        return np.asarray(self.Z.T @ (self._hessian(multipliers) - self._objective) @ self.Z)

    def judge(self, multipliers: Vector, chosen: str = "fitted") -> SecondOrder:
        """Return the verdict that holds if these are the only multipliers."""
        reduced, zero = self.reduced(multipliers)
        values, vectors = np.linalg.eigh(reduced)
        verdict = Curvature.DEGENERATE
        if values[0] > zero:
            verdict = Curvature.STRICT_MINIMIZER
        elif values[0] < -zero:
            verdict = Curvature.NEGATIVE_CURVATURE
        direction = self.Z @ vectors[:, 0]
        return SecondOrder(verdict, values, zero, direction, multipliers, chosen)


def second_order(
    view: OnFace,
    at: Evaluation,
    fitted: Vector,
    given: Vector | None,
    signs: Vector,
    residual: float,
) -> SecondOrder:
    """Judge the curvature at a KKT point on a face whose kernel is not {0}.

    Args:
        fitted, given: multipliers, and given ones that satisfy stationarity, or None.
        signs: those of (lam_x; lam_g), which other multipliers must have too.
        residual: of stationarity, which bounds how much f may fall by first order.

    Raises:
        EvaluationError: where the Hessian is not defined.
    """
    model, unique = ReducedHessian(view), view.face.fit.unique
    trials = [model.judge(fitted)]
    if trials[-1].verdict is not Curvature.STRICT_MINIMIZER and not unique:
        if given is not None:
            trials.append(model.judge(given, "given"))
        trials.append(_search(view, model, fitted, signs))
    order = (Curvature.STRICT_MINIMIZER, Curvature.DEGENERATE, Curvature.NEGATIVE_CURVATURE)
    best = min(trials, key=lambda trial: order.index(trial.verdict))
    flat = best.verdict is Curvature.DEGENERATE
    if best.verdict is Curvature.STRICT_MINIMIZER or (unique and not flat):
        return best
    # The curvature alone does not decide.
    vectors = np.linalg.eigh(model.reduced(best.multipliers)[0])[1]
    for i in np.flatnonzero(best.eigenvalues <= best.zero)[:PATHS]:
        falling = falls_along(view, at, model.Z @ vectors[:, i], best.multipliers, residual)
        if falling is not None:
            verdict = Curvature.DESCENT if flat else Curvature.NEGATIVE_CURVATURE
            return replace(best, verdict=verdict, direction=falling)
    return best if flat else replace(best, verdict=Curvature.UNDECIDED)


def _search(view: OnFace, model: ReducedHessian, fitted: Vector, signs: Vector) -> SecondOrder:
    """Look for a λ with ∇f + Jᵀλ unchanged and ZᵀH(λ)Z positive definite.

    λ = λ_fit + N y with N = ker Jᵀ makes the smallest eigenvalue a concave function of y: Polyak
    steps along its supergradient towards a positive target.
    """
    free = view.face.fit.free
    base, zero = model.reduced(fitted)
    parts = [model.constraint_part(column) for column in free.T]
    y = np.zeros(len(parts))
    best, best_value = y, -np.inf
    target = max(10 * zero, 0.1 * _norm(base))
    for _ in range(SEARCH_STEPS):
        values, vectors = np.linalg.eigh(base + sum(a * R for a, R in zip(y, parts, strict=True)))
        allowed = (signs * view.complete(fitted + free @ y) >= 0.0).all()
        if allowed and values[0] > best_value:
            best, best_value = y, float(values[0])
        gradient = np.array([vectors[:, 0] @ R @ vectors[:, 0] for R in parts])
        size = float(gradient @ gradient)
        if best_value >= target or size <= zero**2:
            break
        y = y + (target - values[0]) / size * gradient
    return model.judge(fitted + free @ best, "searched")


def without_eigenvalues(verdict: Curvature, multipliers: Vector, zero: float) -> SecondOrder:
    """A verdict that needs none."""
    return SecondOrder(verdict, np.zeros(0), zero, None, multipliers, "fitted")


def _norm(A: Matrix) -> float:
    return float(np.abs(A).sum(axis=1).max())


def falls_along(
    view: OnFace, at: Evaluation, direction: Vector, multipliers: Vector, residual: float
) -> Vector | None:
    """Return ±direction if f falls along it at every length of :data:`STEPS`, else None.

    Each trial point x ± t d is pulled back to h = 0 by Gauss–Newton steps and must stay between
    t/2 and 2t away. What counts as falling is more than rounding, than λᵀh and than what the
    first-order residual ‖∇f + Jᵀλ‖_∞ alone explains. d is a unit vector of ker J.
    """
    unit = max(1.0, float(np.abs(at.x).max()))
    for sign in (1.0, -1.0):
        d = sign * direction
        if all(_falls(view, at, t * unit * d, multipliers, residual) for t in STEPS):
            return np.asarray(d)
    return None


def _falls(
    view: OnFace, at: Evaluation, step: Vector, multipliers: Vector, residual: float
) -> bool:
    there = _pull_back(view, at.x + step, at.h)
    if there is None:
        return False
    moved = there.x - at.x
    length = float(np.linalg.norm(step))
    if not 0.5 * length <= np.linalg.norm(moved) <= 2 * length:
        return False
    margin = PATH_ROUNDING * max(1.0, abs(at.f), abs(there.f))
    margin += float(np.abs(multipliers) @ (np.abs(at.h) + np.abs(there.h)))
    margin += 2 * residual * float(np.abs(moved).sum())
    return there.f < at.f - margin


def _pull_back(view: OnFace, x: Vector, reference: Vector) -> Evaluation | None:
    """Return to h = 0, or to the violation that the judged point itself has; None: no way there."""
    for _ in range(CORRECTIONS):
        try:
            there = view.first(x)
        except EvaluationError:
            return None
        rounding = PATH_ROUNDING * np.maximum(1.0, np.abs(there.B) @ np.abs(x))
        if np.all(np.abs(there.h) <= np.maximum(rounding, np.abs(reference))):
            return there
        x = x - np.linalg.lstsq(there.B, there.h, rcond=None)[0]
    return None
