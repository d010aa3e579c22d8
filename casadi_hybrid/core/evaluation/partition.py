"""Parts of a function that repeat: cuts of its graph, and the kinds of equal parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.library import (
    LEAF_INPUT,
    Flags,
    Graph,
    Ints,
    call,
    kinds_of,
    power_of_two,
    starts,
)
from casadi_hybrid.core.evaluation.operations import NUMBER

# Operations of a part from which it is cut if it does not repeat.
LARGE = 300
# Equal parts from which a part counts as repeated.
OFTEN = 4
# Operations of all kinds together, and of parts that do not repeat, above which large parts are cut
# to pieces. A compiler takes a second for some ten thousand.
MOST, MOST_ALONE = 80_000, 4_000
SHORTEST_SUM, _PIECE = 24, 16  # terms of a sum that is cut, and of its pieces
WIDE_USES, WIDE_RATIO = 32, 8  # uses of an input that all stages read; relative to the median
_MOST_WIDE, _MOST_BEHIND = 8, 1_000  # inputs and values behind values that are read everywhere
_LARGEST_SET = 400  # inputs of a support


class Partition(NamedTuple):
    """Parts of a graph, equal ones of one kind."""

    # The values of part k are order[begin[k]:begin[k + 1]]. Parts of one phase share nothing.
    begin: Ints
    order: Ints
    phase: Ints
    # As in Kinds.
    kind: Ints
    first: Ints
    shape: Ints
    slots: Ints
    slot_begin: Ints
    elsewhere: NDArray[np.bool_]  # values that another part reads

    @property
    def sizes(self) -> Ints:
        """Operations of each part."""
        return np.diff(self.begin)

    @property
    def code(self) -> int:
        """Operations of one part of each kind."""
        return int(self.sizes[self.first].sum())


def partition(graph: Graph) -> Partition:
    """Cut a graph where its parts are large and do not repeat."""
    n = graph.op.size
    mode, cut, early = (np.zeros(n, np.uint8) for _ in range(3))
    support = np.zeros(n, np.int32)
    wide = wide_inputs(graph)
    parts = _parts(graph, mode, cut, early, support)
    # Level 1 cuts long sums and values of inputs that all stages read, as a final time. Level 2
    # cuts values whose support grows.
    for level in (1, 2):
        large = _unrepeated(parts)
        if not large.any():
            break
        mode[parts.order[np.repeat(large, parts.sizes)]] = level
        if level == 1:
            call("early", n, graph.op, graph.a, graph.b, wide, early)
            cut |= early & (mode > 0)
            _cut_sums(graph, mode, cut)
        else:
            support = _supports(graph, mode, wide)
        parts = _parts(graph, mode, cut, early, support)
    # Last, every value that is read more than once is cut: such pieces have few kinds for any
    # function, and run about three times longer.
    if parts.code > MOST or parts.sizes[_unrepeated(parts)].sum() > MOST_ALONE:
        large = parts.sizes > LARGE
        mode[parts.order[np.repeat(large, parts.sizes)]] = 1
        _cut_sums(graph, mode, cut)
        cut |= (graph.uses > 1) & (graph.op >= 0) & (mode == 1)
        parts = _parts(graph, mode, cut, early, support)
    return parts


def _cut_sums(graph: Graph, mode: Flags, cut: Flags) -> None:
    n, sums = graph.op.size, (NUMBER["ADD"], NUMBER["SUB"], SHORTEST_SUM, _PIECE)
    length, down = np.empty(n, np.int32), np.empty(n, np.int32)
    call("sums", n, graph.op, graph.a, graph.b, graph.uses, mode, *sums, length, down, cut)


def _unrepeated(parts: Partition) -> NDArray[np.bool_]:
    """Mask of large parts with few equals."""
    count = np.bincount(parts.kind, minlength=1)
    return np.asarray((parts.sizes > LARGE) & (count[parts.kind] < OFTEN))


def wide_inputs(graph: Graph) -> Flags:
    """Mask of the inputs that are read far more often than others."""
    leaves = np.flatnonzero(graph.op == LEAF_INPUT)
    uses = graph.uses[leaves]
    wide = np.zeros(max(1, sum(graph.sizes)), np.uint8)
    read = uses[uses > 0]
    if read.size:
        wide[graph.a[leaves[uses > _usual(read)]]] = 1
    return wide


def _usual(read: Ints) -> float:
    """Uses above which a value is read from everywhere; ``read``: uses of all values read."""
    return max(WIDE_USES, WIDE_RATIO * float(np.median(read)))


def behind_hubs(graph: Graph, n: int) -> list[int]:
    """Variables behind values that are read everywhere, as a final time; x has n entries."""
    inner = graph.op >= 0
    read = graph.uses[inner & (graph.uses > 0)]
    if not read.size:
        return []
    often = inner & (graph.uses > _usual(read))
    variables: set[int] = set()
    waiting = np.flatnonzero(often).tolist()
    seen = set(waiting)
    while waiting:
        value = waiting.pop()
        if graph.op[value] == LEAF_INPUT and graph.a[value] < n:
            variables.add(int(graph.a[value]))
        elif graph.op[value] >= 0:
            operands = {int(graph.a[value]), int(graph.b[value])} - {-1} - seen
            seen |= operands
            waiting += operands
        # Many variables: each element reads values of its own often, and nothing is common.
        if len(variables) > _MOST_WIDE or len(seen) > _MOST_BEHIND:
            return []
    return list(variables)


def _supports(graph: Graph, mode: Flags, wide: Flags) -> Ints:
    n = graph.op.size
    most_sets, most_members = 2 * n + 16, 16 * n + 1024
    table_size, memo_size = power_of_two(2 * most_sets), power_of_two(n)
    lengths = most_sets + 2, most_members + 1, table_size, 3 * memo_size
    at, members, table, memo = (np.zeros(length, np.int32) for length in lengths)
    sets = _LARGEST_SET, most_sets, most_members, at, members, table_size, table, memo_size, memo
    support = np.zeros(n, np.int32)
    call("supports", n, graph.op, graph.a, graph.b, mode, wide, *sets, support)
    return support


def _parts(graph: Graph, mode: Flags, cut: Flags, early: Flags, support: Ints) -> Partition:
    n, op, a, b = graph.op.size, graph.op, graph.a, graph.b
    phase, root = np.zeros(n, np.int32), np.zeros(n, np.int32)
    call("parts", n, op, a, b, graph.uses, mode, cut, early, support, phase, root)
    live = np.flatnonzero(root >= 0).astype(np.int32)
    # A part is named by its first value.
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
    # Leaves are in v before any part runs.
    elsewhere[op < 0] = False
    results = graph.result[graph.result >= 0]
    to_outputs = np.bincount(results, minlength=n)
    kinds = kinds_of(op, a, b, begin, order, part_of, to_outputs, elsewhere)
    return Partition(begin, order, phase[order[begin[:-1]]], *kinds, elsewhere)
