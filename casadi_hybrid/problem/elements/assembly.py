"""Assembly of the outputs of a problem's functions from the outputs of its elements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.problem.elements.element import Elements, Places
from casadi_hybrid.utils.arrays import without_repetition
from casadi_hybrid.utils.linear_algebra.sparse import Pattern

# Largest number of terms of a sum; a longer sum is a sum of sums, in every evaluation.
LONGEST = 16


@dataclass(frozen=True, eq=False)
class Piece:
    """Elements of one kind in a function of the problem."""

    function: ca.Function  # of one element, with one dense column as output
    # For each input before the constants: index of the problem's input, and the entries of it, one
    # element per line.
    inputs: tuple[tuple[int, Places], ...]
    constants: NDArray[np.float64]  # last input, one element per line
    begin: int  # index of the first value; the values of elements follow one another

    @property
    def count(self) -> int:
        """Number of elements."""
        return len(self.constants)

    @property
    def width(self) -> int:
        """Number of values of one element."""
        return int(self.function.size1_out(0))


class Level(NamedTuple):
    """Sums of earlier values: one array for each length, with one line per sum."""

    groups: tuple[Places, ...]
    begin: int

    @property
    def size(self) -> int:
        """Number of sums; their values follow all earlier values."""
        return sum(len(group) for group in self.groups)


@dataclass(frozen=True, eq=False)
class Assembly:
    """A function of the problem as sums of its elements' values."""

    labels: tuple[tuple[str, ...], tuple[str, ...]]  # names of inputs and outputs
    pieces: tuple[Piece, ...]
    sparsity: tuple[ca.Sparsity, ...]  # of the outputs, whose nonzeros follow one another
    pattern: Pattern  # of the last output
    # Indices of values, and of the sums to which they belong.
    source: Places
    target: Places
    places: Places  # the one or two nonzeros that a sum fills; −1: no second

    @property
    def numbers(self) -> int:
        """Number of values of all elements."""
        return sum(piece.count * piece.width for piece in self.pieces)

    @property
    def size(self) -> int:
        """Number of nonzeros of all outputs."""
        return sum(sparsity.nnz() for sparsity in self.sparsity)

    @property
    def operations(self) -> tuple[int, int]:
        """Number of instructions of one element of each kind, and of all elements."""
        sizes = [(piece.function.n_instructions(), piece.count) for piece in self.pieces]
        return sum(n for n, _ in sizes), sum(n * count for n, count in sizes)

    def touches(self, begin: int, count: int) -> bool:
        """True if any of these sums has a term."""
        return bool(((self.target >= begin) & (self.target < begin + count)).any())

    def depends_on(self, i: int) -> bool:
        """True if an output structurally depends on input ``i``."""
        return any(piece.function.jac_sparsity(0, i).nnz() for piece in self.pieces)

    @cached_property
    def sums(self) -> tuple[tuple[Level, ...], Places]:
        """The sums level by level, and the index of each target's value; -1 for no terms."""
        # Stable: the order of a sum decides its rounding, the same in every evaluation.
        order = np.argsort(self.target, kind="stable")
        source, target = self.source[order], self.target[order]
        levels: list[Level] = []
        count = self.numbers
        while True:
            sizes = np.bincount(target, minlength=len(self.places))
            # Place of each term within its sum.
            rank = np.arange(target.size) - (np.cumsum(sizes) - sizes)[target]
            last = bool((sizes <= LONGEST).all())
            # Each run of LONGEST terms becomes one sum. Short sums wait for the last level.
            head = rank % LONGEST == 0
            active = np.ones(target.size, bool) if last else sizes[target] > LONGEST
            begin = np.flatnonzero(head & active)
            length = np.minimum(sizes[target[begin]] - rank[begin], LONGEST)
            groups, value = [], source.copy()
            for n in without_repetition(length[length > 1]).tolist():
                heads = begin[length == n]
                groups.append(source[heads[:, None] + np.arange(n)])
                value[heads] = count + np.arange(heads.size)
                count += heads.size
            if groups:
                levels.append(Level(tuple(groups), count - sum(map(len, groups))))
            remaining = head | ~active
            source, target = value[remaining], target[remaining]
            if last:
                values = np.full(len(self.places), -1, np.int32)
                values[target] = source
                return tuple(levels), values


# Assemblies of the first derivatives and of the Hessian of a problem.
Assemblies: TypeAlias = tuple[Assembly, Assembly]


