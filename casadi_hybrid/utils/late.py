"""What is seldom needed is loaded when it is: SciPy's modules, and our own that C does without.

A script that solves once should not wait for what its solve never calls. Within a function a late
import is an ordinary one, with a word on why; these are for what many functions of a module use,
and for what a package offers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class LateModule:
    """A module that is imported when the first of its names is read.

    A name that was read once is an attribute from then on, as quick as one of the module.

    Args:
        name: of the module, as ``import`` takes it.
        lacking: the sentence where it is not installed.
    """

    def __init__(self, name: str, lacking: str = "") -> None:
        self._module, self._lacking = name, lacking

    def __getattr__(self, name: str) -> Any:
        try:
            module = import_module(self._module)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(self._lacking or str(error)) from None
        value = getattr(module, name)
        setattr(self, name, value)
        return value


def late_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package some of whose names come late (PEP 562).

    Args:
        package: its ``__name__``.
        homes: late names, parted by blanks, by the module of the package that defines them, or by
            several, parted by blanks, that are imported one after the other until one has it.
    """
    home = {name: modules for modules, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        for module in home.get(name, "").split():
            value = getattr(import_module(f"{package}.{module}"), name, None)
            if value is not None:
                setattr(sys.modules[package], name, value)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return find, names
