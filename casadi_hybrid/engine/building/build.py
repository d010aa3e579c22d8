"""C sources to a shared library, through the cache.

An entry of the cache is named by a checksum of all that its code depends on: the sources, the
compiler with its version, its target and its flags, the processor's instructions, the C library,
CasADi's version. A home folder may be shared by machines that are unlike in any of these. Where no
compiler is left, as in a container that was built with one, an entry serves that one made of the
same sources. Nothing here knows of the core: the C code of one problem is built the same way.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.engine.building import cache
from casadi_hybrid.engine.building.compiler import (
    BuildError,
    Compiler,
    base_flags,
    commands,
    compiler_of,
    environment,
    nothing_found,
    suffix,
)
from casadi_hybrid.engine.building.processor import processor

# Seconds a compilation may take. The wheel's compiler builds parts of itself at its first use,
# which takes it some fifteen.
LIMIT = 120.0
_FORMAT = 1  # of an entry of the cache
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "MACOSX_DEPLOYMENT_TARGET", "SDKROOT")


@dataclass(frozen=True)
class Sources:
    """The C files of one library.

    Args:
        name: what the library is called, a word.
        files: the text of each file by its plain name. All that end in ``.c`` are compiled
            together, the others are there to be included.
        flags: of the compiler, besides those every library is made with.

    Raises:
        InputError: for a name that is no plain file name, and where no file ends in ``.c``.
    """

    name: str
    files: Mapping[str, str]
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.name, *self.files):
            if not name or name.startswith((".", "-")) or Path(name).name != name:
                raise InputError(f"{name!r} is no plain name of a C source file or a library")
        if not self.units():
            raise InputError(f"the library {self.name!r} has no file whose name ends in .c")

    def units(self) -> list[str]:
        """The files that are compiled, in an order of their own."""
        return sorted(name for name in self.files if name.endswith(".c"))


@dataclass(frozen=True, slots=True)
class Library:
    """A library that was built, now or earlier.

    Attributes:
        path: the file.
        compiler: what built it, name, version and command.
        seconds: what the compilation took.
        cached: whether it was found, not built now.
        notes: sentences about what did not go as it should: a compiler that failed, a cache that
            is not trusted. Empty as a rule.
    """

    path: Path
    compiler: str
    seconds: float
    cached: bool
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Places:
    """The folders a library may be in, the user's cache first, and what is to be said of it."""

    alone: bool
    folders: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        folder, why = (None, "") if self.alone else cache.own_folder()
        if why:
            self.notes.append(f"{why}; the library is built for this process alone")
        if folder is not None:
            self.folders.append(folder)
        if cache.has_private_folder() or folder is None:
            self.folders.append(cache.private_folder())

    def give_up(self, folder: Path, error: OSError) -> None:
        """Go on without a folder that cannot be written to."""
        self.folders.remove(folder)
        if folder == cache.private_folder():
            raise BuildError(f"{folder} cannot be written to ({error.strerror})") from None
        self.notes.append(
            f"the cache folder {folder} cannot be written to ({error.strerror}); the library is "
            "built for this process alone"
        )
        if not self.folders:
            self.folders.append(cache.private_folder())


def library(sources: Sources, *, limit: float = LIMIT, alone: bool = False) -> Library:
    """Find a library in the cache, or build it; the first compiler that can has it.

    Where no compiler answers, one that was built before serves, see :func:`_built_before`.

    Args:
        sources: what it is made of.
        limit: seconds that a compilation may take.
        alone: leave the user's cache and build it for this process.

    Raises:
        BuildError: where there is no compiler, or none that can compile these sources.
    """
    if sys.platform == "win32":
        raise BuildError("the core in C is built on Linux and macOS alone")
    faults: list[str] = []
    answered = False
    try:
        places = _Places(alone)
        for command in commands():
            try:
                compiler = compiler_of(command)
                answered = True
                found, cached = _through_cache(sources, compiler, places, limit)
            except BuildError as error:
                faults.append(str(error))
                continue
            notes = *faults, *places.notes
            return _library(found, cached=cached, compiler=str(compiler), notes=notes)
        before = None if answered else _built_before(sources, places)
        if before is not None:
            made_by = str(before.record["compiler"])
            return _library(before, cached=True, compiler=made_by, notes=tuple(faults))
    except OSError as error:  # not even a folder for temporary files
        raise BuildError(f"no folder to build in can be made ({error.strerror or error})") from None
    if not answered:
        faults.append(nothing_found())
    raise BuildError("; ".join(faults))


def _library(found: cache.Entry, *, cached: bool, compiler: str, notes: tuple[str, ...]) -> Library:
    return Library(found.path, compiler, float(found.record.get("seconds", 0.0)), cached, notes)


