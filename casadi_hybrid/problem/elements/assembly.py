"""How the numbers of the elements make the outputs of a problem's functions: places and sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.problem.elements.element import Elements, Kind, Places
from casadi_hybrid.utils.arrays import without_repetition
from casadi_hybrid.utils.linear_algebra.sparse import Pattern

LONGEST = 16
"""Terms of a sum at most; longer ones are sums of sums, wherever they are evaluated."""


@dataclass(frozen=True, eq=False)
class Piece:
    """The elements of a kind in a function of the problem.

    Attributes:
        function: of one element; its output is a full column.
        inputs: for each input of it but the last, the ``constants``, which input of the problem's
            function and which entries of that, one element a line.
        begin: where the numbers of the elements begin, those of one after those of the other.
    """

    function: ca.Function
    inputs: tuple[tuple[int, Places], ...]
    constants: NDArray[np.float64]
    begin: int

    @property
    def count(self) -> int:
        """Elements."""
        return len(self.constants)

    @property
    def width(self) -> int:
        """Numbers of one element."""
        return int(self.function.size1_out(0))


class Level(NamedTuple):
    """Sums of numbers that are there: of each length one array, a line for each sum."""

    groups: tuple[Places, ...]
    begin: int

    @property
    def size(self) -> int:
        """How many sums; their numbers follow all that were there before."""
        return sum(len(group) for group in self.groups)


@dataclass(frozen=True, eq=False)
class Assembly:
    """A function of the problem as its elements' numbers, added up and put in place.

    Attributes:
        labels: of the problem function's inputs and outputs.
        pieces: what makes the numbers.
        sparsity: of each output; their nonzeros follow one another.
        pattern: of the last output.
        source, target: each of these numbers is part of that sum.
        places: of each sum the one or two nonzeros that it is, -1 for no second.
    """

    labels: tuple[tuple[str, ...], tuple[str, ...]]
    pieces: tuple[Piece, ...]
    sparsity: tuple[ca.Sparsity, ...]
    pattern: Pattern
    source: Places
    target: Places
    places: Places

    @property
    def numbers(self) -> int:
        """Of all elements."""
        return sum(piece.count * piece.width for piece in self.pieces)

    @property
    def size(self) -> int:
        """Nonzeros of all outputs."""
        return sum(one.nnz() for one in self.sparsity)

    @property
    def operations(self) -> tuple[int, int]:
        """Instructions of one element of each kind, and of all elements."""
        each = [(piece.function.n_instructions(), piece.count) for piece in self.pieces]
        return sum(n for n, _ in each), sum(n * count for n, count in each)

    def touches(self, begin: int, count: int) -> bool:
        """Whether something is added to one of these sums."""
        return bool(((self.target >= begin) & (self.target < begin + count)).any())

    def depends_on(self, i: int) -> bool:
        """Whether an output depends on that input, by structure."""
        return any(piece.function.jac_sparsity(0, i).nnz() for piece in self.pieces)

    @cached_property
    def sums(self) -> tuple[tuple[Level, ...], Places]:
        """The sums level by level, and for each target its number; -1 where nothing is added."""
        order = np.argsort(self.target, kind="stable")
        source, target = self.source[order], self.target[order]
        levels: list[Level] = []
        there = self.numbers
        while True:
            sizes = np.bincount(target, minlength=len(self.places))
            rank = np.arange(target.size) - (np.cumsum(sizes) - sizes)[target]
            last = bool((sizes <= LONGEST).all())
            head = rank % LONGEST == 0  # where a sum begins; short ones wait for the last level
            wanted = np.ones(target.size, bool) if last else sizes[target] > LONGEST
            begin = np.flatnonzero(head & wanted)
            length = np.minimum(sizes[target[begin]] - rank[begin], LONGEST)
            groups, made = [], source.copy()
            for n in without_repetition(length[length > 1]).tolist():
                mine = begin[length == n]
                groups.append(source[mine[:, None] + np.arange(n)])
                made[mine] = there + np.arange(mine.size)
                there += mine.size
            if groups:
                levels.append(Level(tuple(groups), there - sum(map(len, groups))))
            keep = head | ~wanted
            source, target = made[keep], target[keep]
            if last:
                found = np.full(len(self.places), -1, np.int32)
                found[target] = source
                return tuple(levels), found


Assemblies: TypeAlias = tuple[Assembly, Assembly]
"""Of the first derivatives and of the Hessian of a problem."""


def first_assembly(elements: Elements) -> Assembly:
    """(x, p) → f, ∇f, h, J_h."""
    n = elements.n
    rows = elements.rows_at
    of_row = np.zeros(elements.m, np.int32)
    of_row[rows] = np.arange(rows.size)
    pieces: list[Piece] = []
    source, target, entries = [], [], []
    begin = 0
    for kind in elements.kinds:
        piece = Piece(kind.first, ((0, kind.x_at), (1, kind.p_at)), kind.constants, begin)
        pieces.append(piece)
        line = begin + np.arange(kind.count)[:, None] * piece.width
        tall = kind.row_at.shape[1]
        values, of_x = kind.jacobian_at
        places = line + tall + (kind.term is not None) + np.arange(values.size)
        source.append(line + np.arange(tall))
        target.append(1 + n + of_row[kind.row_at])
        if kind.term is not None:
            slope = values == tall
            source += [line + tall, places[:, slope]]
            target += [np.zeros((kind.count, 1), np.int32), 1 + kind.x_at[:, of_x[slope]]]
        of_rows = values < tall
        entries.append(
            (places[:, of_rows], kind.row_at[:, values[of_rows]], kind.x_at[:, of_x[of_rows]])
        )
        begin += kind.count * piece.width
    at, row, column = (_flat([one[i] for one in entries]) for i in range(3))
    J, place = Pattern.ordered((elements.m, n), row, column)
    source.append(at)
    target.append(place.astype(np.int32) + (1 + n + rows.size))
    column_of_h = ca.Sparsity.triplet(elements.m, 1, rows.tolist(), [0] * rows.size)
    sparsity = ca.Sparsity.dense(1, 1), ca.Sparsity.dense(n, 1), column_of_h, J.sparsity()
    total = sum(one.nnz() for one in sparsity)
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
        if not _curved(kind):
            continue
        inputs = (0, kind.x_at), (1, kind.row_at), (2, kind.p_at)
        piece = Piece(kind.second, inputs, kind.constants, begin)
        pieces.append(piece)
        i, j = kind.hessian_at
        source.append(begin + np.arange(kind.count)[:, None] * piece.width + np.arange(i.size))
        low.append(np.minimum(kind.x_at[:, i], kind.x_at[:, j]))
        high.append(np.maximum(kind.x_at[:, i], kind.x_at[:, j]))
        begin += kind.count * piece.width
    row, column = _flat(low), _flat(high)
    keys, target = np.unique(row * np.int64(n) + column, return_inverse=True)
    row, column = keys // n, keys % n
    off = row != column
    H, place = Pattern.ordered((n, n), np.append(row, column[off]), np.append(column, row[off]))
    places = np.full((keys.size, 2), -1, np.int32)
    places[:, 0] = place[: keys.size]
    places[off, 1] = place[keys.size :]
    labels = ("x", "lam", "p"), ("hess_lag",)
    sums = _flat(source), _flat([target])
    return Assembly(labels, tuple(pieces), (H.sparsity(),), H, *sums, places)


def _curved(kind: Kind) -> bool:
    return bool(kind.hessian_at[0].size)


def _flat(parts: list[Places]) -> Places:
    parts = [np.zeros(0, np.int32), *(part.ravel() for part in parts)]
    return np.concatenate(parts, dtype=np.int32)


def composed(name: str, assembly: Assembly, sizes: tuple[int, ...]) -> ca.Function:
    """The function of an assembly in MX: each kind is mapped over its elements.

    Args:
        sizes: of its inputs.
    """
    names, labels = map(list, assembly.labels)
    inputs = [ca.MX.sym(label, size) for label, size in zip(names, sizes, strict=True)]
    z = ca.vertcat(ca.MX(0, 1), *(_numbers(piece, inputs) for piece in assembly.pieces))
    levels, found = assembly.sums
    for level in levels:
        z = ca.vertcat(z, *(_sum(z, group) for group in level.groups))
    if (found < 0).any():
        found = found.copy()
        found[found < 0] = z.numel()
        z = ca.vertcat(z, ca.MX(ca.DM.zeros(1, 1)))

    nonzeros = np.zeros(assembly.size, np.int64)
    for i in range(2):
        there = assembly.places[:, i] >= 0
        nonzeros[assembly.places[there, i]] = found[there]
    outputs, begin = [], 0
    for sparsity in assembly.sparsity:
        end = begin + sparsity.nnz()
        outputs.append(ca.MX(sparsity, _entries(z, nonzeros[begin:end])))
        begin = end
    return ca.Function(name, inputs, outputs, names, labels)


def _numbers(piece: Piece, inputs: list[Any]) -> Any:
    count = piece.count
    arguments = [
        ca.reshape(_entries(inputs[which], at.ravel()), at.shape[1], count)
        for which, at in piece.inputs
    ]
    arguments.append(ca.MX(ca.DM(piece.constants.T)))
    each = piece.function if count == 1 else piece.function.map(count)
    # CasADi makes a structural zero of one that hangs on nothing.
    return ca.densify(ca.vec(each.call(arguments, False, True)[0]))


def _sum(z: Any, group: Places) -> Any:
    total = _entries(z, group[:, 0])
    for k in range(1, group.shape[1]):
        # As `+`, which first tries whether they are other things than MX.
        total = ca.MX.binary(ca.OP_ADD, total, _entries(z, group[:, k]))
    return total


def _entries(column: Any, at: Places) -> Any:
    return column.nz[at.tolist()] if at.size else ca.MX(0, 1)
