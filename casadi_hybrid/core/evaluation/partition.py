"""Parts of a function that repeat: what is cut, and which parts are equal."""

from __future__ import annotations

from ctypes import c_int
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.library import (
    Flags,
    Graph,
    Ints,
    call,
    kinds_of,
    power_of_two,
    starts,
    tools,
)
from casadi_hybrid.core.evaluation.operations import NUMBER

LARGE = 300
"""Operations of a part that are looked into where it does not repeat."""
OFTEN = 4
"""So many equal parts repeat."""
MOST, MOST_ALONE = 80_000, 4_000
"""Operations of all kinds together, and of those that do not repeat, above which the large ones are
cut to pieces: a compiler takes a second for some ten thousand."""
SHORTEST_SUM, _PIECE = 24, 16  # terms of a sum that is cut, and of its pieces
WIDE_USES, WIDE_RATIO = 32, 8  # of an input that all stages read
_MOST_WIDE, _MOST_BEHIND = 8, 1_000  # inputs and values behind values that are read everywhere
_LARGEST_SET = 400  # inputs of a set that is told from others


class Partition(NamedTuple):
    """Parts of a graph, equal ones of one kind.

    Attributes:
        begin, order: the values of part k are ``order[begin[k]:begin[k + 1]]``.
        phase: of each part; those of a phase need nothing of each other.
        kind, first: of each part; the first part of each kind.
        shape: four numbers for each entry of ``order``, see ``blocks_kinds`` in ``c/blocks.h``.
        slots, slot_begin: the values that come into each part, in the order of its slots.
        elsewhere: whether a value is read by another part.
    """

    begin: Ints
    order: Ints
    phase: Ints
    kind: Ints
    first: Ints
    shape: Ints
    slots: Ints
    slot_begin: Ints
    elsewhere: NDArray[np.bool_]

    @property
    def sizes(self) -> Ints:
        """Operations of each part."""
        return np.diff(self.begin)

    @property
    def code(self) -> int:
        """Operations of one part of each kind."""
        return int(self.sizes[self.first].sum())


def partition(graph: Graph) -> Partition:
    """Cut a graph where its parts are large and do not repeat.

    First nothing is cut: what shares no value falls apart by itself. In what is left, long sums and
    what hangs on inputs alone that all stages read (a final time) are cut; then, values where they
    begin to hang on more inputs than before. Where too much is left, every value that is read more
    than once is cut: such pieces are of few kinds whatever the function, and run some three times
    longer.
    """
    n = graph.op.size
    mode, cut, early = (np.zeros(n, np.uint8) for _ in range(3))
    support = np.zeros(n, np.int32)
    wide = wide_inputs(graph)
    found = _parts(graph, mode, cut, early, support)
    for level in (1, 2):
        large = _unrepeated(found)
        if not large.any():
            break
        mode[found.order[np.repeat(large, found.sizes)]] = level
        if level == 1:
            call(tools().blocks_early, n, graph.op, graph.a, graph.b, wide, early)
            cut |= early & (mode > 0)
            _cut_sums(graph, mode, cut)
        else:
            support = _supports(graph, mode, wide)
        found = _parts(graph, mode, cut, early, support)
    if found.code > MOST or found.sizes[_unrepeated(found)].sum() > MOST_ALONE:
        large = found.sizes > LARGE
        mode[found.order[np.repeat(large, found.sizes)]] = 1
        _cut_sums(graph, mode, cut)
        cut |= (graph.uses > 1) & (graph.op >= 0) & (mode == 1)
        found = _parts(graph, mode, cut, early, support)
    return found


def _cut_sums(graph: Graph, mode: Flags, cut: Flags) -> None:
    n = graph.op.size
    call(
        tools().blocks_sums, n, graph.op, graph.a, graph.b, graph.uses, mode, c_int(NUMBER["ADD"]),
        c_int(NUMBER["SUB"]), c_int(SHORTEST_SUM), c_int(_PIECE), np.empty(n, np.int32),
        np.empty(n, np.int32), cut,
    )  # fmt: skip


