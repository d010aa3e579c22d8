"""The trust-region subproblem in eigencoordinates: minimize ½Σeᵢtᵢ² + bᵀt subject to ‖t‖₂ ≤ Δ."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.inputs import Vector

_MAX_ITERATIONS = 60


def trust_region_step(e: Vector, b: Vector, radius: float) -> tuple[Vector, float]:
    """Return the global minimizer t and the multiplier σ ≥ 0 of the radius.

    (e + σ)t = −b with e + σ ≥ 0 and σ(Δ − ‖t‖) = 0 (Moré and Sorensen, 1983). The secular
    equation 1/‖t(σ)‖ = 1/Δ is solved by a bracketed Newton iteration; in the hard case the step
    is completed along the least eigenvector.

    Args:
        e: eigenvalues, ascending; may be negative.
        b: gradient in the eigenbasis.
        radius: Δ > 0.
    """
    if e.size == 0:
        return np.zeros(0), 0.0
    if e[0] > 0:
        t = -b / e
        if np.linalg.norm(t) <= radius:
            return t, 0.0
    scale = max(1e-300, float(np.abs(e).max()), float(np.linalg.norm(b)) / radius)
    low = max(0.0, -float(e[0]))
    sigma = low + 1e-12 * scale
    t = -b / (e + sigma)
    if np.linalg.norm(t) < radius:
        # Hard case: b has (almost) no part along the least eigenvector.
        missing = np.sqrt(max(radius**2 - float(t @ t) + float(t[0] ** 2), 0.0))
        t[0] = missing if t[0] >= 0 else -missing
        return t, sigma
    high = low + float(np.linalg.norm(b)) / radius + scale * 1e-12
    for _ in range(_MAX_ITERATIONS):
        shifted = e + sigma
        t = -b / shifted
        norm = float(np.linalg.norm(t))
        if abs(norm - radius) <= 1e-8 * radius:
            break
        if norm > radius:
            low = sigma
        else:
            high = sigma
        slope = float(np.sum(t**2 / shifted))
        sigma += (norm**2 / slope) * (norm - radius) / radius
        if not low < sigma < high:
            sigma = 0.5 * (low + high)
    return t, sigma
