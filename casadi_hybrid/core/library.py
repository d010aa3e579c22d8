"""The libraries of the package, compiled when it was installed; the core in C is one of them."""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from functools import cache

from casadi_hybrid.core.header import C
from casadi_hybrid.problem.building import BuildError, suffix
from casadi_hybrid.utils.errors import CompilerWarning
from casadi_hybrid.utils.lock import Lock

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_FOLDER = os.path.join(_PACKAGE, "_lib")
SOURCES = "core/src", "core/binding/adapter", "core/evaluation/c", "solver/nlpsol/stored"
"""The folders of the package with C."""
INTERFACE = C.HYBRID_INTERFACE_VERSION
"""A core with another one is not used."""
_loading = Lock()


def load(name: str) -> ctypes.CDLL:
    """The library of that name, loaded: the one for most of this processor's instructions.

    In a checkout the libraries are made anew where their sources have changed.

    Raises:
        BuildError: where there is none, or it cannot be loaded.
    """
    fault = _brought_up_to_date()
    words = (".v3", "") if name == "hybrid" and _level() >= 3 else ("",)
    paths = (os.path.join(_FOLDER, f"{name}{word}{suffix()}") for word in words)
    found = next(filter(os.path.isfile, paths), None)
    if found is None:
        raise BuildError(
            f"{_FOLDER} has no library {name!r}; {fault or 'install the package anew'}"
        )
    try:
        return ctypes.CDLL(found)
    except OSError as error:
        raise BuildError(f"{found} cannot be loaded ({error})") from None


def _level() -> int:
    """The level of x86-64 that this processor has, as ``adapter/level.c`` says."""
    path = os.path.join(_FOLDER, f"hybrid_adapter{suffix()}")
    return int(ctypes.CDLL(path).hybrid_level()) if os.path.isfile(path) else 0


@cache
def _brought_up_to_date() -> str:
    """Make the libraries of a checkout where a source is newer; why not, where that fails."""
    hook = os.path.join(os.path.dirname(_PACKAGE), "hatch_build.py")
    stamp = os.path.join(_FOLDER, "stamp")
    if not os.path.isfile(hook):
        return ""
    walks = (os.walk(os.path.join(_PACKAGE, name)) for name in SOURCES)
    files = (os.path.join(at, file) for walk in walks for at, _, names in walk for file in names)
    sources = (file for file in files if file.endswith((".c", ".h")))
    made = os.stat(stamp).st_mtime if os.path.isfile(stamp) else 0.0
    if all(os.stat(file).st_mtime <= made for file in (hook, *sources)):
        return ""
    import subprocess  # noqa: PLC0415 - where a source has changed

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


@cache
def _core() -> ctypes.CDLL:
    loaded = C.declare(load("hybrid"))
    version = getattr(loaded, "hybrid_interface_version", lambda: None)()
    if version != INTERFACE:
        raise BuildError(
            f"{loaded._name} has interface {version}, and this package calls interface "
            f"{INTERFACE}; install the package anew"
        )
    return loaded


def engine() -> ctypes.CDLL:
    """The core in C, loaded once a process. Threads may call this at once.

    Raises:
        BuildError: where it cannot be had.
    """
    try:
        with _loading.held:
            return _core()
    except BuildError as error:
        raise BuildError(f"the core in C cannot be had: {error}") from None
