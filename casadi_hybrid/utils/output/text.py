"""Tables of plain text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], sides: str = "<") -> list[str]:
    """Return rows of cells as lines with aligned columns.

    Args:
        rows: of equal length.
        sides: ``<`` (left) or ``>`` (right) for each column; the last one holds for the rest.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides += sides[-1] * len(widths)
    lines = (
        "  ".join(f"{c:{side}{w}}" for c, side, w in zip(row, sides, widths, strict=False))
        for row in rows
    )
    return [line.rstrip() for line in lines]
