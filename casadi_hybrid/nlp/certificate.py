"""How far a point is from a stationary point of the violation: the certificate of infeasibility."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.errors import EvaluationError
from casadi_hybrid.inputs import Vector
from casadi_hybrid.nlp.residuals import violations
from casadi_hybrid.nlp.sparse import largest_entry, row_norms
from casadi_hybrid.nlp.standard import Point, StandardForm

STATIONARY_VIOLATION = 1e-5
"""A slope of the violation that counts as none."""


def violation_slope(form: StandardForm, at: Point) -> float:
    """The slope of the violation relative to its parts at this point, between 0 and 1.

    The definition is that of ``certificate`` in :class:`~casadi_hybrid.nlp.result.NlpResult`.
    """
    bounds = form.bounds
    v = violations(at.raw_g, bounds.lbg, bounds.ubg)
    # Rounding of a row that holds is no violation beside a row without a gradient.
    v = np.where(np.abs(v) > 1e-10 * np.abs(v).max(initial=0.0), v, 0.0)
    weights = np.zeros(v.size)
    weights[form.rows] = form.scale_c**2
    pull = weights * v
    slope = at.raw_J.T @ pull
    rows = np.flatnonzero(pull)
    lengths = np.maximum(row_norms(at.raw_J, rows), row_norms(form.at_start.J, rows))
    reach = np.maximum(1.0, np.abs(at.x))
    size = max(float(np.abs(pull[rows]) @ lengths), _bend(form, at, v) * float(reach.max()))
    # A bound blocks where x is on it, or where moving onto it gains nothing.
    gain = 1e-6 * float(pull @ v)
    room = np.maximum(1e-6 * reach, gain / np.maximum(np.abs(slope), 1e-300))
    blocked = np.where(slope > 0, at.x - bounds.lbx, bounds.ubx - at.x) <= room
    return float(np.linalg.norm(np.where(blocked, 0.0, slope))) / max(size, 1e-300)


def _bend(form: StandardForm, at: Point, v: Vector) -> float:
    """The largest entry of Σ ω_i v_i ∇²g_i; 0 where it is not defined."""
    try:
        bend = form.hessian(at, v[form.rows] * form.scale_c, objective=0.0)
    except EvaluationError:
        return 0.0
    return largest_entry(bend)
