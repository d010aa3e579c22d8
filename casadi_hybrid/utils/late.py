"""Late imports of modules that a solve may never need, for a short import of the package.

A module used by one function is imported in that function. The tools of this file serve modules
used by many functions, and names offered by a package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class LateModule:
    """A module imported at the first access to one of its names, which then become attributes."""

    def __init__(self, name: str, lacking: str = "") -> None:
        self._module, self._lacking = name, lacking

    def __getattr__(self, name: str) -> Any:
        try:
            module = import_module(self._module)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(self._lacking or str(error)) from None
        value = getattr(module, name)
        # __getattr__ is called for missing names only: later accesses cost nothing more.
        setattr(self, name, value)
        return value


def late_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package with late names (PEP 562)."""
    # homes has names, separated by blanks, by the module of the package that defines them.
    home = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return find, names
