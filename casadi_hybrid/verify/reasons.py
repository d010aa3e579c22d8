"""From facts to sentences: what speaks against a point, and what a reader should know."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.problem.functions import Evaluation, Functions
from casadi_hybrid.verify.first_order.measure import Measure
from casadi_hybrid.verify.kkt import FirstOrder, Given
from casadi_hybrid.verify.second_order.curvature import NO_MINIMIZER, Curvature, SecondOrder
from casadi_hybrid.verify.verdict import Comparison, Finding, Rejection, Relation

ILL_CONDITIONED = 1e6
"""Condition of the row-scaled Jacobian from which the rank is in doubt."""
FLAT = (
    "Curvature is zero in some feasible direction and f was not seen to fall along it: the "
    "necessary second-order condition holds, the sufficient one does not."
)


def collect_findings(
    at: Evaluation,
    names: Functions,
    first: FirstOrder,
    second: SecondOrder | None,
    restart: Comparison | None,
    tol: float,
    *,
    scaled: bool,
) -> tuple[Finding, ...]:
    """Return every reason to reject the point."""
    found = []
    if not first.feasibility.within(tol, scaled=scaled):
        found.append(_infeasible(at, first.feasibility, tol, scaled=scaled))
    if not first.stationarity.within(tol, scaled=scaled):
        found.append(
            Finding(
                Rejection.NOT_STATIONARY,
                f"No multipliers make x stationary: the best leave {first.stationarity.where} with "
                f"|∂L/∂x| = {size_text(first.stationarity, scaled=scaled)}, above {tol:.0e}.",
            )
        )
    if first.given is not None and not first.given.stationarity.within(tol, scaled=scaled):
        found.append(_given(first.given, tol, scaled=scaled))
    if second is not None:
        found += curvature_findings(second, names.variable_names)
    if restart is not None:
        found += _restart(restart, second)
    return tuple(found)


def collect_notes(
    first: FirstOrder,
    second: SecondOrder | None,
    reference: Comparison | None,
    *,
    ipopt: bool,
) -> tuple[str, ...]:
    """Return what qualifies the verdict without being a reason."""
    notes = []
    fit = first.fit
    if fit.condition > ILL_CONDITIONED:
        notes.append(
            f"The Jacobian is nearly rank deficient (condition {fit.condition:.1e}): its rank and "
            "the multipliers depend on the last digits of x."
        )
    if second is None:
        notes.append("The second order is not judged, because the first-order conditions fail.")
    elif second.chosen != "fitted":
        notes.append(
            f"Multipliers are not unique; the Hessian uses {second.chosen} ones, which show more "
            "than those of least norm."
        )
    elif not fit.unique and second.smallest is not None:
        notes.append("Multipliers are not unique; the Hessian uses the fitted ones, of least norm.")
    if second is not None and second.verdict is Curvature.DEGENERATE:
        notes.append(FLAT)
    return (*notes, *ipopt_notes(reference, ipopt=ipopt))


def ipopt_notes(reference: Comparison | None, *, ipopt: bool) -> tuple[str, ...]:
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


def undefined(error: EvaluationError) -> Finding:
    """The reason where a function of the problem is not finite."""
    where = f" at {error.entry}" if error.entry else ""
    label = error.function[0].upper() + error.function[1:]
    sentence = f"{label} is {error.value}{where}, so nothing else can be judged."
    return Finding(Rejection.UNDEFINED, sentence)


def size_text(measure: Measure, *, scaled: bool) -> str:
    """The residual that is held against the tolerance."""
    return f"{measure.scaled:.2e} (scaled)" if scaled else f"{measure.value:.2e}"


def _infeasible(at: Evaluation, feasibility: Measure, tol: float, *, scaled: bool) -> Finding:
    sentence = (
        f"Constraint {feasibility.where} is violated by {size_text(feasibility, scaled=scaled)}, "
        f"above {tol:.0e}."
    )
    with np.errstate(all="ignore"):
        slope = float(np.linalg.norm(at.B.T @ at.h))
        scale = float(np.linalg.norm(at.B) * np.linalg.norm(at.h))
    if slope <= 1e-6 * scale:
        sentence += (
            " The point is stationary for ‖h‖², so no small step helps: the constraints may "
            "contradict each other here."
        )
    return Finding(Rejection.INFEASIBLE, sentence)


def _given(given: Given, tol: float, *, scaled: bool) -> Finding:
    size = size_text(given.stationarity, scaled=scaled)
    if given.flipped.within(tol, scaled=scaled):
        return Finding(
            Rejection.FLIPPED_SIGN,
            f"The given multipliers leave a stationarity of {size}, but −λ satisfies it: they "
            "probably belong to L = f − λᵀh, while the convention here is L = f + λᵀh.",
        )
    return Finding(
        Rejection.WRONG_MULTIPLIERS,
        f"The given multipliers leave a stationarity of {size} at {given.stationarity.where}, "
        f"above {tol:.0e}.",
    )


def curvature_findings(second: SecondOrder, names: tuple[str, ...]) -> list[Finding]:
    """Return what the second order says against a point."""
    if second.verdict in NO_MINIMIZER:
        assert second.direction is not None
        return [
            Finding(
                Rejection.NOT_A_MINIMIZER,
                f"The point is {second.verdict.value} (smallest eigenvalue "
                f"{second.smallest:.3e}), along {describe_direction(second.direction, names)}.",
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


def describe_direction(direction: Vector, names: tuple[str, ...]) -> str:
    """Return the three largest components of a direction, by the names of the variables."""
    order = np.argsort(-np.abs(direction))[:3]
    text = ", ".join(f"{names[i]} {direction[i]:+.3g}" for i in order)
    return text if direction.size <= 3 else text + ", …"
