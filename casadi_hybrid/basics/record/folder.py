"""A folder to write to: checked before the work, and of one run at a time."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import IO

from casadi_hybrid.basics.errors import InputError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOCK = ".lock"
_FAR = 1 << 30  # on Windows nobody else can read what is locked: a byte beyond the file's end


def writable(folder: Path) -> Path:
    """Make the folder where it is missing and try to write there.

    Raises:
        InputError: where that fails, with the reason.
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


class Lock:
    """Holds a folder for one run; the system lets it go when the process ends, however it does.

    Raises:
        InputError: where another run has it, with the number of its process.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / _LOCK).open("a+", encoding="utf-8")
        try:
            _lock(self._file)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise InputError(
                f"{folder} is in use by {holder}; wait until it is done, or name another folder"
            ) from None
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
        self._file.flush()

    def close(self) -> None:
        """Let it go."""
        self._file.close()


def _lock(file: IO[str]) -> None:
    """Raises OSError where another process has it."""
    if sys.platform == "win32":
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
