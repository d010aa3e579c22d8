"""Constants that Python shares with the core in C, read from its headers."""

from __future__ import annotations

import os
import re
from typing import Any

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "core", "src")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Members of an enum, `NAME = 3`, and macros, `NAME 3`; no expressions.
_NUMBER = re.compile(r"\b(HYBRID_\w+)(?: = | )(-?\d+(?:\.\d+)?(?:e-?\d+)?)(?![\w.])")


def without_comments(text: str) -> str:
    """Text of a header without its comments."""
    return _COMMENT.sub("", text)


def numbers_in(text: str) -> dict[str, Any]:
    """Names and values of the constants in a header without comments, integers as int."""
    return {
        name: int(value) if value.lstrip("-").isdigit() else float(value)
        for name, value in _NUMBER.findall(text)
    }


def _read(name: str) -> dict[str, Any]:
    with open(os.path.join(_FOLDER, *name.split("/")), encoding="utf-8") as file:
        return numbers_in(without_comments(file.read()))


# Constants of the core by their names in C.
CORE = {**_read("constants.h"), **_read("driver/phases.h")}
