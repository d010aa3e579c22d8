"""Second-order conditions of a nonlinear program (Nocedal and Wright, section 12.5).

With λ fixed, a critical direction d keeps the equations and the strongly active rows (A_i d = 0)
and does not leave the weakly active ones. Positive curvature of ∇²L on ker A of the former, which
contains every critical direction, proves a strict minimizer. Negative curvature in a critical
direction refutes one, where multipliers are unique.

Active bounds leave variables out, so everything lives in the free ones. Without weakly active rows
this is the equality-constrained question that
:mod:`casadi_hybrid.verify.second_order.curvature` answers on the face of the active rows. A few
weakly active rows are decided exactly, face by face: the least of dᵀHd on the sphere within the
cone is an eigenvector of H on one of its faces.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.linalg import null_space

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.verify.first_order.active import ActiveSet, Qualification, qualify
from casadi_hybrid.verify.first_order.face import Faces, OnFace
from casadi_hybrid.verify.first_order.kkt import FirstOrder
from casadi_hybrid.verify.second_order.curvature import (
    NO_MINIMIZER,
    Curvature,
    ReducedHessian,
    SecondOrder,
    falls_along,
    second_order,
    without_eigenvalues,
)
from casadi_hybrid.verify.second_order.large import by_factorization

WEAK_LIMIT = 8
"""Weakly active rows up to which every face of the critical cone is looked at."""
KERNEL_LIMIT = 3500
"""Free variables up to which the reduced Hessian is formed."""
INSIDE = 1e-9
_UNPROVED = (*NO_MINIMIZER, Curvature.UNDECIDED)


def critical_second_order(
    faces: Faces, first: FirstOrder, active: ActiveSet, qualification: Qualification
) -> SecondOrder:
    """Judge the curvature at a KKT point; up to the instance's ``tol`` it counts as zero.

    Returns:
        The verdict, with the inertia on the kernel of the binding rows. Its direction is one of
        R^n, its multipliers are (lam_x; lam_g).
    """
    rows, face, instance = faces.rows, faces.of(active.binding), faces.instance
    view, given = OnFace(faces, face), None
    if first.given is not None and instance.within(*first.given.residuals[1:]):
        given = view.pick(first.given.multipliers)
    fitted = view.pick(first.multipliers)
    try:
        found = _judge(view, active, qualification.licq, fitted, given)
    except EvaluationError:
        found = without_eigenvalues(Curvature.UNDEFINED, fitted, instance.tol)
    direction = None
    if found.direction is not None:
        direction = np.zeros(rows.n)
        direction[face.free] = found.direction
    fit = found.chosen == "fitted"
    full = first.multipliers.copy() if fit else view.complete(found.multipliers)
    return replace(found, direction=direction, multipliers=full)


def judged_with_near_limits(
    faces: Faces, first: FirstOrder, active: ActiveSet, qualification: Qualification
) -> SecondOrder:
    """As :func:`critical_second_order`, and where that proves no minimum with near limits too.

    An interior-point method ends off a limit whose multiplier is small, by the barrier parameter
    divided by it. Such a limit counts as active where f falls by no more than ``tol`` on the way to
    it, and that leaves a minimizer.
    """
    found = critical_second_order(faces, first, active, qualification)
    if found.verdict not in _UNPROVED:
        return found
    sides, rows = first.sides, faces.rows
    fall = -(found.smallest or 0.0) * (sides.distance / rows.sizes[sides.row]) ** 2
    near = (sides.sign * first.multipliers[sides.row] > 0) & (fall <= faces.instance.tol)
    near &= ~np.isin(sides.row, active.all)
    if not near.any():
        return found
    signs = active.signs.copy()
    signs[sides.row[near]] = sides.sign[near]
    strong = np.sort(np.concatenate((active.strong, sides.row[near])))
    more = replace(active, strong=strong, signs=signs)
    again = critical_second_order(faces, first, more, qualify(faces, more))
    if again.verdict in _UNPROVED:
        return found
    return replace(again, near=more.names_of(sides.row[near]))


def _judge(
    view: OnFace, active: ActiveSet, licq: bool, fitted: Vector, given: Vector | None
) -> SecondOrder:
    face, tol = view.face, view.instance.tol
    if face.free.size == face.rank:
        point = Curvature.VERTEX if active.strong.size else Curvature.ISOLATED_POINT
        return without_eigenvalues(point, fitted, tol)
    if not view.exact:
        return without_eigenvalues(Curvature.UNAVAILABLE, fitted, tol)
    if not face.small:
        return _on_large_face(view, active, licq, fitted)
    at = view.first(view.x)
    # Small multipliers of rows off the face are a slope on it that is no way down.
    residual = float(np.abs(at.gradient + at.B.T @ fitted).max())
    if active.weak.size:
        return _on_cone(view, at, active, licq, fitted, residual)
    signs = np.zeros(view.rows.value.size)
    signs[active.strong] = active.signs[active.strong]
    return second_order(view, at, fitted, given, signs, residual)


def _on_large_face(view: OnFace, active: ActiveSet, licq: bool, fitted: Vector) -> SecondOrder:
    """The verdict without paths and without a search for other multipliers."""
    found = by_factorization(view, fitted)
    if found is None and view.face.free.size > KERNEL_LIMIT:
        return without_eigenvalues(Curvature.UNDECIDED, fitted, view.instance.tol)
    if found is None:
        found = ReducedHessian(view).judge(fitted)
    if found.verdict is not Curvature.NEGATIVE_CURVATURE:
        return found
    assert found.direction is not None
    critical = _in_cone(_outward(view, active), found.direction)
    if licq and critical is not None:
        return replace(found, direction=critical)
    return replace(found, verdict=Curvature.UNDECIDED)


def _on_cone(
    view: OnFace, at: Evaluation, active: ActiveSet, licq: bool, fitted: Vector, residual: float
) -> SecondOrder:
    model = ReducedHessian(view)
    found = model.judge(fitted)
    if found.verdict is Curvature.STRICT_MINIMIZER:
        return found
    if active.weak.size > WEAK_LIMIT:
        return replace(found, verdict=Curvature.UNDECIDED)
    reduced = model.reduced(fitted)[0]
    least, inner, decided = least_on_cone(reduced, _outward(view, active) @ model.Z)
    if inner is None:
        verdict = Curvature.CRITICAL_CONE if decided else Curvature.UNDECIDED
        return replace(found, verdict=verdict)
    direction = model.Z @ inner

    def falls() -> bool:
        return falls_along(view, at, direction, fitted, residual) is not None

    if least < -found.zero:
        sure = licq or falls()
        verdict = Curvature.NEGATIVE_CURVATURE if sure else Curvature.UNDECIDED
    elif not decided:
        verdict = Curvature.UNDECIDED
    elif least > found.zero:
        verdict = Curvature.CRITICAL_CONE
    else:
        verdict = Curvature.DESCENT if falls() else Curvature.DEGENERATE
    return replace(found, direction=direction, verdict=verdict)


def _outward(view: OnFace, active: ActiveSet) -> Matrix:
    """W: a direction d of the face does not leave the weakly active rows where W d ≤ 0."""
    signs = active.signs[active.weak][:, None]
    outward = signs * view.rows.jacobian[active.weak].toarray()[:, view.face.free]
    return np.asarray(outward / view.rows.sizes[active.weak][:, None])


def least_on_cone(R: Matrix, W: Matrix) -> tuple[float, Vector | None, bool]:
    """The least yᵀRy over unit y with W y ≤ 0, by its faces.

    Returns:
        The least value found, its y (None where none was found: the cone is {0}), and whether it
        is the least for sure: repeated eigenvalues leave that open.
    """
    least, best = np.inf, None
    unresolved = [np.inf]
    for count in range(len(W) + 1):
        for chosen in combinations(range(len(W)), count):
            Y = null_space(W[list(chosen)]) if chosen else np.eye(R.shape[0])
            if Y.shape[1] == 0:
                continue
            values, vectors = np.linalg.eigh(Y.T @ R @ Y)
            inside = [_in_cone(W, y) for y in (Y @ vectors).T]
            gap = INSIDE * max(1.0, float(np.abs(values).max()))
            for value, y in zip(values, inside, strict=True):
                repeated = np.count_nonzero(np.abs(values - value) <= gap) > 1
                if y is None and repeated:
                    unresolved.append(float(value))
                elif y is not None and value < least:
                    least, best = float(value), y
    return least, best, min(unresolved) >= least


def _in_cone(W: Matrix, y: Vector) -> Vector | None:
    """y or −y where W y ≤ 0, else None."""
    for candidate in (y, -y):
        if (W @ candidate <= INSIDE).all():
            return np.asarray(candidate)
    return None
