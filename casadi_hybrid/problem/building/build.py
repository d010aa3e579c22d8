"""The functions of a problem, as C, built into a shared library through the cache.

A library is named by a checksum of everything that its code depends on: the sources, the compiler
with its version, target and flags, the processor's instructions, the C library, CasADi's version.
Machines that differ in any of these may share a home folder.
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

from casadi_hybrid.problem.building import BuildError, cache, suffix
from casadi_hybrid.problem.building.compiler import (
    Compiler,
    commands,
    compiler_of,
    environment,
    nothing_found,
)
from casadi_hybrid.problem.building.processor import processor

LIMIT = 120.0
"""Seconds a compilation may take; the wheel's compiler first builds itself for some fifteen."""
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "MACOSX_DEPLOYMENT_TARGET", "SDKROOT")


@dataclass(frozen=True)
class Sources:
    """The C files of one library.

    Args:
        name: a word, with which the file's name begins.
        files: the text of each file by its name; files that end in ``.c`` are compiled.
        flags: of the compiler, besides those every library is made with.
    """

    name: str
    files: Mapping[str, str]
    flags: tuple[str, ...] = ()


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

    A library of the cache that cannot be loaded is removed and built for this process: it is
    damaged, or the disk does not let files run.

    Raises:
        BuildError: if it cannot be built or loaded.
    """
    path = library(sources)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        with suppress(OSError):
            path.unlink()
        path = library(sources, alone=True)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"{path} cannot be loaded ({error})") from None


def key_of(sources: Sources, compiler: Compiler) -> str:
    """Name of a library in the cache: its own, and a checksum of what its code depends on."""
    parts = (
        [sources.name, sorted(sources.files.items()), sources.flags],
        [compiler.command, compiler.version, compiler.target, compiler.flags],
        [os.environ.get(name, "") for name in _ENVIRONMENT],
        [sys.platform, platform.machine(), processor(), _c_library()],
        ca.CasadiMeta.version(),
    )
    return f"{sources.name}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]}"


def _c_library() -> str:
    """Name and version of the C library; code made for a newer one does not load."""
    if sys.platform != "win32" and "CS_GNU_LIBC_VERSION" in os.confstr_names:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    return " ".join(platform.libc_ver())


def _through_cache(sources: Sources, compiler: Compiler, limit: float, *, alone: bool) -> Path:
    key = key_of(sources, compiler)
    own = None if alone else cache.own_folder()[0]
    if own is not None:
        with suppress(OSError):  # a cache that is read-only
            return cache.take(own, key) or _build(sources, compiler, own, key, limit)
    private = cache.private_folder()
    return cache.take(private, key) or _build(sources, compiler, private, key, limit)


def _build(sources: Sources, compiler: Compiler, folder: Path, key: str, limit: float) -> Path:
    """Compile in a workplace of the cache and put the library into it."""
    work = cache.workplace(folder)
    try:
        for name, text in sources.files.items():
            (work / name).write_text(text, encoding="utf-8")
        made = work / f"{sources.name}{suffix()}"
        units = sorted(name for name in sources.files if name.endswith(".c"))
        code, output = _run(compiler.words(sources.flags, made.name, units), work, folder, limit)
        if code or not made.is_file():
            complaint = _complaint(output, code)
            raise BuildError(f"{compiler} cannot compile {sources.name}: {complaint}")
        return cache.put(folder, key, made)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(command: list[str], work: Path, folder: Path, limit: float) -> tuple[int, str]:
    """Return exit code and output of a compiler that runs in ``work``.

    A compiler is several processes, here a group, which ends as one.
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


def _complaint(output: str, code: int) -> str:
    """Return the first error in a compiler's output, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    end = f"was ended by signal {-code}" if code < 0 else f"ended with code {code} and no word"
    return (errors[:1] or lines[-1:] or [end])[0]
