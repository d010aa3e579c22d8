"""First-order conditions at a point, from the problem's own functions and fitted multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.point.residuals import first_order_terms
from casadi_hybrid.problem.functions import Evaluation, Functions
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.verify.first_order.measure import Measure
from casadi_hybrid.verify.first_order.multipliers import Fit, fit_multipliers, settled_rank


@dataclass(frozen=True, slots=True)
class Given:
    """How the multipliers a caller or a solver gave fare. Sign: L = f + λᵀh.

    Attributes:
        stationarity: of (x, λ_given).
        flipped: of (x, −λ_given), which tells a sign error from a wrong answer.
        distance: ‖λ_given − λ_fit‖_∞, or None where multipliers are not unique.
    """

    stationarity: Measure
    flipped: Measure
    distance: float | None


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """First-order conditions at x.

    What rounding explains counts as zero (:func:`~casadi_hybrid.point.residuals.counted`).

    Attributes:
        feasibility: ‖h‖_∞; entry i is scaled by max(1, Σ_j |J_ij x_j|).
        stationarity: ‖∇f + Jᵀλ‖_∞ with fitted λ, scaled by max(1, ‖∇f‖_∞, ‖|J|ᵀ|λ|‖_∞).
        fit: the fitted multipliers with rank and kernel of J.
        given: the same for given multipliers, None without.
    """

    feasibility: Measure
    stationarity: Measure
    fit: Fit
    given: Given | None

    def holds(self, tol: float, *, scaled: bool) -> bool:
        """Whether x is a KKT point within ``tol``."""
        return self.feasibility.within(tol, scaled=scaled) and self.stationarity.within(
            tol, scaled=scaled
        )


def first_order(oracle: Oracle, at: Evaluation, given: Vector | None = None) -> FirstOrder:
    """Evaluate the first-order conditions at one point.

    Args:
        oracle: the problem's functions.
        at: f, ∇f, h and J at x.
        given: multipliers to judge beside the fitted ones.
    """
    names = oracle.functions
    # A huge iterate overflows to inf here, which no tolerance accepts.
    with np.errstate(all="ignore"):
        fit = fit_multipliers(at.gradient, at.B, max_rank=settled_rank(oracle, at))
        violation = np.abs(first_order_terms(at, fit.multipliers)[0])
        worst = int(np.argmax(violation))
        scale = np.maximum(1.0, np.abs(at.B) @ np.abs(at.x))
        feasibility = Measure(
            float(violation[worst]),
            float(np.max(violation / scale)),
            names.constraint_names[worst],
        )
        return FirstOrder(
            feasibility,
            stationarity(at, fit.multipliers, names),
            fit,
            None if given is None else _judge_given(at, given, fit, names),
        )


def stationarity(at: Evaluation, multipliers: Vector, names: Functions) -> Measure:
    """Return ‖∇f + Jᵀλ‖_∞ for the multipliers λ."""
    residual = np.abs(first_order_terms(at, multipliers)[1])
    worst = int(np.argmax(residual))
    terms = np.abs(at.B).T @ np.abs(multipliers)
    scale = max(1.0, float(np.abs(at.gradient).max()), float(terms.max()))
    value = float(residual[worst])
    return Measure(value, value / scale, names.variable_names[worst])


def _judge_given(at: Evaluation, given: Vector, fit: Fit, names: Functions) -> Given:
    distance = float(np.abs(given - fit.multipliers).max()) if fit.unique else None
    return Given(stationarity(at, given, names), stationarity(at, -given, names), distance)
