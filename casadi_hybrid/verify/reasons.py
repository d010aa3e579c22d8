"""Sentences of a report: reasons to reject a point, and notes beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.verify.first_order.face import Faces, Instance
from casadi_hybrid.verify.first_order.kkt import FirstOrder, Given
from casadi_hybrid.verify.first_order.rows import Measure
from casadi_hybrid.verify.report import UNBOUNDED, Comparison, Finding, Rejection, Relation, Report
from casadi_hybrid.verify.second_order.curvature import NO_MINIMIZER, Curvature, SecondOrder

SHOWN = 4
ILL_CONDITIONED = 1e6  # condition of the row-scaled Jacobian that puts the rank in doubt
HUGE = 1e6  # size of multipliers that is worth a note
SECOND = {
    Curvature.DEGENERATE: (
        "Curvature is zero in some feasible direction and f was not seen to fall along it: the "
        "necessary second-order condition holds, the sufficient one does not."
    ),
    Curvature.UNAVAILABLE: (
        "The second order is not judged: a function of the problem has no second derivatives. "
        "That IPOPT stays at the point speaks for a minimum, and proves none."
    ),
}
Reasons = Iterator[tuple[Rejection, str]]


def undefined(error: EvaluationError) -> Finding:
    """Return the reason for a function of the problem that is not finite."""
    where = f" at {error.entry}" if error.entry else ""
    label = error.function[0].upper() + error.function[1:]
    sentence = f"{label} is {error.value}{where}, so nothing else can be judged."
    return Finding(Rejection.UNDEFINED, sentence)


def findings(facts: Report, faces: Faces, first: FirstOrder) -> tuple[Finding, ...]:
    """Return every reason to reject the point."""
    reasons = list(_first_order(facts, faces, first))
    if facts.given is not None:
        reasons += _given(faces.instance, facts.given)
    if facts.second is not None:
        reasons += _curvature(facts.second, faces.rows.names)
    if facts.restart is not None:
        reasons += _restart(facts.restart, facts.second)
    return tuple(Finding(category, sentence) for category, sentence in reasons)


def _first_order(facts: Report, faces: Faces, first: FirstOrder) -> Reasons:
    instance, rows, multipliers = faces.instance, faces.rows, first.multipliers
    feasibility, stationarity, complementarity, dual_sign = first.residuals
    if not instance.within(feasibility):
        worst = int(np.argmax(np.abs(rows.violation)))
        relation = rows.describe(worst, rows.violation[worst])
        excess = _above(feasibility, instance)
        yield Rejection.INFEASIBLE, f"{relation} is violated by {excess}."
    if facts.violation is not None and facts.violation.stationary:
        # Weights for rows whose gradients have size one.
        weights = np.abs(facts.violation.weights * rows.sizes)
        largest = [i for i in np.argsort(-weights)[:SHOWN] if weights[i] > 1e-3 * weights.max()]
        yield (
            Rejection.INFEASIBLE_STATIONARY,
            f"The point is stationary for the violation ({facts.violation.kind}), so no small step "
            f"reduces it: {', '.join(rows.names[i] for i in largest)} contradict each other here.",
        )
    if not instance.within(stationarity):
        sentence = (
            f"No multipliers make x stationary: the best leave {stationarity.where} with "
            f"|∂L/∂x| = {_above(stationarity, instance)}."
        )
        # The multiplier of f may be zero: a Fritz John point.
        if instance.within(feasibility) and facts.mfcq is False:
            sentence += (
                " The active gradients are positively dependent (MFCQ fails), so even a minimizer "
                "need not have multipliers here: it is a Fritz John point."
            )
        yield Rejection.NOT_STATIONARY, sentence
    row = rows.names.index(complementarity.where)
    # A violated row is reported as infeasible.
    if not instance.within(complementarity) and abs(rows.violation[row]) <= instance.tol:
        yield (
            Rejection.NOT_COMPLEMENTARY,
            f"{rows.describe(row, multipliers[row])} has the multiplier {multipliers[row]:+.2e} "
            "but x is off this bound: multiplier times distance is "
            f"{_above(complementarity, instance)}.",
        )
    row = rows.names.index(dual_sign.where)
    if not instance.within(dual_sign):
        yield (
            Rejection.WRONG_SIGN,
            f"{rows.describe(row, -multipliers[row])} is active, but only a multiplier of the "
            f"wrong sign ({multipliers[row]:+.2e}) makes x stationary: f falls when x leaves it.",
        )


def _given(instance: Instance, given: Given) -> Reasons:
    # The first residual, feasibility, does not depend on multipliers.
    parts = [
        f"{name.replace('_', ' ')} {_size(measure, instance)} at {measure.where}"
        for name, measure in list(given.residuals._asdict().items())[1:]
        if not instance.within(measure)
    ]
    text = f"The given multipliers leave {', '.join(parts)}"
    # Nocedal and Wright write L = f − λᵀc, so their multipliers have the other sign.
    if parts and instance.within(*given.flipped[1:]):
        yield (
            Rejection.FLIPPED_SIGN,
            f"{text}, but their negatives satisfy the conditions: they probably belong to "
            "L = f − λᵀg, while the convention here is L = f + lam_gᵀg + lam_xᵀx.",
        )
    elif parts:
        yield Rejection.WRONG_MULTIPLIERS, f"{text}, above {instance.tol:.0e}."


def _curvature(second: SecondOrder, names: tuple[str, ...]) -> Reasons:
    if second.verdict in NO_MINIMIZER and second.direction is not None:
        d = second.direction
        along = ", ".join(f"{names[i]} {d[i]:+.3g}" for i in np.argsort(-np.abs(d))[:3])
        yield (
            Rejection.NOT_A_MINIMIZER,
            f"The point is {second.verdict.value} (smallest eigenvalue {second.smallest:.3e}), "
            f"along {along}{'' if d.size <= 3 else ', …'}.",
        )
    elif second.verdict in (Curvature.UNDECIDED, Curvature.UNDEFINED):
        yield Rejection.UNDECIDED, f"Whether this is a minimizer is {second.verdict.value}."


def _restart(restart: Comparison, second: SecondOrder | None) -> Reasons:
    # IPOPT may move along a flat set of minimizers.
    flat = second is not None and second.verdict is Curvature.DEGENERATE
    equal = restart.relation is Relation.EQUAL
    if restart.relation is Relation.NO_RUN:
        yield (
            Rejection.IPOPT_FAILED,
            f"IPOPT gave no answer when started at the point [{restart.status}], so it confirms "
            "nothing; ipopt=False judges without it.",
        )
    elif restart.relation is not Relation.SAME_POINT and not (flat and equal):
        nearer = "; a smaller tol of the solve ends nearer to it" if equal else ""
        yield (
            Rejection.IPOPT_MOVED,
            f"IPOPT started at the point moved by {restart.distance:.2e} to "
            f"{restart.relation.value} (f changed by {restart.f_difference:+.2e}){nearer}.",
        )


def _size(measure: Measure, instance: Instance) -> str:
    return f"{measure.scaled:.2e} (scaled)" if instance.scaled else f"{measure.value:.2e}"


def _above(measure: Measure, instance: Instance) -> str:
    return f"{_size(measure, instance)}, above {instance.tol:.0e}"


def notes(facts: Report, faces: Faces, multipliers: Vector, ipopt: bool) -> tuple[str, ...]:
    """Return remarks that do not change the verdict."""
    texts, bounds, second = [], faces.instance.bounds, facts.second
    largest = float(np.abs(multipliers).max())
    if bounds.lbg.size and not np.isfinite((bounds.lbg, bounds.ubg)).any():
        texts.append(UNBOUNDED)
    if (facts.condition or 1.0) > ILL_CONDITIONED:
        texts.append(
            "The Jacobian of the active rows is nearly rank deficient (condition "
            f"{facts.condition:.1e}): its rank and the multipliers depend on the last digits of x."
        )
    if not facts.licq:
        texts.append("The active gradients are linearly dependent: multipliers are not unique.")
    if largest > HUGE:
        texts.append(
            f"The largest multiplier is {largest:.1e}: x may be close to a point without any."
        )
    if second is None:
        texts.append("The second order is not judged, because the first-order conditions fail.")
    else:
        texts += _second_order_notes(second)
    relation = None if facts.reference is None else facts.reference.relation
    if not ipopt:
        texts.append("IPOPT was not asked.")
    elif relation is None:
        texts.append("IPOPT was not run from the start of the solve: give x0 for that.")
    elif relation is not Relation.SAME_POINT:
        verb = "gave" if relation in (Relation.NO_KKT_POINT, Relation.NO_RUN) else "found"
        texts.append(f"IPOPT from the same start {verb} {relation.value}.")
    return tuple(texts)


def _second_order_notes(second: SecondOrder) -> Iterator[str]:
    if second.chosen != "fitted":
        yield f"The Hessian uses {second.chosen} multipliers, which show more."
    if second.near:
        more = f" and {len(second.near) - 3} more" if len(second.near) > 3 else ""
        yield (
            f"The second order counts {', '.join(second.near[:3])}{more} as active: the point is "
            "off these limits, and they push on it."
        )
    if second.verdict in SECOND:
        yield SECOND[second.verdict]
