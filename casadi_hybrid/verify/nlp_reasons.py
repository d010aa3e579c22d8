"""From facts on a point of a nonlinear program to sentences."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.verify.first_order.active import Qualification
from casadi_hybrid.verify.first_order.infeasible import ViolationSlope
from casadi_hybrid.verify.first_order.kkt import NlpFirstOrder, NlpGiven
from casadi_hybrid.verify.first_order.rows import Rows
from casadi_hybrid.verify.reasons import (
    FLAT,
    ILL_CONDITIONED,
    curvature_findings,
    ipopt_notes,
    size_text,
)
from casadi_hybrid.verify.second_order.curvature import Curvature, SecondOrder
from casadi_hybrid.verify.verdict import Comparison, Finding, Rejection, Relation

HUGE = 1e6
"""Multipliers above this are worth a note."""
SHOWN = 4


def nlp_findings(
    rows: Rows,
    first: NlpFirstOrder,
    qualification: Qualification,
    violation: ViolationSlope | None,
    second: SecondOrder | None,
    restart: Comparison | None,
    tol: float,
    *,
    scaled: bool,
) -> tuple[Finding, ...]:
    """Return every reason to reject the point."""
    found = []
    residuals = first.residuals
    if not residuals.feasibility.within(tol, scaled=scaled):
        found += _infeasible(rows, first, violation, tol, scaled=scaled)
    if not residuals.stationarity.within(tol, scaled=scaled):
        found.append(_not_stationary(first, qualification, tol, scaled=scaled))
    if not residuals.complementarity.within(tol, scaled=scaled):
        found += _not_complementary(rows, first, tol, scaled=scaled)
    if not residuals.dual_sign.within(tol, scaled=scaled):
        found.append(_wrong_sign(rows, first))
    if first.given is not None and not first.given.residuals.dual_hold(tol, scaled=scaled):
        found.append(_given(first.given, tol, scaled=scaled))
    if second is not None:
        found += curvature_findings(second, rows.names[: rows.n])
    if restart is not None and restart.relation is Relation.LOWER:
        found.append(
            Finding(
                Rejection.IPOPT_MOVED,
                f"IPOPT started at the point moved by {restart.distance:.2e} to "
                f"{restart.relation.value} (f changed by {restart.f_difference:+.2e}).",
            )
        )
    return tuple(found)


def nlp_notes(
    first: NlpFirstOrder,
    qualification: Qualification,
    second: SecondOrder | None,
    restart: Comparison | None,
    reference: Comparison | None,
    *,
    ipopt: bool,
) -> tuple[str, ...]:
    """Return what qualifies the verdict without being a reason."""
    notes = []
    if (qualification.condition or 1.0) > ILL_CONDITIONED:
        notes.append(
            f"The active gradients are nearly dependent (condition {qualification.condition:.1e}): "
            "their rank and the multipliers depend on the last digits of x."
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
    if restart is not None and restart.relation not in (Relation.SAME_POINT, Relation.LOWER):
        notes.append(f"IPOPT started at the point gave {restart.relation.value}.")
    return (*notes, *ipopt_notes(reference, ipopt=ipopt))


def _infeasible(
    rows: Rows,
    first: NlpFirstOrder,
    violation: ViolationSlope | None,
    tol: float,
    *,
    scaled: bool,
) -> list[Finding]:
    worst = int(np.argmax(np.abs(rows.violation)))
    relation = rows.describe(worst, float(np.sign(rows.violation[worst])))
    size = size_text(first.feasibility, scaled=scaled)
    found = [Finding(Rejection.INFEASIBLE, f"{relation} is violated by {size}, above {tol:.0e}.")]
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


def _not_stationary(
    first: NlpFirstOrder, qualification: Qualification, tol: float, *, scaled: bool
) -> Finding:
    sentence = (
        f"No multipliers make x stationary: the best leave {first.stationarity.where} with "
        f"|∂L/∂x| = {size_text(first.stationarity, scaled=scaled)}, above {tol:.0e}."
    )
    if qualification.mfcq is False and first.feasibility.within(tol, scaled=scaled):
        sentence += (
            " The active gradients are positively dependent (MFCQ fails), so even a minimizer "
            "need not have multipliers here: it is a Fritz John point."
        )
    return Finding(Rejection.NOT_STATIONARY, sentence)


def _not_complementary(
    rows: Rows, first: NlpFirstOrder, tol: float, *, scaled: bool
) -> list[Finding]:
    measure = first.residuals.complementarity
    row = rows.names.index(measure.where)
    if abs(rows.violation[row]) > tol:
        return []  # Infeasibility says it.
    relation = rows.describe(row, float(np.sign(first.multipliers[row])))
    return [
        Finding(
            Rejection.NOT_COMPLEMENTARY,
            f"{relation} has the multiplier {first.multipliers[row]:+.2e} but x is off this bound: "
            f"multiplier times distance is {size_text(measure, scaled=scaled)}, above {tol:.0e}.",
        )
    ]


def _wrong_sign(rows: Rows, first: NlpFirstOrder) -> Finding:
    measure = first.residuals.dual_sign
    row = rows.names.index(measure.where)
    multiplier = float(first.multipliers[row])
    return Finding(
        Rejection.WRONG_SIGN,
        f"{rows.describe(row, -float(np.sign(multiplier)))} is active, but only a multiplier of "
        f"the wrong sign ({multiplier:+.2e}) makes x stationary: f falls when x leaves it.",
    )


def _given(given: NlpGiven, tol: float, *, scaled: bool) -> Finding:
    parts = [
        f"{name.replace('_', ' ')} {size_text(measure, scaled=scaled)} at {measure.where}"
        for name in ("stationarity", "complementarity", "dual_sign")
        if not (measure := getattr(given.residuals, name)).within(tol, scaled=scaled)
    ]
    text = f"The given multipliers leave {', '.join(parts)}"
    if given.flipped.dual_hold(tol, scaled=scaled):
        return Finding(
            Rejection.FLIPPED_SIGN,
            f"{text}, but their negatives satisfy the conditions: they probably belong to "
            "L = f − λᵀg, while the convention here is L = f + lam_gᵀg + lam_xᵀx.",
        )
    return Finding(Rejection.WRONG_MULTIPLIERS, f"{text}, above {tol:.0e}.")
