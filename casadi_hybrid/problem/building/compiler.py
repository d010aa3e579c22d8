"""Search for a C compiler: the user's, the system's, or the one of a wheel.

The order is the environment variable ``CC``, then ``cc``, ``gcc``, ``clang`` and, on Windows,
Microsoft's ``cl``, then clang of the wheel ``ziglang`` (extra ``compiler`` of this package). A
compiler is accepted if it prints its version. If it cannot compile, for instance without headers,
the next one is tried.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from casadi_hybrid.problem.building import BuildError

PROGRAMS = ("cc", "gcc", "clang", "cl") if sys.platform == "win32" else ("cc", "gcc", "clang")
WHEEL = "ziglang"
REMEDY = "install a C compiler, or pip install 'casadi_hybrid[compiler]', which brings one"
# No fused multiply-add, so that results do not depend on the processor. errno after a square root
# is never read, and costs a call each time. Floating-point traps, never read either, would forbid
# selections without a branch.
FLAGS = ("-std=c99", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
_FLAGS_OF_MICROSOFT = ("/nologo", "/std:c11", "/O2", "/fp:precise", "/LD")
# Vectors of four numbers take a quarter less time in large fronts of the sparse factorization under
# GCC, with the same bits. -march=native is not faster, and four times slower under clang, which
# gathers entries one by one.
_WIDE = "-mavx"
# By default this compiler targets the present processor and checks undefined behaviour.
_FLAGS_OF_THE_WHEEL = ("-mcpu=baseline", "-fno-sanitize=undefined")
_SECONDS = 20.0
_CPUINFO = Path("/proc/cpuinfo")
_LINES = re.compile(r"^(?:model name|flags|Features|isa|Hardware)\s*:.*", re.MULTILINE)
_SYSCTL = "/usr/sbin/sysctl", "machdep.cpu.brand_string", "hw.optional"


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler that prints its version."""

    command: tuple[str, ...]
    version: str
    target: str  # such as "x86_64-linux-gnu"
    flags: tuple[str, ...]  # of a shared library

    def words(self, flags: tuple[str, ...], output: str, units: list[str]) -> list[str]:
        """Command that compiles C files to a library; ``flags`` are those of GCC and clang."""
        if _is_microsofts(self.command):
            return [*self.command, *self.flags, f"/Fe:{output}", *units]
        return [*self.command, *self.flags, *flags, "-o", output, *units, "-lm"]

    def __str__(self) -> str:
        return f"{self.version} ({shlex.join(self.command)})"


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the commands of possible compilers, in the order of preference."""
    seen: set[tuple[str, ...]] = set()
    command = given_command()
    if command:
        seen.add(command)
        yield command
    for program in PROGRAMS:
        path = shutil.which(program)
        # cc is usually a link to one of the two others.
        if path and (os.path.realpath(path),) not in seen and (path,) not in seen:
            seen.add((os.path.realpath(path),))
            yield (path,)
    if sys.executable and find_spec(WHEEL):
        yield (sys.executable, "-m", WHEEL, "cc")


def given_command() -> tuple[str, ...]:
    """Words of the environment variable CC, with the path of the program; empty if unset."""
    try:
        words = shlex.split(os.environ.get("CC", ""))
    except ValueError:  # an unfinished quotation
        words = [os.environ["CC"]]
    return (shutil.which(words[0]) or words[0], *words[1:]) if words else ()


def compiler_of(command: tuple[str, ...]) -> Compiler:
    """Return the compiler of a command; raises a BuildError if it is none."""
    version, target = _version(command)
    if _is_microsofts(command):
        return Compiler(command, version, target, _FLAGS_OF_MICROSOFT)
    shared = {"darwin": ("-fPIC", "-dynamiclib"), "win32": ("-shared",)}
    special = _FLAGS_OF_THE_WHEEL if _is_wheel(command) else ()
    wide = target.startswith("x86_64") and "avx" in processor().split()
    as_library = shared.get(sys.platform, ("-fPIC", "-shared"))
    flags = (*FLAGS, *special, *([_WIDE] if wide else []), *as_library)
    return Compiler(command, version, target, flags)


def find_compiler() -> Compiler | None:
    """Return the first accepted compiler, or None."""
    for command in commands():
        with suppress(BuildError):
            return compiler_of(command)
    return None


def nothing_found() -> str:
    """Sentence for a machine without a compiler."""
    return f"no C compiler was found (looked for {', '.join(PROGRAMS)} and {WHEEL}); {REMEDY}"


@lru_cache
def _version(command: tuple[str, ...]) -> tuple[str, str]:
    """Version and target of a compiler."""
    if _is_wheel(command):  # the command itself needs a fifth of a second
        from importlib import metadata  # noqa: PLC0415 - large, and seldom needed

        try:
            number = metadata.version(WHEEL)
        except metadata.PackageNotFoundError:
            text = f"{WHEEL} can be imported, but is not installed as a package"
            raise BuildError(text) from None
        return f"{WHEEL} version {number}", f"{platform.machine()}-{sys.platform}"
    label = shlex.join(command)
    if given_command() == command:
        label = f"{label} (the environment variable CC)"
    if command[0].startswith("/usr/bin/") and not _tools_of_apple():
        raise BuildError(f"{label} is a stand-in until Apple's command line tools are installed")
    try:
        # GCC and clang print version and target under -v, without an input file.
        process = subprocess.run(
            [*command, *([] if _is_microsofts(command) else ["-v"])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment(),
            check=False,
            timeout=_SECONDS,
        )
    except OSError as error:
        raise BuildError(f"{label} cannot be run ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise BuildError(f"{label} did not say its version within {_SECONDS:g} s") from None
    version = re.search(r"^(?!Configured).*\b[Vv]ersion \d.*$", process.stdout, re.MULTILINE)
    if process.returncode or version is None:
        raise BuildError(f"{label} does not answer as a C compiler")
    target = re.search(r"^Target: (.+)$", process.stdout, re.MULTILINE)
    return version[0].strip(), target[1].strip() if target else platform.machine()


def environment() -> dict[str, str]:
    """Environment of a compiler: the user's, with messages in English."""
    return {**os.environ, "LC_ALL": "C"}


def _is_microsofts(command: tuple[str, ...]) -> bool:
    return Path(command[0]).stem.lower() == "cl"


def _is_wheel(command: tuple[str, ...]) -> bool:
    return command[1:3] == ("-m", WHEEL)


def _tools_of_apple() -> bool:
    """True if cc of macOS is a compiler; without the tools its call opens a window."""
    if sys.platform != "darwin":
        return True
    try:
        process = subprocess.run(
            ["/usr/bin/xcode-select", "-p"], capture_output=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0


@cache
def processor() -> str:
    """Lines with the name and the instruction sets of this processor, if they are known."""
    try:
        if sys.platform == "darwin":
            process = subprocess.run(
                _SYSCTL, check=False, capture_output=True, text=True, timeout=_SECONDS
            )
            return process.stdout
        # Every core has a paragraph; the first one stands for all.
        first, _, _ = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")
        return "\n".join(_LINES.findall(first))
    except (OSError, subprocess.TimeoutExpired):
        return platform.processor()
