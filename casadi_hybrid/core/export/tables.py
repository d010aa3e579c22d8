"""Numbers and the plan of a problem as constant tables of C."""

from __future__ import annotations

import ctypes as ct
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from casadi_hybrid.core.binding.plan import Plan
from casadi_hybrid.utils.inputs import Vector

_LINES = textwrap.TextWrapper(
    width=95,
    initial_indent=" " * 4,
    subsequent_indent=" " * 4,
    break_long_words=False,
    break_on_hyphens=False,
)
_KINDS = {"int32": "int", "int8": "signed char"}


def number(value: float) -> str:
    """A number in C, to the last bit; NAN and INFINITY of ``math.h`` if it is not finite."""
    value = float(value)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    # repr reads back to the same double; C99 needs no hexadecimal floats for it.
    return repr(value)


def braced(words: Iterable[str]) -> str:
    """An initializer in lines of a readable width; ``{0}`` for none."""
    text = _LINES.fill(", ".join(words) + ",")
    return "{0}" if text.strip() == "," else f"{{\n{text[:-1]}}}"


def structure(fields: Mapping[str, float | Vector]) -> str:
    """Initializer of a structure of numbers and arrays."""
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
    """Fields of the initializer of a structure; ``pointer`` names an address in C."""
    lines = []
    for name, kind in data._fields_:  # type: ignore[misc]  # no bit fields
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
    """Return the plan as C, and the bytes of its tables and structure (64-bit pointers)."""
    # The structure has addresses: each is looked up among the arrays and written as a name.
    arrays = {array.ctypes.data: array for array in plan.arrays}
    names: dict[int, str] = {}  # a table has the name of the first field that points to it

    def pointer(field: str, address: int) -> str:
        """The table at an address, or an entry in it."""
        inside = (s for s, array in arrays.items() if s <= address < s + array.nbytes)
        start = address if address in arrays else next(inside, None)
        if start is None:  # an empty table behind the end of an array
            start = next(s for s in names if address == s + arrays[s].nbytes)
        table = names.setdefault(start, field)
        offset = (address - start) // arrays[start].itemsize
        return f"{table} + {offset}" if offset else table

    initializer = fields(plan.data, "    ", pointer)
    tables = [
        f"static const {_KINDS[arrays[start].dtype.name]} {table}[{max(1, arrays[start].size)}] = "
        f"{braced(map(str, arrays[start].tolist()))};\n"
        for start, table in names.items()
    ]
    head = (
        f"/* The plan of {name}, which depends on no numbers: see hybrid.h and ldl.h. */\n"
        '#include "core/hybrid.h"\n\n'
    )
    declared = f"extern const hybrid_plan {name}_plan;\nconst hybrid_plan {name}_plan = {{\n"
    text = "\n".join([head + "\n".join(tables), declared + initializer + "};\n"])
    return text, ct.sizeof(plan.data) + sum(arrays[start].nbytes for start in names)


def comment(text: str) -> str:
    """A user's text inside a comment, without marks that end or begin one."""
    return " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *")


def listing(rows: Sequence[tuple[str, str]]) -> str:
    """Rows of a table in Markdown."""
    return "\n".join(f"| {first} | {second} |" for first, second in rows)
