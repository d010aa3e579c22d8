"""A leap along the ray on which the iterates run away, to where it proves that f has no bound.

Where equations bend ever on, as sin does, steps stay short however far the iterates are: x grows
by a part of itself that falls, and 1e10, where a feasible point is the proof
(:mod:`casadi_hybrid.barrier.rays`), is out of reach; elsewhere iterates are there within some ten
steps. Here the iterate is stretched to lengths of 1e7,
1e9 and 1e11, and each stretched point brought back to the constraints by Gauss–Newton steps in the
metric of the distances to the bounds. Only where all three are feasible, and f is negative, falls
along the ray at each, has at least doubled from each to the next, and in the last stretch by no
less than half the factor of the one before, the last one is taken: an f that only levels off
further out does not pass.
"""

from __future__ import annotations

import numpy as np

from casadi_hybrid.barrier.rays import SLOPE
from casadi_hybrid.basics.arrays import largest
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.kernel import Kernel
from casadi_hybrid.point.kkt import met_far_out
from casadi_hybrid.standard_form.form import Point, StandardForm

_LENGTHS = (1e7, 1e9, 1e11)
_STEPS = 8
_FROM = 1e3
_EPSILON = 1e-8  # of K(0, D): dependent rows are met in the least squares


def runs_away(at: Point, size: float) -> bool:
    """Whether x is far beyond this size, and f negative and falling in proportion to x."""
    return at.raw_f < 0.0 and at.reach >= _FROM * max(1.0, size) and _falls(at)


def leap(form: StandardForm, kernel: Kernel, at: Point) -> Point | None:
    """The far end of the ray through the point, None where that proves nothing."""
    undefined = form.undefined
    f, growth = 0.0, 2.0
    for length in _LENGTHS:
        far = _landed(form, kernel, at.w * (length / largest(at.x)))
        if far is None or far.raw_f >= 0.0 or not _falls(far):
            break
        if largest(far.x) < 0.5 * length:
            break  # bounds or rows have held it back
        if f < 0.0:
            if not far.raw_f <= growth * f:
                break
            growth = max(growth, 0.5 * far.raw_f / f)
        at, f = far, far.raw_f
    else:
        return at
    form.undefined = undefined  # that far out it says nothing of the problem
    return None


def _falls(at: Point) -> bool:
    return -float(at.raw_gradient @ at.x) >= SLOPE * abs(at.raw_f)


def _landed(form: StandardForm, kernel: Kernel, w: Vector) -> Point | None:
    """A feasible point near w; None where the steps find none."""
    for _ in range(_STEPS):
        at = form.point_or_none(np.clip(w, form.lower, form.upper))
        if at is None:
            return None
        at = form.point_or_none(form.with_slacks(at))
        if at is None or met_far_out(form.bounds, at.x, at.raw_g, at.raw_J):
            return at
        room = np.minimum(at.below, at.above)
        free = np.where(form.has_lower | form.has_upper, np.minimum(room, 1.0), 1.0)
        kernel.factor(form.zero_hessian(), free**-2, at.A, _EPSILON)
        if kernel.singular:
            return None
        w = at.w + kernel.solve(np.concatenate((np.zeros(form.n), -at.c)))[: form.n]
    return None
