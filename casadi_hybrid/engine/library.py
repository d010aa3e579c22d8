"""The core in C, loaded once a process and not before it is asked for.

``CASADI_HYBRID_ENGINE`` says which code runs: ``c``, the default, or ``python``, which leaves the
core alone. The results are the same.
"""

from __future__ import annotations

import ctypes
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from casadi_hybrid.basics.errors import CompilerWarning, InputError, suggest
from casadi_hybrid.basics.lock import Lock
from casadi_hybrid.building import BuildError
from casadi_hybrid.engine.installed import load
from casadi_hybrid.engine.structures import INTERFACE, declare

if TYPE_CHECKING:
    from casadi_hybrid.building.build import Sources

VARIABLE = "CASADI_HYBRID_ENGINE"
MODES = ("c", "python")
_FOLDER = Path(__file__).with_name("c")
_INCLUDED = re.compile(r'#include "\w+/')


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Which code runs, and why.

    Attributes:
        available: whether the core in C is loaded.
        mode: what was asked for: ``"c"`` or ``"python"``.
        path: the library; None where there is none.
        reason: a sentence: why there is no core; empty where there is one.
    """

    available: bool
    mode: str
    path: Path | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.path is None:
            return f"Python: {self.reason}"
        wide = ".v3." in self.path.name
        return f"C, for {'x86-64-v3' if wide else 'any'} processor{'s' * wide} ({self.path})"


class _Core:
    """The library of this process, or the reason why there is none: found out once."""

    def __init__(self) -> None:
        self.loaded: ctypes.CDLL | None = None
        self.path: Path | None = None
        self.reason = ""
        self.warned = False
        self._asked = False
        self._lock = Lock()

    def find(self) -> ctypes.CDLL | None:
        """Load at the first call; afterwards what came of it."""
        if not self._asked:
            with self._lock.held:
                if not self._asked:
                    self._load()
                    self._asked = True
        return self.loaded

    def _load(self) -> None:
        try:
            loaded = load("hybrid")
        except BuildError as error:
            self.reason = str(error)
            return
        ask = getattr(loaded, "hybrid_interface_version", None)
        version = None if ask is None else int(ask())
        if version != INTERFACE:
            self.reason = (
                f"{loaded._name} has interface {version}, and this package calls interface "
                f"{INTERFACE}; install the package anew"
            )
            return
        declare(loaded)
        self.loaded, self.path = loaded, Path(loaded._name)


_core = _Core()


def engine(mode: str | None = None) -> ctypes.CDLL | None:
    """The core in C, or None where Python is to do its work. Threads may call this at once.

    Args:
        mode: ``"c"`` or ``"python"``; None for the environment variable ``CASADI_HYBRID_ENGINE``,
            and ``"c"`` where that is not set.

    Raises:
        InputError: for another mode.

    Warns:
        CompilerWarning: once a process, where the core ought to be there and is not.
    """
    if _mode(mode) == "python":
        return None
    found = _core.find()
    if found is None and not _core.warned:
        _core.warned = True
        warnings.warn(
            f"the core in C cannot be had: {_core.reason}; Python runs instead, with the same "
            "results, and ten times slower or more",
            CompilerWarning,
            stacklevel=2,
        )
    return found


def engine_status(mode: str | None = None) -> EngineStatus:
    """Which code runs under a mode, and why.

    Raises:
        InputError: for a mode that :func:`engine` does not know.
    """
    mode = _mode(mode)
    if mode == "python":
        return EngineStatus(False, mode, reason="it was asked for")
    _core.find()
    return EngineStatus(_core.path is not None, mode, _core.path, _core.reason)


def core_sources() -> Sources:
    """The files of the core: those of the folders in ``c``, side by side under their plain names.

    Raises:
        BuildError: where the package was installed without them.
    """
    from casadi_hybrid.building.build import Sources  # noqa: PLC0415 - large, and of exports alone

    files = {
        path.name: _INCLUDED.sub('#include "', path.read_text(encoding="utf-8"))
        for path in sorted(_FOLDER.rglob("*.[ch]"))
    }
    if "hybrid.h" not in files:
        raise BuildError(
            f"the C sources of the core are not in {_FOLDER}; install the package anew"
        )
    return Sources("hybrid", files)


def _mode(given: str | None) -> str:
    """The mode that is asked for."""
    mode = given if given is not None else os.environ.get(VARIABLE) or "c"
    if mode not in MODES:
        where = "engine" if given is not None else f"the environment variable {VARIABLE}"
        raise InputError(f"{where} is {mode!r}{suggest(mode, MODES)}")
    return mode
