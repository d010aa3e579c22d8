"""Names, places and tables of C: quantities in structures, their limits, the softened problem."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.control.model.signals import Array, Signal
from casadi_hybrid.control.model.signals import number as number_of
from casadi_hybrid.control.transcription.limits import Limits
from casadi_hybrid.control.transcription.program import Block, Program, common
from casadi_hybrid.core.export.export import LONGEST, Export
from casadi_hybrid.core.export.tables import braced, comment, number, structure
from casadi_hybrid.utils.errors import InputError

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
    count: int
    unit: str
    kind: str


def quantities(rows: Sequence[tuple[str, int, str, str]], what: str) -> list[Quantity]:
    """The rows (name, count, unit, kind) with names of C, one each, and places."""
    made: list[Quantity] = []
    for name, count, unit, kind in rows:
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
        if not word or word[0].isdigit() or word in _KEYWORDS:
            word = f"{what}_{word}".rstrip("_")
        if len(word) > LONGEST:
            raise InputError(
                f"{name!r} has {len(word)} characters in C, which tells no more than {LONGEST} "
                "apart; give it a shorter name"
            )
        if same := [other.name for other in made if other.word == word]:
            raise InputError(f"{name!r} and {same[0]!r} are both {word!r} in C; rename one")
        made.append(Quantity(name, word, total(made), count, unit, kind))
    return made


def total(of: Sequence[Quantity]) -> int:
    """Number of all entries."""
    return sum(quantity.count for quantity in of)


def members(of: Sequence[Quantity]) -> str:
    """The members of their structure."""
    words = (f"{q.word}[{q.count}]" if q.count > 1 else q.word for q in of)
    units = (f" /* {comment(q.unit)} */" if q.unit else "" for q in of)
    return "\n".join(f"    double {word};{unit}" for word, unit in zip(words, units, strict=True))


def enumeration(of: Sequence[Quantity], prefix: str) -> str:
    """Enumerators with their places."""
    return ",\n".join(f"    {prefix}_{q.word.upper()} = {q.at}" for q in of)


def by_word(of: Sequence[Quantity], values: Array) -> dict[str, Any]:
    """Values by name in C."""
    return {q.word: number_of(values[q.at : q.at + q.count]) for q in of}


def table(values: Any) -> str:
    """Numbers as an initializer; of none a zero, for C has no empty table."""
    return braced(number(v) if isinstance(v, float) else str(int(v)) for v in values)


_SIDES = "lower", "upper"


class LimitsInC:
    """The limits that a problem declares: a side of each a member of a structure, with values.

    That of a row whose limit is an expression is none of them, it limits the difference.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        now = {
            (name, side): np.full(value.size, np.nan) if limits.follows(name, side) else value
            for name, declared in limits.declared.items()
            for side, value in zip(_SIDES, limits.now(name), strict=True)
            if np.isfinite(getattr(declared, side)).any() and not getattr(declared, "less", False)
        }
        rows = [(f"{name} {side}", value.size, limits.declared[name].unit, "limit")
                for (name, side), value in now.items()]  # fmt: skip
        self.members: list[Quantity] = quantities(rows, "limit")
        self.values: Array = np.concatenate([*now.values(), np.zeros(0)])
        self._at = {key: member.at for key, member in zip(now, self.members, strict=True)}

    def words(self, name: str, program: Program, softened: Program | None) -> dict[str, Any]:
        """Words of the templates about limits, from the programs with the values of the export."""
        upper = name.upper()
        return {
            "bounds": self._bounds(program), "limited": bool(self.members),
            "soft_bounds": self._bounds(softened) if softened else "",
            "limit_fields": members(self.members), "limit_count": total(self.members),
            "limit_places": enumeration(self.members, f"{upper}_LIMIT"),
            "limit_values": structure(by_word(self.members, self.values)),
        }  # fmt: skip

    def of_controls(self, controls: Mapping[str, Signal], side: str) -> list[int]:
        """The place of the limit of each control on a side, -1 where it has none."""
        places = {name: self._at.get((name, side)) for name in controls}
        return [-1 if at is None else at + i
                for name, at in places.items() for i in range(controls[name].size)]  # fmt: skip

    def _bounds(self, program: Program) -> str:
        """The tables of the bounds that are limits, as initializers."""
        found = []
        for key in ("lbx", "ubx", "lbg", "ubg"):
            rows = self._rows(program, key)
            kinds = ("int", "int", "double", "int")[: 4 if program.following else 3]
            columns = ", ".join(f"(const {kind}[]){table(row[k] for row in rows)}"
                                for k, kind in enumerate(kinds))  # fmt: skip
            found.append(f"{{{len(rows)}, {columns}}}")
        return ",\n    ".join(found)

    def _rows(self, program: Program, key: str) -> list[tuple[int, int, float, int]]:
        """For each bound that is a limit: its place, that of the limit, its scale, and the place of
        the expression that it follows, else -1. Several limits of one place follow each other."""
        begins = program.following.begins if program.following else {}
        found = set()
        for (name, side), at in self._at.items():
            size = self._limits.declared[name].lower.size if side == "upper" else 0
            for label, own, *parts in self._limits.bounds_of(program, name):
                if side[0] == key[0] and own == key:
                    begin = begins.get(label)
                    for place, entry, scale in zip(*(p.tolist() for p in parts), strict=True):
                        of = -1 if begin is None else begin + size + entry
                        found.add((place, at + entry, scale, of))
        return sorted(found)


