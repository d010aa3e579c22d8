"""``casadi-hybrid doctor``: versions, compiler, cache and core of this machine, with a test."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import re
import stat
import sys
import time
from contextlib import suppress
from timeit import repeat
from typing import Any

import casadi as ca

from casadi_hybrid import __version__
from casadi_hybrid.core.header import C
from casadi_hybrid.core.library import engine
from casadi_hybrid.problem.building import BuildError, cache, suffix
from casadi_hybrid.problem.building.compiler import find_compiler, nothing_found, processor
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.solver import Solver
from casadi_hybrid.utils.linear_algebra.factorization import WITHOUT_FERAL, has_feral
from casadi_hybrid.utils.output.text import aligned, show

_PACKAGES = ("casadi", "numpy", "scipy", "feral-solver")
# Instruction sets that affect sums of numbers, among some hundred others.
_TELLING = ("sse4_2", "avx", "avx2", "fma", "avx512f", "asimd", "neon", "sve", "AdvSIMD")
_REPEATED = 10  # solves; the fastest one is printed


def add_arguments(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "doctor",
        help="versions, compiler, cache and engine of this machine, with a test",
        description="Print versions, processor, compiler, cache and engine, test the engine and "
        "the solver. The exit code is 1 if a part that is present does not work.",
    )
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the table of this machine; return 1 if a part of it does not work."""
    rows: dict[str, str] = {}
    broken: list[str] = []
    _versions(rows)
    _engine(rows, broken)
    _solver(rows, broken)
    verdict = [f"broken: {sentence}" for sentence in broken] or ["everything works"]
    text = "\n".join([*aligned([*rows.items()]), "", *verdict])
    show(text, {"found": rows, "broken": broken} if arguments.json else None)
    return 1 if broken else 0


def _versions(rows: dict[str, str]) -> None:
    rows["casadi_hybrid"] = __version__
    rows["Python"] = f"{platform.python_version()}, {platform.system()} {platform.release()}"
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            rows[name] = importlib.metadata.version(name)
    text = processor()
    named = re.search(r"^(?:model name|machdep.cpu.brand_string)\s*: (.*)", text, re.MULTILINE)
    name = named[1] if named else "unnamed"
    telling = [word for word in _TELLING if re.search(rf"\b{word}\b", text)]
    rows["processor"] = f"{name}, {platform.machine()}, {os.cpu_count()} cores"
    rows["instructions"] = " ".join(telling) or "not known"


def _engine(rows: dict[str, str], broken: list[str]) -> None:
    compiler = find_compiler()
    rows["compiler"] = "none" if compiler is None else f"{compiler}, {compiler.target}"
    rows["cache"] = _cache()
    missing = fault = ""
    try:
        path, fault = engine()._name, self_test(engine())
    except BuildError as error:
        missing = str(error)
        rows["engine"], rows["self-test"] = f"none: {missing}", "none"
        broken.append(missing)
    else:
        target = "x86-64-v3 processors" if ".v3." in os.path.basename(path) else "any processor"
        rows["engine"], rows["self-test"] = f"C, for {target} ({path})", fault or "passed"
    if fault:
        broken.append(f"the engine in C fails its self-test: {fault}")
    drawing = importlib.util.find_spec("matplotlib") is not None
    parts = {
        "export": f"needs the engine in C ({missing})" if missing else "",
        "compiled functions (compile=True), what an export costs": (
            "" if compiler else nothing_found()
        ),
        "verification, derivatives": "" if has_feral() else WITHOUT_FERAL,
        "IPOPT": "" if ca.has_nlpsol("ipopt") else "CasADi cannot load its plugin ipopt",
        "figures": "" if drawing else "matplotlib is not installed",
    }
    rows["available"] = "; ".join(what for what, why in parts.items() if not why) or "nothing"
    lacking = [f"{what}: {why}" for what, why in parts.items() if why]
    rows["not available"] = "; ".join(lacking) or "nothing"


def self_test(core: ctypes.CDLL) -> str:
    """Test that the core rounds products before it subtracts them; return the fault or ``""``."""
    a = 1.0 + 2.0**-30
    # a² = 1 + 2⁻²⁹ + 2⁻⁶⁰ is rounded to 1 + 2⁻²⁹; a fused product keeps 2⁻⁶⁰.
    difference = C.declare(core).hybrid_rounded_difference(a, a, a * a)
    if difference == 0.0:
        return ""
    how = "fused products" if difference == 2.0**-60 else "numbers of another precision"
    return f"its arithmetic is not that of Python: it has {how}, a difference of {difference:.3g}"


def _solver(rows: dict[str, str], broken: list[str]) -> None:
    """Solve a problem of known solution: the point of a disc that is nearest to (2, 0)."""
    x = ca.SX.sym("x", 2)
    began = time.perf_counter()
    try:
        problem = Problem(x=x, f=(x[0] - 2) ** 2 + x[1] ** 2, g=1 - ca.sumsqr(x), lbg=0)
        result = Solver(problem).solve([0.5, 0.5])
        right = result.success and abs(result.x - [1, 0]).max() < 1e-5
        answer = "right" if right else f"wrong: {result.stop}, {result.point}, x = {result.x}"
    except Exception as error:  # noqa: BLE001 - any exception belongs into the table
        right, answer = False, f"{type(error).__name__}: {error}"
    rows["solver"] = f"a small problem: {answer}, {time.perf_counter() - began:.2f} s"
    if not right:
        broken.append(f"the solver fails at a small problem: {answer}")
        return
    solver = Solver(problem)
    seconds = min(repeat(lambda: solver.solve([0.5, 0.5]), number=1, repeat=_REPEATED))
    rows["solver"] += f"; again {seconds * 1e3:.2g} ms"


def _cache() -> str:
    """Folder of the cache, its owner and its content."""
    folder, why = cache.own_folder()
    if folder is None:
        return f"none: {why}"
    status = folder.stat()
    libraries = [path.stat().st_size for path in folder.glob(f"*{suffix()}")]
    owner = "not known"
    if sys.platform != "win32":
        try:
            owner = folder.owner()
        except KeyError:  # a user without a name, as in containers
            owner = f"user {status.st_uid}"
    number = f"{len(libraries)} {'library' if len(libraries) == 1 else 'libraries'}"
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    return f"{folder}, owner {owner}, mode {mode}, {number}, {sum(libraries) / 1e6:.1f} MB"
