"""What of a problem's matrices does not depend on numbers: made once, shared by all its solves.

The patterns of the standard form depend on the program and on which variables are fixed and which
rows have one, two or equal bounds. They change seldom from solve to solve, so the last few are
kept with the program.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from casadi_hybrid.kernel.sparse import Index, Layout, Pattern
from casadi_hybrid.problem.derivatives import EXACT, GIVEN
from casadi_hybrid.problem.evaluator import patterns_of
from casadi_hybrid.problem.problem import Problem

DENSE_LIMIT = 150
"""Up to this many variables and rows LAPACK on full matrices beats the sparse factorization."""
COMPOSITE_LIMIT = 200
"""Up to so many composite steps are taken: there one with its singular values takes two to three
times as long as one of the barrier method, which needs a third more, or many where rows depend."""
KEPT = 8
"""Structures kept for a program."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Patterns of the standard form min f(w) s.t. c(w) = 0 with w = (free x, slacks).

    Attributes:
        A: pattern of ∇c = [J −S]; its entries are J's at ``J_kept``, then one per slack.
        J_kept, J_rows: entries of J in A, and the rows of c they are in.
        W: pattern of the Hessian of the Lagrangian; its entries are H's at ``H_kept``.
        H_kept: entries of H in W.
    """

    A: Pattern
    J_kept: Index
    J_rows: Index
    W: Pattern
    H_kept: Index

    @classmethod
    def of(cls, program: Problem, free: Index, rows: Index, slack_rows: Index) -> Structure:
        """Return the structure for these free variables, kept rows, and rows of c with a slack."""
        J, H = patterns_of(program)
        inner, J_kept = J.block(rows, free)
        n = free.size + slack_rows.size
        slacks = free.size + np.arange(slack_rows.size)
        A = Pattern(
            (rows.size, n),
            np.concatenate((inner.rows, slack_rows)),
            np.concatenate((inner.cols, slacks)),
        )
        block, H_kept = H.block(free, free)
        return cls(A, J_kept, inner.rows, Pattern((n, n), block.rows, block.cols), H_kept)

    @cached_property
    def layout(self) -> Layout:
        """Where the entries go in the kernel, with its symbolic factorization."""
        return Layout(self.W, self.A)


_lock = threading.Lock()
_structures: WeakKeyDictionary[Problem, dict[bytes, Structure]] = WeakKeyDictionary()


def structure_of(program: Problem, free: Index, rows: Index, slack_rows: Index) -> Structure:
    """The structure for these free variables and rows; made where it is not among the last few."""
    key = b"|".join(part.tobytes() for part in (free, rows, slack_rows))
    with _lock:
        kept = _structures.setdefault(program, {})
        found = kept.get(key)
    if found is None:
        found = Structure.of(program, free, rows, slack_rows)
        with _lock:
            while len(kept) >= KEPT:
                kept.pop(next(iter(kept)))
            kept[key] = found
    return found


def may_be_composite(program: Problem) -> bool:
    """Whether composite steps come first under bounds that leave equations alone."""
    if program.feasibility or program.n + program.m > COMPOSITE_LIMIT or not program.m:
        return False
    # Its steps look for curvature that an approximation does not have.
    return program.functions.hessian in (EXACT, GIVEN)
