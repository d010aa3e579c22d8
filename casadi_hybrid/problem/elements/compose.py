"""The functions of a problem made of its elements, as graphs of CasADi."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.problem.elements.assembly import Assembly, Piece
from casadi_hybrid.problem.elements.element import Places


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
