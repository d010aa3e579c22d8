"""What the headers of the C sources declare, for ctypes: structures, constants and functions."""

from __future__ import annotations

import ctypes as ct
import os
import re
from collections.abc import Iterator
from typing import Any

_KINDS: dict[str, Any] = {
    "int": ct.c_int, "double": ct.c_double, "long long": ct.c_longlong, "void": None,
    "casadi_int": ct.c_longlong, "unsigned long long": ct.c_ulonglong,
    "hybrid_first": ct.c_void_p, "hybrid_second": ct.c_void_p,
}  # fmt: skip
_STRUCTURE = re.compile(r"typedef struct(?: \w+)? \{([^{}]*)\} (\w+);")
_CONSTANT = re.compile(r"\b(HYBRID_\w+)(?: = | )(-?\d+)(?![\w.])")
_FUNCTION = re.compile(r"^([a-z][\w ]*?)(\**)\b(hybrid_\w+)\(([^()]*)\);", re.MULTILINE)
_FIELD = re.compile(
    r"(?:const |struct |signed )*((?:unsigned )?(?:long long|\w+)) ?(.*)", re.DOTALL
)


class Headers:
    """The declarations of some headers; structures and constants are attributes by their names.

    All pointers are ``c_void_p``.

    Args:
        *texts: of the headers.
    """

    def __init__(self, *texts: str) -> None:
        text = re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.DOTALL)
        text = re.sub(r"\(\*(\w+)\)\([^()]*\)", r"*\1", text)  # a function's address
        self.__dict__.update((name, int(value)) for name, value in _CONSTANT.findall(text))
        self._structures = {name: body for body, name in _STRUCTURE.findall(text)}
        self._functions = _FUNCTION.findall(text)

    def __getattr__(self, name: str) -> Any:
        if name not in self._structures:
            raise AttributeError(f"the headers of the core do not declare {name}")
        fields = list(self._fields(self._structures[name].split(";")))
        setattr(self, name, type(name, (ct.Structure,), {"_fields_": fields}))
        return self.__dict__[name]

    def declare(self, library: ct.CDLL) -> ct.CDLL:
        """State the types of the functions that a library has; return it."""
        for returned, pointer, name, parameters in self._functions:
            function = getattr(library, name, None)
            if function is not None:
                function.restype = ct.c_void_p if pointer else self._kind(returned.strip())
                function.argtypes = [
                    ct.c_void_p if "*" in one else self._kind(one.strip().rpartition(" ")[0])
                    for one in parameters.split(",") if one != "void"
                ]  # fmt: skip
        return library

    def _kind(self, word: str) -> Any:
        return _KINDS[word] if word in _KINDS else getattr(self, word)

    def _fields(self, declarations: list[str]) -> Iterator[tuple[str, Any]]:
        for declaration in filter(None, map(str.strip, declarations)):
            found = _FIELD.fullmatch(declaration)
            assert found is not None, declaration
            for one in found[2].split(","):
                name, *sizes = re.findall(r"\w+", one) or [""]
                kind = ct.c_void_p if "*" in one else self._kind(found[1])
                for size in reversed(sizes):
                    kind = kind * int(size if size.isdigit() else getattr(self, size))
                yield name, kind


def _read(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


C = Headers(*map(_read, ("c/ldl.h", "c/hybrid.h", "adapter/adapter.h", "adapter/graph.h")))
"""Those of the core and of its adapter."""
