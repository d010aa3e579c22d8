"""The folder in which compiled libraries are kept, one small folder for each.

An entry holds a library and a record with its checksum. It is filled under another name and then
renamed, which happens at once or not at all: two processes may make the same entry, and what one
that was killed leaves behind is no entry. A library is code that will be run, so the folder must
be the user's own, and nobody else may write to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

VARIABLE = "CASADI_HYBRID_CACHE"
_NAME = "casadi_hybrid"
_RECORD = "record.json"
_WORK = ".work-"
# What a killed process left is removed after an hour, and a library that nobody used for long:
# each version of the package, of CasADi and of a compiler leaves one of its own.
_LEFT, _UNUSED = 3600.0, 90 * 86400.0


def default_folder() -> Path:
    """Where the cache should be, whether it is there or not.

    Raises:
        OSError: where the system knows no home folder.
    """
    given = os.environ.get(VARIABLE, "")
    if given:
        return Path(os.path.abspath(os.path.expanduser(given)))
    try:
        home = Path.home()
    except RuntimeError:
        raise OSError("no home folder is known") from None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / _NAME
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / _NAME
    # The standard for such folders takes no heed of a relative one.
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else home / ".cache") / _NAME


def own_folder() -> tuple[Path | None, str]:
    """The user's cache, made where it is missing; else None, and the sentence that says why."""
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
    """Why a folder is no place for code, such as ``"belongs to user 0, not to …"``; else empty.

    Raises:
        OSError: where the folder is not there or cannot be looked at.
    """
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        return "is no folder"
    if sys.platform == "win32":  # where a mode does not say who may write
        return ""
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, not to this one ({os.geteuid()})"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written to by others (its mode is {stat.S_IMODE(found.st_mode):04o})"
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        # Whoever may write to a folder above, and no sticky bit forbids it, may put another here.
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"lies in {parent}, to which everyone may write"
    return ""


def _make(folder: Path) -> None:
    """The folder and those above it, for this user alone."""
    above = folder
    missing = []
    while not above.exists():
        missing.append(above)
        above = above.parent
    # The superuser with another user's HOME, as sudo leaves it, would lock that user out.
    if (
        sys.platform != "win32"
        and os.geteuid() == 0
        and above.stat().st_uid != 0
        and not os.environ.get(VARIABLE)
    ):
        raise OSError(f"{above} belongs to another user")
    for path in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            path.mkdir(mode=0o700)


@lru_cache(maxsize=1)
def private_folder() -> Path:
    """A folder for this process alone, which is removed when it ends."""
    folder = Path(tempfile.mkdtemp(prefix=f"{_NAME}_"))
    from multiprocessing.util import Finalize  # noqa: PLC0415 - large, and seldom needed

    # Unlike atexit, this knows the ends of processes that multiprocessing started, and leaves a
    # parent's folder to the parent.
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=0)
    return folder


def has_private_folder() -> bool:
    """Whether this process has made its own."""
    return private_folder.cache_info().currsize > 0


def take(folder: Path, key: str) -> Path | None:
    """The library of an entry; None where there is none, or where it is not what was put there."""
    place = folder / key
    try:
        if distrust(place):
            return None
        record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
        path = place / str(record["file"])
        if record["sha256"] != checksum(path):
            return None
        with suppress(OSError):  # a folder that can be read alone serves as well
            os.utime(place)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return path


def workplace(folder: Path) -> Path:
    """A new folder within the cache to make an entry in; whoever asks for it removes it.

    Raises:
        OSError: where the cache cannot be written to.
    """
    _sweep(folder)
    return Path(tempfile.mkdtemp(prefix=_WORK, dir=folder))


def put(folder: Path, key: str, library: Path, record: dict[str, Any]) -> Path:
    """Move a library out of a workplace into the cache, or take the one another process made.

    Raises:
        OSError: where the cache cannot be written to.
    """
    place = library.parent / key
    place.mkdir(mode=0o700)
    record = {**record, "file": library.name, "sha256": checksum(library)}
    library.rename(place / library.name)
    (place / _RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
    for last in (False, True):
        try:
            place.rename(folder / key)
            break
        except OSError:
            found = take(folder, key)
            if found is not None:
                return found
            if last:
                raise
            with suppress(FileNotFoundError):  # a damaged entry; gone already is as good
                (folder / key).rename(library.parent / "damaged")
    return folder / key / library.name


def _sweep(folder: Path) -> None:
    """Remove what killed processes left and what was not used for long; nothing is owed here."""
    now = time.time()
    with suppress(OSError):
        for place in folder.iterdir():
            with suppress(OSError):
                age = now - place.stat().st_mtime
                left = place.name.startswith(_WORK) and age > _LEFT
                if left or ((place / _RECORD).exists() and age > _UNUSED):
                    shutil.rmtree(place, ignore_errors=True)


def entries(folder: Path) -> tuple[int, int]:
    """How many libraries a cache holds, and how many bytes all its files have."""
    libraries = size = 0
    for place, _, names in os.walk(folder):
        libraries += names.count(_RECORD)
        for name in names:
            with suppress(OSError):  # another process may remove what it worked with
                size += os.stat(os.path.join(place, name)).st_size
    return libraries, size


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
