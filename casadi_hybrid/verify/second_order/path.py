"""Feasible paths: whether f falls when one walks away from a point and stays on h = 0."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.verify.first_order.face import OnFace

STEPS = (0.1, 0.03, 0.01)
"""Lengths of the walk, in units of max(1, ‖x‖_∞)."""
CORRECTIONS = 20
ROUNDING = 1e-13


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
    margin = ROUNDING * max(1.0, abs(at.f), abs(there.f))
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
        rounding = ROUNDING * np.maximum(1.0, np.abs(there.B) @ np.abs(x))
        if np.all(np.abs(there.h) <= np.maximum(rounding, np.abs(reference))):
            return there
        x = x - np.linalg.lstsq(there.B, there.h, rcond=None)[0]
    return None
