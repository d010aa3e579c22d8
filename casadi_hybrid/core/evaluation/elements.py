"""Elements of a problem (:mod:`casadi_hybrid.problem.elements`), found in its operations.

Elements are rows and terms of the objective that share no value. Values that depend only on
constants, parameters and variables that nearly all elements read (a final time) are early: they
connect nothing, and each element has a copy. If the elements are not alike, rows are split into
terms as well: a right side that two intervals of the trapezoidal rule share is a term of two rows.
Last, values of few operations are copied too: a difference quotient that two triangles share, a
right side times a free final time.
"""

from __future__ import annotations

import ctypes as ct
from contextlib import suppress
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.library import (
    BLOCKS,
    LEAF_CONSTANT,
    Flags,
    Graph,
    Ints,
    UntranslatedError,
    call,
    graph_of,
    kinds_of,
    starts,
)
from casadi_hybrid.core.evaluation.operations import NUMBER, number_in_casadi
from casadi_hybrid.core.evaluation.partition import SHORTEST_SUM, behind_hubs, wide_inputs
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.elements.element import Elements, Kind, together, total
from casadi_hybrid.utils.arrays import without_repetition

# Operations of all elements relative to those of all kinds: the least with which elements are used,
# and the least with which the search ends.
REPEATED, _OFTEN = 2, 20
_MOST_KINDS = 200
# Ways to cut: split rows or not, and operations up to which values are copied.
WAYS = (False, 0), (True, 0), (True, 32)
_TERM = 1 << 16  # added in ``shape`` for each term that a value is, beside 1 for each row
_X, _P, _C = 0, 1, 2  # types of leaves: variable, parameter, constant
# Terms from which a sum counts as one over all stages: in f, and in rows that are split.
_LINEAR, _LINEAR_ROWS = (
    BLOCKS.blocks_linear(
        *(NUMBER[name] for name in ("ADD", "SUB", "NEG", "MUL", "TWICE", "DIV")), shortest
    )
    for shortest in (SHORTEST_SUM, 1)
)


def find_elements(graph: ca.Function) -> Elements | None:
    """Elements of (x, p) → (f, c) in scalar operations; None if too few are alike."""
    try:
        values = graph_of(graph)
        early = early_of(values)
    except (UntranslatedError, BuildError, MemoryError):
        return None
    best: _Search | None = None
    for way in WAYS:
        with suppress(UntranslatedError, MemoryError):
            search = _Search(values, graph, early, *way)
            # Another way must at least halve the operations of all kinds.
            if best is None or REPEATED * search.once < best.once:
                best = search
        if best is not None and best.repeated >= _OFTEN:
            break
    return best.elements() if best and best.repeated >= REPEATED else None


def early_of(graph: Graph) -> Flags:
    """Mask of values that depend only on constants, parameters and widely read variables."""
    n, wide, early = graph.sizes[0], wide_inputs(graph), np.zeros(graph.op.size, np.uint8)
    wide[behind_hubs(graph, n)] = 1
    # Parameters connect nothing either: all stages read them.
    wide[n:] = 1
    call("early", early.size, graph.op, graph.a, graph.b, wide, early)
    return early


