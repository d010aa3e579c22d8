"""Load the libraries of the package, compiled at its installation: the core and its helpers."""

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
# Folders of the package with C sources.
SOURCES = "core/src", "core/binding/adapter", "core/evaluation/c", "solver/nlpsol/stored"
# Version of the interface; a core with another one is refused.
INTERFACE = C.HYBRID_INTERFACE_VERSION
_loading = Lock()


def load(name: str) -> ctypes.CDLL:
    """Load a library, the version for most of this processor's instructions; raises BuildError."""
    # In a checkout the libraries are compiled again after a change of their sources.
    fault = _brought_up_to_date()
    # Level 3 of x86-64 has AVX2 and FMA. Both versions give the same bits.
    levels = (".v3", "") if name == "hybrid" and _level() >= 3 else ("",)
    paths = [os.path.join(_FOLDER, f"{name}{level}{suffix()}") for level in levels]
    path = next(filter(os.path.isfile, paths), None)
    if path is None:
        raise BuildError(
            f"{_FOLDER} has no library {name!r}; {fault or 'install the package anew'}"
        )
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise BuildError(f"{path} cannot be loaded ({error})") from None


def _level() -> int:
    """Level of x86-64 of this processor, see ``adapter/level.c``."""
    path = os.path.join(_FOLDER, f"hybrid_adapter{suffix()}")
    return int(ctypes.CDLL(path).hybrid_level()) if os.path.isfile(path) else 0


@cache
def _brought_up_to_date() -> str:
    """Compile the libraries of a checkout if a source is newer; return the fault if that fails."""
    hook = os.path.join(os.path.dirname(_PACKAGE), "hatch_build.py")
    stamp = os.path.join(_FOLDER, "stamp")
    if not os.path.isfile(hook):
        return ""
    compiled = os.stat(stamp).st_mtime if os.path.isfile(stamp) else 0.0
    newest = os.stat(hook).st_mtime
    for folder in SOURCES:
        for path, _, names in os.walk(os.path.join(_PACKAGE, folder)):
            sources = [os.path.join(path, name) for name in names if name.endswith((".c", ".h"))]
            newest = max([newest, *(os.stat(source).st_mtime for source in sources)])
    if newest <= compiled:
        return ""
    import subprocess  # noqa: PLC0415 - only after a change

    done = subprocess.run([sys.executable, hook], capture_output=True, text=True, check=False)
    fault = done.stderr.strip()
    # Without an older library load() reports the fault.
    if done.returncode and compiled:
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
    # An older build has structures with other fields, which C would misread.
    if version != INTERFACE:
        raise BuildError(
            f"{loaded._name} has interface {version}, and this package calls interface "
            f"{INTERFACE}; install the package anew"
        )
    return loaded


def engine() -> ctypes.CDLL:
    """Load the core in C once a process, from any thread; raises BuildError."""
    try:
        # functools.cache may run a function twice in two threads, hence the lock.
        with _loading.held:
            return _core()
    except BuildError as error:
        raise BuildError(f"the core in C cannot be had: {error}") from None
