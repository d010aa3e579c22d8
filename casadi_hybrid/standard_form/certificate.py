"""How far a point is from a stationary point of the violation: the certificate of infeasibility."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.arrays import largest
from casadi_hybrid.basics.errors import EvaluationError, OutOfTimeError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.sparse import magnitudes, row_norms
from casadi_hybrid.point.kkt import violations
from casadi_hybrid.standard_form.form import Point, StandardForm

STATIONARY_VIOLATION = 1e-5
"""A slope of the violation that counts as none."""
_BROKEN = 1e-2
_ROUNDED = 1e-10  # of the largest violation, beside which a smaller one is none
_ON = 1e-6  # of max(1, |x|): so near a bound x is on it
_NOTHING = 0.1  # of the violation, that moving onto a bound nearby may take away


def violation_slope(form: StandardForm, at: Point, y: Vector | None = None) -> float:
    """The slope of the violation relative to its parts at this point, between 0 and 1.

    The definition is that of ``certificate`` in :class:`~casadi_hybrid.answer.Answer`.
    With multipliers y of the elastic problem the violation is ‖c‖₁, and y its subgradient.
    """
    bounds = form.bounds
    v = violations(at.raw_g, bounds.lbg, bounds.ubg)
    # Rounding of a row that holds is no violation beside a row without a gradient.
    v = np.where(np.abs(v) > _ROUNDED * np.abs(v).max(initial=0.0), v, 0.0)
    pull = np.zeros(v.size)
    pull[form.rows] = form.scale_c**2 * v[form.rows] if y is None else form.scale_c * y
    if y is not None and not _subgradient(form, v, y):
        return 1.0
    slope = at.raw_J.T @ pull
    rows = np.flatnonzero(pull)
    lengths = np.maximum(row_norms(at.raw_J, rows), row_norms(form.at_start.J, rows))
    reach = np.maximum(1.0, np.abs(at.x))
    size = max(float(np.abs(pull[rows]) @ lengths), _bend(form, at, pull))
    # A bound blocks where x is on it, or where moving onto it gains nothing. Of a small variable
    # that is near its bound in size alone, what moving onto it gains says more than the distance.
    all_of_it, steep = float(pull @ v), np.maximum(np.abs(slope), 1e-300)
    room = np.clip(_ON * reach, _ON * all_of_it / steep, _NOTHING * all_of_it / steep)
    blocked = np.where(slope > 0, at.x - bounds.lbx, bounds.ubx - at.x) <= room
    return float(np.linalg.norm(np.where(blocked, 0.0, slope))) / max(size, 1e-300)


def _subgradient(form: StandardForm, v: Vector, y: Vector) -> bool:
    """Whether y pulls at every violated row with one force, and at the others with less."""
    of_rows = v[form.rows]
    broken = np.abs(of_rows) * form.scale_c > _BROKEN * float(np.abs(of_rows).max(initial=0.0))
    force = float(np.abs(y).max(initial=0.0))
    pulled = np.sign(of_rows) * y >= (1.0 - _BROKEN) * force
    return force > 0.0 and bool(pulled[broken].all())


def _bend(form: StandardForm, at: Point, pull: Vector) -> float:
    """The slope after a move of the size of w, |Σ pull_i ∇²g_i| max(1, |w|), its largest entry.

    0 where it is not defined or too late.
    """
    try:
        bend = form.hessian(at, pull[form.rows] / form.scale_c, objective=0.0)
    except (EvaluationError, OutOfTimeError):
        return 0.0
    return largest(magnitudes(bend) @ np.maximum(1.0, np.abs(at.w)))