def first_assembly(elements: Elements) -> Assembly:
    """(x, p) → f, ∇f, h, J_h."""
    # Sums in the order of the outputs: f, the n entries of ∇f, the nonzero rows of h, J_h.
    n = elements.n
    rows = elements.rows_at
    of_row = np.zeros(elements.m, np.int32)
    of_row[rows] = np.arange(rows.size)
    pieces: list[Piece] = []
    source, target = [], []
    jacobian_source, jacobian_row, jacobian_column = [], [], []
    begin = 0
    for kind in elements.kinds:
        piece = Piece(kind.first, ((0, kind.x_at), (1, kind.p_at)), kind.constants, begin)
        pieces.append(piece)
        # The values of one element are its rows, its term, and the entries of its Jacobian.
        line = begin + np.arange(kind.count)[:, None] * piece.width
        height = kind.row_at.shape[1]
        value, variable = kind.jacobian_at
        derivatives = line + height + (kind.term is not None) + np.arange(value.size)
        source.append(line + np.arange(height))
        target.append(1 + n + of_row[kind.row_at])
        if kind.term is not None:
            in_term = value == height
            source += [line + height, derivatives[:, in_term]]
            target += [np.zeros((kind.count, 1), np.int32), 1 + kind.x_at[:, variable[in_term]]]
        in_rows = value < height
        jacobian_source.append(derivatives[:, in_rows])
        jacobian_row.append(kind.row_at[:, value[in_rows]])
        jacobian_column.append(kind.x_at[:, variable[in_rows]])
        begin += kind.count * piece.width
    J, place = Pattern.ordered((elements.m, n), _flat(jacobian_row), _flat(jacobian_column))
    source.append(_flat(jacobian_source))
    target.append(place.astype(np.int32) + (1 + n + rows.size))
    column_of_h = ca.Sparsity.triplet(elements.m, 1, rows.tolist(), [0] * rows.size)
    sparsity = ca.Sparsity.dense(1, 1), ca.Sparsity.dense(n, 1), column_of_h, J.sparsity()
    total = 1 + n + rows.size + J.rows.size
    places = np.full((total, 2), -1, np.int32)
    places[:, 0] = np.arange(total)
    labels = ("x", "p"), ("f", "grad_f", "h", "jac_h")
    return Assembly(labels, tuple(pieces), sparsity, J, _flat(source), _flat(target), places)


def second_assembly(elements: Elements) -> Assembly:
    """(x, λ, p) → ∇²ₓₓ(f + λᵀh)."""
    n = elements.n
    pieces: list[Piece] = []
    source, low, high = [], [], []
    begin = 0
    for kind in elements.kinds:
        i, j = kind.hessian_at
        if not i.size:
            continue
        inputs = (0, kind.x_at), (1, kind.row_at), (2, kind.p_at)
        piece = Piece(kind.second, inputs, kind.constants, begin)
        pieces.append(piece)
        source.append(begin + np.arange(kind.count)[:, None] * piece.width + np.arange(i.size))
        # An element may have its variables in another order than the problem.
        low.append(np.minimum(kind.x_at[:, i], kind.x_at[:, j]))
        high.append(np.maximum(kind.x_at[:, i], kind.x_at[:, j]))
        begin += kind.count * piece.width
    # Entries at one place of the upper triangle are summed; most sums fill two mirrored places.
    row, column = _flat(low), _flat(high)
    # int64, since n² may exceed the range of the indices.
    keys, target = np.unique(row * np.int64(n) + column, return_inverse=True)
    row, column = keys // n, keys % n
    mirrored = row != column
    rows, columns = np.append(row, column[mirrored]), np.append(column, row[mirrored])
    H, place = Pattern.ordered((n, n), rows, columns)
    places = np.full((keys.size, 2), -1, np.int32)
    places[:, 0] = place[: keys.size]
    places[mirrored, 1] = place[keys.size :]
    labels = ("x", "lam", "p"), ("hess_lag",)
    sums = _flat(source), _flat([target])
    return Assembly(labels, tuple(pieces), (H.sparsity(),), H, *sums, places)


def _flat(parts: list[Places]) -> Places:
    parts = [np.zeros(0, np.int32), *(part.ravel() for part in parts)]
    return np.concatenate(parts, dtype=np.int32)


def composed(name: str, assembly: Assembly, sizes: tuple[int, ...]) -> ca.Function:
    """The function of an assembly in MX: each kind is mapped over its elements."""
    names, labels = map(list, assembly.labels)
    inputs = [ca.MX.sym(label, size) for label, size in zip(names, sizes, strict=True)]
    z = ca.vertcat(ca.MX(0, 1), *(_numbers(piece, inputs) for piece in assembly.pieces))
    levels, values = assembly.sums
    for level in levels:
        z = ca.vertcat(z, *(_sum(z, group) for group in level.groups))
    # Sums without terms refer to one zero behind all values.
    if (values < 0).any():
        values = np.where(values < 0, z.numel(), values)
        z = ca.vertcat(z, ca.MX(ca.DM.zeros(1, 1)))

    nonzeros = np.zeros(assembly.size, np.int64)
    for places in assembly.places.T:
        filled = places >= 0
        nonzeros[places[filled]] = values[filled]
    outputs, begin = [], 0
    for sparsity in assembly.sparsity:
        end = begin + sparsity.nnz()
        outputs.append(ca.MX(sparsity, _entries(z, nonzeros[begin:end])))
        begin = end
    return ca.Function(name, inputs, outputs, names, labels)


def _numbers(piece: Piece, inputs: list[Any]) -> Any:
    count = piece.count
    arguments = [
        ca.reshape(_entries(inputs[i], indices.ravel()), indices.shape[1], count)
        for i, indices in piece.inputs
    ]
    arguments.append(ca.MX(ca.DM(piece.constants.T)))
    mapped = piece.function if count == 1 else piece.function.map(count)
    # CasADi returns a structural zero for an output that depends on nothing.
    return ca.densify(ca.vec(mapped.call(arguments, False, True)[0]))


def _sum(z: Any, group: Places) -> Any:
    total = _entries(z, group[:, 0])
    for k in range(1, group.shape[1]):
        # The same as `+`, without its conversions of the operands.
        total = ca.MX.binary(ca.OP_ADD, total, _entries(z, group[:, k]))
    return total


def _entries(column: Any, indices: Places) -> Any:
    return column.nz[indices.tolist()] if indices.size else ca.MX(0, 1)
