"""The structure of the KKT matrix as SVG, thinned where it is large."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import NDArray

CELLS = 90
"""Cells a side at most."""
_SIDE, _LEFT, _TOP, _WIDEST = 380.0, 62.0, 24.0, 26.0


def picture(J: ca.Sparsity, H: ca.Sparsity | None) -> tuple[str, int, int]:
    """The pattern of [H + D, Jᵀ; J, −E] in the order (x, λ_g).

    Args:
        J: structure of J_g, m×n.
        H: structure of the Hessian of the Lagrangian, n×n; None leaves its block to D.

    Returns:
        The SVG element, the number of entries that may be nonzero, and how many rows a cell
        stands for.
    """
    m, n = J.shape
    size = n + m
    of_J = _places(J)
    rows, cols = of_J[0] + n, of_J[1]
    blocks = [(1, np.concatenate((rows, cols)), np.concatenate((cols, rows)))]
    hessian = (np.zeros(0, int), np.zeros(0, int)) if H is None else _places(H)
    blocks.insert(0, (0, *hessian))
    on_diagonal = int(np.sum(hessian[0] == hessian[1]))
    diagonal = np.arange(size)
    blocks.append((2, diagonal, diagonal))
    entries = sum(block[1].size for block in blocks) - on_diagonal
    each = max(1, -(-size // CELLS))
    cells = max(1, -(-size // each))
    taken = np.zeros((cells, cells), bool)
    wide = min(_SIDE / cells, _WIDEST)
    side = wide * cells
    parts = []
    for kind, rows, cols in (blocks[1], blocks[0], blocks[2]):
        mine = np.zeros((cells, cells), bool)
        mine[rows // each, cols // each] = True
        mine &= ~taken
        taken |= mine
        parts.append(_cells(mine, kind, wide))
    border = _LEFT + side * n / max(size, 1)
    below = _TOP + side * n / max(size, 1)
    lines = (
        f'<path class="axis" d="M{_LEFT:g} {_TOP:g}h{side:g}v{side:g}h{-side:g}z"/>'
        + (f'<path class="grid" d="M{border:.1f} {_TOP:g}v{side:g}"/>' if m and n else "")
        + (f'<path class="grid" d="M{_LEFT:g} {below:.1f}h{side:g}"/>' if m and n else "")
    )
    labels = ""
    for name, at, share in (("x", n / 2, n), ("λ", n + m / 2, m)):
        if share:
            middle = side * at / max(size, 1)
            labels += (
                f'<text class="middle" x="{_LEFT + middle:.1f}" y="{_TOP - 8:g}">{name}</text>'
                f'<text class="end" x="{_LEFT - 8:g}" y="{_TOP + middle + 4:.1f}">{name}</text>'
            )
    return (
        f'<svg viewBox="0 0 480 {_TOP + side + 8:g}" role="img" '
        f'aria-label="structure of the KKT matrix">{"".join(parts)}{lines}{labels}</svg>',
        entries,
        each,
    )


def _places(pattern: ca.Sparsity) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows, cols = pattern.get_triplet()
    return np.array(rows, dtype=np.intp), np.array(cols, dtype=np.intp)


def _cells(filled: NDArray[np.bool_], kind: int, wide: float) -> str:
    """The filled cells as one path, runs along a row together."""
    parts = []
    for k, row in enumerate(filled):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            x, y, width = _LEFT + begin * wide, _TOP + k * wide, (end - begin) * wide
            parts.append(f"M{x:.1f} {y:.1f}h{width:.1f}v{wide:.1f}h{-width:.1f}z")
    return f'<path class="f{kind}" d="{"".join(parts)}"/>'
