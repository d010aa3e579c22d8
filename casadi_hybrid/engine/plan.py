"""What of a problem does not depend on numbers, as the engine in C reads it."""

from __future__ import annotations

import ctypes as ct
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.structures import Analysis, PlanData
from casadi_hybrid.kernel.kernel import Layout
from casadi_hybrid.kernel.sparse import Index, Pattern
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.standard_form.selection import Selection, selection_of
from casadi_hybrid.standard_form.structure import KEPT, Structure, structure_of

OPEN, EQUAL, ABSENT = 0, 1, 2
_BOUNDED = 30.0  # a bounded variable may be pinned, so it pairs only where no other can
_LEAST = 1e-12

Integers = NDArray[np.int32]


class Plan:
    """The C plan of a problem under bounds of certain kinds, with the arrays behind it.

    Args:
        library: the engine.
        problem: with second derivatives.
        bounds: which variables are fixed, and which rows are equations, is read from them.
        derivatives: nonzeros of J_g at some point, by which rows find the variables they are
            eliminated with.

    Attributes:
        data: the structure that C reads.
        doubles, ints: numbers and whole numbers of memory for one solve.
    """

    def __init__(self, library: Any, problem: Problem, bounds: Bounds, derivatives: Vector) -> None:
        self._kept: list[Any] = []
        selection = selection_of(bounds)
        structure = structure_of(problem, selection.free, selection.rows, selection.slack_rows)
        first, curvature = problem.functions.first, problem.functions.curvature
        assert curvature is not None
        J, H = Pattern.of(first.sparsity_out(3)), Pattern.of(curvature.sparsity_out(0))
        layout = structure.layout
        self.data = PlanData(
            n_x=problem.n, n_g=problem.m, n_p=problem.n_p,
            nnz_gradient=first.nnz_out(1), nnz_g=first.nnz_out(2), nnz_J=J.rows.size,
            nnz_H=H.rows.size,
            gradient_at=self._ints(first.sparsity_out(1).row()),
            g_at=self._ints(first.sparsity_out(2).row()),
            J_rows=self._ints(J.rows), J_cols=self._ints(J.cols),
            kind_x=self._bytes(_kinds_of_x(selection)), kind_g=self._bytes(_kinds_of_g(bounds)),
            n_free=selection.n_free, n=selection.n, m=selection.m,
            n_slack=selection.slack_rows.size,
            free_at=self._ints(selection.free), row_at=self._ints(selection.rows),
            slack_row=self._ints(selection.slack_rows),
            kept_A=structure.J_kept.size, nnz_A=structure.A.rows.size,
            A_of_J=self._ints(structure.J_kept),
            A_rows=self._ints(structure.A.rows), A_cols=self._ints(structure.A.cols),
            nnz_W=structure.W.rows.size, W_of_H=self._ints(structure.H_kept),
            W_rows=self._ints(structure.W.rows), W_cols=self._ints(structure.W.cols),
            nnz_K=layout.pattern.rows.size, lower_W=layout.of_W.size,
            lower_of_W=self._ints(layout.of_W), K_of_W=self._ints(layout.at_W),
            K_of_A=self._ints(layout.at_A), K_diagonal=self._ints(layout.at_diagonal),
        )  # fmt: skip
        bounded = selection.has_lower | selection.has_upper
        group = order_of_elimination(layout, structure, bounded, derivatives)
        self._analyse(library, layout, group)
        doubles, ints = ct.c_longlong(), ct.c_longlong()
        library.hybrid_warm_memory(ct.byref(self.data), ct.byref(doubles), ct.byref(ints))
        self.doubles, self.ints = doubles.value, ints.value

    def _analyse(self, library: Any, layout: Layout, group: Integers) -> None:
        starts, rows = self._ints(layout.starts), self._ints(layout.pattern.rows)
        size, entries = layout.size, layout.pattern.rows.size
        order = np.ascontiguousarray(group, dtype=np.int32)
        work = np.empty(library.hybrid_ldl_analysis(size, entries), dtype=np.int32)
        needed = library.hybrid_ldl_plan(
            size, starts, rows, order.ctypes.data, work.ctypes.data
        )
        if needed < 0:
            raise OverflowError("the factor of the kernel has more entries than the engine counts")
        tables = np.empty(needed, dtype=np.int32)
        self._kept.append(tables)
        analysis = Analysis()
        failed = library.hybrid_ldl_analyse(
            size, starts, rows, order.ctypes.data, work.ctypes.data, tables.ctypes.data,
            ct.byref(analysis),
        )  # fmt: skip
        if failed:
            raise OverflowError("the factor of the kernel has more entries than the engine counts")
        self.data.ldl = analysis

    def _ints(self, values: Any) -> int:
        return self._array(np.array(values, dtype=np.int32))

    def _bytes(self, values: Any) -> int:
        return self._array(np.array(values, dtype=np.int8))

    def _array(self, array: NDArray[Any]) -> int:
        self._kept.append(array)
        return int(array.ctypes.data)


