"""Tables of plain text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], sides: str = "<") -> list[str]:
    """Return rows of cells as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # < (left) or > (right) for each column; the last one holds for the rest.
    sides += sides[-1] * len(widths)
    lines = []
    for row in rows:
        cells = zip(row, sides, widths, strict=False)
        lines.append("  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip())
    return lines
