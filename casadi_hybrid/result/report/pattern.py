"""The structure of the KKT matrix as SVG, thinned where it is large."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.result.report.chart import stretches, svg

CELLS = 90
"""Cells a side at most."""
_SIDE, _LEFT, _TOP, _WIDEST = 380.0, 62.0, 24.0, 26.0


def picture(J: ca.Sparsity, H: ca.Sparsity | None) -> tuple[str, int, int]:
    """The pattern of [H + D, Jᵀ; J, −E] in the order (x, λ_g); without H its block is left to D.

    Returns:
        The SVG element, the number of entries that may be nonzero, and how many rows a cell
        stands for.
    """
    m, n = J.shape
    size = n + m
    of_J = _places(J)
    rows, cols = of_J[0] + n, of_J[1]
    hessian = _places(ca.Sparsity(n, n) if H is None else H)
    diagonal = np.arange(size)
    blocks = (
        (1, np.concatenate((rows, cols)), np.concatenate((cols, rows))),
        (0, *hessian),
        (2, diagonal, diagonal),
    )
    on_diagonal = int(np.sum(hessian[0] == hessian[1]))
    entries = sum(block[1].size for block in blocks) - on_diagonal
    each = max(1, -(-size // CELLS))
    cells = max(1, -(-size // each))
    taken = np.zeros((cells, cells), bool)
    wide = min(_SIDE / cells, _WIDEST)
    side = wide * cells
    parts = []
    for kind, rows, cols in blocks:
        mine = np.zeros((cells, cells), bool)
        mine[rows // each, cols // each] = True
        mine &= ~taken
        taken |= mine
        parts.append(_cells(mine, kind, wide))
    parts.append(f'<path class="axis" d="M{_LEFT:g} {_TOP:g}h{side:g}v{side:g}h{-side:g}z"/>')
    if m and n:
        border = side * n / size
        parts += [
            f'<path class="grid" d="M{_LEFT + border:.1f} {_TOP:g}v{side:g}"/>',
            f'<path class="grid" d="M{_LEFT:g} {_TOP + border:.1f}h{side:g}"/>',
        ]
    for name, at, share in (("x", n / 2, n), ("λ", n + m / 2, m)):
        if share:
            middle = side * at / size
            parts += [
                f'<text class="middle" x="{_LEFT + middle:.1f}" y="{_TOP - 8:g}">{name}</text>',
                f'<text class="end" x="{_LEFT - 8:g}" y="{_TOP + middle + 4:.1f}">{name}</text>',
            ]
    return svg(_TOP + side + 8, "structure of the KKT matrix", *parts), entries, each


def _places(pattern: ca.Sparsity) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows, cols = pattern.get_triplet()
    return np.array(rows, dtype=np.intp), np.array(cols, dtype=np.intp)


def _cells(filled: NDArray[np.bool_], kind: int, wide: float) -> str:
    """The filled cells as one path, runs along a row together."""
    parts = []
    for k, row in enumerate(filled):
        for begin, end in stretches(row):
            x, y, width = _LEFT + begin * wide, _TOP + k * wide, (end - begin) * wide
            parts.append(f"M{x:.1f} {y:.1f}h{width:.1f}v{wide:.1f}h{-width:.1f}z")
    return f'<path class="f{kind}" d="{"".join(parts)}"/>'
