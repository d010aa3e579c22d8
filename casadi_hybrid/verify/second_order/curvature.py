"""Second-order conditions: what the reduced Hessian ZᵀHZ (Z = ker J) says about a KKT point.

For rank J = m they are the textbook ones (Nocedal and Wright, Numerical Optimization, section
12.5). For rank J < m multipliers are not unique and H = ∇²f + Σ λ_i ∇²h_i may depend on the choice.
Positive curvature with any λ that satisfies ∇f + Jᵀλ = 0 still proves a strict minimizer, because
L(·, λ) = f on the feasible set. Negative curvature proves nothing by itself, so it counts only if f
is seen to fall along a feasible path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.verify.first_order.multipliers import Fit
from casadi_hybrid.verify.second_order.path import Derivatives, falls_along

ROUNDING = 1e-12
"""Curvature below this fraction of the Hessian's terms is rounding."""
SEARCH_STEPS = 50
PATHS = 20
"""Flat directions that are followed at most."""


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
    """

    verdict: Curvature
    eigenvalues: Vector
    zero: float
    direction: Vector | None
    multipliers: Vector
    chosen: str
    counted: tuple[int, int, int] | None = None

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


def second_order(
    oracle: Derivatives,
    at: Evaluation,
    fit: Fit,
    given: Vector | None,
    residual: float,
    tol: float,
    *,
    admissible: Callable[[Vector], bool] | None = None,
) -> SecondOrder:
    """Judge the curvature at a KKT point.

    Args:
        oracle: the problem's functions.
        at: the functions at x.
        fit: fitted multipliers.
        given: given multipliers that satisfy stationarity, or None.
        residual: the stationarity residual, which bounds how much f may fall by first order.
        tol: curvature at most this large counts as zero, for a step of one unit then changes the
            gradient by no more than the tolerance; so does rounding, 1e-12 of the terms of H.
        admissible: which multipliers have the right signs; all, where there are only equations.
    """
    Z = fit.kernel
    nothing = np.zeros(0)
    if Z.shape[1] == 0:
        return SecondOrder(Curvature.ISOLATED_POINT, nothing, tol, None, fit.multipliers, "fitted")
    try:
        model = ReducedHessian(oracle, at.x, fit, tol)
        trials = [model.judge(fit.multipliers, "fitted")]
        if trials[-1].verdict is not Curvature.STRICT_MINIMIZER and not fit.unique:
            if given is not None:
                trials.append(model.judge(given, "given"))
            trials.append(_search(model, fit, admissible))
    except EvaluationError:
        return SecondOrder(Curvature.UNDEFINED, nothing, tol, None, fit.multipliers, "fitted")
    order = (Curvature.STRICT_MINIMIZER, Curvature.DEGENERATE, Curvature.NEGATIVE_CURVATURE)
    best = min(trials, key=lambda trial: order.index(trial.verdict))
    if best.verdict is Curvature.STRICT_MINIMIZER:
        return best
    return _confirm(oracle, at, fit, model, best, residual)


class ReducedHessian:
    """ZᵀH(λ)Z as a function of λ, with the size of the terms of H."""

    def __init__(self, oracle: Derivatives, x: Vector, fit: Fit, tol: float) -> None:
        self._oracle, self._x, self._tol = oracle, x, tol
        self.Z = fit.kernel
        self._objective = self._hessian(np.zeros_like(fit.multipliers))

    def _hessian(self, multipliers: Vector) -> Matrix:
        hessian = self._oracle.second(self._x, multipliers).hessian
        assert hessian is not None
        return 0.5 * (hessian + hessian.T)

    def reduced(self, multipliers: Vector) -> tuple[Matrix, float]:
        """Return ZᵀH(λ)Z and what counts as zero beside it."""
        hessian = self._hessian(multipliers)
        terms = max(_norm(self._objective), _norm(hessian - self._objective))
        return self.Z.T @ hessian @ self.Z, max(self._tol, ROUNDING * terms)

    def constraint_part(self, multipliers: Vector) -> Matrix:
        """Return Zᵀ(Σ λ_i ∇²h_i)Z."""
        return np.asarray(self.Z.T @ (self._hessian(multipliers) - self._objective) @ self.Z)

    def judge(self, multipliers: Vector, chosen: str) -> SecondOrder:
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


def _norm(A: Matrix) -> float:
    return float(np.abs(A).sum(axis=1).max())


def _search(
    model: ReducedHessian, fit: Fit, admissible: Callable[[Vector], bool] | None
) -> SecondOrder:
    """Look for a λ with ∇f + Jᵀλ unchanged and ZᵀH(λ)Z positive definite.

    λ = λ_fit + N y with N = ker Jᵀ makes the smallest eigenvalue a concave function of y: Polyak
    steps along its supergradient towards a positive target.
    """
    base, zero = model.reduced(fit.multipliers)
    parts = [model.constraint_part(column) for column in fit.free.T]
    y = np.zeros(len(parts))
    best, best_value = y, -np.inf
    target = max(10 * zero, 0.1 * _norm(base))
    for _ in range(SEARCH_STEPS):
        values, vectors = np.linalg.eigh(base + sum(a * R for a, R in zip(y, parts, strict=True)))
        allowed = admissible is None or admissible(fit.multipliers + fit.free @ y)
        if allowed and values[0] > best_value:
            best, best_value = y, float(values[0])
        gradient = np.array([vectors[:, 0] @ R @ vectors[:, 0] for R in parts])
        size = float(gradient @ gradient)
        if best_value >= target or size <= zero**2:
            break
        y = y + (target - values[0]) / size * gradient
    return model.judge(fit.multipliers + fit.free @ best, "searched")


def _confirm(
    oracle: Derivatives,
    at: Evaluation,
    fit: Fit,
    model: ReducedHessian,
    found: SecondOrder,
    residual: float,
) -> SecondOrder:
    """Follow feasible paths where the curvature alone does not decide."""
    if found.verdict is Curvature.NEGATIVE_CURVATURE and fit.unique:
        return found
    vectors = np.linalg.eigh(model.reduced(found.multipliers)[0])[1]
    suspect = np.flatnonzero(found.eigenvalues <= found.zero)
    for i in suspect[:PATHS]:
        direction = model.Z @ vectors[:, i]
        falling = falls_along(oracle, at, direction, found.multipliers, residual)
        if falling is not None:
            flat = found.verdict is Curvature.DEGENERATE
            verdict = Curvature.DESCENT if flat else Curvature.NEGATIVE_CURVATURE
            return replace(found, verdict=verdict, direction=falling)
    if found.verdict is Curvature.DEGENERATE:
        return found
    return replace(found, verdict=Curvature.UNDECIDED)
