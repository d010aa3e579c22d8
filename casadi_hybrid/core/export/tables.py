"""Numbers and the plan of a problem as constant tables of C."""

from __future__ import annotations

import ctypes as ct
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from casadi_hybrid.core.binding.plan import Plan
from casadi_hybrid.utils.inputs import Vector

_WIDTH = 95
_KINDS = {"int32": "int", "int8": "signed char"}


def number(value: float) -> str:
    """A number as C reads it, to the last bit; what is not finite by the names of ``math.h``."""
    value = float(value)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(value)


def braced(words: Iterable[str]) -> str:
    """An initializer in lines of a readable width; ``{0}`` for none."""
    text = textwrap.fill(
        ", ".join(words) + ",", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "{0}" if text.strip() == "," else f"{{\n{text[:-1]}}}"


def structure(fields: Mapping[str, float | Vector]) -> str:
    """A structure of numbers and arrays of them, field by field."""
    lines = (
        f"    .{name} = {braced(map(number, v)) if isinstance(v, np.ndarray) else _scalar(v)}"
        for name, v in fields.items()
    )
    return "{\n" + ",\n".join(lines) + "}"


def _scalar(value: float) -> str:
    return str(value) if isinstance(value, int) else number(value)


def fields(
    data: ct.Structure,
    indent: str,
    pointer: Callable[[str, int], str] | None = None,
    within: str = "",
) -> str:
    """Initializer of a structure of C, field by field; ``pointer`` names an address in C."""
    lines = []
    for name, kind in data._fields_:  # type: ignore[misc]  # none here has a bit width
        value = getattr(data, name)
        if issubclass(kind, ct.Structure):
            text = "{\n" + fields(value, indent + "    ", pointer, f"{name}_") + "}"
        elif kind is ct.c_void_p and pointer is not None:
            text = pointer(within + name, value or 0)
        elif issubclass(kind, ct.Array):
            text = braced(map(_scalar, value))
        else:
            text = _scalar(value)
        lines.append(f"{indent}.{name} = {text}")
    return ",\n".join(lines)


def plan_text(plan: Plan, name: str) -> tuple[str, int]:
    """The plan as C: every array a table, and the structure that points to them.

    With it the bytes of the tables and of the structure where pointers have eight bytes.

    Args:
        plan: what the engine reads.
        name: of the problem.
    """
    arrays = {array.ctypes.data: array for array in plan.arrays}
    names: dict[int, str] = {}  # a table has the name of the first field that needs it

    def pointer(field: str, address: int) -> str:
        """The table at an address, or the place in one."""
        start = address if address in arrays else next(
            (s for s, array in arrays.items() if s <= address < s + array.nbytes), None
        )  # fmt: skip
        if start is None:  # an empty table at the end of an array is an address alone
            start = next(s for s in names if address == s + arrays[s].nbytes)
        known = names.setdefault(start, field)
        offset = (address - start) // arrays[start].itemsize
        return f"{known} + {offset}" if offset else known

    initializer = fields(plan.data, "    ", pointer)
    tables = [
        f"static const {_KINDS[arrays[start].dtype.name]} {known}[{max(1, arrays[start].size)}] = "
        f"{braced(map(str, arrays[start].tolist()))};\n"
        for start, known in names.items()
    ]
    head = (
        f"/* What of {name} does not depend on numbers: see hybrid.h and ldl.h. */\n"
        '#include "core/hybrid.h"\n\n'
    )
    declared = f"extern const hybrid_plan {name}_plan;\nconst hybrid_plan {name}_plan = {{\n"
    text = "\n".join([head + "\n".join(tables), declared + initializer + "};\n"])
    return text, ct.sizeof(plan.data) + sum(arrays[start].nbytes for start in names)


def comment(text: str) -> str:
    """A user's text for the inside of a comment, which it can neither end nor begin."""
    return " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *")


def listing(rows: Sequence[tuple[str, str]]) -> str:
    """Rows of a table in Markdown."""
    return "\n".join(f"| {first} | {second} |" for first, second in rows)
