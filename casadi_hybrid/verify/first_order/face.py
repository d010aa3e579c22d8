"""The face of the feasible set on which some rows hold with equality.

Active bounds leave variables out; the other active rows are constraints on the free ones. Rank and
kernel of their Jacobian come from singular values where it is small, from sparse and QR
factorizations where it is large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr, solve_triangular

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.factorization import inertia
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.derivatives import EXACT
from casadi_hybrid.problem.evaluator import Evaluator
from casadi_hybrid.problem.functions import Evaluation
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.verify.first_order.multipliers import (
    RANK_TOLERANCE,
    Fit,
    fit_multipliers,
    settled_rank,
)
from casadi_hybrid.verify.first_order.rows import Indices, Measure, Rows, largest_of

DENSE_LIMIT = 500
"""Up to this many free variables and rows the singular values are computed."""
DEPENDENT = 1e-10
"""Eigenvalues of ÂÂᵀ below this count as zero (Â has rows with entries up to one).

Where rows are dependent at a solution, they have singular values of the size of the error of x
near it: 1e-5 covers that of points within a tolerance of 1e-6.
"""


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem with its numbers, and what a residual of a point is held against.

    Attributes:
        problem, evaluator: the problem, and its functions at the parameters.
        bounds: rows with lbg = ubg are the equations.
        tol, scaled: as :func:`~casadi_hybrid.verify.verify` takes them.
    """

    problem: Problem
    evaluator: Evaluator
    bounds: Bounds
    tol: float = 1e-6
    scaled: bool = False

    def within(self, *measures: Measure) -> bool:
        """Whether all these residuals are within the tolerance."""
        return all(one.within(self.tol, scaled=self.scaled) for one in measures)


@dataclass(frozen=True, eq=False)
class Face:
    """The variables that active bounds leave free and the active constraints on them.

    Attributes:
        free: indices of the variables without an active bound.
        constraints: indices of the active constraints, into g.
        gradient: ∂f/∂x_free.
        jacobian: their J_g, sparse.
        most: a rank that the Jacobian is known not to exceed.
    """

    free: Indices
    constraints: Indices
    gradient: Vector
    jacobian: Any
    most: int | None = None

    @property
    def small(self) -> bool:
        """Whether dense linear algebra is the faster way."""
        return bool(max(self.jacobian.shape) <= DENSE_LIMIT)

    @cached_property
    def fit(self) -> Fit:
        """Rank, kernel and cokernel of the Jacobian; its multipliers know no signs."""
        k, n = self.jacobian.shape
        if k == 0 or n == 0:
            return Fit(np.zeros(k), 0, 1.0, np.eye(n), np.eye(k))
        if self.small:
            return fit_multipliers(self.gradient, self.jacobian.toarray(), max_rank=self.most)
        return self._fit_by_qr()

    @cached_property
    def rank(self) -> int:
        """Numerical rank of the Jacobian.

        Where it is large, the negative eigenvalues of [I, Âᵀ; Â, δI]: those of δI − ÂÂᵀ, the Schur
        complement of I, without a product that one column in all rows would fill.
        """
        if self.small:
            return self.fit.rank
        k, n = self.jacobian.shape
        corner = DEPENDENT * sp.eye_array(k)
        found = inertia(sp.block_array([[sp.eye_array(n), self.scaled.T], [self.scaled, corner]]))
        return self.fit.rank if found is None else found.negative

    @cached_property
    def sizes(self) -> Vector:
        """Those of the rows of the Jacobian."""
        return largest_of(self.jacobian, 1)

    @cached_property
    def scaled(self) -> Any:
        """The Jacobian with rows whose largest entry is one."""
        return sp.diags_array(1.0 / self.sizes) @ self.jacobian

    def _fit_by_qr(self) -> Fit:
        """Rank and kernels by QR with pivoting, without multipliers."""
        k = self.sizes.size
        Q, R, order = qr(self.scaled.T.toarray(), pivoting=True)
        pivots = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(pivots > RANK_TOLERANCE * pivots[0]))
        free = np.zeros((k, k - rank))
        if rank < k:
            free[order[:rank]] = -solve_triangular(R[:rank, :rank], R[:rank, rank:])
            free[order[rank:]] = np.eye(k - rank)
            free = np.linalg.qr(free / self.sizes[:, None])[0]
        condition = float(pivots[0] / pivots[rank - 1]) if rank else 1.0
        return Fit(np.zeros(k), rank, condition, Q[:, rank:], free)


