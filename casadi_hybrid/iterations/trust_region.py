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


def oriented(directions: Matrix) -> Matrix:
    """The directions, the first one turned round if its opposite is the one to take.

    Where the slope does not say on which side of a saddle point to leave it, this decides: an
    eigenvector and its opposite are equally good, and which one is found hangs on rounding.
    """
    first = directions[:, 0]
    if float((first / (np.arange(first.size) + _TURN)).sum()) >= 0.0:
        return directions
    turned = directions.copy()
    turned[:, 0] = -first
    return turned


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
