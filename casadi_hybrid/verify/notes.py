"""What a reader of a report should know beside the verdict."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.verify.first_order.active import Qualification
from casadi_hybrid.verify.first_order.kkt import FirstOrder
from casadi_hybrid.verify.second_order.curvature import Curvature, SecondOrder
from casadi_hybrid.verify.verdict import Comparison, Relation

ILL_CONDITIONED = 1e6
"""Condition of the row-scaled Jacobian from which the rank is in doubt."""
HUGE = 1e6
"""Multipliers above this are worth a note."""
FLAT = (
    "Curvature is zero in some feasible direction and f was not seen to fall along it: the "
    "necessary second-order condition holds, the sufficient one does not."
)

UNKNOWN = (
    "The second order is not judged: a function of the problem has no second derivatives. That "
    "IPOPT stays at the point speaks for a minimum, and proves none."
)


def on_bounds(m: int, bounds: Bounds) -> tuple[str, ...]:
    """Return that rows were given no bound at all, where there are m of them."""
    if not m or np.isfinite(bounds.lbg).any() or np.isfinite(bounds.ubg).any():
        return ()
    said = "No row of g has a bound: where lbg and ubg are not given they are −∞ and ∞, as in "
    return (f"{said}CasADi, so that g limits nothing.",)


def collect_notes(
    first: FirstOrder,
    qualification: Qualification,
    second: SecondOrder | None,
    reference: Comparison | None,
    *,
    ipopt: bool,
) -> tuple[str, ...]:
    """Return what qualifies the verdict without being a reason."""
    notes = []
    if (qualification.condition or 1.0) > ILL_CONDITIONED:
        notes.append(
            "The Jacobian of the active rows is nearly rank deficient (condition "
            f"{qualification.condition:.1e}): its rank and the multipliers depend on the last "
            "digits of x."
        )
    if not qualification.licq:
        notes.append("The active gradients are linearly dependent: multipliers are not unique.")
    largest = float(np.abs(first.multipliers).max())
    if largest > HUGE:
        notes.append(
            f"The largest multiplier is {largest:.1e}: x may be close to a point without any."
        )
    if second is None:
        notes.append("The second order is not judged, because the first-order conditions fail.")
    elif second.chosen != "fitted":
        notes.append(f"The Hessian uses {second.chosen} multipliers, which show more.")
    if second is not None and second.verdict is Curvature.DEGENERATE:
        notes.append(FLAT)
    if second is not None and second.verdict is Curvature.UNAVAILABLE:
        notes.append(UNKNOWN)
    return (*notes, *_on_reference(reference, ipopt=ipopt))


def _on_reference(reference: Comparison | None, *, ipopt: bool) -> tuple[str, ...]:
    """Return what there is to say on the run from the start of the solve."""
    if not ipopt:
        return ("IPOPT was not asked.",)
    if reference is None:
        return ("IPOPT was not run from the start of the solve: give x0 for that.",)
    if reference.relation in (Relation.LOWER, Relation.HIGHER, Relation.EQUAL):
        return (f"IPOPT from the same start found {reference.relation.value}.",)
    if reference.relation is not Relation.SAME_POINT:
        return (f"IPOPT from the same start gave {reference.relation.value}.",)
    return ()
