"""Plan of a problem for the core, which depends on no numbers, and its options.

The standard form is min f(w) s.t. c(w) = 0, lower ≤ w ≤ upper with w = (free variables, slacks of
the inequality rows). Fixed and unused variables and rows without bounds are left out. Rows with
lbg = ubg are equations. Any other row g_i gets a slack s_i, lbg ≤ s_i ≤ ubg, g_i − s_i = 0.
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
_LEARNING = 1000  # steps of a first phase from x0 that approximates the Hessian
_DENSE_LIMIT = 150  # variables and rows up to which the Jacobian's rank is computed at the start


class Plan:
    """Plan of a problem in C for one pattern of bounds, see :func:`kinds_of`."""

    def __init__(self, library: Any, problem: Problem, kinds: bytes) -> None:
        self.arrays: list[NDArray[Any]] = []  # `data` points into them
        functions, first, n_x = problem.functions, problem.functions.first, problem.n
        J, H = functions.entries
        kind_x, kind_g = np.split(np.frombuffer(kinds, np.int8), [n_x])
        # A variable with lbx = ubx is a number, and one that no function reads stays at its start.
        free = np.flatnonzero((kind_x == OPEN) & functions.used)
        rows = np.flatnonzero(kind_g != ABSENT)
        # Indices among the kept rows, not into g.
        slack_rows = np.flatnonzero(kind_g[rows] == OPEN)
        n, m = free.size + slack_rows.size, rows.size
        # A = ∇c = [J −S]: entries of J, then one of each slack. W is the Hessian of the Lagrangian.
        inner, J_kept = J.block(rows, free)
        A_rows = np.concatenate((inner.rows, slack_rows))
        A_cols = np.concatenate((inner.cols, free.size + np.arange(slack_rows.size)))
        A = Pattern((m, n), A_rows, A_cols)
        block, H_kept = H.block(free, free)
        W = Pattern((n, n), block.rows, block.cols)
        K = Layout(W, A)
        learned = functions.curvature is None
        members = functions.blocks.members if learned else ()
        fields: dict[str, Any] = {"n_x": n_x, "n_g": problem.m, "n_p": problem.n_p}
        fields |= {"n_free": free.size, "n_slack": slack_rows.size, "n": n, "m": m}
        fields |= {"nnz_J": J.rows.size, "nnz_H": H.rows.size, "nnz_K": K.rows.size}
        fields |= {"nnz_gradient": first.nnz_out(1), "nnz_g": first.nnz_out(2)}
        fields |= {"kept_A": J_kept.size, "nnz_A": A.rows.size, "nnz_W": W.rows.size}
        fields |= {"lower_W": K.of_W.size, "limited_memory": learned, "n_blocks": len(members)}
        fields["differenced"] = functions.differenced
        tables = {
            "gradient_at": first.sparsity_out(1).row(),
            "g_at": first.sparsity_out(2).row(),
            "J_rows": J.rows,
            "J_cols": J.cols,
            "free_at": free,
            "row_at": rows,
            "slack_row": slack_rows,
            "A_of_J": J_kept,
            "A_rows": A.rows,
            "A_cols": A.cols,
            "A_starts": starts(A.cols, n),
            "W_of_H": H_kept,
            "W_rows": W.rows,
            "W_cols": W.cols,
            "W_starts": starts(W.cols, n),
            "W_by_row": np.argsort(W.rows, kind="stable"),
            "row_starts": starts(W.rows, n),
            "lower_of_W": K.of_W,
            "K_of_W": K.at_W,
            "K_of_A": K.at_A,
            "K_diagonal": K.at_diagonal,
            "block_starts": np.cumsum([0, *(member.size for member in members)]),
            "members": np.concatenate((*members, [0])),
            "H_starts": starts(H.cols, n_x) if learned else [0],
        }
        fields |= {name: self._stored(table, np.int32) for name, table in tables.items()}
        fields |= {"kind_x": self._stored(kind_x, np.int8), "kind_g": self._stored(kind_g, np.int8)}
        self.data = C.hybrid_plan(**fields)
        # Values at a fixed point stand for all: pairs depend on the pattern and on large entries.
        values = np.ones(K.rows.size)
        values[K.at_A[: J_kept.size]] = prepared(problem)[J_kept]
        values[K.at_A[J_kept.size :]] = 1e300  # a slack is a good pivot for its row at any values
        partner = partners(library, K, values)
        # Variables with a nonzero of W on the diagonal, pivots of their own.
        curved = np.zeros(K.n, dtype=bool)
        curved[W.rows[W.rows == W.cols]] = True
        # Pivoting serves any values; in the fixed order small fronts cost a tenth.
        pivoting, fixed_order = eliminations(K, partner, curved)
        self.data.ldl, of_ldl = tables_of(library, K, pivoting)
        self.data.fixed, of_fixed = tables_of(library, K, fixed_order, fixed=True)
        self.arrays += *of_ldl, *of_fixed

    def _stored(self, values: Any, kind: type[np.integer[Any]]) -> int:
        """Store a copy of these values; return its address."""
        self.arrays.append(np.array(values, dtype=kind))
        return address(self.arrays[-1])


def sizes_by(function: Any, count: int, *structures: ct.Structure) -> list[int]:
    """The ``count`` sizes that a function of C writes for these structures."""
    sizes = [ct.c_longlong() for _ in range(count)]
    function(*map(ct.byref, (*structures, *sizes)))
    return [size.value for size in sizes]


def kinds_of(bounds: Bounds) -> bytes:
    """Kinds of all bounds, x before g: solves whose bounds have the same kinds share a plan."""
    kind_x = np.where(bounds.lbx < bounds.ubx, OPEN, EQUAL)
    kind_g = np.where(bounds.lbg < bounds.ubg, OPEN, EQUAL)
    # Rows without bounds limit nothing.
    kind_g[np.isinf(bounds.lbg) & np.isinf(bounds.ubg)] = ABSENT
    return np.concatenate((kind_x, kind_g)).astype(np.int8).tobytes()


def prepared(problem: Problem) -> Vector:
    """Evaluate the nonzeros of J_g at a fixed point, by which rows are paired with variables."""
    J, _ = problem.functions.entries  # loads SciPy if the Hessian is approximated
    # At the start of a solve, the first one would decide the last bits of all others. Evaluated
    # here, no time limit includes it.
    values = _pairing_values.get(problem)
    if values is None:
        values = _pairing_values.setdefault(problem, _evaluated(problem, J.rows.size))
    return values


def _evaluated(problem: Problem, nnz_J: int) -> Vector:
    if not problem.m:
        return np.zeros(0)
    first, (lists, _) = problem.functions.first, forms_of(problem, repeated=False)
    # Different numbers in (0, 1): equal ones could cancel entries of J_g.
    point = [(37 * np.arange(size) % 101 + 1) / 102 for size in (problem.n, problem.n_p)]
    values = np.zeros(first.nnz_out())
    with suppress(RuntimeError), evaluating_until(np.inf):  # a function of the problem may raise
        values = Buffered(first)(*point) if lists is None else lists.call(0, *point)
    # The Jacobian is the last output.
    J = values[values.size - nnz_J :]
    return np.where(np.isfinite(J), J, 1.0)


_lock = threading.Lock()
_plans: WeakKeyDictionary[Problem, dict[bytes, Plan]] = WeakKeyDictionary()
_pairing_values: WeakKeyDictionary[Problem, Vector] = WeakKeyDictionary()


def plan_of(library: Any, problem: Problem, bounds: Bounds) -> Plan:
    """The plan for the kinds of these bounds; made unless it is among the last few."""
    key = kinds_of(bounds)
    with _lock:
        plans = _plans.setdefault(problem, {})
        plan = plans.get(key)
    if plan is None:
        plan = Plan(library, problem, key)
        with _lock:
            # Another thread may have been first. All use one plan: it decides the last bits.
            plan = plans.setdefault(key, plan)
            while len(plans) > _KEPT:
                plans.pop(next(iter(plans)))
    return plan


def options_of(problem: Problem, limits: Limits) -> Any:
    """``hybrid_options`` of a problem: phases from x0 alone, and from multipliers."""
    learned, size = problem.functions.curvature is None, problem.n + problem.m
    shared = {
        "nu_min": floor_of(limits.scaled_tol),
        "push": limits.bound_push,
        "lam_most": limits.constr_mult_init_max,
        "corrections": limits.max_soc,
        "divergence": limits.divergence,
        "dense": size <= _DENSE_LIMIT,
        "feasibility": problem.feasibility,
    }
    # An approximated Hessian learns during the first phase, which may look like no progress.
    patience = _LEARNING if learned else CORE["HYBRID_PATIENCE_AT_FIRST"]
    cold = C.hybrid_phase_options(nu=limits.mu_init or 0.0, patience=patience, **shared)
    nu, patience = CORE["HYBRID_BARRIER_NU_WARM"], CORE["HYBRID_PATIENCE"]
    warm = C.hybrid_phase_options(nu=nu, patience=patience, near=True, **shared)
    return C.hybrid_options(cold, warm, problem.linear)
