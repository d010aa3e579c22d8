"""Structures, constants and functions of the C headers, for ctypes."""

from __future__ import annotations

import ctypes as ct
import os
import re
from typing import Any, Self

from casadi_hybrid.utils.core_constants import numbers_in, without_comments

_KINDS: dict[str, Any] = {
    "void": None,
    "int": ct.c_int,
    "double": ct.c_double,
    "long long": ct.c_longlong,
    "casadi_int": ct.c_longlong,
    "unsigned long long": ct.c_ulonglong,
}
# Names of types of functions.
_CALLBACKS = "hybrid_first", "hybrid_second", "hybrid_job", "hybrid_pair", "blocks_part"
# The headers have no nested structures and one declaration a line: patterns read them.
_STRUCTURE = re.compile(r"typedef struct(?: \w+)? \{([^{}]*)\} (\w+);")
_FUNCTION = re.compile(r"^([a-z][\w ]*?)(\**)\b((?:hybrid|blocks)_\w+)\(([^()]*)\);", re.MULTILINE)
_FIELDS = re.compile(r"(?:const |struct |signed )*((?:unsigned )?(?:long long|\w+)) ?([^;]*);")


class Headers:
    """Declarations of some headers; types and constants are attributes by their names."""

    def __init__(self, *texts: str) -> None:
        text = without_comments("\n".join(texts))
        text = re.sub(r"\(\*(\w+)\)\([^()]*\)", r"*\1", text)  # a pointer to a function
        self.__dict__.update(_KINDS, **dict.fromkeys(_CALLBACKS, ct.c_void_p), **numbers_in(text))
        self._structures = {name: body for body, name in _STRUCTURE.findall(text)}
        self._functions = _FUNCTION.findall(text)

    @classmethod
    def of(cls, *paths: str) -> Self:
        """Read headers by their paths in ``core``."""
        texts = []
        for path in paths:
            with open(os.path.join(os.path.dirname(__file__), path), encoding="utf-8") as file:
                texts.append(file.read())
        return cls(*texts)

    def __getattr__(self, name: str) -> Any:
        if name not in self._structures:
            raise AttributeError(f"the headers of the core do not declare {name}")
        fields = []
        for type_name, declared in _FIELDS.findall(self._structures[name]):
            for declarator in declared.split(","):
                field, *sizes = re.findall(r"\w+", declarator)
                # All pointers are c_void_p: callers pass addresses of arrays.
                kind = ct.c_void_p if "*" in declarator else getattr(self, type_name)
                # C's a[2][3] is two arrays of three: the last size is applied first.
                for size in reversed(sizes):
                    kind = kind * int(size if size.isdigit() else getattr(self, size))
                fields.append((field, kind))
        # setdefault: two threads that ask at once get the same type.
        return self.__dict__.setdefault(name, type(name, (ct.Structure,), {"_fields_": fields}))

    def declare(self, library: ct.CDLL) -> ct.CDLL:
        """Declare the types of a library's functions; return the library."""
        for returned, pointer, name, parameters in self._functions:
            function = getattr(library, name, None)
            # A header may declare functions that another library has.
            if function is not None:
                # ctypes takes int for an undeclared result, and cuts addresses to 32 bits.
                function.restype = ct.c_void_p if pointer else getattr(self, returned.strip())
                declared = () if parameters == "void" else parameters.split(",")
                function.argtypes = [self._type_of(parameter.strip()) for parameter in declared]
        return library

    def _type_of(self, parameter: str) -> Any:
        return ct.c_void_p if "*" in parameter else getattr(self, parameter.rpartition(" ")[0])


# Declarations of the core and of its adapter.
C = Headers.of("src/ldl.h", "src/hybrid.h", "binding/adapter/adapter.h", "binding/adapter/graph.h")
