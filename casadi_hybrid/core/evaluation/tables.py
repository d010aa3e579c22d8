"""A function in parts: its kinds, and the places that each part reads and writes."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Iterable
from ctypes import c_int, c_longlong, c_void_p
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.code import LANES, Lines
from casadi_hybrid.core.evaluation.library import Graph, Ints, UntranslatedError, graph_of, starts
from casadi_hybrid.core.evaluation.partition import MOST, Partition, partition
from casadi_hybrid.utils.arrays import address

# Nanoseconds of a line for each piece, and of each number in it.
_LINE, _LANE = 5.0, 0.3


class ProgramData(ct.Structure):
    """``blocks_program`` of ``c/blocks.h``."""

    _fields_ = [("lines", c_void_p), ("n_lines", c_int), ("row", c_int)]


class RunData(ct.Structure):
    """``blocks_run``."""

    _fields_ = [
        *((name, c_void_p) for name in ("part", "at", "shared")),
        ("count", c_longlong),
        ("program", ProgramData),
    ]


class FunctionData(ct.Structure):
    """``blocks_function``."""

    _fields_ = [
        ("runs", c_void_p),
        ("n_runs", c_longlong),
        *((name, c_void_p) for name in ("from_", "to")),
        ("n_copies", c_longlong),
        ("sizes", c_int * 3),
        *((name, c_void_p) for name in ("v", "own")),
    ]


@dataclass(frozen=True)
class Run:
    """Parts of one kind, one after the other, and where their places begin."""

    kind: Lines
    at: Ints
    shared: Ints
    count: int

    @classmethod
    def of(cls, shape: Ints, slots: Any, leaving: Iterable[Any], *, sharing: bool = True) -> Run:
        """Parts of a shape; ``slots`` and ``leaving`` are the places of each, a line a part."""
        count = len(slots)
        same = (slots == slots[0]).all(axis=0) & sharing & (count > 1)
        at = np.ascontiguousarray(np.hstack([slots[:, ~same], *leaving]), dtype=np.int32)
        shared = np.ascontiguousarray(slots[0][same], dtype=np.int32)
        return cls(Lines(shape, same.tolist()), at, shared, count)


class InParts:
    """A function in parts, once these and all places are known.

    Attributes:
        operations: of one part of each kind.
        outputs: nonzeros of all outputs.
        runs: one after the other.
        sizes: of the inputs, which lie in v one after the other; then come the constants.
        constants: as they lie there.
        size: of v.
        source, to: outputs that are copied from v in the end.
    """

    operations: int
    outputs: int
    runs: list[Run]
    sizes: tuple[int, ...]
    constants: NDArray[np.float64]
    size: int
    source: Ints
    to: Ints

    @property
    def texts(self) -> set[str]:
        """The C of each kind of part, with ``@`` in place of its name."""
        return {run.kind.code[0] for run in self.runs}

    @property
    def duration(self) -> float:
        """About how many nanoseconds an evaluation by lists takes."""
        total = 0.0
        for run in self.runs:
            pieces, lines = -(-run.count // LANES), len(run.kind.program[0])
            total += lines * (_LINE * pieces + _LANE * max(4 * pieces, run.count))
        return total

    def function(self, addresses: dict[str, int] | None) -> tuple[FunctionData, Any]:
        """What C is handed, with memory of its own, and what has to be kept for as long.

        Args:
            addresses: of the compiled parts, by their text; None for lists.
        """
        kinds = [run.kind for run in self.runs]
        if addresses is None:
            room = LANES * max((kind.program[1] for kind in kinds), default=0)
        else:
            room = max((kind.code[1] for kind in kinds), default=0)
        v, own = np.zeros(max(1, self.size)), np.zeros(max(1, room))
        begin = sum(self.sizes)
        v[begin : begin + self.constants.size] = self.constants
        runs = (RunData * max(1, len(self.runs)))()
        for data, run in zip(runs, self.runs, strict=False):
            if addresses is None:
                lines, _ = run.kind.program
                data.program = ProgramData(address(lines), len(lines), run.at.shape[1])
            else:
                data.part = addresses[run.kind.code[0]]
            data.count = run.count
            data.at, data.shared = address(run.at), address(run.shared)
        made = FunctionData(
            runs=ct.addressof(runs), n_runs=len(self.runs), from_=address(self.source),
            to=address(self.to), n_copies=self.to.size, v=address(v), own=address(own),
        )  # fmt: skip
        made.sizes[: len(self.sizes)] = self.sizes
        return made, (v, own, runs, self)


class Staged(InParts):
    """A function in parts.

    Args:
        function: in scalar operations.
    """

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
        """Outputs that are inputs, constants or zero."""
        result = graph.result
        if (result < 0).any():
            self.constants = np.append(self.constants, 0.0)
        place = np.full(graph.op.size + 1, -1, np.int32)  # the last for zero
        of_input, of_constant = graph.op == -1, graph.op == -2
        place[:-1][of_input] = graph.a[of_input]
        place[:-1][of_constant] = self._inputs + graph.a[of_constant]
        place[-1] = self._inputs + self.constants.size - 1
        self.to = np.flatnonzero(place[result] >= 0).astype(np.int32)
        self.source = np.ascontiguousarray(place[result[self.to]])
        self._leaves = place[:-1]

    def _place(self, graph: Graph, parts: Partition) -> None:
        """The order of the parts, and where each reads and writes."""
        n_parts = parts.kind.size
        turn = np.lexsort((parts.kind, parts.phase))
        # What parts hand to each other lies in the order in which it is written.
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
        rest = [self._kind(parts, mine, place, by_value, first_of) for mine in by_kind if mine.size]
        # Parts of one kind and several phases read of each other: side by side they may not stand.
        changes = np.flatnonzero(np.diff(kinds) | np.diff(parts.phase[turn])) + 1
        for mine in np.split(kinds, changes) if n_parts else ():
            kind, count = mine[0], mine.size
            self.runs.append(replace(rest[kind], count=count))
            rest[kind] = replace(rest[kind], at=rest[kind].at[count:])

    def _kind(self, parts: Partition, mine: Any, place: Ints, by_value: Ints, first_of: Any) -> Run:
        """The parts of a kind."""
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
