"""Second-order conditions of a nonlinear program (Nocedal and Wright, section 12.5).

With λ fixed, a critical direction d keeps the equations and the strongly active rows (A_i d = 0)
and does not leave the weakly active ones. Positive curvature of ∇²L on ker A of the former, which
contains every critical direction, proves a strict minimizer. Negative curvature in a critical
direction refutes one, where multipliers are unique.

Active bounds leave variables out, so everything lives in the free ones. Without weakly active rows
this is the equality-constrained question that :mod:`casadi_hybrid.verify.curvature` answers on the
face of the active rows. A few weakly active rows are decided exactly, face by face: the least of
dᵀHd on the sphere within the cone is an eigenvector of H on one of its faces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space

from casadi_hybrid.errors import EvaluationError
from casadi_hybrid.functions import Evaluation
from casadi_hybrid.inputs import Matrix, Vector
from casadi_hybrid.nlp.standard import Bounds, Evaluator
from casadi_hybrid.verify.curvature import (
    ROUNDING,
    Curvature,
    ReducedHessian,
    SecondOrder,
    second_order,
)
from casadi_hybrid.verify.multipliers import Fit
from casadi_hybrid.verify.nlp.active import ActiveSet, Qualification
from casadi_hybrid.verify.nlp.face import Face, count_negative, make_face
from casadi_hybrid.verify.nlp.rows import Rows
from casadi_hybrid.verify.path import falls_along

WEAK_LIMIT = 8
"""Weakly active rows up to which every face of the critical cone is looked at."""
KERNEL_LIMIT = 3500
"""Free variables up to which the reduced Hessian is formed."""
PENALTIES = (1e-6, 1e-8, 1e-10)
INSIDE = 1e-9


def nlp_second_order(
    evaluator: Evaluator,
    rows: Rows,
    bounds: Bounds,
    active: ActiveSet,
    qualification: Qualification,
    fitted: Vector,
    given: Vector | None,
    residual: float,
    tol: float,
) -> SecondOrder:
    """Judge the curvature at a KKT point.

    Args:
        evaluator: the problem's functions.
        rows, bounds, active, qualification: the problem at x.
        fitted: the fitted multipliers (lam_x; lam_g).
        given: given multipliers that satisfy the first-order conditions, or None.
        residual: the stationarity residual.
        tol: curvature at most this large counts as zero.

    Returns:
        The verdict, with the inertia on the kernel of the binding rows. Its direction is one of
        R^n, its multipliers are (lam_x; lam_g).
    """
    face = make_face(rows, active.binding)
    view = _OnFace(evaluator, rows, bounds, face, tol)
    local = None if given is None else given[rows.n + face.constraints]
    try:
        found = _judge(view, active, qualification, fitted, local, residual, tol)
    except EvaluationError:
        found = _without_eigenvalues(Curvature.UNDEFINED, view.pick(fitted), tol)
    direction = None
    if found.direction is not None:
        direction = np.zeros(rows.n)
        direction[face.free] = found.direction
    full = fitted if found.chosen == "fitted" else view.complete(found.multipliers)
    return replace(found, direction=direction, multipliers=full.copy())


def _judge(
    view: _OnFace,
    active: ActiveSet,
    qualification: Qualification,
    fitted: Vector,
    given: Vector | None,
    residual: float,
    tol: float,
) -> SecondOrder:
    face, multipliers = view.face, view.pick(fitted)
    dimension = face.free.size - face.rank
    if dimension == 0:
        point = Curvature.VERTEX if active.strong.size else Curvature.ISOLATED_POINT
        return _without_eigenvalues(point, multipliers, tol)
    if not face.small:
        if _proved(view, multipliers, tol):
            strict = _without_eigenvalues(Curvature.STRICT_MINIMIZER, multipliers, tol)
            return replace(strict, counted=(dimension, 0, 0))
        if face.free.size > KERNEL_LIMIT:
            return _without_eigenvalues(Curvature.UNDECIDED, multipliers, tol)
    fit = replace(face.fit, multipliers=multipliers)
    at = view.first(view.rows.x[face.free])
    if active.weak.size == 0:
        admissible = view.admissible(active)
        return second_order(view, at, fit, given, residual, tol, admissible=admissible)
    return _on_cone(view, at, fit, active, qualification, residual, tol)


def _without_eigenvalues(verdict: Curvature, multipliers: Vector, tol: float) -> SecondOrder:
    return SecondOrder(verdict, np.zeros(0), tol, None, multipliers, "fitted")


class _OnFace:
    """The problem on a face: min f over the free variables s.t. its constraints are equations."""

    def __init__(
        self, evaluator: Evaluator, rows: Rows, bounds: Bounds, face: Face, tol: float
    ) -> None:
        self.rows, self.face = rows, face
        self._evaluator, self._bounds, self._tol = evaluator, bounds, tol
        index = rows.n + face.constraints
        below = np.abs(rows.value - rows.lower) <= np.abs(rows.value - rows.upper)
        self._target = np.where(below, rows.lower, rows.upper)[index]

    def pick(self, multipliers: Vector) -> Vector:
        """The face's part of (lam_x; lam_g)."""
        return np.asarray(multipliers[self.rows.n + self.face.constraints])

    def complete(self, multipliers: Vector) -> Vector:
        """(lam_x; lam_g) from the face's part: lam_x is what its active bounds need."""
        n = self.rows.n
        full = np.zeros(self.rows.value.size)
        full[n + self.face.constraints] = multipliers
        slope = self.rows.gradient + self.rows.jacobian.T @ full
        slope[self.face.free] = 0.0
        full[:n] = -slope
        return full

    def admissible(self, active: ActiveSet) -> Callable[[Vector], bool]:
        """Whether the face's multipliers, and the bounds' that go with them, have their signs."""
        signs = np.zeros(self.rows.value.size)
        signs[active.strong] = active.signs[active.strong]

        def check(multipliers: Vector) -> bool:
            return bool((signs * self.complete(multipliers) >= 0.0).all())

        return check

    def first(self, x: Vector) -> Evaluation:
        """The functions on the face.

        Raises:
            EvaluationError: where they are undefined, or a row off the face is violated.
        """
        full = self._full(x)
        f, gradient, g, J = self._evaluator.first(full)
        at = Rows.at(full, (f, gradient, g, J), self._bounds, self.rows.names)
        violation = np.abs(at.violation)
        violation[self.rows.n + self.face.constraints] = 0.0
        bad = np.flatnonzero(violation > np.maximum(self._tol, np.abs(self.rows.violation)))
        if bad.size:
            i = int(bad[0])
            raise EvaluationError("a row off the face", self.rows.names[i], float(at.value[i]))
        return self._pack(full, f, gradient, g, J, None)

    def second(self, x: Vector, multipliers: Vector) -> Evaluation:
        """The same with the Hessian of the Lagrangian on the free variables."""
        full = self._full(x)
        H = self.hessian(x, multipliers).toarray()
        return self._pack(full, *self._evaluator.first(full), H)

    def hessian(self, x: Vector, multipliers: Vector) -> sp.csc_array:
        """The sparse Hessian of the Lagrangian on the free variables."""
        lam = np.zeros(self.rows.value.size - self.rows.n)
        lam[self.face.constraints] = multipliers
        H = self._evaluator.hessian(self._full(x), lam)
        return sp.csc_array(H[:, self.face.free].tocsr()[self.face.free])

    def _full(self, x: Vector) -> Vector:
        full = self.rows.x.copy()
        full[self.face.free] = x
        return full

    def _pack(
        self, x: Vector, f: float, gradient: Vector, g: Vector, J: sp.csc_array, H: Matrix | None
    ) -> Evaluation:
        free, constraints = self.face.free, self.face.constraints
        h = g[constraints] - self._target
        block = J.tocsr()[constraints][:, free].toarray()
        return Evaluation(x[free], f, gradient[free], h, block, H, h)


