"""A function that is made of elements, in parts: those of each kind side by side, then the sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.library import Graph, Ints, graph_of
from casadi_hybrid.core.evaluation.operations import NUMBER
from casadi_hybrid.core.evaluation.tables import InParts, Run
from casadi_hybrid.problem.elements.assembly import LONGEST, Assembly, Piece
from casadi_hybrid.utils.arrays import without_repetition

FEW_SUMS = 4
_NOTHING = -0.0  # 0 would make 0 of -0


class Composed(InParts):
    """The parts that an assembly says; nothing has to be searched for.

    In v lie the inputs, constants, what parts hand on, and sums of which there are sums.

    Args:
        assembly: of the function.
        sizes: of its inputs.
    """

    def __init__(self, assembly: Assembly, sizes: tuple[int, ...]) -> None:
        self.outputs, self.sizes = assembly.size, sizes
        self.runs = []
        self.operations = 0
        graphs = [graph_of(piece.function) for piece in assembly.pieces]
        known = [graph.constants for graph in graphs]
        known += [piece.constants.ravel() for piece in assembly.pieces]
        # By their bits: 0 and -0 are two.
        bits = without_repetition(np.concatenate([[0.0, _NOTHING], *known]).view(np.int64))
        self._bits, self.constants = bits, bits.view(np.float64)
        self._inputs = sum(sizes)
        self._begins = np.cumsum([0, *sizes])
        self.size = self._inputs + self.constants.size
        levels, found = assembly.sums
        total = assembly.numbers + sum(level.size for level in levels)
        self._summed = np.zeros(total, bool)
        for level in levels:
            for group in level.groups:
                self._summed[group.ravel()] = True
        self._outs = np.full((2, total), -1, np.int32)
        there = found >= 0
        self._outs[:, found[there]] = assembly.places[there].T
        self._place = np.full(total, -1, np.int32)  # in v, of each number that is part of a sum
        self._copies: list[tuple[Any, Any]] = []
        zero = self._of_constant(np.zeros(1))
        for i in range(2):
            to = assembly.places[~there, i]
            self._copy(np.repeat(zero, to.size), to)
        for piece, graph in zip(assembly.pieces, graphs, strict=True):
            self._add_piece(piece, graph)
        for level in levels:
            begin = level.begin
            for group in level.groups:
                self._add_sums(group, np.arange(begin, begin + len(group)))
                begin += len(group)
        self.source, self.to = (
            np.concatenate([np.zeros(0), *parts]).astype(np.int32)
            for parts in zip(*self._copies, strict=True)
        )
        del self._summed, self._outs, self._place, self._copies  # large, and all placed now

    def _of_constant(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        at = np.searchsorted(self._bits, np.ascontiguousarray(values).view(np.int64))
        return np.asarray(self._inputs + at)

    def _copy(self, source: Any, to: Any) -> None:
        wanted = to >= 0
        self._copies.append((source[wanted], to[wanted]))

    def _handed(self, count: int) -> NDArray[np.int64]:
        """Places for so many numbers that are handed on."""
        begin, self.size = self.size, self.size + count
        return np.arange(begin, self.size)

    def _run(self, shape: Ints, slots: Any, leaving: list[Any], *, sharing: bool = True) -> None:
        columns = (column[:, None] for column in leaving)
        self.runs.append(Run.of(shape, slots, columns, sharing=sharing))
        self.operations += len(shape)

    def _add_piece(self, piece: Piece, graph: Graph) -> None:
        leaf_at = self._leaves(piece, graph)
        kept = (graph.op >= 0) & (graph.uses > 0)
        values = np.flatnonzero(kept)
        shape, leaves = _shape(graph, values)
        local = np.cumsum(kept) - 1
        numbers = slice(piece.begin, piece.begin + piece.count * piece.width)
        shape_of_all = piece.count, piece.width
        place = self._place[numbers].reshape(shape_of_all)
        summed = self._summed[numbers].reshape(shape_of_all)
        outs = self._outs[:, numbers].reshape(2, *shape_of_all)
        there = (outs >= 0).sum(axis=0, dtype=np.int8)
        # What goes to as many outputs from each element, and to no sum, goes there at once.
        direct = (there[0] > 0) & (there == there[0]).all(axis=0)
        direct &= ~summed.any(axis=0)
        leaving: dict[int, list[Any]] = {}
        handed: dict[int, Any] = {}
        for i, value in enumerate(graph.result.tolist()):
            if graph.op[value] < 0:
                source = leaf_at(value)
            elif direct[i]:
                to = leaving.setdefault(int(local[value]), [])
                to.extend(outs[j, :, i] for j in range(int(there[0, i])))
                continue
            else:
                if value not in handed:
                    handed[value] = self._handed(piece.count)
                source = handed[value]
            place[:, i] = source
            for j in range(2):
                self._copy(source, outs[j, :, i])
        columns = []
        ends = {int(local[value]): place for value, place in handed.items()}
        for k in sorted(leaving.keys() | ends.keys()):
            shape[k, 3] = 1 + 2 * len(leaving.get(k, [])) + (k in ends)
            columns += leaving.get(k, [])
            columns += [ends[k]] if k in ends else []
        if len(shape):
            slots = [leaf_at(value) for value in leaves.tolist()]
            width = np.zeros((piece.count, 0), np.int64)
            self._run(shape, np.column_stack(slots) if slots else width, columns)

    def _leaves(self, piece: Piece, graph: Graph) -> Any:
        """The places of a leaf, for each element."""
        columns = [self._begins[which] + at for which, at in piece.inputs]
        columns.append(self._of_constant(piece.constants).reshape(piece.constants.shape))
        coming = np.hstack(columns, dtype=np.int32)
        constants = self._of_constant(graph.constants)

        def places(value: int) -> Any:
            at = int(graph.a[value])
            if graph.op[value] == -1:
                return coming[:, at]
            return np.full(piece.count, constants[at])

        return places

    def _add_sums(self, group: Any, numbers: Any) -> None:
        """Add the sums whose terms are these numbers, a line a sum.

        Those of a few long ones are filled up to one length with what adds nothing: else what is
        compiled would hang on the number of stages.
        """
        read = self._place[group]
        if len(group) < FEW_SUMS and group.shape[1] > 2:
            nothing = self._of_constant(np.array([_NOTHING]))
            more = LONGEST - group.shape[1]
            read = np.hstack([read, np.tile(nothing, (len(group), more))])
        n = read.shape[1]
        shape = np.zeros((n - 1, 4), np.int32)
        shape[:, 0] = NUMBER["ADD"]
        shape[:, 1], shape[:, 2] = np.arange(n - 1) - 1, -3 - np.arange(n - 1)
        shape[0, 1] = -2
        outs, summed = self._outs[:, numbers], self._summed[numbers]
        there = (outs >= 0).sum(axis=0)
        for how_many in without_repetition(there[~summed]).tolist():
            mine = ~summed & (there == how_many)
            made = shape.copy()
            made[-1, 3] = 1 + 2 * how_many
            self._run(made, read[mine], list(outs[:how_many, mine]), sharing=False)
        if summed.any():
            made = shape.copy()
            made[-1, 3] = 2
            places = self._place[numbers[summed]] = self._handed(int(summed.sum()))
            self._run(made, read[summed], [places], sharing=False)


def _shape(graph: Graph, values: Any) -> tuple[Ints, Any]:
    """Four numbers for each operation, as in ``blocks_kinds``, and the leaves behind the slots."""
    local = np.zeros(graph.op.size, np.int64)
    local[values] = np.arange(values.size)
    read = np.concatenate([graph.a[values], graph.b[values]])
    read = read[read >= 0]
    leaves = without_repetition(read[graph.op[read] < 0])
    local[leaves] = -2 - np.arange(leaves.size)
    shape = np.zeros((values.size, 4), np.int32)
    shape[:, 0] = graph.op[values]
    for i, operand in enumerate((graph.a, graph.b)):
        there = operand[values]
        shape[:, 1 + i] = np.where(there >= 0, local[there], -1)
    return shape, leaves
