"""The trust-region subproblem in eigencoordinates: minimize ½Σeᵢtᵢ² + bᵀt subject to ‖t‖₂ ≤ Δ."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.arrays import largest, norm
from casadi_hybrid.basics.inputs import Matrix, Vector

_MAX_ITERATIONS = 60
_ACCURACY = 1e-10
# Negative eigenvalues above minus this part of the largest are zero, and as close to the least
# one they are equal to it.
_EQUAL = 1e-14
_TURN = 1.4142135623730951  # that no two entries of a direction have weights in simple proportion
# Eigenvalues as close as this part of the largest are alike: their eigenvectors hang on rounding.
# A projection that is smaller than that part of what is projected may be rounding.
_ALIKE, _SEEN = 1e-12, 1e-6
# The ratio of gain to prediction of a step that is taken, and those below and above which the
# radius changes; what is left of it after a step that is refused and after a poor one, and what it
# grows by after a good one that has that part of it.
ACCEPT, SHRINK_BELOW, GROW_ABOVE = 1e-4, 0.25, 0.75
_REFUSED, _POOR, _GROWTH, _LONG = 0.25, 0.5, 3.0, 0.7


def next_radius(radius: float, size: float, ratio: float) -> float:
    """The radius after a step of this size and ratio of gain to prediction."""
    if ratio >= GROW_ABOVE and size > _LONG * radius:
        return _GROWTH * radius
    if ratio < SHRINK_BELOW:
        return (_POOR if ratio >= ACCEPT else _REFUSED) * size
    return radius


def oriented(directions: Matrix, values: Vector, count: int = 1) -> Matrix:
    """The directions with the first ones such that no rounding decides which they are.

    An eigenvector and its opposite are equally good, and so is every basis of the span of several
    whose eigenvalues are alike. The first of a span becomes the projection of the vector of
    entries 1/(i + √2) onto it, the next one that of another fixed vector, whose entries have the
    signs of a Walsh function, onto what is left; the others complete the basis.

    Args:
        directions: W or D⁻¹W in their columns, W orthonormal.
        values: of each, ascending.
        count: so many are asked for.
    """
    found = directions.copy()
    near = _ALIKE * largest(values)
    for k in range(min(count, values.size)):
        span = found[:, k : int(np.searchsorted(values, values[k] + near, "right"))]
        span[:] = _turned(span, _shares(span))
    return found


def _shares(span: Matrix) -> Vector:
    """The projection of the first of the fixed vectors that has one, in coordinates of the span."""
    entries = np.arange(span.shape[0])
    for pattern in range(2 * entries.size):  # among these Walsh functions is a whole basis
        signs = 1.0 - 2.0 * (np.bitwise_count(entries & pattern) & 1)
        fixed = signs / (entries + _TURN)
        shares = span.T @ fixed
        size = norm(shares)
        if size > _SEEN * norm(fixed) * norm(span.ravel()):
            return np.asarray(shares / size)
    return np.asarray(np.eye(span.shape[1])[0])


def _turned(span: Matrix, first: Vector) -> Matrix:
    """The span in another basis, which begins with the combination ``first``, a unit vector.

    Reflected by I − 2uuᵀ/uᵀu, u = first ± e₁.
    """
    sign = 1.0 if first[0] >= 0.0 else -1.0
    u = first.copy()
    u[0] += sign
    return np.asarray(-sign * (span - np.outer(span @ u, u) * (2.0 / float(u @ u))))


def trust_region_step(e: Vector, b: Vector, radius: float) -> tuple[Vector, float]:
    """Return the global minimizer t and the multiplier σ ≥ 0 of the radius.

    (e + σ)t = −b with e + σ ≥ 0 and σ(Δ − ‖t‖) = 0 (Moré and Sorensen, 1983). The secular
    equation 1/‖t(σ)‖ = 1/Δ is solved by a bracketed Newton iteration from below; in the hard case
    the step is completed along the least eigenvector. Of many minimizers inside the radius
    (e_i = b_i = 0) the shortest is returned.

    Args:
        e: eigenvalues, ascending; may be negative.
        b: gradient in the eigenbasis.
        radius: Δ > 0.
    """
    if e.size == 0:
        return np.zeros(0), 0.0
    nothing = _EQUAL * largest(e)
    if e[0] < 0:
        e = np.where((e < 0) & (e >= -nothing), 0.0, e)
    least = float(e[0])
    # In the gaps e − e₀ and τ = e₀ + σ the hard case has no cancellation.
    gaps = e - least
    if least < 0:
        gaps = np.where(gaps <= nothing, 0.0, gaps)
    slope = norm(b[gaps == 0])
    if least >= 0 and (least > 0 or slope == 0):
        t = _shifted(b, gaps, least)
        if norm(t) <= radius:
            return t, 0.0
    if least < 0 and slope == 0:
        t = _shifted(b, gaps, 0.0)
        missing = radius**2 - float(t @ t)
        if missing >= 0:
            t[0] = np.sqrt(missing)
            return t, -least
    # ‖b_least‖/τ ≤ ‖t(τ)‖ ≤ ‖b‖/τ brackets the root.
    low = max(0.0, least, slope / radius)
    high = max(low, norm(b) / radius)
    tau = low
    for _ in range(_MAX_ITERATIONS):
        t = _shifted(b, gaps, tau)
        size = norm(t)
        if abs(size - radius) <= _ACCURACY * radius:
            break
        if size > radius:
            low = tau
        else:
            high = tau
        tau += (size**2 / float(-t @ _shifted(t, gaps, tau))) * (size - radius) / radius
        if not low < tau < high:
            tau = 0.5 * (low + high)
    return t, max(0.0, tau - least)


def _shifted(b: Vector, gaps: Vector, tau: float) -> Vector:
    """−b/(gaps + τ), zero where gaps + τ is."""
    shifted = gaps + tau
    if shifted.item(shifted.argmin()) > 0.0:
        return -b / shifted
    return np.asarray(-np.divide(b, shifted, out=np.zeros_like(shifted), where=shifted > 0))
