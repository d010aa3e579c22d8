"""Versions of the libraries and digests of the code that decide a study's numbers."""

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


@cache
def versions() -> dict[str, str]:
    """Return the versions of this package, of Python and of the libraries that compute."""
    here = {"casadi_hybrid": casadi_hybrid.__version__, "python": platform.python_version()}
    return here | {name: metadata.version(name) for name in _LIBRARIES}


@cache
def software() -> str:
    """Return the versions and the digest of the code in one line."""
    parts = [f"{name} {version}" for name, version in versions().items()]
    return "; ".join([*parts, f"code {code_digest()}"])


@cache
def code_digest() -> str:
    """Return a digest of the package's source."""
    root = Path(casadi_hybrid.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.*")):
        if path.suffix in {".py", ".c", ".h"}:
            name = path.relative_to(root).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def function_digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function's source; of its name if it has no source."""
    while isinstance(function, partial):
        function = function.func
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = getattr(function, "__qualname__", type(function).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
