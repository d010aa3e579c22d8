"""What decides a number beside its inputs: versions, and the code of this package."""

from __future__ import annotations

import hashlib
import inspect
import platform
from collections.abc import Callable
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import casadi_hybrid

_LIBRARIES = ("casadi", "numpy", "scipy", "feral-solver")
# Parts of the package that show results or drive a study, and never change a number in it.
_SHOWING = {
    "basics/carriers.py", "basics/parallel.py", "basics/record", "claims", "cli",
    "iterations/log.py", "paper/__init__.py", "paper/experiment.py", "paper/files.py",
    "paper/fitted.py", "paper/norms.py", "paper/printed.py", "paper/reproduce.py",
    "paper/tables.py", "paper/verdicts.py", "plotting.py", "result/report", "study/__init__.py",
    "study/figure.py", "study/population.py", "study/sweep.py", "study/tables.py",
}  # fmt: skip


@cache
def versions() -> dict[str, str]:
    """The versions of this package, of Python and of the libraries that compute."""
    found = {"casadi_hybrid": casadi_hybrid.__version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in _LIBRARIES}


@cache
def software() -> str:
    """The versions and the digest of the code in one line, for a row."""
    parts = [f"{name} {version}" for name, version in versions().items()]
    return "; ".join([*parts, f"code {code_digest()}"])


@cache
def code_digest() -> str:
    """Digest of the package's source without the parts that only show results."""
    root = Path(casadi_hybrid.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        places = {name.as_posix(), *(parent.as_posix() for parent in name.parents)}
        if not places & _SHOWING:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def function_digest(function: Callable[..., Any]) -> str:
    """Digest of the source of a function alone; its name where there is no source."""
    while isinstance(function, partial):
        function = function.func
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = getattr(function, "__qualname__", type(function).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