class _Search:
    """One way to cut a problem: rows apart or not, and small values copied."""

    def __init__(
        self, graph: Graph, function: ca.Function, early: Flags, apart: bool, small: int
    ) -> None:
        self._n, self._n_p = graph.sizes
        self._m = function.size1_out(1)
        self._pool = graph.constants
        f, rows = np.split(graph.result, [function.nnz_out(0)])
        self._rows_at = np.array(function.sparsity_out(1).row(), dtype=np.int32)[rows >= 0]
        f, rows = f[f >= 0], rows[rows >= 0]
        # The spine adds the terms up: its values are read by nothing else and belong to no element.
        spine = np.zeros(graph.op.size, np.uint8)
        _, terms, factors = self._terms(graph, f, _LINEAR, spine)
        row_of, of_rows = np.arange(rows.size, dtype=np.int32), np.ones(rows.size)
        if apart:
            row_of, rows, of_rows = self._terms(graph, rows, _LINEAR_ROWS, spine)
        self._row_of, self._factors = row_of, (of_rows, factors)
        if small:
            # A copy: the next way begins with the same early values.
            early, sizes = early.copy(), np.empty(early.size, np.int32)
            call("small", early.size, graph.op, graph.a, graph.b, small, sizes, early)
        self._gather(graph, spine, rows, terms, early)
        self._count()

    def _terms(
        self, graph: Graph, roots: Ints, words: Any, spine: Flags
    ) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Terms of sums: the sum of each term, its value and its factor."""
        n = graph.op.size
        owner, term = (np.empty(n + roots.size, np.int32) for _ in range(2))
        factor = np.empty(n + roots.size)
        stack, pending = np.empty(n + 1, np.int32), np.empty(n + 1)
        values = graph.op, graph.a, graph.b, graph.uses, self._pool, ct.byref(words)
        count = call(
            "terms", roots.size, roots, *values, stack, pending, spine, owner, term, factor
        )
        return owner[:count], term[:count], factor[:count]

    def _gather(self, graph: Graph, spine: Flags, rows: Ints, terms: Ints, early: Flags) -> None:
        """Lay the elements out one after the other, and find the values of rows and terms."""
        n = graph.op.size
        # An assignment makes an element of a root that is a leaf or early.
        roots = np.concatenate([rows, terms]).astype(np.int32)
        plain = (graph.op[roots] < 0) | (early[roots] > 0)
        added = without_repetition(roots[plain])
        extra = added.size
        op = np.concatenate([graph.op, np.full(extra, NUMBER["ASSIGN"], np.int32)])
        a = np.concatenate([graph.a, added])
        b = np.concatenate([graph.b, np.full(extra, -1, np.int32)])
        early = np.concatenate([early, np.zeros(extra, np.uint8)])
        roots[plain] = n + np.searchsorted(added, roots[plain])
        used = (graph.uses > 0) & (spine == 0) & (graph.op >= 0)
        live = (np.concatenate([used, np.ones(extra, bool)]) & (early == 0)).astype(np.uint8)
        n = op.size
        part = np.empty(n, np.int32)
        count = call("elements", n, op, a, b, live, part)
        order = np.argsort(part, kind="stable")
        order = order[part[order] >= 0].astype(np.int32)
        begin = starts(np.bincount(part[order], minlength=count))
        leaves = np.flatnonzero(op < 0)
        place = np.zeros(n, np.int32)
        # Leaves come first in the new numbering, then element by element.
        place[leaves] = np.arange(leaves.size)
        # Copies of early values may about double the values; beyond that sharing is cheaper.
        most = leaves.size + 2 * n
        self._op, self._a, self._b = (np.zeros(most, np.int32) for _ in range(3))
        self._op[: leaves.size], self._a[: leaves.size] = op[leaves], a[leaves]
        self._begin = np.zeros(count + 1, np.int32)
        elements = count, begin, order, op, a, b, early
        stamp, stack = np.full(n, -1, np.int32), np.empty(n, np.int32)
        laid = self._begin, self._op, self._a, self._b
        end = call("closed", *elements, place, stamp, stack, leaves.size, most, *laid)
        if end < 0:
            raise UntranslatedError("too much is shared by all elements")
        self._op, self._a, self._b = self._op[:end], self._a[:end], self._b[:end]
        self._leaves = leaves.size
        self._values = place[roots[: rows.size]], place[roots[rows.size :]]

    def _count(self) -> None:
        """Find the kinds, and how often they repeat."""
        count = self._begin.size - 1
        self._sizes = np.diff(self._begin)
        part_of = np.full(self._op.size, -1, np.int32)
        part_of[self._leaves :] = np.repeat(np.arange(count, dtype=np.int32), self._sizes)
        rows, terms = self._values
        outputs = np.bincount(rows, minlength=self._op.size)
        # Two counts in one number: rows below, terms in units of _TERM.
        outputs += _TERM * np.bincount(terms, minlength=self._op.size)
        order = np.arange(self._leaves, self._op.size, dtype=np.int32)
        parts = self._begin - self._leaves, order, part_of
        elsewhere = np.zeros(self._op.size, np.bool_)
        self._kinds = kinds_of(self._op, self._a, self._b, *parts, outputs, elsewhere)
        # Operations of one element of each kind, and of all relative to them.
        self.once = int(self._sizes[self._kinds.first].sum())
        few = self._kinds.first.size <= _MOST_KINDS
        self.repeated = self._sizes.sum() / max(1, self.once) if few else 0.0

    def elements(self) -> Elements | None:
        """All elements; None if there are too many kinds."""
        rows, terms = self._values
        self._by_value = _Outputs(rows), _Outputs(terms)
        begin, kinds = self._begin - self._leaves, self._kinds
        alike: list[Kind] = []
        by_kind = np.argsort(kinds.kind, kind="stable")
        ends = np.flatnonzero(np.diff(kinds.kind[by_kind])) + 1
        for members in np.split(by_kind, ends):
            head = int(members[0])
            shape = kinds.shape[begin[head] : begin[head + 1]]
            width = int(kinds.slot_begin[head + 1] - kinds.slot_begin[head])
            slots = kinds.slots[kinds.slot_begin[members][:, None] + np.arange(width)]
            for some in self._alike(shape, slots):
                alike.append(self._kind(shape, slots[some], self._begin[members[some]]))
                if len(alike) > _MOST_KINDS:
                    return None
        return Elements(together(alike), self._n, self._m, self._n_p, self._rows_at)

    def _type(self, leaves: Ints) -> Ints:
        """Types of leaves."""
        symbol = np.where(self._a[leaves] < self._n, _X, _P)
        return np.where(self._op[leaves] == LEAF_CONSTANT, _C, symbol).astype(np.int32)

    def _alike(self, shape: Ints, slots: Ints) -> list[Any]:
        """Groups of the elements of a shape with equal types of leaves and equal exponents."""
        types = self._type(slots)
        power = (shape[:, 0] == NUMBER["POW"]) | (shape[:, 0] == NUMBER["CONSTPOW"])
        # A constant exponent belongs to the function: CasADi turns x**2 into a square.
        exponents = {-2 - int(w) for w in shape[power, 2] if w < -1}
        if not exponents and (types == types[0]).all():
            return [np.arange(len(slots))]
        signature = types.astype(float)
        for slot in exponents:
            constant = types[:, slot] == _C
            value = self._pool[self._a[slots[constant, slot]]]
            # One number for type and exponent: types are 0, 1 and 2, exponents lie beyond.
            signature[constant, slot] = np.copysign(_C + 1 + np.abs(value), value)
        _, group = np.unique(signature, axis=0, return_inverse=True)
        return [np.flatnonzero(group == k) for k in range(int(group.max()) + 1)]

    def _kind(self, shape: Ints, slots: Ints, begin: Ints) -> Kind:
        """Function of elements that are alike, and the places of its inputs and rows.

        ``slots`` has the leaves of an element a line, ``begin`` the first value of each element.
        """
        types = self._type(slots[:1])[0]
        symbols: dict[int, list[Any]] = {_X: [], _P: [], _C: []}
        columns: dict[int, list[Any]] = {_X: [], _P: [], _C: []}

        def leaf(kind: int, column: Any) -> Any:
            symbol = ca.SX.sym("xpc"[kind] + str(len(symbols[kind])))
            symbols[kind].append(symbol)
            columns[kind].append(column)
            return symbol

        def number(column: NDArray[np.float64]) -> Any:
            # One number in all elements is no input of their function.
            if (column == column[0]).all():
                return ca.SX(float(column[0]))
            return leaf(_C, column)

        leaves, values = list[Any](), list[Any]()
        for kind, column in zip(types.tolist(), self._a[slots].T, strict=True):
            if kind == _C:
                leaves.append(number(self._pool[column]))
            else:
                leaves.append(leaf(kind, column - (self._n if kind == _P else 0)))
        rows, row_at, terms = [], [], []
        of_rows, of_terms = self._by_value
        row_factors, factors = self._factors
        for i, (operation, a, b, leaving) in enumerate(shape.tolist()):
            operands = [values[w] if w >= 0 else leaves[-2 - w] for w in (a, b) if w != -1]
            make = ca.SX.unary if len(operands) == 1 else ca.SX.binary
            value = make(number_in_casadi(operation), *operands)
            values.append(value)
            # leaving = 1 + 2·outputs, with both counts of _count in the outputs.
            n_terms, n_rows = divmod((leaving - 1) // 2, _TERM) if leaving else (0, 0)
            for j in range(n_rows):
                entry = of_rows.entry(begin + i, j)
                rows.append(_times(number(row_factors[entry]), value))
                row_at.append(self._rows_at[self._row_of[entry]])
            for j in range(n_terms):
                terms.append(_times(number(factors[of_terms.entry(begin + i, j)]), value))
        x, p, c = (ca.vertcat(ca.SX(0, 1), *symbols[kind]) for kind in (_X, _P, _C))
        count = len(slots)
        return Kind(
            x,
            p,
            c,
            rows=ca.vertcat(ca.SX(0, 1), *rows),
            term=total(terms),
            x_at=_columns(columns[_X], count, np.int32),
            p_at=_columns(columns[_P], count, np.int32),
            row_at=_columns(row_at, count, np.int32),
            constants=_columns(columns[_C], count, np.float64),
        )


class _Outputs:
    """The outputs that each value is."""

    def __init__(self, values: Any) -> None:
        self._order = np.argsort(values, kind="stable")
        self._sorted = values[self._order]

    def entry(self, values: Any, j: int) -> Any:
        """The ``j``-th output of each value."""
        return self._order[np.searchsorted(self._sorted, values) + j]


def _times(factor: Any, value: Any) -> Any:
    return -value if factor.is_minus_one() else factor * value


def _columns(columns: list[Any], count: int, kind: Any) -> NDArray[Any]:
    return np.ascontiguousarray(np.array(columns, kind).reshape(-1, count).T)
