"""First-order conditions of a nonlinear program at a point, with multipliers of the verifier's own.

The residuals, for rows lower ≤ c ≤ upper with Jacobian A (see :mod:`.rows`):

- feasibility: the largest violation of a row;
- stationarity: ‖∇f + Aᵀλ‖_∞;
- complementarity: the largest |λ_i|·(distance of row i to the bound that λ_i points to);
- dual sign: the largest |λ_i| that points away from the bound its row is at, or to no bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.inputs import Vector
from casadi_hybrid.verify.kkt import Measure
from casadi_hybrid.verify.nlp.fit import fit_signed
from casadi_hybrid.verify.nlp.rows import Rows, Sides, nearby_sides


@dataclass(frozen=True, slots=True)
class Residuals:
    """The residuals of one point with one set of multipliers."""

    feasibility: Measure
    stationarity: Measure
    complementarity: Measure
    dual_sign: Measure

    def hold(self, tol: float, *, scaled: bool) -> bool:
        """Whether all four are within ``tol``."""
        return self.feasibility.within(tol, scaled=scaled) and self.dual_hold(tol, scaled=scaled)

    def dual_hold(self, tol: float, *, scaled: bool) -> bool:
        """Whether the three that depend on multipliers are within ``tol``."""
        return all(
            measure.within(tol, scaled=scaled)
            for measure in (self.stationarity, self.complementarity, self.dual_sign)
        )


@dataclass(frozen=True, slots=True)
class NlpGiven:
    """How the multipliers a solver gave fare. Sign: L = f + lam_gᵀg + lam_xᵀx.

    Attributes:
        residuals: with the given multipliers.
        flipped: with their negatives, which tells a sign error from a wrong answer.
        multipliers: lam_x and lam_g as one vector; lam_x is what stationarity needs if none came.
    """

    residuals: Residuals
    flipped: Residuals
    multipliers: Vector


@dataclass(frozen=True, eq=False)
class NlpFirstOrder:
    """First-order conditions at x.

    Attributes:
        residuals: with the fitted multipliers.
        multipliers: the fitted λ = (lam_x; lam_g). They respect the signs, unless only
            multipliers of the wrong sign make x stationary.
        sides: the bounds near x that the fit could use.
        given: the same for given multipliers, None without.
    """

    residuals: Residuals
    multipliers: Vector
    sides: Sides
    given: NlpGiven | None

    @property
    def feasibility(self) -> Measure:
        """Largest violation of a row."""
        return self.residuals.feasibility

    @property
    def stationarity(self) -> Measure:
        """‖∇f + Aᵀλ‖_∞ with the fitted multipliers."""
        return self.residuals.stationarity

    def holds(self, tol: float, *, scaled: bool) -> bool:
        """Whether x is a KKT point within ``tol``."""
        return self.residuals.hold(tol, scaled=scaled)


def nlp_first_order(
    rows: Rows, tol: float, *, scaled: bool, given: Vector | None = None
) -> NlpFirstOrder:
    """Fit multipliers and evaluate the four residuals.

    Args:
        rows: the problem at x.
        tol: bounds within √tol·max(1, |bound|) of x may have a multiplier; the complementarity
            residual is part of the fit, so this only leaves the hopeless ones out.
        scaled: which of the residuals the tolerance is for.
        given: multipliers (lam_x; lam_g) to judge beside the fitted ones; NaN in lam_x stands
            for what stationarity needs.
    """
    sides = nearby_sides(rows, float(np.sqrt(tol)))
    with np.errstate(all="ignore"):
        multipliers = _fit(rows, sides, tol, scaled=scaled)
        judged = None if given is None else _judge_given(rows, sides, given)
        return NlpFirstOrder(residuals(rows, sides, multipliers), multipliers, sides, judged)


def _fit(rows: Rows, sides: Sides, tol: float, *, scaled: bool) -> Vector:
    gradients, signed = sides.columns(rows), sides.sign != 0
    size = rows.value.size
    fitted = sides.multipliers(fit_signed(rows.gradient, gradients, sides.distance, signed), size)
    if _stationarity(rows, fitted).within(tol, scaled=scaled) or not signed.any():
        return fitted
    # With the sides on their bounds alone: a wrong sign there is a different mistake.
    free = fit_signed(rows.gradient, gradients, sides.distance, np.zeros_like(signed))
    unsigned = sides.multipliers(free, size)
    return unsigned if _stationarity(rows, unsigned).within(tol, scaled=scaled) else fitted


def residuals(rows: Rows, sides: Sides, multipliers: Vector) -> Residuals:
    """Return the four residuals with the multipliers λ."""
    complementarity, dual_sign = _signs(rows, sides, multipliers)
    return Residuals(
        _feasibility(rows), _stationarity(rows, multipliers), complementarity, dual_sign
    )


def _feasibility(rows: Rows) -> Measure:
    violation = np.abs(rows.violation)
    scale = np.maximum(1.0, abs(rows.jacobian) @ np.abs(rows.x))
    return _measure(violation, violation / scale, rows.names)


def _stationarity(rows: Rows, multipliers: Vector) -> Measure:
    slope = np.abs(rows.gradient + rows.jacobian.T @ multipliers)
    terms = abs(rows.jacobian).T @ np.abs(multipliers)
    scale = max(1.0, float(np.abs(rows.gradient).max()), float(terms.max()))
    return _measure(slope, slope / scale, rows.names)


def _signs(rows: Rows, sides: Sides, multipliers: Vector) -> tuple[Measure, Measure]:
    """Complementarity and dual sign.

    A multiplier that points to a bound the row is near, or has in the distance while it is near
    none, is a question of complementarity. One that points away from the bound the row is at, or
    to no bound, has the wrong sign.
    """
    upper, lower = np.isfinite(rows.upper), np.isfinite(rows.lower)
    near = {
        sign: np.isin(np.arange(rows.value.size), sides.row[sides.sign == sign])
        for sign in (1.0, -1.0)
    }
    up = multipliers > 0
    bound = np.where(up, rows.upper, rows.lower)
    there, here = np.where(up, near[1.0], near[-1.0]), np.where(up, near[-1.0], near[1.0])
    finite = np.where(up, upper, lower)
    wrong = ~rows.equations & ~there & (here | ~finite)
    size = np.abs(multipliers)
    distance = np.abs(np.where(finite, bound, rows.value) - rows.value)
    product = np.where(rows.equations | wrong, 0.0, size * distance)
    scale = np.maximum(1.0, size * np.maximum(1.0, np.abs(np.where(finite, bound, 0.0))))
    sign = np.where(wrong, size, 0.0)
    largest = max(1.0, float(size.max()))
    return (
        _measure(product, product / scale, rows.names),
        _measure(sign, sign / largest, rows.names),
    )


def _measure(entries: Vector, scaled: Vector, names: tuple[str, ...]) -> Measure:
    # argmax finds a NaN first, and no tolerance accepts it.
    worst = int(np.argmax(entries))
    return Measure(float(entries[worst]), float(np.max(scaled)), names[worst])


def _judge_given(rows: Rows, sides: Sides, given: Vector) -> NlpGiven:
    n = rows.n
    if np.isnan(given[:n]).all():
        given = np.concatenate((-(rows.gradient + rows.jacobian[n:].T @ given[n:]), given[n:]))
        # What bounds cannot carry is left as a residual of stationarity.
        given[:n] = np.where(
            np.isfinite(np.where(given[:n] > 0, rows.upper[:n], rows.lower[:n])), given[:n], 0.0
        )
    return NlpGiven(residuals(rows, sides, given), residuals(rows, sides, -given), given)
