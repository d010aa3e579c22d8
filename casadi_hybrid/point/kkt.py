"""KKT residuals of a nonlinear program in the user's units, and the verdict they give."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.arrays import largest, rough_sum
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.sparse import Index, magnitudes, row_maxima, sum_of_entries
from casadi_hybrid.point.residuals import (
    ROUNDING,
    Residuals,
    counted_distance,
    counted_slope,
    counted_violation,
)
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import Operator

_TINY = 1e-9
_PRODUCTS, _OTHERS = 4.0, 2.0  # how many roundings a term that is a product has, and another
_HUGE = 1e8


def kkt_residuals(
    bounds: Bounds,
    x: Vector,
    gradient: Vector,
    g: Vector,
    J: Operator,
    lam_x: Vector,
    lam_g: Vector,
    *,
    plain: bool = False,
) -> Residuals:
    """Residuals in the infinity norm, unscaled.

    - feasibility: the largest violation of a bound on x or g;
    - stationarity: ‖∇f + J_gᵀλ_g + λ_x‖_∞;
    - complementarity: the largest |λ_i|·(distance to the bound its sign points to), where a
      multiplier whose sign points to an infinite bound counts with its own size.

    What rounding explains counts as zero
    (:func:`~casadi_hybrid.point.residuals.beyond_rounding`), unless they are asked for ``plain``.
    The terms of a row are taken to be of the sizes |J_g||x| and |bound|.
    """
    steepest = sum_of_entries(J)
    of_g = _excess(g, bounds.lbg, bounds.ubg)
    if of_g > 0.0:
        rounding = _rounding(steepest * rough_sum(x))
        if rounding and not plain:
            entries = violations(g, bounds.lbg, bounds.ubg)
            if _any_within(entries, rounding):
                of_g = largest(counted_violation(entries, row_sizes(g, J, x)))
    slope = gradient + J.T.dot(lam_g) + lam_x
    rounding = _rounding(steepest * rough_sum(lam_g), rough_sum(gradient))
    if rounding and not plain and _any_within(slope, rounding):
        slope = counted_slope(slope, gradient, magnitudes(J).T @ np.abs(lam_g) + np.abs(lam_x))
    of_x = _excess(x, bounds.lbx, bounds.ubx) if bounds.on_x else 0.0
    return Residuals(
        max(of_x, of_g),
        largest(slope),
        max(
            _slackness(x, bounds.open_x, lam_x, gradient, plain=plain),
            _slackness(g, bounds.open_g, lam_g, gradient, (J, x), plain=plain),
        ),
    )


def violations(value: Vector, lower: Vector, upper: Vector) -> Vector:
    """How far each entry lies outside its bounds: negative below, positive above, else zero."""
    return np.maximum(value - upper, 0.0) - np.maximum(lower - value, 0.0)


def row_sizes(g: Vector, J: Operator, x: Vector) -> Vector:
    """The sizes |J_g||x| + |g| that the terms of each row are taken to have."""
    return np.asarray(magnitudes(J) @ np.abs(x) + np.abs(g))


def _excess(value: Vector, lower: Vector, upper: Vector) -> float:
    """The largest violation alone."""
    if not value.size:
        return 0.0
    outside = np.maximum(value - upper, lower - value)
    furthest: float = outside.item(outside.argmax())
    return max(0.0, furthest)


def _rounding(product: float, other: float = 0.0) -> float:
    """What rounding may leave at most where terms cancel; 0 where that is below every tolerance.

    ``product`` and ``other`` are no less than the largest of the terms. So it costs little to say
    that a residual needs no excuse, and nearly none does.
    """
    bound = ROUNDING * (_PRODUCTS * product + _OTHERS * other)
    return bound if bound >= _TINY else 0.0


def _any_within(entries: Vector, rounding: float) -> bool:
    """Whether some entry that is not zero is as small as that."""
    return bool(np.abs(entries[entries != 0.0]).min(initial=np.inf) <= rounding)


def _slackness(
    value: Vector,
    bounds: tuple[Index, Vector, Vector, bool],
    lam: Vector,
    gradient: Vector,
    rows: tuple[Operator, Vector] | None = None,
    *,
    plain: bool,
) -> float:
    """The largest |multiplier|·(distance to its bound), of variables or of rows with (J_g, x)."""
    where, lower, upper, closed = bounds
    if not where.size:
        return 0.0
    g = value
    if where.size < value.size:
        value, lam = value[where], lam[where]
    strength = rough_sum(lam)
    if strength == 0.0:
        return 0.0
    distance = np.where(lam > 0, upper, lower) - value
    if (
        not plain and strength > _HUGE and largest(lam) > _HUGE
    ):  # with less no rounding of a distance matters
        pulls, sizes = np.abs(lam), np.abs(value)
        if rows is not None:
            J, x = rows
            pulls, sizes = pulls * row_maxima(J)[where], row_sizes(g, J, x)[where]
        distance = counted_distance(np.abs(distance), sizes, pulls, gradient)
    if not closed:
        distance[np.isinf(distance)] = 1.0
    return largest(lam * distance)