def _proved(view: _OnFace, multipliers: Vector, tol: float) -> bool:
    """Whether an LDLᵀ of K = [H − zero·I, Âᵀ; Â, −εI] shows positive curvature on ker Â.

    With as many negative pivots as constraints, H − zero·I + ÂᵀÂ/ε is positive definite.
    """
    face = view.face
    H = view.hessian(view.rows.x[face.free], multipliers)
    size = max(float(abs(H).max()) if H.nnz else 0.0, 1e-300)
    zero = max(tol, ROUNDING * size) / size
    n, k = face.free.size, face.sizes.size
    shifted = 0.5 * (H + H.T) / size - zero * sp.eye_array(n)
    for epsilon in PENALTIES:
        lower = -epsilon * sp.eye_array(k)
        K = sp.block_array([[shifted, face.scaled.T], [face.scaled, lower]], format="csc")
        if count_negative(K) == k:
            return True
    return False


def _on_cone(
    view: _OnFace,
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
    # Rows of W: d stays feasible to first order where W d ≤ 0.
    outward = active.signs[active.weak][:, None] * view.rows.jacobian[active.weak].toarray()
    W = outward[:, view.face.free] / view.rows.sizes[active.weak][:, None]
    if active.weak.size > WEAK_LIMIT:
        return replace(found, verdict=Curvature.UNDECIDED)
    reduced = model.reduced(fit.multipliers)[0]
    least, direction, decided = least_on_cone(reduced, W @ model.Z)
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


def _falls(view: _OnFace, at: Evaluation, found: SecondOrder, residual: float) -> bool:
    assert found.direction is not None
    return falls_along(view, at, found.direction, found.multipliers, residual) is not None


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
