"""An IPOPT run beside the judged point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.ipopt import IpoptRun
from casadi_hybrid.verify.verdict import Comparison, Relation


def compare(
    run: IpoptRun,
    x: Vector,
    f: float,
    tol: float,
    *,
    scaled: bool,
    multipliers: Callable[[IpoptRun], float | None],
) -> Comparison:
    """Say where a run ended, seen from x.

    Args:
        run: the run.
        x, f: the judged point.
        tol, scaled: as in the report. A point within √tol·max(1, ‖x‖_∞) is the same one.
        multipliers: the difference of multipliers, asked for where it is the same point.
    """
    distance, difference = float(np.abs(run.x - x).max()), run.f - f
    reach = float(np.sqrt(tol)) * max(1.0, float(np.abs(x).max()))
    apart = None
    if run.conditions is None:
        relation = Relation.NO_RUN
    elif distance <= reach:
        relation, apart = Relation.SAME_POINT, multipliers(run)
    elif not run.conditions.holds(tol, scaled=scaled):
        relation = Relation.NO_KKT_POINT
    elif abs(difference) <= tol * max(1.0, abs(f)):
        relation = Relation.EQUAL
    else:
        relation = Relation.LOWER if difference < 0 else Relation.HIGHER
    return Comparison(run, relation, distance, difference, apart)
