"""C sources of the core for an export, and sentences for its statuses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from casadi_hybrid.core.export.needs import HEADERS
from casadi_hybrid.core.export.tables import listing
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.utils.status import PointStatus, StopReason

_SYSTEM_HEADER = re.compile(r"^#include <([^>]+)>", re.MULTILINE)
# Statuses of ``hybrid_sqp``.
_WARM = {
    "SOLVED": "it is solved",
    "OTHER_PATTERN": "the bounds are of other kinds than at the export",
    "UNDEFINED": "a function of the problem is not defined where the warm mode went",
    "NO_SET": "the warm mode found no active set",
    "NOT_NEARER": "the steps of the warm mode did not get nearer",
    "LIMIT": "the limit of iterations was reached",
    "LARGE": "it is solved, but by multipliers so large that there may be smaller ones",
    "BAD_NUMBERS": "a number is not finite, or bounds cross",
    "NO_GUESS": "there is no warm start",
}
# Statuses of an export of the whole method; all others become "unsolved".
_WHOLE = "SOLVED", "OTHER_PATTERN", "BAD_NUMBERS"
_UNSOLVED = "UNSOLVED", -1, "it is not solved: stop says why, and point what x is"


def core_sources() -> dict[str, str]:
    """Return the files of all folders of the core by name; raise BuildError without them."""
    folder = Path(__file__).parent.with_name("src")
    files = {
        # An export has all files in one folder, so that includes lose theirs.
        path.name: re.sub(r'#include "\w+/', '#include "', path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.[ch]"))
    }
    if len(files) < 3:
        raise BuildError(f"the C sources of the core are not in {folder}; install the package anew")
    return files


def portable_sources() -> dict[str, str]:
    """Return the files of the core for a target without an operating system."""
    return {
        name: text
        for name, text in core_sources().items()
        # Threads, clock and analysis need more headers of C; an export has its plan instead.
        if set(_SYSTEM_HEADER.findall(text)) <= set(HEADERS)
    }


def mark() -> str:
    """Name in C that identifies this version of the core."""
    files = sorted(core_sources().items())
    text = "\0".join(part for file in files for part in file)
    # The linker refuses objects of two versions, as one name is then undefined.
    return f"hybrid_core_{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _numbered(prefix: str, sentences: dict[str, str]) -> Iterator[tuple[str, int, str]]:
    """Name, number and sentence of each constant that ``hybrid.h`` declares with this prefix."""
    for name, sentence in sentences.items():
        number = getattr(C, f"HYBRID_{prefix}{name}", None)
        if number is not None:
            yield f"{prefix}{name}", number, sentence


def words_of(prefix: str, *, cold: bool) -> dict[str, str]:
    """Return statuses for the templates: members of an ``enum``, cases of a ``switch``, tables."""
    # cold: the whole method; otherwise the warm mode alone, whose statuses all stay apart.
    status = {name: _WARM[name] for name in (_WHOLE if cold else _WARM)}
    points = {point.name: point.value for point in PointStatus}
    points["UNDEFINED_POINT"] = points.pop("UNDEFINED")  # in C a status has the shorter name
    enumerations = {
        "status": [*_numbered("", status), *([_UNSOLVED] if cold else [])],
        "stop": [*_numbered("STOP_", {reason.name: reason.value for reason in StopReason})],
        "point": [*_numbered("", points)],
    }
    words: dict[str, str] = {}
    for kind, rows in enumerations.items():
        members = (f"    {prefix}{name} = {number}" for name, number, _ in rows)
        cases = (f'    case {number}: return "{text}";' for _, number, text in rows)
        table = [(f"`{prefix}{name}` {number}", text) for name, number, text in rows]
        words[f"{kind}_members"] = ",\n".join(members)
        words[f"{kind}_cases"] = "\n".join(cases)
        words[f"{kind}_table"] = listing(table)
    return words
