"""Which files of the core a mode needs, found in their text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from casadi_hybrid.engine.library import core_sources

_DEFINED = re.compile(r"^(?!static)[a-z][\w *]*?\b(hybrid_\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
_NAMED = re.compile(r"\bhybrid_\w+")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INCLUDED = re.compile(r'^#include "([\w.]+)"', re.MULTILINE)
_NUMBERED = re.compile(r"^\s*HYBRID_(\w+) = (\d+)\b", re.MULTILINE)

WARM, WHOLE = "hybrid_sqp", "hybrid_solve"
"""SQP by active sets from given multipliers, and the whole method, which has that in it."""


def core_of(*entries: str) -> dict[str, str]:
    """The files of the core that functions of it need, by name, headers too.

    Args:
        *entries: the functions, as ``"hybrid_sqp"``.

    Raises:
        KeyError: where no file defines one.
    """
    sources = core_sources().files
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
    files = sorted(core_sources().files.items())
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
