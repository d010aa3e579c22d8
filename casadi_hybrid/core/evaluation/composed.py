"""A function made of elements, in parts: equal elements side by side, then the sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.library import LEAF_INPUT, Graph, Ints, graph_of
from casadi_hybrid.core.evaluation.operations import NUMBER
from casadi_hybrid.core.evaluation.tables import InParts, Run
from casadi_hybrid.problem.elements.assembly import LONGEST, Assembly, Piece
from casadi_hybrid.utils.arrays import without_repetition

FEW_SUMS = 4
_NOTHING = -0.0  # neutral in a sum: -0 + 0 would be 0


class Composed(InParts):
    """Function in the parts of its assembly; nothing is searched for.

    In v are the inputs, the constants, the values that parts pass on, and sums that are terms.
    """

    def __init__(self, assembly: Assembly, sizes: tuple[int, ...]) -> None:
        self.outputs, self.sizes = assembly.size, sizes
        self.runs, self.operations = [], 0
        graphs = [graph_of(piece.function) for piece in assembly.pieces]
        numbers = [graph.constants for graph in graphs]
        numbers += [piece.constants.ravel() for piece in assembly.pieces]
        # Constants are distinguished by their bits: 0 and -0 are two.
        bits = without_repetition(np.concatenate([[0.0, _NOTHING], *numbers]).view(np.int64))
        self._bits, self.constants = bits, bits.view(np.float64)
        self._inputs = sum(sizes)
        self._begins = np.cumsum([0, *sizes])
        self.size = self._inputs + self.constants.size
        levels, position = assembly.sums
        total = assembly.numbers + sum(level.size for level in levels)
        # Values that are terms of a later sum.
        self._summed = np.zeros(total, bool)
        for level in levels:
            for group in level.groups:
                self._summed[group.ravel()] = True
        # Up to two outputs of each value, −1 for none.
        self._outs = np.full((2, total), -1, np.int32)
        computed = position >= 0
        self._outs[:, position[computed]] = assembly.places[computed].T
        self._place = np.full(total, -1, np.int32)  # index in v of each term of a sum
        self._copies: list[tuple[Any, Any]] = []
        # Outputs that no element computes are zero.
        zero = self._of_constant(np.zeros(1))
        for i in range(2):
            target = assembly.places[~computed, i]
            self._copy(np.repeat(zero, target.size), target)
        for piece, graph in zip(assembly.pieces, graphs, strict=True):
            self._add_piece(piece, graph)
        for level in levels:
            begin = level.begin
            for group in level.groups:
                self._add_sums(group, np.arange(begin, begin + len(group)))
                begin += len(group)
        self.source, self.target = (
            np.concatenate([np.zeros(0), *parts]).astype(np.int32)
            for parts in zip(*self._copies, strict=True)
        )
        del self._summed, self._outs, self._place, self._copies  # large

    def _of_constant(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        at = np.searchsorted(self._bits, np.ascontiguousarray(values).view(np.int64))
        return np.asarray(self._inputs + at)

    def _copy(self, source: Any, target: Any) -> None:
        wanted = target >= 0
        self._copies.append((source[wanted], target[wanted]))

    def _handed(self, count: int) -> NDArray[np.int64]:
        """Indices in v for ``count`` values that are passed on."""
        begin, self.size = self.size, self.size + count
        return np.arange(begin, self.size)

    def _run(self, shape: Ints, slots: Any, leaving: list[Any], *, sharing: bool = True) -> None:
        columns = (column[:, None] for column in leaving)
        self.runs.append(Run.of(shape, slots, columns, sharing=sharing))
        self.operations += len(shape)

    def _add_piece(self, piece: Piece, graph: Graph) -> None:
        leaf_at = self._leaves(piece, graph)
        # Operations that are read; leaves have op < 0. local: index of each in the part.
        live = (graph.op >= 0) & (graph.uses > 0)
        values = np.flatnonzero(live)
        shape, leaves = _shape(graph, values)
        local = np.cumsum(live) - 1
        numbers = slice(piece.begin, piece.begin + piece.count * piece.width)
        by_element = piece.count, piece.width
        place = self._place[numbers].reshape(by_element)
        summed = self._summed[numbers].reshape(by_element)
        outs = self._outs[:, numbers].reshape(2, *by_element)
        n_outs = (outs >= 0).sum(axis=0, dtype=np.int8)
        # A result with equally many outputs in all elements, and in no sum, is written to them.
        direct = (n_outs[0] > 0) & (n_outs == n_outs[0]).all(axis=0)
        direct &= ~summed.any(axis=0)
        leaving: dict[int, list[Any]] = {}
        handed: dict[int, Any] = {}
        for i, value in enumerate(graph.result.tolist()):
            k = int(local[value])
            if graph.op[value] < 0:
                source = leaf_at(value)
            elif direct[i]:
                leaving.setdefault(k, []).extend(outs[j, :, i] for j in range(int(n_outs[0, i])))
                continue
            else:
                if k not in handed:
                    # A value passes on once, also if it is several results.
                    handed[k] = self._handed(piece.count)
                source = handed[k]
            place[:, i] = source
            for j in range(2):
                self._copy(source, outs[j, :, i])
        columns = []
        # Columns in the order of the operations, as the code of the part stores them.
        for k in sorted(leaving.keys() | handed.keys()):
            targets = leaving.get(k, [])
            shape[k, 3] = 1 + 2 * len(targets) + (k in handed)
            columns += [*targets, handed[k]] if k in handed else targets
        if len(shape):
            slots = [leaf_at(value) for value in leaves.tolist()]
            # Without slots an array without columns keeps the number of parts.
            width = np.zeros((piece.count, 0), np.int64)
            self._run(shape, np.column_stack(slots) if slots else width, columns)

    def _leaves(self, piece: Piece, graph: Graph) -> Any:
        """A function from a leaf to its index in v for each element."""
        columns = [self._begins[which] + at for which, at in piece.inputs]
        columns.append(self._of_constant(piece.constants).reshape(piece.constants.shape))
        inputs = np.hstack(columns, dtype=np.int32)
        constants = self._of_constant(graph.constants)

        def places(value: int) -> Any:
            at = int(graph.a[value])
            if graph.op[value] == LEAF_INPUT:
                return inputs[:, at]
            return np.full(piece.count, constants[at])

        return places

    def _add_sums(self, group: Any, numbers: Any) -> None:
        """Add the sums with these terms, a row a sum."""
        read = self._place[group]
        # A few long sums are filled up to one length with −0: the compiled code then does not
        # depend on the number of stages.
        if len(group) < FEW_SUMS and group.shape[1] > 2:
            nothing = self._of_constant(np.array([_NOTHING]))
            missing = LONGEST - group.shape[1]
            read = np.hstack([read, np.tile(nothing, (len(group), missing))])
        n = read.shape[1]
        shape = np.zeros((n - 1, 4), np.int32)
        shape[:, 0] = NUMBER["ADD"]
        # A chain from left to right: operation k adds slot k + 1, coded −3 − k, to operation k − 1.
        # The first one adds slots 0 and 1.
        shape[:, 1], shape[:, 2] = np.arange(n - 1) - 1, -3 - np.arange(n - 1)
        shape[0, 1] = -2
        outs, summed = self._outs[:, numbers], self._summed[numbers]
        n_outs = (outs >= 0).sum(axis=0)
        # A run stores one number of outputs, so sums are split by it.
        for count in without_repetition(n_outs[~summed]).tolist():
            mine = ~summed & (n_outs == count)
            leaving = shape.copy()
            leaving[-1, 3] = 1 + 2 * count
            self._run(leaving, read[mine], list(outs[:count, mine]), sharing=False)
        if summed.any():
            shape[-1, 3] = 2
            places = self._place[numbers[summed]] = self._handed(int(summed.sum()))
            self._run(shape, read[summed], [places], sharing=False)


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
        operands = operand[values]
        shape[:, 1 + i] = np.where(operands >= 0, local[operands], -1)
    return shape, leaves
