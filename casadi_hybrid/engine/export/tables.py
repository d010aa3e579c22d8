"""Numbers and the plan of a problem as constant tables of C."""

from __future__ import annotations

import ctypes as ct
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.plan import Plan

_WIDTH = 96
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
    indent = " " * 4
    lines, line = [], indent
    for word in words:
        if len(line) + len(word) + 2 > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{word}, "
    if line.strip():
        lines.append(line.rstrip())
    if not lines:
        return "{0}"
    return "{\n" + "\n".join(lines)[:-1] + "}"


def structure(fields: Mapping[str, float | Vector]) -> str:
    """A structure of numbers and arrays of them, field by field."""
    lines = []
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            text = braced(map(number, value))
        else:
            text = str(value) if isinstance(value, int) else number(value)
        lines.append(f"    .{name} = {text}")
    return "{\n" + ",\n".join(lines) + "}"


def fields(data: ct.Structure, indent: str) -> str:
    """What initializes a structure of C without pointers, field by field."""
    lines = []
    for name, kind in data._fields_:  # type: ignore[misc]  # none here has a bit width
        value = getattr(data, name)
        if issubclass(kind, ct.Structure):
            text = "{\n" + fields(value, indent + "    ") + "}"
        else:
            text = str(value) if isinstance(value, int) else number(value)
        lines.append(f"{indent}.{name} = {text}")
    return ",\n".join(lines)


class PlanText:
    """The plan as C: every array a table, and the structure that points to them.

    Args:
        plan: what the engine reads.
        name: of the problem.

    Attributes:
        text: of the file.
        size: bytes of the tables and of the structure where pointers have eight bytes.
    """

    def __init__(self, plan: Plan, name: str) -> None:
        self._arrays: list[tuple[str, NDArray[Any]]] = []
        self._named: dict[int, str] = {}
        self._unnamed = {array.ctypes.data: array for array in plan.arrays}
        fields = self._fields(plan.data, "    ")
        tables = [
            f"static const {_KINDS[array.dtype.name]} {known}[{max(1, array.size)}] = "
            f"{braced(map(str, array.tolist()))};\n"
            for known, array in self._arrays
        ]
        head = (
            f"/* What of {name} does not depend on numbers: see hybrid.h and ldl.h. */\n"
            '#include "core/hybrid.h"\n\n'
        )
        declared = f"extern const hybrid_plan {name}_plan;\nconst hybrid_plan {name}_plan = {{\n"
        self.text = "\n".join([head + "\n".join(tables), declared + fields + "};\n"])
        self.size = ct.sizeof(plan.data) + sum(array.nbytes for _, array in self._arrays)

    def _fields(self, data: ct.Structure, indent: str, within: str = "") -> str:
        lines = []
        for name, kind in data._fields_:  # type: ignore[misc]  # none here has a bit width
            value = getattr(data, name)
            if issubclass(kind, ct.Structure):
                text = "{\n" + self._fields(value, indent + "    ", f"{name}_") + "}"
            elif kind is ct.c_void_p:
                text = self._pointer(within + name, value or 0)
            else:
                text = str(value)
            lines.append(f"{indent}.{name} = {text}")
        return ",\n".join(lines)

    def _pointer(self, name: str, address: int) -> str:
        """The table at an address, which gets the name of the first field that needs it."""
        if address in self._unnamed:
            array = self._unnamed.pop(address)
            self._arrays.append((name, array))
            self._named[address] = name
        if address in self._named:
            return self._named[address]
        for start, array in self._unnamed.items():
            if start <= address < start + max(1, array.nbytes):
                self._named[start] = name
                self._arrays.append((name, self._unnamed.pop(start)))
                break
        # Of an empty table at the end of an array only the address is there.
        for known, array in self._arrays:
            start = array.ctypes.data
            if start <= address <= start + array.nbytes:
                return f"{known} + {(address - start) // array.itemsize}"
        raise ValueError(f"the plan has no array for {name}")


def listing(rows: Sequence[tuple[str, str]]) -> str:
    """Rows of a table in Markdown."""
    return "\n".join(f"| {first} | {second} |" for first, second in rows)
