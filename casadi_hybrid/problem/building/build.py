"""Compilation of C sources to a shared library in the cache.

A library is named by a checksum of everything that determines its code: the sources, the compiler
with its version, target and flags, the processor's instructions, the C library, CasADi's version.
So different machines can share a home folder.
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
    processor,
)

# Largest seconds of a compilation; the wheel's compiler first builds itself in about fifteen.
LIMIT = 120.0
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "MACOSX_DEPLOYMENT_TARGET", "SDKROOT")


@dataclass(frozen=True)
class Sources:
    """The C files of one library; those with the suffix ``.c`` are compiled."""

    name: str  # first word of the library's file name
    files: Mapping[str, str]  # texts by file name
    flags: tuple[str, ...] = ()  # besides those of every library


def library(sources: Sources, *, limit: float = LIMIT, alone: bool = False) -> Path:
    """Find a library in the cache, or build it; ``alone``: for this process alone."""
    # A compiler that answers may still fail, as one without headers does: then the next one.
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
    except OSError as error:  # no folder for temporary files
        raise BuildError(f"no folder to build in can be made ({error.strerror or error})") from None
    if not answered:
        faults.append(nothing_found())
    raise BuildError("; ".join(faults))


def load(sources: Sources) -> ctypes.CDLL:
    """Find or build a library as :func:`library` does, and load it, or raise a BuildError."""
    path = library(sources)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        # The file is damaged, or its disk forbids execution.
        with suppress(OSError):
            path.unlink()
        path = library(sources, alone=True)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"{path} cannot be loaded ({error})") from None


def key_of(sources: Sources, compiler: Compiler) -> str:
    """Name of a library in the cache, with a checksum of everything that determines its code."""
    parts = (
        [sources.name, sorted(sources.files.items()), sources.flags],
        [compiler.command, compiler.version, compiler.target, compiler.flags],
        [os.environ.get(name, "") for name in _ENVIRONMENT],
        [sys.platform, platform.machine(), processor(), " ".join(platform.libc_ver())],
        ca.CasadiMeta.version(),
    )
    return f"{sources.name}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]}"


def _through_cache(sources: Sources, compiler: Compiler, limit: float, *, alone: bool) -> Path:
    key = key_of(sources, compiler)
    folder = None if alone else cache.own_folder()[0]
    if folder is not None:
        with suppress(OSError):  # a read-only cache
            return cache.take(folder, key) or _build(sources, compiler, folder, key, limit)
    private = cache.private_folder()
    return cache.take(private, key) or _build(sources, compiler, private, key, limit)


def _build(sources: Sources, compiler: Compiler, folder: Path, key: str, limit: float) -> Path:
    """Compile in a temporary folder of the cache, and move the library into the cache."""
    work = cache.workplace(folder)
    try:
        for name, text in sources.files.items():
            (work / name).write_text(text, encoding="utf-8")
        product = work / f"{sources.name}{suffix()}"
        units = sorted(name for name in sources.files if name.endswith(".c"))
        code, output = _run(compiler.words(sources.flags, product.name, units), work, folder, limit)
        if code or not product.is_file():
            complaint = _complaint(output, code)
            raise BuildError(f"{compiler} cannot compile {sources.name}: {complaint}")
        return cache.put(folder, key, product)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(command: list[str], work: Path, folder: Path, limit: float) -> tuple[int, str]:
    """Run a compiler in the folder ``work``; return its exit code and its output."""
    variables = {
        **environment(),
        "TMPDIR": str(work),
        # The wheel's compiler builds its own libraries at the first use.
        "ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(work / "zig"),
    }
    # A file, since a full pipe would block the compiler while nobody reads it.
    with tempfile.TemporaryFile("w+", dir=work, encoding="utf-8", errors="replace") as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=work,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # all its processes can be ended together
            )
        except OSError as error:
            raise BuildError(f"{command[0]} cannot be run ({error.strerror})") from None
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise BuildError(f"{command[0]} did not end within {limit:g} s") from None
        finally:
            if process.returncode is None:  # end the whole group of the compiler's processes
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
