"""The core in C, loaded once a process and not before it is asked for.

``CASADI_HYBRID_ENGINE`` says which code runs: ``auto``, the default, takes the core where it can
be had and Python elsewhere, ``python`` leaves the core alone, ``c`` asks for it and warns where it
cannot be had. The results are the same.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

from casadi_hybrid.basics.errors import CacheWarning, CompilerWarning, InputError, suggest
from casadi_hybrid.engine.building import cache
from casadi_hybrid.engine.building.build import Library, Sources
from casadi_hybrid.engine.building.compiler import BuildError
from casadi_hybrid.engine.building.lock import Lock
from casadi_hybrid.engine.installed import COMPILER, obtain
from casadi_hybrid.engine.structures import INTERFACE, declare

VARIABLE = "CASADI_HYBRID_ENGINE"
MODES = ("auto", "c", "python")
_FOLDER = Path(__file__).with_name("c")


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Which code runs, and why.

    Attributes:
        available: whether the core in C is loaded.
        mode: what was asked for: ``"auto"``, ``"c"`` or ``"python"``.
        path: the library; None where there is none.
        compiler: what built it; empty where there is none.
        reason: a sentence: why there is no core; empty where there is one.
        seconds: what its compilation took, in this process or an earlier one.
        cached: whether it was found in the cache.
        notes: sentences about what did not go as it should on the way.
    """

    available: bool
    mode: str
    path: Path | None = None
    compiler: str = ""
    reason: str = ""
    seconds: float = 0.0
    cached: bool = False
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.available:
            return f"Python: {self.reason}"
        if self.compiler == COMPILER:
            return f"C, installed with the package ({self.path.name if self.path else ''})"
        how = "from the cache" if self.cached else "compiled just now"
        return f"C, {how}, in {self.seconds:.1f} s by {self.compiler}"


class _Core:
    """The library of this process, or the reason why there is none: found out once."""

    def __init__(self) -> None:
        self.loaded: ctypes.CDLL | None = None
        self.library: Library | None = None
        self.reason = ""
        self.warned = False
        self._asked = False
        self._lock = Lock()

    def find(self) -> ctypes.CDLL | None:
        """Build or load at the first call; afterwards what came of it."""
        if not self._asked:
            with self._lock.held:
                if not self._asked:
                    self._load()
                    self._asked = True
        return self.loaded

    def _load(self) -> None:
        try:
            loaded, library = obtain(core_sources())
        except BuildError as error:
            self.reason = str(error)
            return
        ask = getattr(loaded, "hybrid_interface_version", None)
        version = None if ask is None else int(ask())
        if version != INTERFACE:
            self.reason = (
                f"the core in {_FOLDER} has interface {version}, and this package calls interface "
                f"{INTERFACE}; install the package anew"
            )
            return
        declare(loaded)
        self.loaded, self.library = loaded, library


_core = _Core()


def engine(mode: str | None = None) -> ctypes.CDLL | None:
    """The core in C, or None where Python is to do its work.

    The first call builds it, which takes some seconds once a machine, or loads it from the cache.
    Threads may call this at once. Where there is no cache that it can be kept in, a
    :class:`~casadi_hybrid.basics.errors.CacheWarning` says so once a process.

    Args:
        mode: ``"auto"``, ``"c"`` or ``"python"``; None for the environment variable
            ``CASADI_HYBRID_ENGINE``, and ``"auto"`` where that is not set.

    Raises:
        InputError: for another mode.
    """
    mode = _mode(mode)
    if mode == "python":
        return None
    found = _core.find()
    if found is not None and not _core.warned:
        _core.warned = True
        _warn_if_not_kept()
    if found is None and mode == "c" and not _core.warned:
        _core.warned = True
        warnings.warn(
            f"the engine in C cannot be had: {_core.reason}; Python runs instead, with the same "
            "results",
            CompilerWarning,
            stacklevel=2,
        )
    return found


def engine_status(mode: str | None = None) -> EngineStatus:
    """Which code runs under a mode, and why; the core is built where that has not been tried.

    Raises:
        InputError: for a mode that :func:`engine` does not know.
    """
    mode = _mode(mode)
    if mode == "python":
        return EngineStatus(False, mode, reason="it was asked for")
    _core.find()
    library = _core.library
    if library is None:
        return EngineStatus(False, mode, reason=_core.reason)
    return EngineStatus(
        True,
        mode,
        library.path,
        library.compiler,
        "",
        library.seconds,
        library.cached,
        library.notes,
    )


def _warn_if_not_kept() -> None:
    """Say it where some seconds of every process go into what a cache would keep."""
    made = _core.library
    if made is None or made.cached or not cache.is_private(made.path):
        return
    warnings.warn(
        f"the engine in C is compiled anew in every process, which took {made.seconds:.1f} s in "
        f"this one: {'; '.join(made.notes)}. {cache.VARIABLE} may name a folder to keep it in",
        CacheWarning,
        stacklevel=3,
    )


def core_sources() -> Sources:
    """The files of the core: those of the folder ``c``.

    Raises:
        BuildError: where the package was installed without them.
    """
    files = {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(_FOLDER.glob("*"))
        if path.suffix in {".c", ".h"}
    }
    if "hybrid.h" not in files:
        raise BuildError(
            f"the C sources of the core are not in {_FOLDER}; install the package anew"
        )
    return Sources("hybrid", files)


def core_headers(*names: str) -> dict[str, str]:
    """Headers of the core, and the one with the constants, for what is compiled beside it."""
    return {name: (_FOLDER / name).read_text(encoding="utf-8") for name in (*names, "constants.h")}


def _mode(given: str | None) -> str:
    """The mode that is asked for."""
    mode = given if given is not None else os.environ.get(VARIABLE) or "auto"
    if mode not in MODES:
        where = "engine" if given is not None else f"the environment variable {VARIABLE}"
        raise InputError(f"{where} is {mode!r}{suggest(mode, MODES)}")
    return mode
