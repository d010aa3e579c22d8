"""Hatchling's hook: the C of the package is compiled when a wheel is made, not where it is used.

The compiler is the one that ``CC`` names, else the system's, else clang out of the wheel
``ziglang``, which pip fetches for that. With ``CASADI_HYBRID_TARGET``, one of :data:`TARGETS`, it
is always the latter, for that platform. Nothing of the building machine is in the libraries: the
core comes for any processor and, on x86-64, for x86-64-v3 too, and which one is loaded is decided
where it runs (``casadi_hybrid/core/library.py``).

In a checkout, as an editable installation has it, they lie in ``casadi_hybrid/_lib``. Where a
source is newer than they are, the package runs this file, which makes them anew.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # a checkout whose libraries are made anew
    BuildHookInterface = object

ZIG = "ziglang==0.17.1"
PACKAGE = Path(__file__).resolve().parent / "casadi_hybrid"
CHECKOUT = PACKAGE / "_lib"
# As casadi_hybrid/problem/building/compiler.py has them: results must not hang on the processor.
FLAGS = ("-std=c99", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-s")
V3 = ("-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mf16c", "-mlzcnt", "-mmovbe")
SAME_BITS = tuple(f"-fno-builtin-{name}" for name in ("sin", "cos", "pow", "exp", "log"))
LIBRARIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "hybrid": ("core/src", ("-fvisibility=hidden", f"-I{PACKAGE / 'core/src'}", "-pthread")),
    "hybrid_adapter": ("core/binding/adapter", (f"-I{PACKAGE / 'core/src'}",)),
    "hybrid_blocks": ("core/evaluation/c", SAME_BITS),
    "hybrid_stored": ("solver/nlpsol/stored", ()),
}
# By the platform tag of a wheel: what zig compiles for, and the ending of a library's name.
TARGETS = {
    "manylinux2014_x86_64.manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", ".so"),
    "manylinux2014_aarch64.manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", ".so"),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", ".dylib"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", ".dylib"),
    "win_amd64": ("x86_64-windows-gnu", ".dll"),
}


def given_compiler() -> list[str]:
    """The words that call the compiler of the environment or the system; empty for zig."""
    if os.environ.get("CASADI_HYBRID_TARGET"):
        return []
    words = shlex.split(os.environ.get("CC", ""))
    found = words[0] if words else next(filter(shutil.which, ("cc", "gcc", "clang")), "")
    return [found, *words[1:]] if found else []


def tag_of(compiler: list[str]) -> str:
    """The platform tag of the wheel: the target's, else this machine's."""
    target = os.environ.get("CASADI_HYBRID_TARGET", "")
    if target or compiler:
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        # Apple's Python may run on two processors; what is compiled here is for one of them.
        return target or here.replace("universal2", platform.machine())
    system = {"linux": "manylinux", "darwin": "macosx", "win32": "win"}[sys.platform]
    machine = platform.machine().lower()
    names = {"aarch64", "arm64"} if machine in {"aarch64", "arm64"} else {"x86_64", "amd64"}
    return next(tag for tag in TARGETS if tag.startswith(system) and any(n in tag for n in names))


def build(out: Path, compiler: list[str], tag: str) -> list[Path]:
    """Compile all libraries into a folder; their paths."""
    target, suffix = TARGETS.get(tag, ("", ".dylib" if sys.platform == "darwin" else ".so"))
    plain: list[str] = []
    if not compiler:
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
        plain = ["-mcpu=baseline", "-fno-sanitize=undefined"]
    v3 = "x86_64" in tag or "amd64" in tag
    jobs = []
    for name, (folder, flags) in LIBRARIES.items():
        for level in ("", ".v3") if name == "hybrid" and v3 else ("",):
            path = out / f"{name}{level}{suffix}"
            command = [*compiler, *plain, *FLAGS, *(V3 if level else ()), *flags, "-shared"]
            if suffix != ".dll":
                command += ["-fPIC"]
            if suffix == ".dylib":
                command += [f"-Wl,-install_name,@rpath/{path.name}"]
            files = sorted(str(file) for file in (PACKAGE / folder).rglob("*.c"))
            command += ["-o", str(path), *files, *([] if suffix == ".dll" else ["-lm"])]
            jobs.append((path, command))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, [command for _, command in jobs]))
    return [path for path, _ in jobs]  # and not the import libraries that a linker leaves


def build_in_checkout() -> None:
    """Compile into the checkout; two processes may do so at once.

    Raises:
        RuntimeError: where there is no compiler, or it fails.
    """
    compiler = given_compiler()
    if not compiler and find_spec("ziglang") is None:
        raise RuntimeError("no C compiler was found; install one, or pip install ziglang")
    CHECKOUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CHECKOUT) as folder:
        stamp = Path(folder, "stamp")  # as old as the newest source, and moved last
        stamp.touch()
        sources = (
            file for name, _ in LIBRARIES.values() for file in (PACKAGE / name).rglob("*.[ch]")
        )
        newest = max(file.stat().st_mtime for file in (Path(__file__), *sources))
        os.utime(stamp, (newest, newest))
        for path in (*build(Path(folder), compiler, tag_of(compiler)), stamp):
            path.replace(CHECKOUT / path.name)


def run(command: list[str]) -> None:
    """Run a compiler.

    Raises:
        RuntimeError: with its words where it fails.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}\n{done.stderr}")


class Hook(BuildHookInterface):  # type: ignore[misc]
    """What hatchling calls."""

    def dependencies(self) -> list[str]:
        """Zig where nothing else compiles."""
        return [] if self.target_name != "wheel" or given_compiler() else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the wheel named and filled."""
        if self.target_name != "wheel":
            return
        if version == "editable":
            build_in_checkout()
            return
        compiler = given_compiler()
        tag = tag_of(compiler)
        build_data["pure_python"], build_data["tag"] = False, f"py3-none-{tag}"
        self._folder = Path(tempfile.mkdtemp())
        for path in build(self._folder, compiler, tag):
            build_data["force_include"][str(path)] = f"casadi_hybrid/_lib/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)


if __name__ == "__main__":
    try:
        build_in_checkout()
    except (RuntimeError, OSError) as error:
        sys.exit(str(error))
