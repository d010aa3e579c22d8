"""C sources to a shared library, through the cache.

An entry of the cache is named by a checksum of all that its code depends on: the sources, the
compiler with its version, its target and its flags, the processor's instructions, the C library,
CasADi's version. A home folder may be shared by machines that are unlike in any of these. What is
built here are the functions of problems; the libraries of the package come with it.
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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import casadi as ca

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.problem.building import BuildError, cache, suffix
from casadi_hybrid.problem.building.compiler import (
    Compiler,
    commands,
    compiler_of,
    environment,
    nothing_found,
)
from casadi_hybrid.problem.building.processor import processor

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
        files: the text of each file by its plain name; those that end in ``.c`` are compiled.
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


def library(sources: Sources, *, limit: float = LIMIT, alone: bool = False) -> Path:
    """Find a library in the cache, or build it; the first compiler that can has it.

    Where the user's cache cannot be had or is not to be trusted, or by ``alone``, the library is
    built for this process. A compilation may take ``limit`` seconds.

    Raises:
        BuildError: where there is no compiler, or none that can compile these sources.
    """
    faults: list[str] = []
    answered = False
    try:
        for command in commands():
            try:
                compiler = compiler_of(command)
                answered = True
                return _through_cache(sources, compiler, limit, alone=alone)
            except BuildError as error:
                faults.append(str(error))
    except OSError as error:  # not even a folder for temporary files
        raise BuildError(f"no folder to build in can be made ({error.strerror or error})") from None
    if not answered:
        faults.append(nothing_found())
    raise BuildError("; ".join(faults))


def load(sources: Sources) -> ctypes.CDLL:
    """Find or build a library, as :func:`library` does, and load it.

    One that cannot be loaded from the cache, as from a disk whose files may not be run, is built
    once more for this process.

    Raises:
        BuildError: where it cannot be built or loaded.
    """
    try:
        return ctypes.CDLL(str(library(sources)))
    except OSError:
        path = library(sources, alone=True)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"{path} cannot be loaded ({error})") from None


def key_of(sources: Sources, compiler: Compiler) -> str:
    """An entry's name in the cache: the library's, and a checksum of what its code hangs on."""
    here = processor()
    parts = (
        _FORMAT,
        [sources.name, sorted(sources.files.items()), sources.flags],
        [compiler.command, compiler.version, compiler.target, compiler.flags],
        [os.environ.get(name, "") for name in _ENVIRONMENT],
        [sys.platform, here.machine, here.name, here.features, _c_library()],
        ca.CasadiMeta.version(),
    )
    return f"{sources.name}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]}"


def _c_library() -> str:
    """The C library and its version; a library made for a newer one does not load."""
    if sys.platform != "win32" and "CS_GNU_LIBC_VERSION" in os.confstr_names:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    return " ".join(platform.libc_ver())


def _through_cache(sources: Sources, compiler: Compiler, limit: float, *, alone: bool) -> Path:
    key = key_of(sources, compiler)
    own = None if alone else cache.own_folder()[0]
    private = cache.private_folder() if own is None or cache.has_private_folder() else None
    for folder in filter(None, (own, private)):
        found = cache.take(folder, key)
        if found is not None:
            return found
    if own is not None:
        with suppress(OSError):  # of one that can only be read
            return _build(sources, compiler, own, key, limit)
    return _build(sources, compiler, cache.private_folder(), key, limit)


def _build(sources: Sources, compiler: Compiler, folder: Path, key: str, limit: float) -> Path:
    """Compile in a workplace of the cache and put the library into it."""
    work = cache.workplace(folder)
    try:
        for name, text in sources.files.items():
            (work / name).write_text(text, encoding="utf-8")
        made = work / f"{sources.name}{suffix()}"
        command = compiler.words(sources.flags, made.name, sources.units())
        code, said = _run(command, work, folder, limit)
        if code or not made.is_file():
            raise BuildError(f"{compiler} cannot compile {sources.name}: {_complaint(said, code)}")
        return cache.put(folder, key, made, {"compiler": str(compiler), "command": command})
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
                command, cwd=work, env=variables, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise BuildError(f"{command[0]} cannot be run ({error.strerror})") from None
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise BuildError(f"{command[0]} did not end within {limit:g} s") from None
        finally:
            if process.returncode is None:
                if sys.platform == "win32":
                    process.kill()
                else:
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
