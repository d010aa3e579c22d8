"""From facts to sentences: what speaks against a point."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.active import Qualification
from casadi_hybrid.verify.first_order.infeasible import ViolationSlope
from casadi_hybrid.verify.first_order.kkt import FirstOrder, Given
from casadi_hybrid.verify.first_order.measure import Measure
from casadi_hybrid.verify.first_order.rows import Rows
from casadi_hybrid.verify.second_order.curvature import NO_MINIMIZER, Curvature, SecondOrder
from casadi_hybrid.verify.verdict import Comparison, Finding, Rejection, Relation

SHOWN = 4


def collect_findings(
    rows: Rows,
    first: FirstOrder,
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
        found += _curvature(second, rows.names[: rows.n])
    if restart is not None:
        found += _restart(restart, second)
    return tuple(found)


def undefined(error: EvaluationError) -> Finding:
    """The reason where a function of the problem is not finite."""
    where = f" at {error.entry}" if error.entry else ""
    label = error.function[0].upper() + error.function[1:]
    sentence = f"{label} is {error.value}{where}, so nothing else can be judged."
    return Finding(Rejection.UNDEFINED, sentence)


def _infeasible(
    rows: Rows,
    first: FirstOrder,
    violation: ViolationSlope | None,
    tol: float,
    *,
    scaled: bool,
) -> list[Finding]:
    worst = int(np.argmax(np.abs(rows.violation)))
    relation = rows.describe(worst, float(np.sign(rows.violation[worst])))
    size = _size(first.feasibility, scaled=scaled)
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
    first: FirstOrder, qualification: Qualification, tol: float, *, scaled: bool
) -> Finding:
    sentence = (
        f"No multipliers make x stationary: the best leave {first.stationarity.where} with "
        f"|∂L/∂x| = {_size(first.stationarity, scaled=scaled)}, above {tol:.0e}."
    )
    if qualification.mfcq is False and first.feasibility.within(tol, scaled=scaled):
        sentence += (
            " The active gradients are positively dependent (MFCQ fails), so even a minimizer "
            "need not have multipliers here: it is a Fritz John point."
        )
    return Finding(Rejection.NOT_STATIONARY, sentence)


def _not_complementary(rows: Rows, first: FirstOrder, tol: float, *, scaled: bool) -> list[Finding]:
    measure = first.residuals.complementarity
    row = rows.names.index(measure.where)
    if abs(rows.violation[row]) > tol:
        return []  # Infeasibility says it.
    relation = rows.describe(row, float(np.sign(first.multipliers[row])))
    return [
        Finding(
            Rejection.NOT_COMPLEMENTARY,
            f"{relation} has the multiplier {first.multipliers[row]:+.2e} but x is off this bound: "
            f"multiplier times distance is {_size(measure, scaled=scaled)}, above {tol:.0e}.",
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


def _given(given: Given, tol: float, *, scaled: bool) -> Finding:
    parts = [
        f"{name.replace('_', ' ')} {_size(measure, scaled=scaled)} at {measure.where}"
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


def _curvature(second: SecondOrder, names: tuple[str, ...]) -> list[Finding]:
    """Return what the second order says against a point."""
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
        return [
            Finding(Rejection.UNDECIDED, f"Whether this is a minimizer is {second.verdict.value}.")
        ]
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
    if flat and restart.relation is Relation.EQUAL:
        return []
    return [
        Finding(
            Rejection.IPOPT_MOVED,
            f"IPOPT started at the point moved by {restart.distance:.2e} to "
            f"{restart.relation.value} (f changed by {restart.f_difference:+.2e}).",
        )
    ]


def _describe(direction: Vector, names: tuple[str, ...]) -> str:
    """Return the three largest components of a direction, by the names of the variables."""
    order = np.argsort(-np.abs(direction))[:3]
    text = ", ".join(f"{names[i]} {direction[i]:+.3g}" for i in order)
    return text if direction.size <= 3 else text + ", …"


def _size(measure: Measure, *, scaled: bool) -> str:
    """The residual that is held against the tolerance."""
    return f"{measure.scaled:.2e} (scaled)" if scaled else f"{measure.value:.2e}"
