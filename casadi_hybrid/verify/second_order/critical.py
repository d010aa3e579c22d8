"""Second-order conditions of a nonlinear program (Nocedal and Wright, section 12.5).

A critical direction d keeps the equations and the strongly active rows (A_i d = 0) and does not
leave the weakly active ones. Positive curvature of ∇²L on ker A of the former proves a strict
minimizer. Negative curvature in a critical direction refutes one if multipliers are unique.
A few weakly active rows are decided exactly, face by face of the cone.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.linalg import null_space

from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.verify.first_order.active import ActiveSet, qualify
from casadi_hybrid.verify.first_order.face import Face, Faces
from casadi_hybrid.verify.first_order.kkt import FirstOrder
from casadi_hybrid.verify.second_order.curvature import (
    NO_MINIMIZER,
    Curvature,
    ReducedHessian,
    SecondOrder,
    by_inertia,
    falls_along,
)

WEAK_LIMIT = 8  # number of weakly active rows up to which every face of the cone is examined
PATHS = 20  # largest number of flat directions to follow
INSIDE = 1e-9
_UNPROVED = (*NO_MINIMIZER, Curvature.UNDECIDED)
_BEST_FIRST = (Curvature.STRICT_MINIMIZER, Curvature.DEGENERATE, Curvature.NEGATIVE_CURVATURE)


def critical_second_order(
    faces: Faces, first: FirstOrder, active: ActiveSet, licq: bool
) -> SecondOrder:
    """Judge the curvature at a KKT point on the kernel of the binding rows."""
    rows, face, instance = faces.rows, faces.of(active.binding), faces.instance
    # Given multipliers count if they satisfy the first order.
    given = None
    if first.given is not None and instance.within(*first.given.residuals[1:]):
        given = face.pick(first.given.multipliers)
    fitted = face.pick(first.multipliers)
    try:
        verdict = _judge(face, active, licq, fitted, given)
    except EvaluationError:
        verdict = SecondOrder(Curvature.UNDEFINED, instance.tol, fitted)
    except FloatingPointError:
        verdict = SecondOrder(Curvature.UNDECIDED, instance.tol, fitted)
    direction = None
    if verdict.direction is not None:
        direction = np.zeros(rows.n)
        direction[face.free] = verdict.direction
    fit = verdict.chosen == "fitted"
    full = first.multipliers.copy() if fit else face.complete(verdict.multipliers)
    return replace(verdict, direction=direction, multipliers=full)


def judged_with_near_limits(
    faces: Faces, first: FirstOrder, active: ActiveSet, licq: bool
) -> SecondOrder:
    """Judge as :func:`critical_second_order`; without a proof count near limits as active too."""
    verdict = critical_second_order(faces, first, active, licq)
    if verdict.verdict not in _UNPROVED:
        return verdict
    # An interior-point method ends at a distance from a limit, the barrier parameter divided by the
    # multiplier. Such a limit counts if f falls by at most tol on the way, and this proves it.
    sides, rows = first.sides, faces.rows
    # ½|curvature|·distance² is the fall of f on the way to the limit; twice that is compared.
    fall = -(verdict.smallest or 0.0) * (sides.distance / rows.sizes[sides.row]) ** 2
    near = (sides.sign * first.multipliers[sides.row] > 0) & (fall <= faces.instance.tol)
    near &= ~np.isin(sides.row, active.all)
    if not near.any():
        return verdict
    signs = active.signs.copy()
    signs[sides.row[near]] = sides.sign[near]
    strong = np.sort(np.concatenate((active.strong, sides.row[near])))
    larger = replace(active, strong=strong, signs=signs)
    again = critical_second_order(faces, first, larger, qualify(faces, larger).licq)
    if again.verdict in _UNPROVED:
        return verdict
    return replace(again, near=larger.names_of(sides.row[near]))


def _judge(
    face: Face, active: ActiveSet, licq: bool, fitted: Vector, given: Vector | None
) -> SecondOrder:
    tol = face.instance.tol
    if face.free.size == face.rank:
        # ker A = {0}: no direction is left to judge.
        point = Curvature.VERTEX if active.strong.size else Curvature.ISOLATED_POINT
        return SecondOrder(point, tol, fitted)
    if not face.exact:
        return SecondOrder(Curvature.UNAVAILABLE, tol, fitted)
    if face.small:
        return _on_small_face(face, active, licq, fitted, given)
    verdict = by_inertia(face, fitted)
    if verdict.direction is None:
        return verdict
    # A large face has no search for paths or other multipliers.
    critical = _in_cone(_outward(face, active), verdict.direction)
    # With unique multipliers negative curvature in a critical direction refutes a minimum.
    if licq and critical is not None:
        return replace(verdict, direction=critical)
    return replace(verdict, verdict=Curvature.UNDECIDED)


def _on_small_face(
    face: Face, active: ActiveSet, licq: bool, fitted: Vector, given: Vector | None
) -> SecondOrder:
    model, weak = ReducedHessian(face), active.weak.size
    best = model.judge(fitted)
    if best.verdict is not Curvature.STRICT_MINIMIZER and not licq and not weak:
        # Multipliers are not unique: any choice with positive curvature proves a minimizer.
        signs = np.zeros(face.rows.value.size)
        signs[active.strong] = active.signs[active.strong]
        trials = [best] if given is None else [best, model.judge(given, "given")]
        trials.append(model.search(fitted, signs))
        best = min(trials, key=lambda trial: _BEST_FIRST.index(trial.verdict))
    if best.verdict is Curvature.STRICT_MINIMIZER:
        return best
    if weak > WEAK_LIMIT:
        return replace(best, verdict=Curvature.UNDECIDED)
    reduced = model.reduced(best.multipliers)[0]
    least, y, decided = least_on_cone(reduced, _outward(face, active) @ model.Z)
    if y is not None:
        best = replace(best, direction=model.Z @ y)
    if least > best.zero:
        proved = Curvature.CRITICAL_CONE if decided else Curvature.UNDECIDED
        return replace(best, verdict=proved)
    falling = least < -best.zero
    if falling and licq:
        return replace(best, verdict=Curvature.NEGATIVE_CURVATURE)
    if not (falling or decided):
        return replace(best, verdict=Curvature.UNDECIDED)
    # Curvature alone does not decide: f must fall along a feasible path.
    values, vectors = np.linalg.eigh(reduced)
    flat = vectors.T[values <= best.zero][:PATHS]
    start = face.first(face.x)
    # Small multipliers of rows off the face are a slope on the face, but no descent.
    residual = float(np.abs(start.gradient + start.B.T @ fitted).max())
    for inner in y[None, :] if weak and y is not None else flat:
        path = falls_along(face, start, model.Z @ inner, best.multipliers, residual)
        if path is not None:
            verdict = Curvature.NEGATIVE_CURVATURE if falling else Curvature.DESCENT
            return replace(best, verdict=verdict, direction=path)
    return replace(best, verdict=Curvature.UNDECIDED if falling else Curvature.DEGENERATE)


def _outward(face: Face, active: ActiveSet) -> Matrix:
    """Return W: a direction d of the face keeps the weakly active rows if W d ≤ 0."""
    signs = active.signs[active.weak][:, None]
    outward = signs * face.rows.jacobian[active.weak].toarray()[:, face.free]
    return np.asarray(outward / face.rows.sizes[active.weak][:, None])


def least_on_cone(R: Matrix, W: Matrix) -> tuple[float, Vector | None, bool]:
    """Minimize yᵀRy over unit y with W y ≤ 0; return value, y or None, and True if proved."""
    # The minimizer is an eigenvector of R on a face of the cone, on which some rows vanish.
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
                # Another eigenvector of a repeated eigenvalue may lie inside: nothing is proved.
                repeated = np.count_nonzero(np.abs(values - value) <= gap) > 1
                if y is None and repeated:
                    unresolved.append(float(value))
                elif y is not None and value < least:
                    least, best = float(value), y
    return least, best, min(unresolved) >= least


def _in_cone(W: Matrix, y: Vector) -> Vector | None:
    """Return y or −y, the one with W y ≤ 0, or None."""
    for candidate in (y, -y):
        if (W @ candidate <= INSIDE).all():
            return np.asarray(candidate)
    return None