def _kinds_of_x(selection: Selection) -> NDArray[np.int8]:
    return np.where(selection.fixed, EQUAL, OPEN).astype(np.int8)


def _kinds_of_g(bounds: Bounds) -> NDArray[np.int8]:
    absent = np.isinf(bounds.lbg) & np.isinf(bounds.ubg)
    kinds = np.where(bounds.lbg < bounds.ubg, OPEN, EQUAL)
    return np.where(absent, ABSENT, kinds).astype(np.int8)


def order_of_elimination(
    layout: Layout, structure: Structure, bounded: NDArray[np.bool_], derivatives: Vector
) -> Integers:
    """When each row of K is eliminated; a row of A and the variable it is solved for together.

    Args:
        layout, structure: the patterns.
        bounded: which entries of w have a bound: they may be pinned, and then solve no row.
        derivatives: nonzeros of J_g.
    """
    n, size = layout.n, layout.size
    partner = np.arange(size)
    for row, variable in zip(*_pairs(structure, bounded, derivatives), strict=True):
        partner[n + row] = variable
    _, group = np.unique(partner, return_inverse=True)
    count = int(group.max(initial=-1)) + 1
    rows, cols = group[layout.pattern.rows], group[layout.pattern.cols]
    both = ca.Sparsity.triplet(
        count, count, np.concatenate((rows, cols)).tolist(), np.concatenate((cols, rows)).tolist()
    )
    order = np.array(both.amd(), dtype=np.intp) if count else np.zeros(0, dtype=np.intp)
    when = np.empty(count, dtype=np.int32)
    when[order] = np.arange(count, dtype=np.int32)
    return when[group]


def _pairs(
    structure: Structure, bounded: NDArray[np.bool_], derivatives: Vector
) -> tuple[Index, Index]:
    """Rows of A with a variable each, of large product; not all where that is not possible."""
    A = structure.A
    m, n = A.shape
    none = np.zeros(0, dtype=np.intp)
    if not m or not A.rows.size:
        return none, none
    kept = structure.J_kept.size
    sizes = np.ones(A.rows.size)
    sizes[:kept] = np.abs(derivatives[structure.J_kept])
    costs = 1.0 - np.log(np.clip(sizes, _LEAST, 1e12)) + np.log(1e12)
    costs += _BOUNDED * bounded[A.cols]
    graph = csr_array((costs, (A.rows, A.cols)), shape=(m, n))
    if m <= n:
        try:
            return min_weight_full_bipartite_matching(graph)
        except ValueError:  # rows that depend on each other whatever the numbers
            pass
    found = maximum_bipartite_matching(graph, perm_type="column")
    rows = np.flatnonzero(found >= 0)
    return rows, found[rows].astype(np.intp)


_lock = threading.Lock()
_plans: WeakKeyDictionary[Problem, dict[bytes, Plan]] = WeakKeyDictionary()


def plan_of(
    library: Any, problem: Problem, bounds: Bounds, derivatives: Callable[[], Vector]
) -> Plan:
    """The plan for bounds of these kinds; made where it is not among the last few."""
    key = _kinds_of_x(selection_of(bounds)).tobytes() + _kinds_of_g(bounds).tobytes()
    with _lock:
        kept = _plans.setdefault(problem, {})
        found = kept.get(key)
    if found is None:
        found = Plan(library, problem, bounds, derivatives())
        with _lock:
            while len(kept) >= KEPT:
                kept.pop(next(iter(kept)))
            kept[key] = found
    return found
