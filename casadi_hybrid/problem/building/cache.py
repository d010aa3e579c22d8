"""Cache of compiled libraries in a folder of the user, one file each.

A library is executed later, so the folder must belong to the user, and nobody else may write to
it. Only complete files are moved there: two processes may build the same library.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import platformdirs

from casadi_hybrid.problem.building import suffix

VARIABLE = "CASADI_HYBRID_CACHE"
_NAME = "casadi_hybrid"
_WORK = ".work-"
_ENTRY = re.compile(r".+-[0-9a-f]{40}(\.\w+)?")  # no suffix: a folder of older versions
# Age in seconds after which leftovers are removed: temporary folders of killed processes, and
# unused libraries of other versions of the package, of CasADi and of compilers.
_ABANDONED, _UNUSED = 3600.0, 90 * 86400.0


def default_folder() -> Path:
    """Path of the cache, which need not exist; raises an OSError without a home folder."""
    path = os.environ.get(VARIABLE, "")
    if path:
        return Path(os.path.abspath(os.path.expanduser(path)))
    folder = Path(platformdirs.user_cache_dir(_NAME, appauthor=False))
    if not folder.is_absolute():
        raise OSError(f"the cache folder {folder} is not absolute; set {VARIABLE}")
    return folder


def own_folder() -> tuple[Path | None, str]:
    """Return the user's cache, created if missing; or None and the reason in a sentence."""
    try:
        folder = default_folder()
    except OSError as error:
        return None, str(error)
    try:
        if not folder.exists():
            _make(folder)
        why = distrust(folder)
    except OSError as error:
        why = f"cannot be made ({error.strerror or error})"
    return (None, f"the cache folder {folder} {why}") if why else (folder, "")


def distrust(folder: Path) -> str:
    """Reason to distrust a folder, such as ``"belongs to user 0"``; empty if it is trusted."""
    if sys.platform == "win32":  # file modes do not describe the permissions there
        return ""
    status = folder.stat()
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}, not to this one ({os.geteuid()})"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written to by others (its mode is {stat.S_IMODE(status.st_mode):04o})"
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        # Without a sticky bit, anyone who may write to a parent can replace the folder.
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"lies in {parent}, to which everyone may write"
    return ""


def _make(folder: Path) -> None:
    """Make the folder and its parents for this user alone."""
    missing, above = [], folder
    while not above.exists():
        missing.append(above)
        above = above.parent
    # Under sudo HOME may belong to another user, whom a folder of the superuser would lock out.
    superuser = sys.platform != "win32" and os.geteuid() == 0 and not os.environ.get(VARIABLE)
    if superuser and above.stat().st_uid != 0:
        raise OSError(f"{above} belongs to another user")
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


@cache
def private_folder() -> Path:
    """Folder for this process alone, removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix=f"{_NAME}_"))
    from multiprocessing.util import Finalize  # noqa: PLC0415 - large, and seldom needed

    # Unlike atexit, this also runs in processes of multiprocessing, and not in forked children.
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=0)
    return folder


def take(folder: Path, key: str) -> Path | None:
    """Return the library of a key; None if missing."""
    path = folder / f"{key}{suffix()}"
    if not path.is_file():
        return None
    with suppress(OSError):  # a read-only folder
        # The time of the last use, by which _sweep() finds unused libraries.
        os.utime(path)
    return path


def workplace(folder: Path) -> Path:
    """Make a temporary folder in the cache, which the caller removes."""
    _sweep(folder)
    return Path(tempfile.mkdtemp(prefix=_WORK, dir=folder))


def put(folder: Path, key: str, library: Path) -> Path:
    """Move a library into the cache, and return its path there."""
    path = folder / f"{key}{suffix()}"
    library.chmod(0o700)
    with library.open("r+b") as file:  # half a file, after a power cut, would crash its user
        os.fsync(file.fileno())
    try:
        # Atomic, since both paths lie on one disk: nobody loads half a library.
        library.replace(path)
    except PermissionError:  # Windows, if another process has built and loaded the same library
        if not path.is_file():
            raise
    return path


def _sweep(folder: Path) -> None:
    """Remove temporary folders of killed processes, and libraries unused for long."""
    now = time.time()
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                age = now - path.stat().st_mtime
                abandoned = path.name.startswith(_WORK) and age > _ABANDONED
                if abandoned or (_ENTRY.fullmatch(path.name) and age > _UNUSED):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
