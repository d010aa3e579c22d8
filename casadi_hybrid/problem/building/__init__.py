"""Compilation of C sources to a library in the cache: compiler, cache, build."""

from __future__ import annotations

import sys


class BuildError(RuntimeError):
    """Failure to build or load a library; the message is a sentence with the reason."""


def suffix() -> str:
    """File name suffix of a shared library."""
    return {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
