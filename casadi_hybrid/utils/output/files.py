"""Output files: folders, formats of figures, and optional modules that write files."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from typing import Any

from casadi_hybrid.utils.errors import InputError

FIGURES = ("png", "svg", "pdf")


def add_figures(parser: ArgumentParser) -> None:
    """Add ``--figures`` to the options of a command that writes figures."""
    parser.add_argument(
        "--figures",
        choices=FIGURES,
        default=FIGURES[0],
        help="format of the figures (default: png; svg and pdf for print and for editing)",
    )


def writable(folder: Path) -> Path:
    """Make the folder if it is missing, and try to write there; raises InputError."""
    # Permission bits tell little about network folders and full disks.
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{folder} cannot be written to: {reason}; name another folder") from None
    return folder


def npz_path(path: str | Path) -> Path:
    """Return the path with the suffix ``.npz``, and make its folder."""
    target = Path(path)
    if target.suffix != ".npz":
        target = target.with_name(target.name + ".npz")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def pandas() -> Any:
    """Return the module, which is optional and slow to import."""
    return optional("pandas", "to_pandas", "pandas")


def optional(module: str, user: str, extra: str) -> Any:
    """Return a module that an extra of this package installs; raises InputError without it."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(
            f"{user} needs {module}, which is not installed; pip install 'casadi-hybrid[{extra}]'"
        ) from None
