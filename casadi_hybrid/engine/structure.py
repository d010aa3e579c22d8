"""The standard form min f(w) s.t. c(w) = 0, lower ≤ w ≤ upper, as far as it follows from bounds.

w = (free variables, slacks of the inequality rows). Fixed variables are left out, and those that
stand nowhere, rows without a
bound are dropped, rows with lbg = ubg are equations, every other row g_i gets a slack s_i with
lbg ≤ s_i ≤ ubg and the equation g_i − s_i = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.basics.sparse import Index, Layout, Pattern
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.derivatives import EXACT, GIVEN
from casadi_hybrid.problem.evaluator import patterns_of, used_variables
from casadi_hybrid.problem.problem import Problem

COMPOSITE_LIMIT = 200
"""Up to so many composite steps are taken: there one with its singular values takes two to three
times as long as one of the barrier method, which needs a third more, or many where rows depend."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Which variables and rows the standard form has, and its patterns.

    Attributes:
        free: variables that are not fixed, and that stand in the objective or in a row: any other
            stays where it is.
        rows: rows with a bound, those of c; ``slack_rows``: those of them with a slack.
        n, m: numbers of entries of w and of rows of c.
        A: pattern of ∇c = [J −S]; its entries are J's at ``J_kept``, then one per slack.
        J_kept: entries of J in A.
        W: pattern of the Hessian of the Lagrangian; its entries are H's at ``H_kept``.
        H_kept: entries of H in W.
        layout: where the entries go in K.
    """

    free: Index
    rows: Index
    slack_rows: Index
    n: int
    m: int
    A: Pattern
    J_kept: Index
    W: Pattern
    H_kept: Index
    layout: Layout

    @classmethod
    def of(cls, problem: Problem, bounds: Bounds) -> Structure:
        """That of a problem within bounds of these kinds."""
        J, H = patterns_of(problem)
        fixed = ~(bounds.lbx < bounds.ubx)
        free = np.flatnonzero(~fixed & used_variables(problem))
        rows = np.flatnonzero(np.isfinite(bounds.lbg) | np.isfinite(bounds.ubg))
        slack_rows = np.flatnonzero(bounds.lbg[rows] < bounds.ubg[rows])
        inner, J_kept = J.block(rows, free)
        n, m = free.size + slack_rows.size, rows.size
        slacks = free.size + np.arange(slack_rows.size)
        A = Pattern(
            (m, n),
            np.concatenate((inner.rows, slack_rows)),
            np.concatenate((inner.cols, slacks)),
        )
        block, H_kept = H.block(free, free)
        W = Pattern((n, n), block.rows, block.cols)
        return cls(free, rows, slack_rows, n, m, A, J_kept, W, H_kept, Layout(W, A))


def may_be_composite(problem: Problem) -> bool:
    """Whether composite steps come first under bounds that leave equations alone."""
    if problem.feasibility or problem.n + problem.m > COMPOSITE_LIMIT or not problem.m:
        return False
    # Its steps look for curvature that an approximation does not have.
    return problem.functions.hessian in (EXACT, GIVEN)