class Faces:
    """The faces of an instance at one point.

    Raises:
        EvaluationError: where x or a function is not finite.
    """

    def __init__(self, instance: Instance, x: Vector) -> None:
        functions = instance.problem.functions
        bad = np.flatnonzero(~np.isfinite(x))
        if bad.size:
            raise EvaluationError("the point x", functions.variable_names[bad[0]], float(x[bad[0]]))
        names = functions.variable_names + functions.constraint_names
        self.instance = instance
        self.rows = Rows.at(x, instance.evaluator.first(x), instance.bounds, names)

    @cached_property
    def equations(self) -> Face:
        """The face of the equations alone, with the rank that they have where they hold."""
        face = self._make(np.flatnonzero(self.rows.equations))
        if not (face.small and face.free.size and face.constraints.size):
            return face
        view = OnFace(self, face)
        with np.errstate(all="ignore"):
            rank = settled_rank(view.first, view.first(view.x))
        return replace(face, most=rank)

    def of(self, active: Indices) -> Face:
        """The face on which the rows in ``active``, the equations among them, hold."""
        alone = active.size == np.count_nonzero(self.rows.equations)
        return self.equations if alone else self._make(active)

    def _make(self, active: Indices) -> Face:
        rows, n = self.rows, self.rows.n
        free = np.setdiff1d(np.arange(n), active[active < n])
        constraints = active[active >= n] - n
        jacobian = rows.jacobian[constraints + n][:, free].tocsr()
        return Face(free, constraints, rows.gradient[free], jacobian)


class OnFace:
    """The problem on a face: min f over the free variables x s.t. its constraints are equations."""

    def __init__(self, faces: Faces, face: Face) -> None:
        self.instance, self.rows, self.face = faces.instance, faces.rows, face
        rows = self.rows
        self.x = rows.x[face.free]
        index = rows.n + face.constraints
        below = np.abs(rows.value - rows.lower) <= np.abs(rows.value - rows.upper)
        self._target = np.where(below, rows.lower, rows.upper)[index]

    @property
    def exact(self) -> bool:
        """Whether there are exact second derivatives."""
        return self.instance.problem.functions.hessian == EXACT

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

    def first(self, x: Vector) -> Evaluation:
        """The functions on the face.

        Raises:
            EvaluationError: where they are undefined, or a row off the face is violated.
        """
        full, rows, face = self._full(x), self.rows, self.face
        f, gradient, g, J = self.instance.evaluator.first(full)
        at = Rows.at(full, (f, gradient, g, J), self.instance.bounds, rows.names)
        violation = np.abs(at.violation)
        violation[rows.n + face.constraints] = 0.0
        bad = np.flatnonzero(violation > np.maximum(self.instance.tol, np.abs(rows.violation)))
        if bad.size:
            i = int(bad[0])
            raise EvaluationError("a row off the face", rows.names[i], float(at.value[i]))
        h = g[face.constraints] - self._target
        B = J.tocsr()[face.constraints][:, face.free].toarray()
        return Evaluation(x, f, gradient[face.free], h, B, None, h)

    def hessian(self, x: Vector, multipliers: Vector) -> sp.csc_array:
        """The sparse Hessian of the Lagrangian on the free variables."""
        lam = np.zeros(self.rows.value.size - self.rows.n)
        lam[self.face.constraints] = multipliers
        H = self.instance.evaluator.hessian(self._full(x), lam)
        return sp.csc_array(H[:, self.face.free].tocsr()[self.face.free])

    def _full(self, x: Vector) -> Vector:
        full = self.rows.x.copy()
        full[self.face.free] = x
        return full
