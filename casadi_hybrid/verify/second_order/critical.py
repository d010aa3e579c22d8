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

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Matrix, Vector
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.verify.first_order.active import ActiveSet, Qualification
from casadi_hybrid.verify.first_order.face import Faces, OnFace
from casadi_hybrid.verify.first_order.multipliers import Fit
from casadi_hybrid.verify.second_order.cone import in_cone, least_on_cone
from casadi_hybrid.verify.second_order.curvature import (
    Curvature,
    ReducedHessian,
    SecondOrder,
    second_order,
)
from casadi_hybrid.verify.second_order.large import by_factorization, without_eigenvalues
from casadi_hybrid.verify.second_order.path import falls_along

WEAK_LIMIT = 8
"""Weakly active rows up to which every face of the critical cone is looked at."""
KERNEL_LIMIT = 3500
"""Free variables up to which the reduced Hessian is formed."""


def critical_second_order(
    faces: Faces,
    active: ActiveSet,
    qualification: Qualification,
    fitted: Vector,
    given: Vector | None,
    tol: float,
) -> SecondOrder:
    """Judge the curvature at a KKT point.

    Args:
        faces, active, qualification: the problem at x.
        fitted: the fitted multipliers (lam_x; lam_g).
        given: given multipliers that satisfy the first-order conditions, or None.
        tol: curvature at most this large counts as zero.

    Returns:
        The verdict, with the inertia on the kernel of the binding rows. Its direction is one of
        R^n, its multipliers are (lam_x; lam_g).
    """
    rows, face = faces.rows, faces.of(active.binding)
    view = faces.view(face)
    local = None if given is None else given[rows.n + face.constraints]
    try:
        found = _judge(view, active, qualification, fitted, local, tol)
    except EvaluationError:
        found = without_eigenvalues(Curvature.UNDEFINED, view.pick(fitted), tol)
    direction = None
    if found.direction is not None:
        direction = np.zeros(rows.n)
        direction[face.free] = found.direction
    full = fitted if found.chosen == "fitted" else view.complete(found.multipliers)
    return replace(found, direction=direction, multipliers=full.copy())


def _judge(
    view: OnFace,
    active: ActiveSet,
    qualification: Qualification,
    fitted: Vector,
    given: Vector | None,
    tol: float,
) -> SecondOrder:
    face, multipliers = view.face, view.pick(fitted)
    dimension = face.free.size - face.rank
    if dimension == 0:
        point = Curvature.VERTEX if active.strong.size else Curvature.ISOLATED_POINT
        return without_eigenvalues(point, multipliers, tol)
    if not view.exact:
        return without_eigenvalues(Curvature.UNAVAILABLE, multipliers, tol)
    if not face.small:
        return _on_large_face(view, active, qualification, multipliers, tol)
    fit = replace(face.fit, multipliers=multipliers)
    at = view.first(view.rows.x[face.free])
    # Small multipliers of rows off the face are a slope on it that is no way down.
    residual = float(np.abs(at.gradient + at.B.T @ multipliers).max())
    if active.weak.size == 0:
        signs = np.zeros(view.rows.value.size)
        signs[active.strong] = active.signs[active.strong]
        admissible = view.admissible(signs)
        return second_order(view, at, fit, given, residual, tol, admissible=admissible)
    return _on_cone(view, at, fit, active, qualification, residual, tol)


def _on_large_face(
    view: OnFace,
    active: ActiveSet,
    qualification: Qualification,
    multipliers: Vector,
    tol: float,
) -> SecondOrder:
    """The verdict without paths and without a search for other multipliers."""
    face = view.face
    found = by_factorization(view, multipliers, tol)
    if found is None and face.free.size > KERNEL_LIMIT:
        return without_eigenvalues(Curvature.UNDECIDED, multipliers, tol)
    if found is None:
        fit = replace(face.fit, multipliers=multipliers)
        model = ReducedHessian(view, view.rows.x[face.free], fit, tol)
        found = model.judge(multipliers, "fitted")
    if found.verdict is not Curvature.NEGATIVE_CURVATURE:
        return found
    assert found.direction is not None
    critical = in_cone(_outward(view, active), found.direction)
    if qualification.licq and critical is not None:
        return replace(found, direction=critical)
    return replace(found, verdict=Curvature.UNDECIDED)


def _outward(view: OnFace, active: ActiveSet) -> Matrix:
    """W: a direction d of the face does not leave the weakly active rows where W d ≤ 0."""
    signs = active.signs[active.weak][:, None]
    outward = signs * view.rows.jacobian[active.weak].toarray()[:, view.face.free]
    return np.asarray(outward / view.rows.sizes[active.weak][:, None])


def _on_cone(
    view: OnFace,
    at: Evaluation,
    fit: Fit,
    active: ActiveSet,
    qualification: Qualification,
    residual: float,
    tol: float,
) -> SecondOrder:
    """The verdict where some rows are weakly active."""
    model = ReducedHessian(view, at.x, fit, tol)
    found = model.judge(fit.multipliers, "fitted")
    if found.verdict is Curvature.STRICT_MINIMIZER:
        return found
    if active.weak.size > WEAK_LIMIT:
        return replace(found, verdict=Curvature.UNDECIDED)
    reduced = model.reduced(fit.multipliers)[0]
    least, direction, decided = least_on_cone(reduced, _outward(view, active) @ model.Z)
    if direction is None:
        verdict = Curvature.CRITICAL_CONE if decided else Curvature.UNDECIDED
        return replace(found, verdict=verdict)
    found = replace(found, direction=model.Z @ direction)
    if least < -found.zero:
        sure = qualification.licq or _falls(view, at, found, residual)
        verdict = Curvature.NEGATIVE_CURVATURE if sure else Curvature.UNDECIDED
    elif not decided:
        verdict = Curvature.UNDECIDED
    elif least > found.zero:
        verdict = Curvature.CRITICAL_CONE
    else:
        falls = _falls(view, at, found, residual)
        verdict = Curvature.DESCENT if falls else Curvature.DEGENERATE
    return replace(found, verdict=verdict)


def _falls(view: OnFace, at: Evaluation, found: SecondOrder, residual: float) -> bool:
    assert found.direction is not None
    return falls_along(view, at, found.direction, found.multipliers, residual) is not None
