"""A function in parts: its kinds, and the indices that each part reads and writes."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.code import Lines
from casadi_hybrid.core.evaluation.library import (
    BLOCKS,
    LEAF_CONSTANT,
    LEAF_INPUT,
    Graph,
    Ints,
    UntranslatedError,
    graph_of,
    starts,
)
from casadi_hybrid.core.evaluation.partition import MOST, Partition, partition
from casadi_hybrid.utils.arrays import address

_LANES: int = BLOCKS.HYBRID_LANES
_LINE, _LANE = 5.0, 0.3  # nanoseconds of a line for each batch of lanes, and of each lane in it


@dataclass(frozen=True)
class Run:
    """Parts of one kind, evaluated one after the other."""

    kind: Lines
    at: Ints  # indices of each part, a row a part, see Lines; rows may be more than count
    shared: Ints  # indices that all parts share
    count: int

    @classmethod
    def of(cls, shape: Ints, slots: Any, leaving: Iterable[Any], *, sharing: bool = True) -> Run:
        """Parts of a shape; ``slots`` and ``leaving`` are the indices of each, a row a part."""
        count = len(slots)
        # An index that all parts read is loaded once for all.
        same = (slots == slots[0]).all(axis=0) & sharing & (count > 1)
        at = np.ascontiguousarray(np.hstack([slots[:, ~same], *leaving]), dtype=np.int32)
        shared = np.ascontiguousarray(slots[0][same], dtype=np.int32)
        return cls(Lines(shape, same.tolist()), at, shared, count)


class InParts:
    """A function in parts."""

    operations: int  # of one part of each kind
    outputs: int  # nonzeros of all outputs
    runs: list[Run]
    sizes: tuple[int, ...]  # nonzeros of the inputs, which come first in the array v
    constants: NDArray[np.float64]  # after the inputs in v
    size: int  # entries of v
    # Entries of v that are copied to outputs in the end.
    source: Ints
    target: Ints

    @property
    def texts(self) -> set[str]:
        """C of each kind of part, with ``@`` in place of its name."""
        return {run.kind.code[0] for run in self.runs}

    @property
    def duration(self) -> float:
        """Estimated nanoseconds of an evaluation by programs."""
        total = 0.0
        for run in self.runs:
            # Lanes run in batches, and a batch takes at least the time of four lanes.
            pieces, lines = -(-run.count // _LANES), len(run.kind.program[0])
            total += lines * (_LINE * pieces + _LANE * max(4 * pieces, run.count))
        return total

    def function(self, addresses: dict[str, int] | None) -> tuple[Any, Any]:
        """``blocks_function`` with memory of its own, and the objects that it points to."""
        # addresses: compiled parts by their text; None for programs.
        kinds = [run.kind for run in self.runs]
        if addresses is None:
            room = _LANES * max((kind.program[1] for kind in kinds), default=0)
        else:
            room = max((kind.code[1] for kind in kinds), default=0)
        v, own = np.zeros(max(1, self.size)), np.zeros(max(1, room))
        begin = sum(self.sizes)
        v[begin : begin + self.constants.size] = self.constants
        runs = (BLOCKS.blocks_run * max(1, len(self.runs)))()
        for data, run in zip(runs, self.runs, strict=False):
            data.at, data.shared, data.count = address(run.at), address(run.shared), run.count
            if addresses is None:
                lines, _ = run.kind.program
                data.program = BLOCKS.blocks_program(address(lines), len(lines), run.at.shape[1])
            else:
                data.part = addresses[run.kind.code[0]]
        copies = address(self.source), address(self.target), self.target.size
        # C has three inputs: x, p or x, λ, p.
        sizes = (*self.sizes, 0, 0)[:3]
        pointers = ct.addressof(runs), len(self.runs), *copies, sizes, address(v), address(own)
        return BLOCKS.blocks_function(*pointers), (v, own, runs, self)


class Staged(InParts):
    """Function in parts that are searched for in its graph; raises UntranslatedError."""

    def __init__(self, function: ca.Function) -> None:
        graph = graph_of(function)
        parts = partition(graph)
        self.operations = parts.code
        if self.operations > MOST:
            raise UntranslatedError(
                f"the function {function.name()!r} has {self.operations} operations that do not "
                f"repeat, and at most {MOST} are compiled"
            )
        self.outputs, self.sizes = int(graph.result.size), graph.sizes
        self.constants = graph.constants
        self._inputs = sum(graph.sizes)
        self.runs = []
        self._copy(graph)
        self._place(graph, parts)

    def _copy(self, graph: Graph) -> None:
        """Copies to the outputs that are inputs, constants or zero."""
        result = graph.result
        if (result < 0).any():
            self.constants = np.append(self.constants, 0.0)
        place = np.full(graph.op.size + 1, -1, np.int32)  # index in v; the last entry is for zero
        of_input, of_constant = graph.op == LEAF_INPUT, graph.op == LEAF_CONSTANT
        place[:-1][of_input] = graph.a[of_input]
        place[:-1][of_constant] = self._inputs + graph.a[of_constant]
        place[-1] = self._inputs + self.constants.size - 1
        self.target = np.flatnonzero(place[result] >= 0).astype(np.int32)
        self.source = np.ascontiguousarray(place[result[self.target]])
        self._leaves = place[:-1]

    def _place(self, graph: Graph, parts: Partition) -> None:
        """Order the parts, and find the indices that each reads and writes."""
        # lexsort's last key is the first to sort by: phases in order, kinds within.
        turn = np.lexsort((parts.kind, parts.phase))
        # Values that parts pass on lie in v in the order in which they are written.
        sizes = parts.sizes[turn]
        begins = starts(sizes)
        within = np.arange(begins[-1]) - np.repeat(begins[:-1], sizes)
        values = parts.order[np.repeat(parts.begin[turn], sizes) + within]
        handed = values[parts.elsewhere[values]]
        begin = self._inputs + self.constants.size
        place = self._leaves.copy()
        place[handed] = begin + np.arange(handed.size, dtype=np.int32)
        self.size = begin + handed.size
        results = graph.result
        by_value = np.argsort(results, kind="stable").astype(np.int32)
        first_of = np.searchsorted(results[by_value], np.arange(graph.op.size))
        kinds = parts.kind[turn]
        by_kind = np.split(turn[np.argsort(kinds, kind="stable")], starts(np.bincount(kinds))[1:-1])
        rest = [self._run(parts, mine, place, by_value, first_of) for mine in by_kind if mine.size]
        # Parts of one kind in different phases may read each other: a run has one phase.
        changes = np.flatnonzero(np.diff(kinds) | np.diff(parts.phase[turn])) + 1
        for mine in np.split(kinds, changes) if kinds.size else ():
            kind, count = mine[0], mine.size
            self.runs.append(replace(rest[kind], count=count))
            rest[kind] = replace(rest[kind], at=rest[kind].at[count:])

    def _run(self, parts: Partition, mine: Any, place: Ints, by_value: Ints, first_of: Any) -> Run:
        """All parts ``mine`` of one kind; outputs of value v are by_value[first_of[v]:]."""
        head = int(mine[0])
        shape = parts.shape[parts.begin[head] : parts.begin[head + 1]]
        slots = np.arange(parts.slot_begin[head + 1] - parts.slot_begin[head])
        read = place[parts.slots[parts.slot_begin[mine][:, None] + slots]]
        leaving = []
        for i in np.flatnonzero(shape[:, 3]).tolist():
            values = parts.order[parts.begin[mine] + i]
            outputs, elsewhere = divmod(int(shape[i, 3]) - 1, 2)
            leaving.append(by_value[first_of[values][:, None] + np.arange(outputs)])
            if elsewhere:
                leaving.append(place[values][:, None])
        return Run.of(shape, read, leaving)
