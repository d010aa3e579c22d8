"""What the statuses of an exported solver are called and mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.engine.export.core import numbered
from casadi_hybrid.engine.export.tables import listing

_WARM = {
    "SOLVED": "it is solved",
    "OTHER_PATTERN": "the bounds are of other kinds than at the export",
    "UNDEFINED": "a function of the problem is not defined where the warm mode went",
    "NO_SET": "the warm mode found no active set",
    "NOT_NEARER": "the steps of the warm mode did not get nearer",
    "LIMIT": "the limit of iterations was reached",
    "LARGE": "it is solved, but by multipliers so large that there may be smaller ones",
    "BAD_NUMBERS": "a number is not finite, or bounds cross",
    "COLD": "there is no warm start",
}
"""What ``hybrid_sqp`` returns."""
_SHORTER = {"UNDEFINED_POINT": "UNDEFINED"}
"""In Python; in C a status of a run has that name."""
_UNSOLVED = "UNSOLVED", -1, "it is not solved: stop says why, and point what x is"


@dataclass(frozen=True, slots=True)
class Words:
    """One enumeration.

    Attributes:
        prefix: of its names in C.
        rows: name, number and sentence of each member.
    """

    prefix: str
    rows: tuple[tuple[str, int, str], ...]

    @property
    def members(self) -> str:
        """Those of an ``enum`` of C."""
        return ",\n".join(f"    {self.prefix}{name} = {number}" for name, number, _ in self.rows)

    @property
    def cases(self) -> str:
        """Those of a ``switch`` that returns the sentences."""
        return "\n".join(f'    case {number}: return "{text}";' for _, number, text in self.rows)

    @property
    def table(self) -> str:
        """Rows of Markdown."""
        return listing(
            [(f"`{self.prefix}{name}` {number}", text) for name, number, text in self.rows]
        )


def words_of(core: Mapping[str, str], prefix: str, *, cold: bool) -> dict[str, Any]:
    """What the templates ask for.

    Args:
        core: its files.
        prefix: of the names in C, with the line at its end.
        cold: whether the whole method is exported; else the warm mode alone.
    """
    known = numbered(core, "How a solve ended")
    kept = ("SOLVED", "OTHER_PATTERN", "BAD_NUMBERS") if cold else tuple(_WARM)
    rows = tuple((name, number, _WARM[name]) for name, number in known.items() if name in kept)
    stops = tuple(
        (name, number, StopReason[name.removeprefix("STOP_")].value)
        for name, number in numbered(core, "Why a solve has stopped").items()
    )
    points = tuple(
        (name, number, PointStatus[_SHORTER.get(name, name)].value)
        for name, number in numbered(core, "What its point is").items()
    )
    of = {
        "status": Words(prefix, (*rows, _UNSOLVED) if cold else rows),
        "stop": Words(prefix, stops), "point": Words(prefix, points),
    }  # fmt: skip
    return {
        f"{what}_{form}": getattr(words, form)
        for what, words in of.items()
        for form in ("members", "cases", "table")
    }
