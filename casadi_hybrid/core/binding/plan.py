"""What of a problem does not depend on numbers, as the engine in C reads it: a plan, and options.

The standard form is min f(w) s.t. c(w) = 0, lower ≤ w ≤ upper with w = (free variables, slacks of
the inequality rows). Variables that are fixed, or stand nowhere, are left out, rows without a bound
are dropped, rows with lbg = ubg are equations, and every other row g_i gets a slack s_i with
lbg ≤ s_i ≤ ubg and the equation g_i − s_i = 0.
"""

from __future__ import annotations

import ctypes as ct
import threading
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.binding.ldl import eliminations, partners, tables_of
from casadi_hybrid.core.evaluation.compiled import forms_of
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import evaluating_until
from casadi_hybrid.problem.point.limits import Limits, floor_of
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.core_constants import CORE
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.linear_algebra.sparse import Layout, Pattern, starts
from casadi_hybrid.utils.matrices import Buffered

OPEN: int = C.HYBRID_OPEN
EQUAL: int = C.HYBRID_EQUAL
ABSENT: int = C.HYBRID_ABSENT
_KEPT = 8  # plans of a problem
_LEARNING = 1000  # most steps of a first phase from x0 that learns the Hessian on the way
_DENSE_LIMIT = 150  # variables and rows up to which the Jacobian's rank at the start is looked at


class Plan:
    """The C plan of a problem under bounds of certain kinds, with the arrays behind it.

    Args:
        library: the engine.
        problem: with or without second derivatives.
        kinds: of the bounds, as of :func:`kinds_of`.

    Attributes:
        data: the ``hybrid_plan`` that C reads.
        arrays: all that ``data`` points to or into.
    """

    def __init__(self, library: Any, problem: Problem, kinds: bytes) -> None:
        self.arrays: list[NDArray[Any]] = []
        ints, functions, first = self._ints, problem.functions, problem.functions.first
        J, H = functions.entries
        of_x, of_g = np.split(np.frombuffer(kinds, np.int8), [problem.n])
        free = np.flatnonzero((of_x == OPEN) & functions.used)
        rows = np.flatnonzero(of_g != ABSENT)
        slack_rows = np.flatnonzero(of_g[rows] == OPEN)
        n, m = free.size + slack_rows.size, rows.size
        # A = ∇c = [J −S]: entries of J, then one a slack. W is the Hessian of the Lagrangian.
        inner, J_kept = J.block(rows, free)
        slacks = free.size + np.arange(slack_rows.size)
        A = Pattern(
            (m, n), np.concatenate((inner.rows, slack_rows)), np.concatenate((inner.cols, slacks))
        )
        block, H_kept = H.block(free, free)
        W = Pattern((n, n), block.rows, block.cols)
        K = Layout(W, A)
        # The blocks of a Hessian that first derivatives make; none where there are second ones.
        learned = functions.curvature is None
        members = functions.blocks.members if learned else ()
        self.data = C.hybrid_plan(
            n_x=problem.n, n_g=problem.m, n_p=problem.n_p,
            nnz_gradient=first.nnz_out(1), nnz_g=first.nnz_out(2), nnz_J=J.rows.size,
            nnz_H=H.rows.size,
            gradient_at=ints(first.sparsity_out(1).row()), g_at=ints(first.sparsity_out(2).row()),
            J_rows=ints(J.rows), J_cols=ints(J.cols),
            kind_x=ints(of_x, np.int8), kind_g=ints(of_g, np.int8),
            n_free=free.size, n=n, m=m, n_slack=slack_rows.size,
            free_at=ints(free), row_at=ints(rows), slack_row=ints(slack_rows),
            kept_A=J_kept.size, nnz_A=A.rows.size, A_of_J=ints(J_kept),
            A_rows=ints(A.rows), A_cols=ints(A.cols), A_starts=ints(starts(A.cols, n)),
            nnz_W=W.rows.size, W_of_H=ints(H_kept), W_rows=ints(W.rows), W_cols=ints(W.cols),
            W_starts=ints(starts(W.cols, n)), W_by_row=ints(np.argsort(W.rows, kind="stable")),
            row_starts=ints(starts(W.rows, n)),
            nnz_K=K.rows.size, lower_W=K.of_W.size, lower_of_W=ints(K.of_W),
            K_of_W=ints(K.at_W), K_of_A=ints(K.at_A), K_diagonal=ints(K.at_diagonal),
            limited_memory=learned, differenced=functions.differenced, n_blocks=len(members),
            block_starts=ints(np.cumsum([0, *(one.size for one in members)])),
            members=ints(np.concatenate((*members, [0]))),
            H_starts=ints(starts(H.cols, problem.n) if learned else [0]),
        )  # fmt: skip
        values = np.ones(K.rows.size)
        values[K.at_A[: J_kept.size]] = prepared(problem)[J_kept]
        # A row that has a slack goes with it: whatever the other numbers are, that is a good pivot.
        values[K.at_A[J_kept.size :]] = 1e300
        partner = partners(library, K, values)
        curved = np.zeros(K.n, dtype=bool)
        curved[W.rows[W.rows == W.cols]] = True
        chosen, fixed_order = eliminations(K, partner, curved)
        self.data.ldl, of_ldl = tables_of(library, K, chosen)
        self.data.fixed, of_fixed = tables_of(library, K, fixed_order, fixed=True)
        self.arrays += *of_ldl, *of_fixed

    def _ints(self, values: Any, kind: type[np.integer[Any]] = np.int32) -> int:
        """The address of a copy of these, which is kept."""
        self.arrays.append(np.array(values, dtype=kind))
        return address(self.arrays[-1])


