"""From C sources to a library in the cache: compiler, processor, cache, build."""

from __future__ import annotations

import sys


class BuildError(RuntimeError):
    """A library could not be built or loaded; the message is a sentence that says why."""


def suffix() -> str:
    """The ending of a shared library's name."""
    return {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
