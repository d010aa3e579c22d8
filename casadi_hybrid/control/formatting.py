"""Numbers with units, names of entries, and aligned columns."""

from __future__ import annotations

from collections.abc import Sequence

from casadi_hybrid.control.signals import Array


def in_unit(value: float, unit: str) -> str:
    """Return a number with its unit."""
    return f"{value:.3g} {unit}".rstrip()


def quotient(unit: str, per: str) -> str:
    """Return the unit of a slope."""
    below = f"({per})" if set(per) & set("/ *") else per
    return f"{unit or 1}/{below}" if per else unit or "1"


def entry_name(name: str, i: int, rows: Array) -> str:
    """Return the name of an entry of a quantity."""
    return f"{name}[{i}]" if rows.shape[0] > 1 else name


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> str:
    """Return rows of words as lines, columns aligned; with ``right`` to the right but the first."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<", *(">" if right else "<" for _ in widths[1:])]
    lines = (
        "  ".join(f"{word:{side}{w}}" for word, side, w in zip(row, sides, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
