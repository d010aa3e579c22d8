"""Structures, constants and functions of the C headers, for ctypes."""

from __future__ import annotations

import ctypes as ct
import os
import re
from typing import Any

from casadi_hybrid.utils.core_constants import numbers_in, without_comments

_KINDS: dict[str, Any] = {
    "int": ct.c_int, "double": ct.c_double, "long long": ct.c_longlong, "void": None,
    "casadi_int": ct.c_longlong, "unsigned long long": ct.c_ulonglong,
    "hybrid_first": ct.c_void_p, "hybrid_second": ct.c_void_p,
    "hybrid_job": ct.c_void_p, "hybrid_pair": ct.c_void_p,
}  # fmt: skip
_STRUCTURE = re.compile(r"typedef struct(?: \w+)? \{([^{}]*)\} (\w+);")
_FUNCTION = re.compile(r"^([a-z][\w ]*?)(\**)\b(hybrid_\w+)\(([^()]*)\);", re.MULTILINE)
_FIELDS = re.compile(r"(?:const |struct |signed )*((?:unsigned )?(?:long long|\w+)) ?([^;]*);")


class Headers:
    """The declarations of some headers; types and constants are attributes by their names.

    All pointers are ``c_void_p``.

    Args:
        *texts: of the headers.
    """

    def __init__(self, *texts: str) -> None:
        text = without_comments("\n".join(texts))
        text = re.sub(r"\(\*(\w+)\)\([^()]*\)", r"*\1", text)  # a function's address
        self.__dict__.update(_KINDS, **numbers_in(text))
        self._structures = {name: body for body, name in _STRUCTURE.findall(text)}
        self._functions = _FUNCTION.findall(text)

    def __getattr__(self, name: str) -> Any:
        if name not in self._structures:
            raise AttributeError(f"the headers of the core do not declare {name}")
        fields = []
        for word, declared in _FIELDS.findall(self._structures[name]):
            for one in declared.split(","):
                field, *sizes = re.findall(r"\w+", one)
                kind = ct.c_void_p if "*" in one else getattr(self, word)
                for size in reversed(sizes):
                    kind = kind * int(size if size.isdigit() else getattr(self, size))
                fields.append((field, kind))
        # Of two threads that ask at once both get the same type.
        return self.__dict__.setdefault(name, type(name, (ct.Structure,), {"_fields_": fields}))

    def declare(self, library: ct.CDLL) -> ct.CDLL:
        """State the types of the functions that a library has; return it."""
        for returned, pointer, name, parameters in self._functions:
            function = getattr(library, name, None)
            if function is not None:
                function.restype = ct.c_void_p if pointer else getattr(self, returned.strip())
                function.argtypes = [
                    ct.c_void_p if "*" in one else getattr(self, one.strip().rpartition(" ")[0])
                    for one in parameters.split(",") if one != "void"
                ]  # fmt: skip
        return library


def _read(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


C = Headers(
    *map(
        _read, ("src/ldl.h", "src/hybrid.h", "binding/adapter/adapter.h", "binding/adapter/graph.h")
    )
)
"""Declarations of the core and of its adapter."""
