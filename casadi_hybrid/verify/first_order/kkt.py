"""First-order conditions at a point, with multipliers fitted by the verifier.

The residuals, for rows lower ≤ c ≤ upper with Jacobian A (see :mod:`.rows`):

- feasibility: the largest violation of a row;
- stationarity: ‖∇f + Aᵀλ‖_∞;
- complementarity: the largest |λ_i|·(distance of row i to the bound that λ_i points to);
- dual sign: the largest |λ_i| that points away from the bound its row is at, or to no bound.

Entries that rounding explains count as zero (:mod:`casadi_hybrid.problem.rounding`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from casadi_hybrid.problem.rounding import PULL, counted_distance, counted_slope
from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.factorization import SymmetricFactor
from casadi_hybrid.verify.first_order.active import find_active
from casadi_hybrid.verify.first_order.face import Faces
from casadi_hybrid.verify.first_order.fit import fit_largest, fit_signed
from casadi_hybrid.verify.first_order.rows import Measure, Rows, Sides, nearby_sides

SETTLED = 1e-11  # Newton step within rounding, relative to 1 + ‖x‖_∞


class PointResiduals(NamedTuple):
    """The residuals of one point with one set of multipliers."""

    feasibility: Measure
    stationarity: Measure
    complementarity: Measure
    dual_sign: Measure


@dataclass(frozen=True, slots=True)
class Given:
    """Residuals of the multipliers that came with a point. Sign: L = f + lam_gᵀg + lam_xᵀx.

    Attributes:
        residuals, flipped: with the given multipliers; with their negatives.
        multipliers: (lam_x; lam_g); a missing lam_x is chosen for stationarity.
        distance: ‖λ_given − λ_fit‖_∞, None if multipliers are not unique.
    """

    residuals: PointResiduals
    flipped: PointResiduals
    multipliers: Vector
    distance: float | None = None


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """First-order conditions at x.

    Attributes:
        residuals: residuals with the fitted multipliers.
        multipliers: the fitted λ = (lam_x; lam_g), of the wrong sign only if no others fit.
        sides: the bounds near x, candidates of the fit.
        given: residuals of given multipliers, None without.
    """

    residuals: PointResiduals
    multipliers: Vector
    sides: Sides
    given: Given | None


def first_order(faces: Faces, given: tuple[Vector | None, Vector] | None = None) -> FirstOrder:
    """Fit multipliers, judge ``given`` (lam_x, lam_g) beside them, and evaluate the residuals."""
    rows, within = faces.rows, faces.instance.within
    # An interior-point method stops short of its bounds: √tol finds those it pushes against.
    sides = nearby_sides(rows, float(np.sqrt(faces.instance.tol)))
    # Huge multipliers may overflow; NaN is never within the tolerance.
    with np.errstate(all="ignore"):
        multipliers = _fit(faces, sides)
        fitted = _settled(faces, residuals(rows, sides, multipliers), multipliers)
        if given is None:
            return FirstOrder(fitted, multipliers, sides, None)
        judged = _judge_given(faces, sides, *given)
        better = within(*judged.residuals) and not within(*fitted)
        # A fit follows the rounding of ∇f, given multipliers may not. Huge terms would exceed ∇f.
        pulls = rows.pulls(judged.multipliers)
        if better and pulls.max() <= PULL * np.abs(rows.gradient).max():
            fitted, multipliers = judged.residuals, judged.multipliers
        return FirstOrder(fitted, multipliers, sides, judged)


def _judge_given(faces: Faces, sides: Sides, lam_x: Vector | None, lam_g: Vector) -> Given:
    rows, n = faces.rows, faces.rows.n
    if lam_x is None:
        # From ∂L/∂x = ∇f + J_gᵀlam_g + lam_x = 0.
        lam_x = -(rows.gradient + rows.jacobian[n:].T @ lam_g)
        # A slope without a bound remains a residual of stationarity.
        bound = np.where(lam_x > 0, rows.upper[:n], rows.lower[:n])
        lam_x = np.where(np.isfinite(bound), lam_x, 0.0)
    both = np.concatenate((lam_x, lam_g))
    settled = _settled(faces, residuals(rows, sides, both), both)
    return Given(settled, residuals(rows, sides, -both), both)


def _settled(faces: Faces, computed: PointResiduals, multipliers: Vector) -> PointResiduals:
    """Return the residuals without the rounding inside of ∇f: see :func:`counted_slope`."""
    instance, rows = faces.instance, faces.rows
    others = computed.feasibility, computed.complementarity, computed.dual_sign
    # Only a failure of stationarity alone may be rounding.
    if instance.within(computed.stationarity) or not instance.within(*others):
        return computed
    newton = _newton_step(faces, multipliers)
    if newton is None:
        return computed
    step, inner = newton
    size = 1.0 + np.abs(rows.x)
    settled = (np.abs(step) <= np.minimum(SETTLED * size.max(), instance.tol * size)).all()
    stationarity = _stationarity(rows, multipliers, inner)
    return computed._replace(stationarity=stationarity) if settled else computed


def _newton_step(faces: Faces, multipliers: Vector) -> tuple[Vector, float] | None:
    """Return the step of x on the active set and the largest |∇²L||x|; None if no minimum."""
    rows = faces.rows
    face = faces.of(find_active(rows, multipliers, faces.instance.tol).binding)
    n, k = face.free.size, face.constraints.size
    if not face.exact:
        return None
    try:
        H = face.hessian(face.pick(multipliers))
        size = (float(abs(H).max()) if H.nnz else 0.0) or 1.0
        # Â and H/size have entries up to one.
        factor = SymmetricFactor(face.augmented(H / size))
    except (EvaluationError, FloatingPointError):
        return None
    # Inertia (n, k, 0): ZᵀHZ is positive definite (Nocedal and Wright, theorem 16.3).
    if factor.inertia.zero or factor.inertia.negative != k:
        return None
    slope = rows.slope(multipliers)[face.free]
    # Newton's step on the active set: [H, Âᵀ; Â, 0](d; y) = (−∇L; 0).
    step = factor.solve(np.append(-slope / size, np.zeros(k)))[:n]
    return step, float((abs(H) @ np.abs(face.x)).max(initial=0.0))


def _fit(faces: Faces, sides: Sides) -> Vector:
    """Return the multipliers with the least residuals."""
    rows, everywhere = faces.rows, nearby_sides(faces.rows, np.inf)
    # First by the bounds near x, then by every bound, as far as complementarity permits a
    # multiplier. A point that fails both fails for any; the first fit explains it best.
    nearby, multipliers = _fit_sides(faces, sides)
    if multipliers is None and everywhere.row.size > sides.row.size:
        _, multipliers = _fit_sides(faces, everywhere)
    if multipliers is not None:
        return multipliers
    # Multipliers of the wrong sign on the same bounds are a different mistake.
    unsigned = np.zeros(sides.row.size, dtype=bool)
    fitted = fit_signed(rows.gradient, sides.columns(rows), sides.distance, unsigned)
    multipliers = sides.multipliers(fitted, rows.value.size)
    wrong_sign = sides.sign.any() and faces.instance.within(_stationarity(rows, multipliers))
    return multipliers if wrong_sign else nearby


def _fit_sides(faces: Faces, sides: Sides) -> tuple[Vector, Vector | None]:
    """Return the least-squares multipliers, and some that satisfy the conditions or None."""
    rows, instance = faces.rows, faces.instance
    gradients, signed, size = sides.columns(rows), sides.sign != 0, rows.value.size

    def satisfying(coefficients: Vector) -> Vector | None:
        multipliers = sides.multipliers(coefficients, size)
        good = instance.within(*residuals(rows, sides, multipliers)[1:])
        return multipliers if good else None

    if signed.any() or not faces.equations.small:
        fitted = fit_signed(rows.gradient, gradients, sides.distance, signed)
    else:
        # Singular values distinguish huge multipliers from a rank that is lost on the equations.
        equations = faces.equations
        fitted = equations.complete(equations.fit.multipliers)[sides.row]
    multipliers = sides.multipliers(fitted, size)
    accepted = satisfying(fitted)
    if accepted is not None:
        return multipliers, accepted
    slope = _slope(rows, multipliers)
    norm2 = float(np.sqrt(slope @ slope + np.sum((sides.distance * fitted) ** 2)))
    unit = instance.tol * (_scale(rows, multipliers) if instance.scaled else 1.0)
    # The least 2-norm is at most √N times the least largest entry of N.
    if norm2 > np.sqrt(slope.size + fitted.size) * unit:
        return multipliers, None
    largest = fit_largest(rows.gradient, gradients, sides.distance, signed, fitted, unit)
    return multipliers, satisfying(largest)


def residuals(rows: Rows, sides: Sides, multipliers: Vector) -> PointResiduals:
    """Return the four residuals with the multipliers λ."""
    violation = np.abs(rows.violation)
    scale = np.maximum(1.0, abs(rows.jacobian) @ np.abs(rows.x))
    feasibility = _measure(violation, violation / scale, rows.names)
    return PointResiduals(
        feasibility, _stationarity(rows, multipliers), *_signs(rows, sides, multipliers)
    )


def _stationarity(rows: Rows, multipliers: Vector, inner: float = 0.0) -> Measure:
    slope = np.abs(_slope(rows, multipliers, inner))
    return _measure(slope, slope / _scale(rows, multipliers), rows.names)


def _slope(rows: Rows, multipliers: Vector, inner: float = 0.0) -> Vector:
    """Return ∇f + Aᵀλ beyond rounding."""
    slope, pulls = rows.slope(multipliers), rows.pulls(multipliers)
    return counted_slope(slope, rows.gradient, pulls, inner)


def _scale(rows: Rows, multipliers: Vector) -> float:
    largest = max(np.abs(rows.gradient).max(), rows.pulls(multipliers).max())
    return max(1.0, float(largest))


def _signs(rows: Rows, sides: Sides, multipliers: Vector) -> tuple[Measure, Measure]:
    """Return complementarity and dual sign."""
    i = np.arange(rows.value.size)
    above, below = (np.isin(i, sides.row[sides.sign == sign]) for sign in (1.0, -1.0))
    up, size = multipliers > 0, np.abs(multipliers)
    at_bound, at_other = np.where(up, above, below), np.where(up, below, above)
    bound = np.where(up, rows.upper, rows.lower)
    finite = np.isfinite(bound)
    # At the opposite bound, or without a bound in the direction of the multiplier.
    wrong = ~rows.equations & ~at_bound & (at_other | ~finite)
    distance = np.abs(np.where(finite, bound, rows.value) - rows.value)
    distance = counted_distance(distance, rows.terms, size * rows.sizes, rows.gradient)
    product = np.where(rows.equations | wrong, 0.0, size * distance)
    scale = np.maximum(1.0, size * np.maximum(1.0, np.abs(np.where(finite, bound, 0.0))))
    sign = np.where(wrong, size, 0.0)
    scaled_sign = sign / max(1.0, float(size.max()))
    return _measure(product, product / scale, rows.names), _measure(sign, scaled_sign, rows.names)


def _measure(entries: Vector, scaled: Vector, names: tuple[str, ...]) -> Measure:
    # argmax finds a NaN first, and no tolerance accepts it.
    worst = int(np.argmax(entries))
    return Measure(float(entries[worst]), float(np.max(scaled)), names[worst])
