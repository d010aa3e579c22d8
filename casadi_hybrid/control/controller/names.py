"""Names, places and tables of C: quantities as members of a structure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.program import Block
from casadi_hybrid.engine.export.tables import braced, number

_KEYWORDS = frozenset((
    *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else"),
    *("enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register"),
    *("restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef"),
    *("union", "unsigned", "void", "volatile", "while"),
    *("bool", "class", "delete", "new", "private", "public", "template", "this", "virtual"),
))  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A member of a structure, a matrix column by column: its name in C, and where it begins."""

    name: str
    word: str
    at: int
    rows: int
    columns: int
    unit: str
    kind: str

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return self.rows * self.columns

    @property
    def member(self) -> str:
        """As a member of a structure."""
        sizes = f"[{self.count}]" if self.count > 1 else ""
        return f"    double {self.word}{sizes};" + (f" /* {self.unit} */" if self.unit else "")


def quantities(rows: Sequence[tuple[str, int, int, str, str]], what: str) -> list[Quantity]:
    """The rows (name, rows, columns, unit, kind) with names of C, one each, and places."""
    made: list[Quantity] = []
    for name, size, columns, unit, kind in rows:
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
        if not word or word[0].isdigit() or word in _KEYWORDS:
            word = f"{what}_{word}".rstrip("_")
        if same := [other.name for other in made if other.word == word]:
            raise InputError(f"{name!r} and {same[0]!r} are both {word!r} in C; rename one")
        at = made[-1].at + made[-1].count if made else 0
        made.append(Quantity(name, word, at, size, columns, unit, kind))
    return made


def total(of: Sequence[Quantity]) -> int:
    """How many numbers they have."""
    return sum(quantity.count for quantity in of)


def members(of: Sequence[Quantity]) -> str:
    """The members of their structure."""
    return "\n".join(quantity.member for quantity in of)


def enumeration(of: Sequence[Quantity], prefix: str) -> str:
    """Their places."""
    return ",\n".join(f"    {prefix}_{q.word.upper()} = {q.at}" for q in of)


def table(values: Any) -> str:
    """Numbers as an initializer; of none a zero, for C has no empty table."""
    return braced(number(v) if isinstance(v, float) else str(int(v)) for v in values)


def after(blocks: Mapping[str, Block], size: int) -> np.ndarray:
    """For each place what stands there one interval later."""
    places = np.arange(size)
    for block in blocks.values():
        places[block.where] = block.after
    if (places < np.arange(size)).any():
        raise AssertionError("a block moves forward, so that it cannot be shifted in place")
    return places
