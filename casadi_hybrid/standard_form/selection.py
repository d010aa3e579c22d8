"""What of the standard form follows from the bounds and from where variables stand: made once for
all their solves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import Lazy, anywhere
from casadi_hybrid.basics.inputs import Matrix
from casadi_hybrid.kernel.sparse import Index
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import used_variables
from casadi_hybrid.problem.problem import Problem

Mask = NDArray[np.bool_]


class Walls:
    """Which entries of w have bounds, in the forms that every step asks for.

    Attributes:
        lower, upper: one where there is a bound, else zero, as numbers.
        at_lower, at_upper: the entries that have one.
        not_lower, not_upper: those that have none.
        only_lower, only_upper: those that have one and no other.
        single: one at the former, minus one at the latter, else zero.
        count: bounds in all.
    """

    def __init__(self, has_lower: Mask, has_upper: Mask) -> None:
        self.lower, self.upper = has_lower.astype(float), has_upper.astype(float)
        self.at_lower, self.at_upper = np.flatnonzero(has_lower), np.flatnonzero(has_upper)
        self.not_lower, self.not_upper = np.flatnonzero(~has_lower), np.flatnonzero(~has_upper)
        self.only_lower = np.flatnonzero(has_lower & ~has_upper)
        self.only_upper = np.flatnonzero(has_upper & ~has_lower)
        self.single = self.lower - self.upper
        self.count = self.at_lower.size + self.at_upper.size


class Selection:
    """Which variables and rows of a problem the standard form has, and their bounds unscaled.

    Attributes:
        free: variables that are not fixed, and that stand in the objective or in a row: any other
            stays where it is; ``fixed``: a mask of those whose bounds are equal.
        rows: rows with a bound, those of c.
        slack_rows: those of them that are inequalities, and have a slack.
        n_free, n, m: numbers of free variables, of w and of c.
        all_free, all_rows: whether nothing is left out.
        target: what the rows of c ask for: the bound of an equation, else zero.
        equal: the rows of c that are equations, as a mask.
        lower, upper: bounds of w = (free variables, slacks).
        has_lower, has_upper: where they are finite; ``walls``: the same in other forms.
        box, boxed: bounds of the free variables, and whether any is finite.
    """

    def __init__(self, bounds: Bounds, used: Mask) -> None:
        self.fixed = ~(bounds.lbx < bounds.ubx)
        self.free: Index = np.flatnonzero(~self.fixed & used)
        self.rows: Index = np.flatnonzero(np.isfinite(bounds.lbg) | np.isfinite(bounds.ubg))
        lbg, ubg = bounds.lbg[self.rows], bounds.ubg[self.rows]
        self.equal = lbg == ubg
        self.target = np.where(self.equal, lbg, 0.0)
        self.slack_rows: Index = np.flatnonzero(lbg < ubg)
        self.n_free, self.m = self.free.size, self.rows.size
        self.n = self.n_free + self.slack_rows.size
        self.all_free = self.n_free == bounds.lbx.size
        self.all_rows = self.m == bounds.lbg.size
        self.box = bounds.lbx[self.free], bounds.ubx[self.free]
        self.lower = np.concatenate((self.box[0], lbg[self.slack_rows]))
        self.upper = np.concatenate((self.box[1], ubg[self.slack_rows]))
        self.has_lower, self.has_upper = np.isfinite(self.lower), np.isfinite(self.upper)
        self.walls = Walls(self.has_lower, self.has_upper)
        self.boxed = anywhere(self.has_lower[: self.n_free] | self.has_upper[: self.n_free])

    @Lazy
    def blocks(self) -> tuple[Any, Any]:
        """The part of a full J_g, and that of a full Hessian, that counts."""
        return np.ix_(self.rows, self.free), np.ix_(self.free, self.free)

    @Lazy
    def frame(self) -> Matrix:
        """A full ∇c without the derivatives of g: minus one for each slack."""
        A = np.zeros((self.m, self.n))
        A[self.slack_rows, np.arange(self.n_free, self.n)] = -1.0
        return A

    @Lazy
    def no_slope(self) -> NDArray[np.float64]:
        """The derivatives of the objective by the slacks."""
        return np.zeros(self.slack_rows.size)


def selection_of(problem: Problem, bounds: Bounds) -> Selection:
    """The selection of these bounds, made once."""
    used = used_variables(problem)
    known: tuple[Mask, Selection] | None = bounds.__dict__.get("_selection")
    if known is None or known[0] is not used:
        known = bounds.__dict__["_selection"] = used, Selection(bounds, used)
    return known[1]
