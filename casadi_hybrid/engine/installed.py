"""The libraries that came with the package, compiled when its wheel was made."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

from casadi_hybrid.engine.building.build import Library, Sources, load
from casadi_hybrid.engine.building.compiler import BuildError

_FOLDER = Path(__file__).resolve().parents[1] / "_lib"
_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
COMPILER = "the maker of the installed package"


def obtain(sources: Sources) -> tuple[ctypes.CDLL, Library]:
    """The installed library of that name, else the one that is built here.

    Raises:
        BuildError: where there is neither.
    """
    path = _path(sources.name)
    if path is None:
        return load(sources)
    try:
        return ctypes.CDLL(str(path)), Library(path, COMPILER, 0.0, cached=True)
    except OSError as error:
        raise BuildError(f"{path} cannot be loaded ({error})") from None


def _path(name: str) -> Path | None:
    """The file of that name, the one for most of this processor's instructions."""
    levels = (".v3", "") if name == "hybrid" and _level() >= 3 else ("",)
    paths = (_FOLDER / f"{name}{level}{_SUFFIX}" for level in levels)
    return next((path for path in paths if path.is_file()), None)


@cache
def _level() -> int:
    """Of x86-64, as ``adapter/level.c`` says; 0 where no library is installed."""
    path = _FOLDER / f"hybrid_adapter{_SUFFIX}"
    return int(ctypes.CDLL(str(path)).hybrid_level()) if path.is_file() else 0