def load(sources: Sources, *, limit: float = LIMIT) -> tuple[ctypes.CDLL, Library]:
    """Find or build a library, as :func:`library` does, and load it.

    A library that cannot be loaded from the cache, as from a disk whose files may not be run, is
    built once more for this process.

    Raises:
        BuildError: where it cannot be built or loaded.
    """
    found = library(sources, limit=limit)
    try:
        return ctypes.CDLL(str(found.path)), found
    except OSError as error:
        note = f"{found.path} cannot be loaded ({error})"
    try:
        found = library(sources, limit=limit, alone=True)
    except BuildError as error:
        raise BuildError(f"{note}; {error}") from None
    try:
        loaded = ctypes.CDLL(str(found.path))
    except OSError as error:
        raise BuildError(f"{note}, and neither can {found.path} ({error})") from None
    return loaded, Library(
        found.path, found.compiler, found.seconds, found.cached, (note, *found.notes)
    )


def key_of(sources: Sources, compiler: Compiler) -> str:
    """An entry's name in the cache: the library's, and a checksum of what its code hangs on."""
    here = processor()
    return f"{sources.name}-" + _checksum(
        _FORMAT,
        [sources.name, sorted(sources.files.items()), sources.flags],
        [compiler.command, compiler.version, compiler.target, compiler.flags],
        [os.environ.get(name, "") for name in _ENVIRONMENT],
        [sys.platform, here.machine, here.name, here.features, _c_library()],
        ca.CasadiMeta.version(),
    )


def _content_of(sources: Sources) -> str:
    """A checksum of what code hangs on, but for the compiler and the processor's instructions."""
    return _checksum(
        _FORMAT,
        [sources.name, sorted(sources.files.items()), sources.flags],
        base_flags(),
        [sys.platform, processor().machine, _c_library()],
        ca.CasadiMeta.version(),
    )


def _checksum(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def _built_before(sources: Sources, places: _Places) -> cache.Entry | None:
    """What any compiler made of the same sources; the one used last, where there are several.

    This processor has to have every instruction of the one it was made on: a compiler may have
    used any of them unasked.
    """
    content, here = _content_of(sources), set(processor().features)

    def fits(record: dict[str, Any]) -> bool:
        made_on = record.get("features", [])
        return record.get("content") == content and bool(made_on) and here.issuperset(made_on)

    found = (cache.find(folder, sources.name, fits) for folder in places.folders)
    return next((entry for entry in found if entry is not None), None)


def _c_library() -> str:
    """The C library and its version; a library made for a newer one does not load."""
    if sys.platform != "win32" and "CS_GNU_LIBC_VERSION" in os.confstr_names:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    return " ".join(platform.libc_ver())


def _through_cache(
    sources: Sources, compiler: Compiler, places: _Places, limit: float
) -> tuple[cache.Entry, bool]:
    """The entry of a library, and whether it was there."""
    key = key_of(sources, compiler)
    for folder in places.folders:
        found = cache.take(folder, key)
        if found is not None:
            return found, True
    while True:
        folder = places.folders[0]
        try:
            return _build(sources, compiler, folder, key, limit), False
        except OSError as error:
            places.give_up(folder, error)


def _build(
    sources: Sources, compiler: Compiler, folder: Path, key: str, limit: float
) -> cache.Entry:
    """Compile in a workplace of the cache and put the library into it."""
    work = cache.workplace(folder)
    try:
        for name, text in sources.files.items():
            (work / name).write_text(text, encoding="utf-8")
        made = work / f"{sources.name}{suffix()}"
        command = [*compiler.command, *compiler.flags, *sources.flags]
        command += ["-o", made.name, *sources.units(), "-lm"]
        began = time.perf_counter()
        code, said = _run(command, work, folder, limit)
        seconds = time.perf_counter() - began
        if code or not made.is_file():
            raise BuildError(f"{compiler} cannot compile {sources.name}: {_complaint(said, code)}")
        record = {"seconds": round(seconds, 3), "compiler": str(compiler), "command": command}
        if not compiler.has_options:  # whose effect on the code nobody knows
            record |= {"content": _content_of(sources), "features": processor().features}
        return cache.put(folder, key, made, record)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(command: list[str], work: Path, folder: Path, limit: float) -> tuple[int, str]:
    """Exit code and output of a compiler that runs in ``work``.

    A compiler is several processes. They are a group of their own here, which ends as one.
    """
    variables = {
        **environment(),
        "TMPDIR": str(work),
        # The wheel's compiler keeps what it builds of itself.
        "ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(work / "zig"),
    }
    with tempfile.TemporaryFile("w+", dir=work, encoding="utf-8", errors="replace") as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=work,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise BuildError(f"{command[0]} cannot be run ({error.strerror})") from None
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise BuildError(f"{command[0]} did not end within {limit:g} s") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return code, output.read()


def _complaint(said: str, code: int) -> str:
    """The line of a compiler's output that says most: its first error, else its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    end = f"was ended by signal {-code}" if code < 0 else f"ended with code {code} and no word"
    return (errors[:1] or lines[-1:] or [end])[0]
