"""Names, places and tables in C: quantities in structures, their limits, the softened problem."""

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

_OF_C = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while"""
_OF_CPP = "bool class delete new private public template this virtual"
_KEYWORDS = frozenset(f"{_OF_C} {_OF_CPP}".split())


@dataclass(frozen=True)
class Quantity:
    """Member of a structure, a matrix column by column: its name in C (word) and first place."""

    name: str
    word: str
    at: int
    count: int
    unit: str
    kind: str


def quantities(rows: Sequence[tuple[str, int, str, str]], prefix: str) -> list[Quantity]:
    """Return the rows (name, count, unit, kind) with names in C and places."""
    members: list[Quantity] = []
    for name, count, unit, kind in rows:
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
        if not word or word[0].isdigit() or word in _KEYWORDS:
            # No identifier of C begins with a digit or is a keyword.
            word = f"{prefix}_{word}".rstrip("_")
        if len(word) > LONGEST:
            raise InputError(
                f"{name!r} has {len(word)} characters in C, which tells no more than {LONGEST} "
                "apart; give it a shorter name"
            )
        if same := [other.name for other in members if other.word == word]:
            raise InputError(f"{name!r} and {same[0]!r} are both {word!r} in C; rename one")
        members.append(Quantity(name, word, total(members), count, unit, kind))
    return members


def total(quantities: Sequence[Quantity]) -> int:
    """Return the number of all entries."""
    return sum(quantity.count for quantity in quantities)


def members(quantities: Sequence[Quantity]) -> str:
    """Return the members of their structure."""
    lines = []
    for q in quantities:
        size, unit = f"[{q.count}]" if q.count > 1 else "", f" /* {comment(q.unit)} */"
        lines.append(f"    double {q.word}{size};{unit if q.unit else ''}")
    return "\n".join(lines)


def enumeration(quantities: Sequence[Quantity], prefix: str) -> str:
    """Return enumerators with their places."""
    return ",\n".join(f"    {prefix}_{q.word.upper()} = {q.at}" for q in quantities)


def by_word(quantities: Sequence[Quantity], values: Array) -> dict[str, Any]:
    """Return values by name in C."""
    return {q.word: number_of(values[q.at : q.at + q.count]) for q in quantities}


def table(values: Any) -> str:
    """Return an initializer; a single zero for no values, as C has no empty table."""
    return braced(number(v) if isinstance(v, float) else str(int(v)) for v in values)


class LimitsInC:
    """Limits of a problem: each side of each is a member of a structure, with a value."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        values, rows = {}, []
        for name, declared in limits.declared.items():
            for side, value in zip(("lower", "upper"), limits.now(name), strict=True):
                finite = np.isfinite(getattr(declared, side)).any()
                # A limit that is an expression has been subtracted: zero limits the difference.
                if not finite or getattr(declared, "less", False):
                    continue
                follows = limits.follows(name, side)
                # NaN: computed from the parameters in each step, unless a user writes a number.
                values[name, side] = np.full(value.size, np.nan) if follows else value
                rows.append((f"{name} {side}", value.size, declared.unit, "limit"))
        self.members: list[Quantity] = quantities(rows, "limit")
        self.values: Array = np.concatenate([*values.values(), np.zeros(0)])
        self._at = {key: member.at for key, member in zip(values, self.members, strict=True)}

    def words(self, upper: str, program: Program, softened: Program | None) -> dict[str, Any]:
        """Return the words of the templates on limits, by the programs at the export."""
        return {
            "bounds": self._bounds(program),
            "limited": bool(self.members),
            "soft_bounds": self._bounds(softened) if softened else "",
            "limit_fields": members(self.members),
            "limit_count": total(self.members),
            "limit_places": enumeration(self.members, f"{upper}_LIMIT"),
            "limit_values": structure(by_word(self.members, self.values)),
        }

    def of_controls(self, controls: Mapping[str, Signal], side: str) -> list[int]:
        """Return the place of the limit of each entry of the controls on a side; -1 without one."""
        places = []
        for name, signal in controls.items():
            begin = self._at.get((name, side))
            places += [-1 if begin is None else begin + i for i in range(signal.size)]
        return places

    def _bounds(self, program: Program) -> str:
        """Return the tables of the bounds that are limits, as initializers."""
        kinds = ("int", "int", "double", "int")[: 4 if program.following else 3]
        initializers = []
        for key in ("lbx", "ubx", "lbg", "ubg"):
            rows = self._rows(program, key)
            columns = ", ".join(
                f"(const {kind}[]){table(row[k] for row in rows)}" for k, kind in enumerate(kinds)
            )
            initializers.append(f"{{{len(rows)}, {columns}}}")
        return ",\n    ".join(initializers)

    def _rows(self, program: Program, key: str) -> list[tuple[int, int, float, int]]:
        """Return (place, place of the limit, scale, the expression's place or −1) of each bound."""
        begins = program.following.begins if program.following else {}
        rows = set()
        for (name, side), begin in self._at.items():
            size = self._limits.declared[name].lower.size if side == "upper" else 0
            for label, bound, *arrays in self._limits.bounds_of(program, name):
                if side[0] != key[0] or bound != key:
                    continue
                for place, entry, scale in zip(*(a.tolist() for a in arrays), strict=True):
                    source = begins[label] + size + entry if label in begins else -1
                    rows.add((place, begin + entry, scale, source))
        # Several limits of one place follow each other: C takes the tightest.
        return sorted(rows)


