"""A function in parts: the C of its kinds, and the places that each part reads and writes."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Sequence
from ctypes import c_int, c_longlong, c_void_p
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.engine.blocks.code import part_code
from casadi_hybrid.engine.blocks.lanes import LANES, program_of
from casadi_hybrid.engine.blocks.library import Graph, Ints, UntranslatedError, graph_of
from casadi_hybrid.engine.blocks.partition import MOST, Partition, partition

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


class Lines:
    """What equal parts do, as C or as a list; see :mod:`.code` and :mod:`.lanes`."""

    def __init__(self, shape: Ints, shared: Sequence[bool]) -> None:
        self._shape, self._shared = shape, shared

    @cached_property
    def code(self) -> tuple[str, int]:
        """The C, and how many numbers it keeps."""
        return part_code(self._shape, self._shared)

    @cached_property
    def program(self) -> tuple[Ints, int]:
        """The list, and its registers."""
        return program_of(self._shape, self._shared)


@dataclass(frozen=True)
class Run:
    """Parts of one kind, one after the other, and where their places begin."""

    kind: Lines
    at: Ints
    shared: Ints
    count: int


class Placed(NamedTuple):
    """All that evaluates a function, for who writes it elsewhere.

    Attributes:
        runs: one after the other.
        sizes: of the inputs, which lie in v one after the other; then come the constants.
        constants: as they lie there.
        size: of v.
        source, to: outputs that are copied from v in the end.
    """

    runs: tuple[Run, ...]
    sizes: tuple[int, ...]
    constants: NDArray[np.float64]
    size: int
    source: Ints
    to: Ints


class InParts:
    """A function in parts, once these and all places are known.

    Attributes:
        operations: of one part of each kind.
        outputs: nonzeros of all outputs.
    """

    operations: int
    outputs: int
    _runs: list[Run]
    _sizes: tuple[int, ...]  # of the inputs, which lie in v, before the constants and the rest
    _constants: NDArray[np.float64]
    _size: int  # of v
    _from: Ints
    _to: Ints

    @property
    def texts(self) -> set[str]:
        """The C of each kind of part, with ``@`` in place of its name."""
        return {run.kind.code[0] for run in self._runs}

    @property
    def placed(self) -> Placed:
        """Its parts with the places of all numbers."""
        return Placed(
            tuple(self._runs), self._sizes, self._constants, self._size, self._from, self._to
        )

    @property
    def duration(self) -> float:
        """About how many nanoseconds an evaluation by lists takes."""
        total = 0.0
        for run in self._runs:
            pieces, lines = -(-run.count // LANES), len(run.kind.program[0])
            total += lines * (_LINE * pieces + _LANE * max(4 * pieces, run.count))
        return total

    def function(self, addresses: dict[str, int] | None) -> tuple[FunctionData, Any]:
        """What C is handed, with memory of its own, and what has to be kept for as long.

        Args:
            addresses: of the compiled parts, by their text; None for lists.
        """
        kinds = [run.kind for run in self._runs]
        if addresses is None:
            room = LANES * max((kind.program[1] for kind in kinds), default=0)
        else:
            room = max((kind.code[1] for kind in kinds), default=0)
        v, own = np.zeros(max(1, self._size)), np.zeros(max(1, room))
        begin = sum(self._sizes)
        v[begin : begin + self._constants.size] = self._constants
        runs = (RunData * max(1, len(self._runs)))()
        for data, run in zip(runs, self._runs, strict=False):
            if addresses is None:
                lines, _ = run.kind.program
                row = run.at.shape[1]
                data.program = ProgramData(address(lines), len(lines), row)
            else:
                data.part = addresses[run.kind.code[0]]
            data.count = run.count
            data.at, data.shared = address(run.at), address(run.shared)
        made = FunctionData(
            runs=ct.addressof(runs), n_runs=len(self._runs), from_=address(self._from),
            to=address(self._to), n_copies=self._to.size, v=address(v), own=address(own),
        )  # fmt: skip
        for i, size in enumerate(self._sizes):
            made.sizes[i] = size
        return made, (v, own, runs, self)


class Staged(InParts):
    """A function in parts.

    Args:
        function: in scalar operations.

    Raises:
        UntranslatedError: where it cannot be translated, or too little of it repeats.
        BuildError: where the C of this room cannot be built.
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
        self.outputs, self._sizes = int(graph.result.size), graph.sizes
        self._constants = graph.constants
        self._inputs = sum(graph.sizes)
        self._runs = []
        self._copy(graph)
        self._place(graph, parts)

    def _copy(self, graph: Graph) -> None:
        """Outputs that are inputs, constants or zero."""
        result = graph.result
        if (result < 0).any():
            self._constants = np.append(self._constants, 0.0)
        place = np.full(graph.op.size + 1, -1, np.int32)  # the last for zero
        of_input, of_constant = graph.op == -1, graph.op == -2
        place[:-1][of_input] = graph.a[of_input]
        place[:-1][of_constant] = self._inputs + graph.a[of_constant]
        place[-1] = self._inputs + self._constants.size - 1
        self._to = np.flatnonzero(place[result] >= 0).astype(np.int32)
        self._from = np.ascontiguousarray(place[result[self._to]])
        self._leaves = place[:-1]

    def _place(self, graph: Graph, parts: Partition) -> None:
        """The order of the parts, and where each reads and writes."""
        n_parts = parts.kind.size
        turn = np.lexsort((np.arange(n_parts), parts.kind, parts.phase))
        # What parts hand to each other lies in the order in which it is written.
        values = np.concatenate([np.zeros(0, np.int32), *self._in_turn(parts, turn)])
        handed = values[parts.elsewhere[values]]
        begin = self._inputs + self._constants.size
        place = self._leaves.copy()
        place[handed] = begin + np.arange(handed.size, dtype=np.int32)
        self._size = begin + handed.size
        results = graph.result
        by_value = np.argsort(results, kind="stable").astype(np.int32)
        first_of = np.searchsorted(results[by_value], np.arange(graph.op.size))
        kinds = parts.kind[turn]
        by_kind = turn[np.argsort(kinds, kind="stable")]
        ends = np.searchsorted(np.sort(kinds), np.arange(parts.first.size + 1))
        rows = {
            kind: self._kind(
                parts, by_kind[ends[kind] : ends[kind + 1]], kind, place, by_value, first_of
            )
            for kind in range(parts.first.size)
        }
        # Parts of one kind and several phases read of each other: side by side they may not stand.
        changes = np.flatnonzero(np.diff(kinds) | np.diff(parts.phase[turn])) + 1
        for a, b in zip([0, *changes.tolist()], [*changes.tolist(), n_parts], strict=True):
            if b > a:
                kind = int(kinds[a])
                lines, at, shared, done = rows[kind]
                self._runs.append(Run(lines, at[done:], shared, b - a))
                rows[kind] = lines, at, shared, done + b - a

    def _in_turn(self, parts: Partition, turn: Any) -> list[Ints]:
        """The values of the parts in the order in which they are evaluated."""
        sizes = parts.sizes[turn]
        ends = np.cumsum(sizes)
        within = np.arange(int(ends[-1]) if ends.size else 0) - np.repeat(ends - sizes, sizes)
        return [parts.order[np.repeat(parts.begin[turn], sizes) + within]]

    def _kind(
        self, parts: Partition, mine: Any, kind: int, place: Ints, by_value: Ints, first_of: Any
    ) -> tuple[Lines, Ints, Ints, int]:
        """A kind, the places of its parts (``mine``) row by row, those that all share, and 0."""
        head = int(parts.first[kind])
        begin, end = int(parts.begin[head]), int(parts.begin[head + 1])
        shape = parts.shape[begin:end]
        slots = np.arange(parts.slot_begin[head + 1] - parts.slot_begin[head])
        read = place[parts.slots[parts.slot_begin[mine][:, None] + slots]]
        same = (read == read[0]).all(axis=0) & (mine.size > 1)
        columns = [read[:, ~same]]
        for i in np.flatnonzero(shape[:, 3]).tolist():
            values = parts.order[parts.begin[mine] + i]
            outputs, elsewhere = divmod(int(shape[i, 3]) - 1, 2)
            columns.append(by_value[first_of[values][:, None] + np.arange(outputs)])
            if elsewhere:
                columns.append(place[values][:, None])
        at = np.ascontiguousarray(np.hstack(columns), dtype=np.int32)
        return (
            Lines(shape, same.tolist()),
            at,
            np.ascontiguousarray(read[0][same], dtype=np.int32),
            0,
        )
