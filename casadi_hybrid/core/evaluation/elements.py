"""The elements of a problem (:mod:`casadi_hybrid.problem.elements`), found in its operations.

Values that no two rows or terms of the objective share keep these apart. What is computed from
constants, parameters and variables alone that nearly all read (a final time) joins nothing: each
element has a copy of its own. Where elements found so are not alike, rows are sums of terms too (a
right side that two intervals of the trapezoidal rule share is a term of two rows), and last, what
takes few operations (a difference quotient that two triangles share, a right side times a final
time that is free) is copied as well.
"""

from __future__ import annotations

import ctypes as ct
from contextlib import suppress
from ctypes import c_int
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.library import (
    Flags,
    Graph,
    Ints,
    UntranslatedError,
    call,
    graph_of,
    kinds_of,
    starts,
    tools,
)
from casadi_hybrid.core.evaluation.operations import NUMBER, number_in_casadi
from casadi_hybrid.core.evaluation.partition import SHORTEST_SUM, behind_hubs, wide_inputs
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.elements.element import Elements, Kind, together, total
from casadi_hybrid.utils.arrays import without_repetition

REPEATED, _OFTEN = 2, 20
"""So many times the operations of all kinds have all elements, where elements are worth it, and
where no other way to cut is tried."""
_MOST_KINDS = 200
WAYS = (False, 0), (True, 0), (True, 32)
"""Whether rows are taken apart, and up to how many operations values are copied."""
_TERM = 1 << 16  # marks in ``shape`` that a value is a term, beside the rows that it is
_LEAF = -1, -2  # op of an input and of a constant
_X, _P, _C = 0, 1, 2


class _LinearData(ct.Structure):
    """``blocks_linear``."""

    _fields_ = [
        (name, c_int)
        for name in ("add", "subtract", "negate", "multiply", "twice", "divide", "longest")
    ]


_LINEAR, _LINEAR_ROWS = (
    _LinearData(*(NUMBER[name] for name in ("ADD", "SUB", "NEG", "MUL", "TWICE", "DIV")), shortest)
    for shortest in (SHORTEST_SUM, 1)
)


def find_elements(graph: ca.Function) -> Elements | None:
    """The elements of (x, p) → (f, c); None where too few are alike.

    Args:
        graph: in scalar operations.
    """
    try:
        read = graph_of(graph)
        early = early_of(read)
    except (UntranslatedError, BuildError, MemoryError):
        return None
    best: _Search | None = None
    for way in WAYS:
        with suppress(UntranslatedError, MemoryError):
            search = _Search(read, graph, early, *way)
            if best is None or REPEATED * search.once < best.once:
                best = search
        if best is not None and best.repeated >= _OFTEN:
            break
    return best.elements() if best and best.repeated >= REPEATED else None


def early_of(graph: Graph) -> Flags:
    """What hangs on constants, parameters and variables alone that nearly all elements read."""
    n, wide, early = graph.sizes[0], wide_inputs(graph), np.zeros(graph.op.size, np.uint8)
    wide[behind_hubs(graph, n)] = 1
    wide[n:] = 1
    call(tools().blocks_early, early.size, graph.op, graph.a, graph.b, wide, early)
    return early


