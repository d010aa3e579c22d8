"""Names of NumPy's files, and the optional pandas."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from casadi_hybrid.basics.errors import InputError


def npz_path(path: str | Path) -> Path:
    """Return the path of a file in NumPy's format: with the suffix ``.npz``, its folder made."""
    target = Path(path)
    if target.suffix != ".npz":
        target = target.with_name(target.name + ".npz")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def pandas() -> Any:
    """Return the module, which is optional and slow to import.

    Raises:
        InputError: without it; the message says what to install.
    """
    try:
        return import_module("pandas")
    except ImportError:
        raise InputError(
            "to_pandas needs pandas, which is not installed; pip install 'casadi-hybrid[pandas]'"
        ) from None