# Beginnings of names of files that the export of the problem itself has too.
_SHARED = "core/", "README.md", "LICENSE", "CMakeLists.txt", "main.c", "replay.c"


@dataclass(frozen=True)
class Softened:
    """The softened problem of a controller."""

    solver: Any  # of the softened problem
    program: Program
    # Unknowns that are violations, with the names of their limits.
    amounts: Sequence[tuple[str, Block]]
    # Limits that were soft in the problem itself.
    before: Set[str]

    def write(
        self, folder: Path, name: str, *, loops: bool | None, cold: bool
    ) -> tuple[Export, list[str]]:
        """Write the solver into the folder of an export; return it and the names of its files."""
        with tempfile.TemporaryDirectory() as other:
            export: Export = self.solver.export(
                other, f"{name}_softened", loops=loops, cold=cold, **self.program.arguments
            )
            files = [f for f in export.files if not f.startswith(_SHARED)]
            # The softened problem is used by the controller alone, which has the memory.
            files = [f for f in files if not f.endswith("_static.c")]
            for file in files:
                shutil.copyfile(Path(other) / file, folder / file)
        return export, files

    def words(self, name: str, program: Program) -> dict[str, Any]:
        """Return the words of the templates; the program is that of the problem itself."""
        soft = self.program
        if program.p.size != soft.p.size:
            raise AssertionError("the softened problem has other parameters")
        # Both problems share p and most of x and g: a start is copied from one to the other.
        x = common(program.variables, soft.variables)
        g = common(program.constraints, soft.constraints)
        labels, blocks = zip(*self.amounts, strict=True)
        sizes = [block.where.size for block in blocks]
        # A limit of several parts has one name; dict.fromkeys keeps the order.
        names = quantities([(label, 1, "", "") for label in dict.fromkeys(labels)], "limit")
        begins = {quantity.name: quantity.at for quantity in names}
        tables = {
            "hard_x": x[0],
            "soft_x": x[1],
            "hard_g": g[0],
            "soft_g": g[1],
            "soft_after_x": soft.after["x"],
            "soft_after_g": soft.after["g"],
            "was_soft": [quantity.name in self.before for quantity in names],
            "amount_x": np.concatenate([block.where for block in blocks]),
            "amount_scale": np.concatenate([block.scale.ravel(order="F") for block in blocks]),
            "amount_of": np.repeat([begins[label] for label in labels], sizes),
        }
        return {
            "common_x": x.shape[1],
            "common_g": g.shape[1],
            "violation_places": enumeration(names, f"{name.upper()}_VIOLATED"),
            "violations": len(names),
            "violated_names": [quantity.name for quantity in names],
            "first_violated": names[0].word.upper(),
            "amounts": sum(sizes),
            **{label: table(entries) for label, entries in tables.items()},
        }