class _Search:
    """One way to cut a problem.

    Args:
        graph, function: the problem.
        early: :func:`early_of` it.
        apart: whether rows are sums of terms too.
        small: operations of what joins nothing.
    """

    def __init__(
        self, graph: Graph, function: ca.Function, early: Flags, apart: bool, small: int
    ) -> None:
        self._n, self._n_p = graph.sizes
        self._m = function.size1_out(1)
        self._pool = graph.constants
        f, rows = np.split(graph.result, [function.nnz_out(0)])
        self._rows_at = np.array(function.sparsity_out(1).row(), dtype=np.int32)[rows >= 0]
        f, rows = f[f >= 0], rows[rows >= 0]
        spine = np.zeros(graph.op.size, np.uint8)
        _, terms, factors = self._terms(graph, f, _LINEAR, spine)
        row_of, of_rows = np.arange(rows.size, dtype=np.int32), np.ones(rows.size)
        if apart:
            row_of, rows, of_rows = self._terms(graph, rows, _LINEAR_ROWS, spine)
        self._row_of, self._factors = row_of, (of_rows, factors)
        if small:
            early, sizes = early.copy(), np.empty(early.size, np.int32)
            call(
                tools().blocks_small, early.size, graph.op, graph.a, graph.b, c_int(small), sizes,
                early,
            )  # fmt: skip
        self._gather(graph, spine, rows, terms, early)
        self._count()

    def _terms(
        self, graph: Graph, roots: Ints, words: _LinearData, spine: Flags
    ) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Of sums: for each term which sum it is in, its value and its factor."""
        n = graph.op.size
        owner, term = (np.empty(n + roots.size, np.int32) for _ in range(2))
        factor = np.empty(n + roots.size)
        count = call(
            tools().blocks_terms, int(roots.size), roots, graph.op, graph.a, graph.b, graph.uses,
            self._pool, ct.byref(words), np.empty(n + 1, np.int32), np.empty(n + 1), spine, owner,
            term, factor,
        )  # fmt: skip
        return owner[:count], term[:count], factor[:count]

    def _gather(self, graph: Graph, spine: Flags, rows: Ints, terms: Ints, early: Flags) -> None:
        """The elements as values one after the other, and what each says of rows and terms."""
        n = graph.op.size
        # Of a root that is a leaf or early an element is made by an operation that does nothing.
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
        count = call(tools().blocks_elements, n, op, a, b, live, part)
        order = np.argsort(part, kind="stable")
        order = order[part[order] >= 0].astype(np.int32)
        begin = starts(np.bincount(part[order], minlength=count))
        leaves = np.flatnonzero(op < 0)
        place = np.zeros(n, np.int32)
        place[leaves] = np.arange(leaves.size)
        most = leaves.size + 2 * n
        self._op, self._a, self._b = (np.zeros(most, np.int32) for _ in range(3))
        self._op[: leaves.size], self._a[: leaves.size] = op[leaves], a[leaves]
        self._begin = np.zeros(count + 1, np.int32)
        end = call(
            tools().blocks_closed, int(count), begin, order, op, a, b, early, place,
            np.full(n, -1, np.int32), np.empty(n, np.int32), int(leaves.size), int(most),
            self._begin, self._op, self._a, self._b,
        )  # fmt: skip
        if end < 0:
            raise UntranslatedError("too much is shared by all elements")
        self._op, self._a, self._b = self._op[:end], self._a[:end], self._b[:end]
        self._leaves = int(leaves.size)
        self._values = np.array(place[roots[: rows.size]]), np.array(place[roots[rows.size :]])

    def _count(self) -> None:
        """The kinds, and how often they repeat."""
        count = self._begin.size - 1
        self._sizes = np.diff(self._begin)
        part_of = np.full(self._op.size, -1, np.int32)
        part_of[self._leaves :] = np.repeat(np.arange(count, dtype=np.int32), self._sizes)
        rows, terms = self._values
        outputs = np.bincount(rows, minlength=self._op.size)
        outputs += _TERM * np.bincount(terms, minlength=self._op.size)
        order = np.arange(self._leaves, self._op.size, dtype=np.int32)
        elsewhere = np.zeros(self._op.size, np.bool_)
        self._kinds, first, self._shape, self._slots, self._slot_begin = kinds_of(
            self._op, self._a, self._b, self._begin - self._leaves, order, part_of, outputs,
            elsewhere,
        )  # fmt: skip
        self.once = int(self._sizes[first].sum())
        few = first.size <= _MOST_KINDS
        self.repeated = self._sizes.sum() / max(1, self.once) if few else 0.0

    def elements(self) -> Elements | None:
        """All of them; None where there are too many kinds."""
        rows, terms = self._values
        self._by_value = _Lists(rows), _Lists(terms)
        begin = self._begin - self._leaves
        found: list[Kind] = []
        by_kind = np.argsort(self._kinds, kind="stable")
        ends = np.flatnonzero(np.diff(self._kinds[by_kind])) + 1
        for mine in np.split(by_kind, ends):
            head = int(mine[0])
            of_shape = self._shape[begin[head] : begin[head + 1]]
            width = int(self._slot_begin[head + 1] - self._slot_begin[head])
            through = self._slots[self._slot_begin[mine][:, None] + np.arange(width)]
            for some in self._alike(of_shape, through):
                found.append(self._kind(of_shape, through[some], self._begin[mine[some]]))
                if len(found) > _MOST_KINDS:
                    return None
        return Elements(together(found), self._n, self._m, self._n_p, self._rows_at)

    def _type(self, through: Ints) -> Ints:
        """Of leaves, whether they are variables, parameters or constants."""
        parameter = np.where(self._a[through] < self._n, _X, _P)
        return np.where(self._op[through] == _LEAF[1], _C, parameter).astype(np.int32)

    def _alike(self, shape: Ints, through: Ints) -> list[Any]:
        """Which elements of a shape have the same types of leaves, and the same exponents."""
        types = self._type(through)
        power = (shape[:, 0] == NUMBER["POW"]) | (shape[:, 0] == NUMBER["CONSTPOW"])
        exponents = {-2 - int(w) for w in shape[power, 2] if w < -1}
        if not exponents and (types == types[0]).all():
            return [np.arange(len(through))]
        signature = types.astype(float)
        for slot in exponents:
            constant = types[:, slot] == _C
            value = self._pool[self._a[through[constant, slot]]]
            signature[constant, slot] = np.copysign(_C + 1 + np.abs(value), value)
        _, of = np.unique(signature, axis=0, return_inverse=True)
        return [np.flatnonzero(of == k) for k in range(int(of.max()) + 1)]

    def _kind(self, shape: Ints, through: Ints, begin: Ints) -> Kind:
        """The function of elements that are alike, and its places.

        Args:
            shape: of one, see ``blocks_kinds``.
            through: the leaves that come into each, one element a line.
            begin: the first value of each.
        """
        types = self._type(through[:1])[0]
        places = self._a[through]
        symbols: dict[int, list[Any]] = {_X: [], _P: [], _C: []}
        at: dict[int, list[Any]] = {_X: [], _P: [], _C: []}
        values, coming = list[Any](), list[Any]()

        def leaf(kind: int, column: Any) -> Any:
            symbol = ca.SX.sym("xpc"[kind] + str(len(symbols[kind])))
            symbols[kind].append(symbol)
            at[kind].append(column)
            return symbol

        def number(column: NDArray[np.float64]) -> Any:
            if (column == column[0]).all():
                return ca.SX(float(column[0]))
            return leaf(_C, column)

        for slot, kind in enumerate(types.tolist()):
            column = places[:, slot]
            if kind == _C:
                coming.append(number(self._pool[column]))
            else:
                coming.append(leaf(kind, column - (self._n if kind == _P else 0)))
        rows, row_at, terms = [], [], []
        of_rows, of_terms = self._by_value
        row_factors, factors = self._factors
        for i, (operation, a, b, leaves) in enumerate(shape.tolist()):
            x = values[a] if a >= 0 else coming[-2 - a]
            casadis = number_in_casadi(operation)
            y = values[b] if b >= 0 else coming[-2 - b] if b != -1 else None
            value = ca.SX.unary(casadis, x) if y is None else ca.SX.binary(casadis, x, y)
            values.append(value)
            if leaves:
                how_many = (leaves - 1) // 2
                for j in range(how_many % _TERM):
                    entry = of_rows.entry(begin + i, j)
                    rows.append(_times(number(row_factors[entry]), value))
                    row_at.append(self._rows_at[self._row_of[entry]])
                for j in range(how_many // _TERM):
                    terms.append(_times(number(factors[of_terms.entry(begin + i, j)]), value))
        count = len(through)
        x, p, c = (ca.vertcat(ca.SX(0, 1), *symbols[one]) for one in (_X, _P, _C))
        return Kind(
            x, p, c, rows=ca.vertcat(ca.SX(0, 1), *rows), term=total(terms),
            x_at=_columns(at[_X], count, np.int32), p_at=_columns(at[_P], count, np.int32),
            row_at=_columns(row_at, count, np.int32),
            constants=_columns(at[_C], count, np.float64),
        )  # fmt: skip


class _Lists:
    """For each value, which outputs it is."""

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