def sizes_by(function: Any, count: int, *structures: ct.Structure) -> list[int]:
    """The sizes that a function of C writes, so many, for these structures."""
    sizes = [ct.c_longlong() for _ in range(count)]
    function(*map(ct.byref, (*structures, *sizes)))
    return [one.value for one in sizes]


def kinds_of(bounds: Bounds) -> bytes:
    """The kinds of all bounds, those of x first: solves with bounds of the same share a plan."""
    of_x = np.where(bounds.lbx < bounds.ubx, OPEN, EQUAL)
    of_g = np.where(bounds.lbg < bounds.ubg, OPEN, EQUAL)
    of_g[np.isinf(bounds.lbg) & np.isinf(bounds.ubg)] = ABSENT
    return np.concatenate((of_x, of_g)).astype(np.int8).tobytes()


def prepared(problem: Problem) -> Vector:
    """Make what all solves of a problem need, so that none with a time limit waits for it.

    Returns:
        J_g's nonzeros at a point that depends on nothing, by which rows are paired with variables.
        Not at the start of a solve: what was solved first would decide the last bits of all others.
    """
    problem.functions.entries  # noqa: B018 - loads SciPy where the Hessian is learned
    found = _sizes.get(problem)
    return _sizes.setdefault(problem, _evaluated(problem)) if found is None else found


def _evaluated(problem: Problem) -> Vector:
    if not problem.m:
        return np.zeros(0)
    first, (lists, _) = problem.functions.first, forms_of(problem, repeated=False)
    point = [(37 * np.arange(size) % 101 + 1) / 102 for size in (problem.n, problem.n_p)]
    values = np.zeros(first.nnz_out())
    # A function of the problem may raise, and no time is over yet.
    with suppress(RuntimeError), evaluating_until(np.inf):
        values = Buffered(first)(*point) if lists is None else lists.call(0, *point)
    J = values[first.nnz_out() - first.nnz_out(3) :]
    return np.where(np.isfinite(J), J, 1.0)


_lock = threading.Lock()
_plans: WeakKeyDictionary[Problem, dict[bytes, Plan]] = WeakKeyDictionary()
_sizes: WeakKeyDictionary[Problem, Vector] = WeakKeyDictionary()


def plan_of(library: Any, problem: Problem, bounds: Bounds) -> Plan:
    """The plan for bounds of these kinds; made where it is not among the last few."""
    key = kinds_of(bounds)
    with _lock:
        kept = _plans.setdefault(problem, {})
        found = kept.get(key)
    if found is None:
        made = Plan(library, problem, key)
        with _lock:
            # Another thread may have been first: one plan for all, for it decides the last bits.
            found = kept.setdefault(key, made)
            while len(kept) > _KEPT:
                kept.pop(next(iter(kept)))
    return found


def options_of(problem: Problem, limits: Limits) -> Any:
    """``hybrid_options`` of a problem: starts of its runs, from x0 alone and from multipliers."""
    functions, size = problem.functions, problem.n + problem.m

    def run(nu: float, patience: int, **others: bool) -> Any:
        return C.hybrid_phase_options(
            nu=nu, nu_min=floor_of(limits.scaled_tol), push=limits.bound_push,
            lam_most=limits.constr_mult_init_max, corrections=limits.max_soc,
            divergence=limits.divergence, patience=patience, dense=size <= _DENSE_LIMIT,
            feasibility=problem.feasibility, **others,
        )  # fmt: skip

    patience = _LEARNING if functions.curvature is None else CORE["HYBRID_PATIENCE_AT_FIRST"]
    return C.hybrid_options(
        run(limits.mu_init or 0.0, patience),
        run(CORE["HYBRID_BARRIER_NU_WARM"], CORE["HYBRID_PATIENCE"], near=True),
        problem.linear,
    )
