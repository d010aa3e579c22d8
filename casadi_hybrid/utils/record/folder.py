"""Check of an output folder before the work."""

from __future__ import annotations

import os
from pathlib import Path

from casadi_hybrid.utils.errors import InputError


def writable(folder: Path) -> Path:
    """Make the folder where it is missing and try to write there.

    Raises:
        InputError: with the reason of a failure.
    """
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{folder} cannot be written to: {reason}; name another folder") from None
    return folder
