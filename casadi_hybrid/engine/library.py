"""The core in C, loaded once a process and not before it is asked for."""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, NamedTuple

from casadi_hybrid.basics.lock import Lock
from casadi_hybrid.engine.installed import load
from casadi_hybrid.engine.structures import INTERFACE, declare
from casadi_hybrid.problem.building import BuildError

if TYPE_CHECKING:
    from pathlib import Path

    from casadi_hybrid.problem.building.build import Sources


class EngineStatus(NamedTuple):
    """Which core is loaded, or why there is none.

    Attributes:
        path: the library; None where there is none.
        reason: a sentence: why there is no core; empty where there is one.
    """

    path: Path | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.path is None:
            return f"none: {self.reason}"
        wide = ".v3." in self.path.name
        return f"C, for {'x86-64-v3' if wide else 'any'} processor{'s' * wide} ({self.path})"


class _Core:
    """The library of this process, or the reason why there is none: found out once."""

    def __init__(self) -> None:
        self.loaded: ctypes.CDLL | None = None
        self.reason = ""
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
        self.loaded = loaded


_core = _Core()


def engine() -> ctypes.CDLL:
    """The core in C. Threads may call this at once.

    Raises:
        BuildError: where it cannot be had.
    """
    found = _core.find()
    if found is None:
        raise BuildError(f"the core in C cannot be had: {_core.reason}")
    return found


def engine_status() -> EngineStatus:
    """Which core is loaded, or why there is none."""
    from pathlib import Path  # noqa: PLC0415 - a solve does without

    found = _core.find()
    return EngineStatus(None if found is None else Path(found._name), _core.reason)


def core_sources() -> Sources:
    """The files of the core: those of the folders in ``c``, side by side under their plain names.

    Raises:
        BuildError: where the package was installed without them.
    """
    from pathlib import Path  # noqa: PLC0415 - of exports alone, as the next

    from casadi_hybrid.problem.building.build import Sources  # noqa: PLC0415

    folder = Path(__file__).with_name("c")
    files = {
        path.name: re.sub(r'#include "\w+/', '#include "', path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.[ch]"))
    }
    if "hybrid.h" not in files:
        raise BuildError(f"the C sources of the core are not in {folder}; install the package anew")
    return Sources("hybrid", files)
