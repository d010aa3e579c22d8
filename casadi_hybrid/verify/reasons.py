"""From facts to sentences: what speaks against a point, and what to know beside the verdict."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.face import Faces, Instance
from casadi_hybrid.verify.first_order.infeasible import ViolationSlope
from casadi_hybrid.verify.first_order.kkt import FirstOrder, Given
from casadi_hybrid.verify.first_order.rows import Measure, Rows
from casadi_hybrid.verify.report import UNBOUNDED, Report
from casadi_hybrid.verify.second_order.curvature import NO_MINIMIZER, Curvature, SecondOrder
from casadi_hybrid.verify.verdict import Comparison, Finding, Rejection, Relation

SHOWN = 4
ILL_CONDITIONED = 1e6
"""Condition of the row-scaled Jacobian from which the rank is in doubt."""
HUGE = 1e6
"""Multipliers above this are worth a note."""
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


def findings(facts: Report, faces: Faces) -> tuple[Finding, ...]:
    """Return every reason to reject the point."""
    first, instance, rows = facts.first, faces.instance, faces.rows
    assert first is not None
    found = []
    feasible, stationary, complementary, right = map(instance.within, first.residuals)
    if not feasible:
        found += _infeasible(instance, rows, first.feasibility, facts.violation)
    if not stationary:
        degenerate = feasible and facts.mfcq is False
        found.append(_not_stationary(instance, first.stationarity, degenerate=degenerate))
    if not complementary:
        found += _not_complementary(instance, rows, first)
    if not right:
        found.append(_wrong_sign(rows, first))
    if first.given is not None and not instance.within(*first.given.residuals[1:]):
        found.append(_given(instance, first.given))
    if facts.second is not None:
        found += _curvature(facts.second, rows.names[: rows.n])
    if facts.restart is not None:
        found += _restart(facts.restart, facts.second)
    return tuple(found)


def undefined(error: EvaluationError) -> Finding:
    """The reason where a function of the problem is not finite."""
    where = f" at {error.entry}" if error.entry else ""
    label = error.function[0].upper() + error.function[1:]
    sentence = f"{label} is {error.value}{where}, so nothing else can be judged."
    return Finding(Rejection.UNDEFINED, sentence)


def _infeasible(
    instance: Instance, rows: Rows, measure: Measure, violation: ViolationSlope | None
) -> list[Finding]:
    worst = int(np.argmax(np.abs(rows.violation)))
    relation = rows.describe(worst, float(np.sign(rows.violation[worst])))
    said = f"{relation} is violated by {_above(measure, instance)}."
    found = [Finding(Rejection.INFEASIBLE, said)]
    if violation is not None and violation.stationary:
        weights = np.abs(violation.weights * rows.sizes)
        order = np.argsort(-weights)
        involved = [rows.names[i] for i in order[:SHOWN] if weights[i] > 1e-3 * weights.max()]
        found.append(
            Finding(
                Rejection.INFEASIBLE_STATIONARY,
                f"The point is stationary for the violation ({violation.kind}), so no small step "
                f"reduces it: {', '.join(involved)} contradict each other here.",
            )
        )
    return found


def _not_stationary(instance: Instance, measure: Measure, *, degenerate: bool) -> Finding:
    sentence = (
        f"No multipliers make x stationary: the best leave {measure.where} with "
        f"|∂L/∂x| = {_above(measure, instance)}."
    )
    if degenerate:
        sentence += (
            " The active gradients are positively dependent (MFCQ fails), so even a minimizer "
            "need not have multipliers here: it is a Fritz John point."
        )
    return Finding(Rejection.NOT_STATIONARY, sentence)


def _not_complementary(instance: Instance, rows: Rows, first: FirstOrder) -> list[Finding]:
    measure = first.residuals.complementarity
    row = rows.names.index(measure.where)
    if abs(rows.violation[row]) > instance.tol:
        return []  # Infeasibility says it.
    relation = rows.describe(row, float(np.sign(first.multipliers[row])))
    return [
        Finding(
            Rejection.NOT_COMPLEMENTARY,
            f"{relation} has the multiplier {first.multipliers[row]:+.2e} but x is off this bound: "
            f"multiplier times distance is {_above(measure, instance)}.",
        )
    ]


def _wrong_sign(rows: Rows, first: FirstOrder) -> Finding:
    measure = first.residuals.dual_sign
    row = rows.names.index(measure.where)
    multiplier = float(first.multipliers[row])
    return Finding(
        Rejection.WRONG_SIGN,
        f"{rows.describe(row, -float(np.sign(multiplier)))} is active, but only a multiplier of "
        f"the wrong sign ({multiplier:+.2e}) makes x stationary: f falls when x leaves it.",
    )


def _given(instance: Instance, given: Given) -> Finding:
    parts = [
        f"{name.replace('_', ' ')} {_size(measure, instance)} at {measure.where}"
        for name, measure in list(given.residuals._asdict().items())[1:]
        if not instance.within(measure)
    ]
    text = f"The given multipliers leave {', '.join(parts)}"
    if instance.within(*given.flipped[1:]):
        return Finding(
            Rejection.FLIPPED_SIGN,
            f"{text}, but their negatives satisfy the conditions: they probably belong to "
            "L = f − λᵀg, while the convention here is L = f + lam_gᵀg + lam_xᵀx.",
        )
    return Finding(Rejection.WRONG_MULTIPLIERS, f"{text}, above {instance.tol:.0e}.")


def _curvature(second: SecondOrder, names: tuple[str, ...]) -> list[Finding]:
    if second.verdict in NO_MINIMIZER:
        assert second.direction is not None
        return [
            Finding(
                Rejection.NOT_A_MINIMIZER,
                f"The point is {second.verdict.value} (smallest eigenvalue "
                f"{second.smallest:.3e}), along {_describe(second.direction, names)}.",
            )
        ]
    if second.verdict in (Curvature.UNDECIDED, Curvature.UNDEFINED):
        said = f"Whether this is a minimizer is {second.verdict.value}."
        return [Finding(Rejection.UNDECIDED, said)]
    return []


def _restart(restart: Comparison, second: SecondOrder | None) -> list[Finding]:
    if restart.relation is Relation.SAME_POINT:
        return []
    if restart.relation is Relation.NO_RUN:
        return [
            Finding(
                Rejection.IPOPT_FAILED,
                f"IPOPT gave no answer when started at the point [{restart.run.status}], so it "
                "confirms nothing; ipopt=False judges without it.",
            )
        ]
    # On a flat set of minimizers IPOPT may slide along it.
    flat = second is not None and second.verdict is Curvature.DEGENERATE
    equal = restart.relation is Relation.EQUAL
    if flat and equal:
        return []
    nearer = "; a smaller tol of the solve ends nearer to it" if equal else ""
    return [
        Finding(
            Rejection.IPOPT_MOVED,
            f"IPOPT started at the point moved by {restart.distance:.2e} to "
            f"{restart.relation.value} (f changed by {restart.f_difference:+.2e}){nearer}.",
        )
    ]


def _describe(direction: Vector, names: tuple[str, ...]) -> str:
    """Return the three largest components of a direction, by the names of the variables."""
    order = np.argsort(-np.abs(direction))[:3]
    text = ", ".join(f"{names[i]} {direction[i]:+.3g}" for i in order)
    return text if direction.size <= 3 else text + ", …"


def _size(measure: Measure, instance: Instance) -> str:
    return f"{measure.scaled:.2e} (scaled)" if instance.scaled else f"{measure.value:.2e}"


def _above(measure: Measure, instance: Instance) -> str:
    return f"{_size(measure, instance)}, above {instance.tol:.0e}"


def notes(facts: Report, instance: Instance, ipopt: bool) -> tuple[str, ...]:
    """Return what qualifies the verdict without being a reason."""
    first, qualification, second = facts.first, facts.qualification, facts.second
    assert first is not None
    assert qualification is not None
    said, bounds = [], instance.bounds
    if instance.problem.m and not (np.isfinite(bounds.lbg).any() or np.isfinite(bounds.ubg).any()):
        said.append(UNBOUNDED)
    if (qualification.condition or 1.0) > ILL_CONDITIONED:
        said.append(
            "The Jacobian of the active rows is nearly rank deficient (condition "
            f"{qualification.condition:.1e}): its rank and the multipliers depend on the last "
            "digits of x."
        )
    if not qualification.licq:
        said.append("The active gradients are linearly dependent: multipliers are not unique.")
    largest = float(np.abs(first.multipliers).max())
    if largest > HUGE:
        said.append(
            f"The largest multiplier is {largest:.1e}: x may be close to a point without any."
        )
    if second is None:
        said.append("The second order is not judged, because the first-order conditions fail.")
    elif second.chosen != "fitted":
        said.append(f"The Hessian uses {second.chosen} multipliers, which show more.")
    if second is not None and second.near:
        more = f" and {len(second.near) - 3} more" if len(second.near) > 3 else ""
        said.append(
            f"The second order counts {', '.join(second.near[:3])}{more} as active: the point is "
            "off these limits, and they push on it."
        )
    if second is not None and second.verdict in SECOND:
        said.append(SECOND[second.verdict])
    if not ipopt:
        return (*said, "IPOPT was not asked.")
    reference = facts.reference
    if reference is None:
        said.append("IPOPT was not run from the start of the solve: give x0 for that.")
    elif reference.relation is not Relation.SAME_POINT:
        kkt = reference.relation in (Relation.LOWER, Relation.HIGHER, Relation.EQUAL)
        found = "found" if kkt else "gave"
        said.append(f"IPOPT from the same start {found} {reference.relation.value}.")
    return tuple(said)