_SHARED = "core/", "README.md", "LICENSE", "CMakeLists.txt", "main.c", "replay.c", "_static.c"
"""Files that the export of the problem itself has too."""


@dataclass(frozen=True)
class Softened:
    """The softened problem of a controller.

    Attributes:
        solver, program: of it, with the numbers of the export.
        amounts: its unknowns that are violations, with the names of limits.
        before: names of limits that were soft in the problem itself.
    """

    solver: Any
    program: Program
    amounts: Sequence[tuple[str, Block]]
    before: Set[str]

    def write(
        self, folder: Path, name: str, *, loops: bool | None, cold: bool
    ) -> tuple[Export, list[str]]:
        """Write its solver into the folder of an export; return it and the files' names."""
        with tempfile.TemporaryDirectory() as apart:
            written: Export = self.solver.export(
                apart, f"{name}_softened", loops=loops, cold=cold, **self.program.arguments
            )
            own = [
                file for file in written.files
                if not (file.startswith(_SHARED[:-1]) or file.endswith(_SHARED[-1]))
            ]  # fmt: skip
            for file in own:
                shutil.copyfile(Path(apart) / file, folder / file)
        return written, own

    def words(self, name: str, program: Program) -> dict[str, Any]:
        """Words of the templates about the softened problem; the program is the problem's own."""
        own = self.program
        if program.p.size != own.p.size:
            raise AssertionError("the softened problem has other parameters")
        x = common(program.variables, own.variables)
        g = common(program.constraints, own.constraints)
        of, blocks = zip(*self.amounts, strict=True)
        sizes = [block.where.size for block in blocks]
        names = quantities([(label, 1, "", "") for label in dict.fromkeys(of)], "limit")
        at = {quantity.name: quantity.at for quantity in names}
        return {
            "common_x": x.shape[1], "hard_x": table(x[0]), "soft_x": table(x[1]),
            "common_g": g.shape[1], "hard_g": table(g[0]), "soft_g": table(g[1]),
            "soft_after_x": table(own.after["x"]),
            "soft_after_g": table(own.after["g"]),
            "violation_places": enumeration(names, f"{name.upper()}_VIOLATED"),
            "violations": len(names), "violated_names": [q.name for q in names],
            "first_violated": names[0].word.upper(),
            "was_soft": table(quantity.name in self.before for quantity in names),
            "amounts": sum(sizes),
            "amount_x": table(np.concatenate([b.where for b in blocks])),
            "amount_scale": table(np.concatenate([b.scale.ravel(order="F") for b in blocks])),
            "amount_of": table(np.repeat([at[label] for label in of], sizes)),
        }  # fmt: skip
