"""What of a problem does not depend on numbers, as the engine in C reads it."""

from __future__ import annotations

import ctypes as ct
import threading
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.ldl import Compressed, FixedTables, Tables, eliminations, partners
from casadi_hybrid.engine.structure import Structure
from casadi_hybrid.engine.structures import PlanData
from casadi_hybrid.kernel.sparse import Index, Pattern
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import patterns_of
from casadi_hybrid.problem.problem import Problem

OPEN, EQUAL, ABSENT = 0, 1, 2
_KEPT = 8  # plans of a problem


class Plan:
    """The C plan of a problem under bounds of certain kinds, with the arrays behind it.

    Args:
        library: the engine.
        problem: with or without second derivatives.
        bounds: which variables are fixed, and which rows are equations, is read from them.

    Attributes:
        data: the structure that C reads.
        doubles, ints: numbers and whole numbers of memory for one solve.
    """

    def __init__(self, library: Any, problem: Problem, bounds: Bounds) -> None:
        self._kept: list[Any] = []
        structure = Structure.of(problem, bounds)
        first = problem.functions.first
        J, H = patterns_of(problem)
        layout = structure.layout
        self.data = PlanData(
            n_x=problem.n, n_g=problem.m, n_p=problem.n_p,
            nnz_gradient=first.nnz_out(1), nnz_g=first.nnz_out(2), nnz_J=J.rows.size,
            nnz_H=H.rows.size,
            gradient_at=self._ints(first.sparsity_out(1).row()),
            g_at=self._ints(first.sparsity_out(2).row()),
            J_rows=self._ints(J.rows), J_cols=self._ints(J.cols),
            kind_x=self._bytes(_kinds_of_x(bounds)), kind_g=self._bytes(_kinds_of_g(bounds)),
            n_free=structure.free.size, n=structure.n, m=structure.m,
            n_slack=structure.slack_rows.size,
            free_at=self._ints(structure.free), row_at=self._ints(structure.rows),
            slack_row=self._ints(structure.slack_rows),
            kept_A=structure.J_kept.size, nnz_A=structure.A.rows.size,
            A_of_J=self._ints(structure.J_kept),
            A_rows=self._ints(structure.A.rows), A_cols=self._ints(structure.A.cols),
            A_starts=self._ints(_starts(structure.A.cols, structure.n)),
            nnz_W=structure.W.rows.size, W_of_H=self._ints(structure.H_kept),
            W_rows=self._ints(structure.W.rows), W_cols=self._ints(structure.W.cols),
            W_starts=self._ints(_starts(structure.W.cols, structure.n)),
            W_by_row=self._ints(np.argsort(structure.W.rows, kind="stable")),
            row_starts=self._ints(_starts(structure.W.rows, structure.n)),
            nnz_K=layout.pattern.rows.size, lower_W=layout.of_W.size,
            lower_of_W=self._ints(layout.of_W), K_of_W=self._ints(layout.at_W),
            K_of_A=self._ints(layout.at_A), K_diagonal=self._ints(layout.at_diagonal),
            **self._blocks(problem, H),
        )  # fmt: skip
        K = Compressed.of(layout)
        values = np.ones(K.rows.size)
        kept = structure.J_kept.size
        values[layout.at_A[:kept]] = _sizes(problem)[structure.J_kept]
        # A row that has a slack goes with it: whatever the other numbers are, that is a good pivot.
        values[layout.at_A[kept:]] = 1e300
        partner = partners(library, K, values)
        curved = np.zeros(K.n, dtype=bool)
        curved[structure.W.rows[structure.W.rows == structure.W.cols]] = True
        free, fixed = eliminations(K, partner, curved)
        self._tables, self._fixed = Tables.of(library, K, free), FixedTables.of(library, K, fixed)
        self.data.ldl, self.data.fixed = self._tables.analysis, self._fixed.analysis
        doubles, ints = ct.c_longlong(), ct.c_longlong()
        library.hybrid_sqp_memory(ct.byref(self.data), ct.byref(doubles), ct.byref(ints))
        self.doubles, self.ints = doubles.value, ints.value

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays that :attr:`data` points to or into."""
        return (*self._kept, *self._tables.arrays, *self._fixed.arrays)

    def _blocks(self, problem: Problem, H: Pattern) -> dict[str, int]:
        """The blocks of a Hessian that first derivatives make; none where there are second ones."""
        functions = problem.functions
        learned = functions.curvature is None
        members = functions.blocks.members if learned else ()
        return {
            "limited_memory": learned, "differenced": functions.differenced,
            "n_blocks": len(members),
            "block_starts": self._ints(np.cumsum([0, *(one.size for one in members)])),
            "members": self._ints(np.concatenate((*members, [0]))),
            "H_starts": self._ints(_starts(H.cols, problem.n) if learned else [0]),
        }  # fmt: skip

    def _ints(self, values: Any) -> int:
        return self._array(np.array(values, dtype=np.int32))

    def _bytes(self, values: Any) -> int:
        return self._array(np.array(values, dtype=np.int8))

    def _array(self, array: NDArray[Any]) -> int:
        self._kept.append(array)
        return address(array)


def kinds_of(bounds: Bounds) -> bytes:
    """The kinds of all bounds: solves whose bounds are of the same kinds share a plan."""
    return _kinds_of_x(bounds).tobytes() + _kinds_of_g(bounds).tobytes()


def _kinds_of_x(bounds: Bounds) -> NDArray[np.int8]:
    return np.where(bounds.lbx < bounds.ubx, OPEN, EQUAL).astype(np.int8)


def _kinds_of_g(bounds: Bounds) -> NDArray[np.int8]:
    absent = np.isinf(bounds.lbg) & np.isinf(bounds.ubg)
    kinds = np.where(bounds.lbg < bounds.ubg, OPEN, EQUAL)
    return np.where(absent, ABSENT, kinds).astype(np.int8)


def _starts(places: Index, size: int) -> NDArray[np.int64]:
    """Where the entries of each of so many columns, or rows, begin, with the end of the last."""
    return np.concatenate(([0], np.cumsum(np.bincount(places, minlength=size))))


def _sizes(problem: Problem) -> Vector:
    """J_g's nonzeros at a point that depends on nothing, by which rows are paired with variables.

    Not at the start of a solve: what was solved first would decide the last bits of all others.
    """
    point = [(37 * np.arange(size) % 101 + 1) / 102 for size in (problem.n, problem.n_p)]
    first = problem.functions.first
    values = np.zeros(first.nnz_out(3))
    if values.size:
        buffer, evaluate = first.buffer()
        for i, numbers in enumerate(point):
            buffer.set_arg(i, numbers.data)
        buffer.set_res(3, values.data)
        with suppress(RuntimeError):  # of a function of the problem that raises
            evaluate()
    return np.where(np.isfinite(values), values, 1.0)


_lock = threading.Lock()
_plans: WeakKeyDictionary[Problem, dict[bytes, Plan]] = WeakKeyDictionary()


def plan_of(library: Any, problem: Problem, bounds: Bounds) -> Plan:
    """The plan for bounds of these kinds; made where it is not among the last few."""
    key = kinds_of(bounds)
    with _lock:
        kept = _plans.setdefault(problem, {})
        found = kept.get(key)
    if found is None:
        made = Plan(library, problem, bounds)
        with _lock:
            # Another thread may have been first: one plan for all, for it decides the last bits.
            found = kept.get(key)
            if found is None:
                while len(kept) >= _KEPT:
                    kept.pop(next(iter(kept)))
                found = kept[key] = made
    return found
