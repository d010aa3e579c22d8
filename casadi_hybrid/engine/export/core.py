"""What an export has of the core, found in its text: the files a mode needs, names of statuses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.engine.export.tables import listing
from casadi_hybrid.problem.building import BuildError

_DEFINED = re.compile(r"^(?!static)[a-z][\w *]*?\b(hybrid_\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
_NAMED = re.compile(r"\bhybrid_\w+")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INCLUDED = re.compile(r'^#include "([\w.]+)"', re.MULTILINE)
_NUMBERED = re.compile(r"^\s*HYBRID_(\w+) = (\d+)\b", re.MULTILINE)

WARM, WHOLE = "hybrid_sqp", "hybrid_solve"
"""SQP by active sets from given multipliers, and the whole method, which has that in it."""
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
"""What ``hybrid_sqp`` returns."""
_SHORTER = {"UNDEFINED_POINT": "UNDEFINED"}
"""In Python; in C a status of a run has that name."""
_UNSOLVED = "UNSOLVED", -1, "it is not solved: stop says why, and point what x is"


def core_sources() -> dict[str, str]:
    """The files of the core: those of the folders in ``c``, side by side under their plain names.

    Raises:
        BuildError: where the package was installed without them.
    """
    folder = Path(__file__).parent.with_name("c")
    files = {
        path.name: re.sub(r'#include "\w+/', '#include "', path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.[ch]"))
    }
    if len(files) < 3:
        raise BuildError(f"the C sources of the core are not in {folder}; install the package anew")
    return files


def core_of(*entries: str) -> dict[str, str]:
    """The files of the core that functions of it need, by name, headers too.

    Args:
        *entries: the functions, as ``"hybrid_sqp"``.
    """
    sources = core_sources()
    home = {name: file for file, text in sources.items() for name in _DEFINED.findall(text)}
    needed: dict[str, str] = {}
    waiting = [home[entry] for entry in entries]
    while waiting:
        file = waiting.pop()
        if file in needed:
            continue
        text = needed[file] = sources[file]
        waiting += _INCLUDED.findall(text)
        if file.endswith(".c"):
            code = _COMMENT.sub(" ", text)
            waiting += [home[name] for name in _NAMED.findall(code) if name in home]
    return dict(sorted(needed.items()))


def mark() -> str:
    """A name in C that this core has and one of any other text has not."""
    files = sorted(core_sources().items())
    text = "\0".join(part for file in files for part in file)
    return f"hybrid_core_{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def numbered(core: Mapping[str, str], title: str) -> dict[str, int]:
    """The names of an enumeration of ``hybrid.h`` without prefix, by rising number.

    Args:
        core: its files.
        title: in the header, before the enumeration.
    """
    listed = core["hybrid.h"].partition(title)[2].partition("};")[0]
    found = {name: int(number) for name, number in _NUMBERED.findall(listed)}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def words_of(core: Mapping[str, str], prefix: str, *, cold: bool) -> dict[str, str]:
    """What the templates ask for: members of an ``enum``, cases of a ``switch``, rows of Markdown.

    Args:
        core: its files.
        prefix: of the names in C, with the line at its end.
        cold: whether the whole method is exported; else the warm mode alone.
    """
    known = numbered(core, "How a solve ended")
    kept = ("SOLVED", "OTHER_PATTERN", "BAD_NUMBERS") if cold else tuple(_WARM)
    status = [(name, number, _WARM[name]) for name, number in known.items() if name in kept]
    enumerations = {
        "status": [*status, _UNSOLVED] if cold else status,
        "stop": [
            (name, number, StopReason[name.removeprefix("STOP_")].value)
            for name, number in numbered(core, "Why a solve has stopped").items()
        ],
        "point": [
            (name, number, PointStatus[_SHORTER.get(name, name)].value)
            for name, number in numbered(core, "What its point is").items()
        ],
    }
    words: dict[str, str] = {}
    for what, rows in enumerations.items():
        members = (f"    {prefix}{name} = {number}" for name, number, _ in rows)
        cases = (f'    case {number}: return "{text}";' for _, number, text in rows)
        table = [(f"`{prefix}{name}` {number}", text) for name, number, text in rows]
        words[f"{what}_members"] = ",\n".join(members)
        words[f"{what}_cases"] = "\n".join(cases)
        words[f"{what}_table"] = listing(table)
    return words
