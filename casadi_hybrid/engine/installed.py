"""The libraries of the package, compiled when it was installed, and CasADi's own."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import casadi as ca

from casadi_hybrid.basics.errors import CompilerWarning
from casadi_hybrid.building import BuildError, suffix

_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDER = _PACKAGE / "_lib"
SOURCES = "engine/c", "engine/adapter", "engine/blocks/c", "casadi_api/stored"
"""The folders of the package with C."""
LEVELS = {3: ".v3", 0: ""}
"""By levels of x86-64 the words in the names of libraries made for them; 0 is any processor."""


def path_of(name: str) -> Path:
    """The library of that name, the one for most of this processor's instructions.

    In a checkout the libraries are made anew where their sources have changed.

    Raises:
        BuildError: where there is none.
    """
    fault = _brought_up_to_date()
    levels = [word for level, word in LEVELS.items() if name == "hybrid" and level <= _level()]
    paths = (_FOLDER / f"{name}{word}{suffix()}" for word in levels or [""])
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        raise BuildError(
            f"{_FOLDER} has no library {name!r}; {fault or 'install the package anew'}"
        )
    return found


def load(name: str) -> ctypes.CDLL:
    """The library of that name, loaded.

    Raises:
        BuildError: where there is none, or it cannot be loaded.
    """
    path = path_of(name)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"{path} cannot be loaded ({error})") from None


def of_casadi(name: str = "libcasadi") -> ctypes.CDLL:
    """CasADi's C++: what Python has loaded, or, on Windows, a library beside that.

    Raises:
        OSError: where there is none.
    """
    path = Path(ca._casadi.__file__)
    return ctypes.CDLL(str(path.with_name(f"{name}.dll") if sys.platform == "win32" else path))


@cache
def _level() -> int:
    """The level of x86-64 that this processor has, as ``adapter/level.c`` says."""
    path = _FOLDER / f"hybrid_adapter{suffix()}"
    return int(ctypes.CDLL(str(path)).hybrid_level()) if path.is_file() else 0


@cache
def _brought_up_to_date() -> str:
    """Make the libraries of a checkout where a source is newer; why not, where that fails."""
    hook, stamp = _PACKAGE.parent / "hatch_build.py", _FOLDER / "stamp"
    if not hook.is_file():
        return ""
    sources = (file for name in SOURCES for file in (_PACKAGE / name).rglob("*.[ch]"))
    made = stamp.stat().st_mtime if stamp.is_file() else 0.0
    if all(file.stat().st_mtime <= made for file in (hook, *sources)):
        return ""
    done = subprocess.run([sys.executable, hook], capture_output=True, text=True, check=False)
    fault = done.stderr.strip()
    if done.returncode and made:
        warnings.warn(
            f"the C sources in {_PACKAGE} have changed, and the libraries in {_FOLDER} are those "
            f"of before, since they cannot be compiled: {fault}",
            CompilerWarning,
            stacklevel=2,
        )
    return fault if done.returncode else ""
