"""The C compiler of a machine: the user's, the system's, or the one that a wheel brings.

``CC`` comes first where it is set, then ``cc``, ``gcc``, ``clang`` and, on Windows, Microsoft's
``cl``, then clang out of the wheel ``ziglang``, which the extra ``compiler`` of this package
installs. A compiler counts when it says its version; one that cannot compile after all (a system
without headers) gives way to the next.
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
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.building.processor import processor

PROGRAMS = ("cc", "gcc", "clang", "cl") if sys.platform == "win32" else ("cc", "gcc", "clang")
WHEEL = "ziglang"
REMEDY = "install a C compiler, or pip install 'casadi_hybrid[compiler]', which brings one"
# Products are never fused with sums, so that results do not hang on the processor. Nobody reads
# errno after a square root, and asking for it costs a call each time; nor the flags of exceptions,
# which forbid to choose between two numbers without a branch.
FLAGS = ("-std=c99", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
_FLAGS_OF_MICROSOFT = ("/nologo", "/std:c11", "/O2", "/fp:precise", "/LD")
# Vectors of four numbers, where the processor has them: a quarter less time in large fronts of the
# sparse factorization under GCC, with the same bits. -march=native gives no more than that, and
# under clang takes four times as long, since it gathers entries one by one.
_WIDE = "-mavx"
# Without a word this compiler makes code for this very processor, and checks undefined behaviour.
_FLAGS_OF_THE_WHEEL = ("-mcpu=baseline", "-fno-sanitize=undefined")
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler that answers.

    Attributes:
        command: the words that call it.
        version: its name and version, as it says them.
        target: what it makes code for (``"x86_64-linux-gnu"``).
        flags: how a shared library is asked for.
    """

    command: tuple[str, ...]
    version: str
    target: str
    flags: tuple[str, ...]

    def words(self, flags: tuple[str, ...], made: str, units: list[str]) -> list[str]:
        """The command that makes a library of C files, with flags as GCC and clang know them."""
        if _is_microsofts(self.command):
            return [*self.command, *self.flags, f"/Fe:{made}", *units]
        return [*self.command, *self.flags, *flags, "-o", made, *units, "-lm"]

    def __str__(self) -> str:
        return f"{self.version} ({shlex.join(self.command)})"


def commands() -> Iterator[tuple[str, ...]]:
    """The compilers that may be there, the first choice first; none of them has been asked yet."""
    seen: set[tuple[str, ...]] = set()
    given = given_command()
    if given:
        seen.add(given)
        yield given
    for program in PROGRAMS:
        path = shutil.which(program)
        # cc is mostly another name of one of the two others.
        if path and (os.path.realpath(path),) not in seen and (path,) not in seen:
            seen.add((os.path.realpath(path),))
            yield (path,)
    if sys.executable and find_spec(WHEEL):
        yield (sys.executable, "-m", WHEEL, "cc")


def given_command() -> tuple[str, ...]:
    """The words of the environment variable CC, the program by its path; empty where unset."""
    try:
        words = shlex.split(os.environ.get("CC", ""))
    except ValueError:  # a quotation that does not end
        words = [os.environ["CC"]]
    return (shutil.which(words[0]) or words[0], *words[1:]) if words else ()


def compiler_of(command: tuple[str, ...]) -> Compiler:
    """The compiler behind a command.

    Raises:
        BuildError: where nothing answers as a C compiler does.
    """
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
    """The first compiler that answers, or None."""
    for command in commands():
        with suppress(BuildError):
            return compiler_of(command)
    return None


def nothing_found() -> str:
    """The sentence for a machine without a compiler."""
    return f"no C compiler was found (looked for {', '.join(PROGRAMS)} and {WHEEL}); {REMEDY}"


@lru_cache
def _version(command: tuple[str, ...]) -> tuple[str, str]:
    if _is_wheel(command):  # it would take a fifth of a second to say so itself
        from importlib import metadata  # noqa: PLC0415 - large, and only for this

        try:
            found = metadata.version(WHEEL)
        except metadata.PackageNotFoundError:
            said = f"{WHEEL} can be imported, but is not installed as a package"
            raise BuildError(said) from None
        return f"{WHEEL} version {found}", f"{platform.machine()}-{sys.platform}"
    called = shlex.join(command)
    if given_command() == command:
        called = f"{called} (the environment variable CC)"
    if command[0].startswith("/usr/bin/") and not _tools_of_apple():
        raise BuildError(f"{called} is a stand-in until Apple's command line tools are installed")
    try:
        # GCC and clang both name version and target under -v, and need no file for it.
        done = subprocess.run(
            [*command, *([] if _is_microsofts(command) else ["-v"])],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=environment(), check=False, timeout=_SECONDS,
        )  # fmt: skip
    except OSError as error:
        raise BuildError(f"{called} cannot be run ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise BuildError(f"{called} did not say its version within {_SECONDS:g} s") from None
    version = re.search(r"^(?!Configured).*\b[Vv]ersion \d.*$", done.stdout, re.MULTILINE)
    if done.returncode or version is None:
        raise BuildError(f"{called} does not answer as a C compiler")
    target = re.search(r"^Target: (.+)$", done.stdout, re.MULTILINE)
    return version[0].strip(), target[1].strip() if target else platform.machine()


def environment() -> dict[str, str]:
    """The variables a compiler runs under: the user's, and messages in English."""
    return {**os.environ, "LC_ALL": "C"}


def _is_microsofts(command: tuple[str, ...]) -> bool:
    return Path(command[0]).stem.lower() == "cl"


def _is_wheel(command: tuple[str, ...]) -> bool:
    return command[1:3] == ("-m", WHEEL)


def _tools_of_apple() -> bool:
    """Return whether cc of macOS is a compiler; a call without the tools opens a window."""
    if sys.platform != "darwin":
        return True
    try:
        done = subprocess.run(
            ["/usr/bin/xcode-select", "-p"], capture_output=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
