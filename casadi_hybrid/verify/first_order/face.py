"""The face of the feasible set on which some rows hold with equality.

Active bounds fix variables; the other active rows are constraints on the free ones. Rank and kernel
of a small Jacobian come from singular values, the rank of a large one from an inertia.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import Evaluator
from casadi_hybrid.problem.graph.derivatives import EXACT
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.factorization import SymmetricFactor
from casadi_hybrid.verify.first_order.fit import Fit, fit_multipliers, settled_rank
from casadi_hybrid.verify.first_order.rows import Indices, Measure, Rows, largest_of

DENSE_LIMIT = 500  # number of free variables and of rows up to which singular values are computed
# Eigenvalues of ÂÂᵀ that count as zero (Â has rows with entries up to one). Near a solution with
# dependent rows, singular values have the size of the error of x: 1e-5 covers an error of 1e-6.
DEPENDENT = 1e-10


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem with parameters, bounds and tolerance."""

    problem: Problem
    evaluator: Evaluator
    bounds: Bounds  # rows with lbg = ubg are the equations
    tol: float = 1e-6  # as verify takes it, and scaled
    scaled: bool = False

    def within(self, *measures: Measure) -> bool:
        """Return True if all these residuals are within the tolerance; NaN never is."""
        return all((m.scaled if self.scaled else m.value) <= self.tol for m in measures)


class Face:
    """The problem on a face: min f over the free variables s.t. the active constraints hold."""

    def __init__(self, instance: Instance, rows: Rows, active: Indices) -> None:
        self.instance, self.rows, n = instance, rows, rows.n
        self.free = np.setdiff1d(np.arange(n), active[active < n])
        self.constraints = active[active >= n] - n
        self.x = rows.x[self.free]
        self.jacobian = rows.jacobian[self.constraints + n][:, self.free].tocsr()
        # Each active row holds at the nearer of its bounds.
        lower_is_nearer = np.abs(rows.inside(-1.0)) <= np.abs(rows.inside(1.0))
        bound = np.where(lower_is_nearer, rows.lower, rows.upper)
        self._target = bound[n + self.constraints]
        self._equations_alone = active.size == np.count_nonzero(rows.equations)

    @property
    def small(self) -> bool:
        """True for dense linear algebra, which is faster for small matrices."""
        return bool(max(self.jacobian.shape) <= DENSE_LIMIT)

    @property
    def exact(self) -> bool:
        """True with exact second derivatives."""
        return self.instance.problem.functions.hessian == EXACT

    @cached_property
    def fit(self) -> Fit:
        """Rank, kernel and cokernel of the small Jacobian, with multipliers of any sign."""
        k, n = self.jacobian.shape
        if k == 0 or n == 0:
            return Fit(np.zeros(k), 0, 1.0, np.eye(n), np.eye(k))
        max_rank = None
        # For the equations alone, the rank at a point on which they hold.
        if self._equations_alone:
            with np.errstate(all="ignore"):
                max_rank = settled_rank(self.first, self.first(self.x))
        gradient = self.rows.gradient[self.free]
        return fit_multipliers(gradient, self.jacobian.toarray(), max_rank=max_rank)

    @cached_property
    def rank(self) -> int:
        """Numerical rank of the Jacobian."""
        if self.small or not self.free.size:
            return self.fit.rank
        # The inertia of [I, Âᵀ; Â, δI] is that of I and of the Schur complement δI − ÂÂᵀ
        # (Haynsworth, 1968). Negative eigenvalues are the squared singular values of Â above δ.
        # ÂÂᵀ itself may be dense.
        identity = sp.eye_array(self.free.size)
        return SymmetricFactor(self.augmented(identity, DEPENDENT)).inertia.negative

    @cached_property
    def scaled(self) -> Any:
        """Jacobian Â with rows whose largest entry is one."""
        return sp.diags_array(1.0 / largest_of(self.jacobian, 1)) @ self.jacobian

    def augmented(self, block: Any, corner: float | None = None) -> Any:
        """Return [block, Âᵀ; Â, corner·I]; the corner is 0 by default, −δ for dependent rows."""
        k = self.constraints.size
        if corner is None:
            # With −δ a dependent row has a negative eigenvalue as all others have.
            corner = 0.0 if self.rank == k else -DEPENDENT
        return sp.block_array([[block, self.scaled.T], [self.scaled, corner * sp.eye_array(k)]])

    def pick(self, multipliers: Vector) -> Vector:
        """Return the face's part of (lam_x; lam_g)."""
        return np.asarray(multipliers[self.rows.n + self.constraints])

    def complete(self, multipliers: Vector) -> Vector:
        """Return (lam_x; lam_g) from the face's part, with lam_x of the active bounds."""
        n = self.rows.n
        full = np.zeros(self.rows.value.size)
        full[n + self.constraints] = multipliers
        slope = self.rows.slope(full)
        slope[self.free] = 0.0
        # Stationarity ∇f + J_gᵀlam_g + lam_x = 0 at the fixed variables.
        full[:n] = -slope
        return full

    def first(self, x: Vector) -> Evaluation:
        """Evaluate the functions on the face.

        Raises EvaluationError if they are undefined, or a row off the face is violated.
        """
        full, rows = self.rows.x.copy(), self.rows
        full[self.free] = x
        f, gradient, g, J = values = self.instance.evaluator.first(full)
        trial = Rows.at(full, values, self.instance.bounds, rows.names)
        violation = np.abs(trial.violation)
        violation[rows.n + self.constraints] = 0.0
        # A row may be violated as much as at the judged point.
        bad = np.flatnonzero(violation > np.maximum(self.instance.tol, np.abs(rows.violation)))
        if bad.size:
            i = int(bad[0])
            raise EvaluationError("a row off the face", rows.names[i], float(trial.value[i]))
        h = g[self.constraints] - self._target
        B = J.tocsr()[self.constraints][:, self.free].toarray()
        return Evaluation(x, f, gradient[self.free], h, B, None, h)

    def hessian(self, multipliers: Vector) -> sp.csc_array:
        """Return the sparse Hessian of the Lagrangian on the free variables, symmetric."""
        lam = np.zeros(self.rows.value.size - self.rows.n)
        lam[self.constraints] = multipliers
        H = self.instance.evaluator.hessian(self.rows.x, lam)
        H = H[:, self.free].tocsr()[self.free]
        # Exactly symmetric: factorizations read one triangle.
        return sp.csc_array(0.5 * (H + H.T))


class Faces:
    """Faces of an instance at one point; raises EvaluationError if x or a value is not finite."""

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
        """The face of the equations alone."""
        return Face(self.instance, self.rows, np.flatnonzero(self.rows.equations))

    def of(self, active: Indices) -> Face:
        """Return the face on which the rows in ``active``, the equations among them, hold."""
        alone = active.size == np.count_nonzero(self.rows.equations)
        return self.equations if alone else Face(self.instance, self.rows, active)