def _unrepeated(found: Partition) -> NDArray[np.bool_]:
    often = np.bincount(found.kind, minlength=1)
    return np.asarray((found.sizes > LARGE) & (often[found.kind] < OFTEN))


def wide_inputs(graph: Graph) -> Flags:
    """Inputs that far more is computed from than from others."""
    leaves = np.flatnonzero(graph.op == -1)
    uses = graph.uses[leaves]
    wide = np.zeros(max(1, sum(graph.sizes)), np.uint8)
    read = uses[uses > 0]
    if read.size:
        wide[graph.a[leaves[uses > _usual(read)]]] = 1
    return wide


def _usual(read: Ints) -> float:
    """What is read more often is read from everywhere; ``read``: how often each is that is read."""
    return max(WIDE_USES, WIDE_RATIO * float(np.median(read)))


def behind_hubs(graph: Graph, n: int) -> list[int]:
    """The few variables on which values hang that are read from everywhere, as a length of time.

    Nothing where they are many: then it is each element that reads values of its own often.
    """
    inner = graph.op >= 0
    read = graph.uses[inner & (graph.uses > 0)]
    if not read.size:
        return []
    often = inner & (graph.uses > _usual(read))
    found: set[int] = set()
    waiting = np.flatnonzero(often).tolist()
    seen = set(waiting)
    while waiting:
        value = waiting.pop()
        if graph.op[value] == -1 and graph.a[value] < n:
            found.add(int(graph.a[value]))
        elif graph.op[value] >= 0:
            operands = {int(graph.a[value]), int(graph.b[value])} - {-1} - seen
            seen |= operands
            waiting += operands
        if len(found) > _MOST_WIDE or len(seen) > _MOST_BEHIND:
            return []
    return list(found)


def _supports(graph: Graph, mode: Flags, wide: Flags) -> Ints:
    n = graph.op.size
    most_sets, most_members = 2 * n + 16, 16 * n + 1024
    table = power_of_two(2 * most_sets)
    memo = power_of_two(n)
    support = np.zeros(n, np.int32)
    call(
        tools().blocks_supports, n, graph.op, graph.a, graph.b, mode, wide, c_int(_LARGEST_SET),
        most_sets, most_members, np.zeros(most_sets + 2, np.int32),
        np.zeros(most_members + 1, np.int32), table, np.empty(table, np.int32), memo,
        np.empty(3 * memo, np.int32), support,
    )  # fmt: skip
    return support


def _parts(graph: Graph, mode: Flags, cut: Flags, early: Flags, support: Ints) -> Partition:
    n, op, a, b = graph.op.size, graph.op, graph.a, graph.b
    phase, root = np.zeros(n, np.int32), np.zeros(n, np.int32)
    call(tools().blocks_parts, n, op, a, b, graph.uses, mode, cut, early, support, phase, root)
    live = np.flatnonzero(root >= 0).astype(np.int32)
    heads, of_live = np.unique(root[live], return_inverse=True)
    parts = heads.size
    part_of = np.full(n, -1, np.int32)
    part_of[live] = of_live
    order = np.ascontiguousarray(live[np.argsort(of_live, kind="stable")])
    begin = starts(np.bincount(of_live, minlength=parts))
    elsewhere = np.zeros(n, np.bool_)
    for operand in (a, b):
        read = operand[live]
        there = read >= 0
        read, reader = read[there], live[there]
        elsewhere[read[part_of[read] != part_of[reader]]] = True
    elsewhere[op < 0] = False
    results = graph.result[graph.result >= 0]
    to_outputs = np.bincount(results, minlength=n)
    kinds = kinds_of(op, a, b, begin, order, part_of, to_outputs, elsewhere)
    return Partition(begin, order, phase[order[begin[:-1]]], *kinds, elsewhere)
