"""Names of files, and modules that are optional."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from casadi_hybrid.utils.errors import InputError


def npz_path(path: str | Path) -> Path:
    """Return the path of a file in NumPy's format: with the suffix ``.npz``, its folder made."""
    target = Path(path)
    if target.suffix != ".npz":
        target = target.with_name(target.name + ".npz")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def pandas() -> Any:
    """Return the module, which is optional and slow to import."""
    return optional("pandas", "to_pandas", "pandas")


def optional(module: str, user: str, extra: str) -> Any:
    """Return a module that an extra of this package installs.

    Raises:
        InputError: without the module; the message names its user, and what to install.
    """
    try:
        return import_module(module)
    except ImportError:
        raise InputError(
            f"{user} needs {module}, which is not installed; pip install 'casadi-hybrid[{extra}]'"
        ) from None
