"""Compile an export, run it, and compare its answers with Python's."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.core.export.export import Case, Export
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.building import compiler as compilers
from casadi_hybrid.problem.building.compiler import Compiler
from casadi_hybrid.utils.inputs import Vector

_WARNINGS = "-Wall", "-Wextra", "-Werror", "-pedantic"
STRICT = "-std=c99", "-O2", "-ffp-contract=off", *_WARNINGS, "-I."
# A section for each function, so that the linker can leave out those that are not called.
SECTIONS = "-ffunction-sections", "-fdata-sections"
GARBAGE = "-Wl,-dead_strip" if sys.platform == "darwin" else "-Wl,--gc-sections"
_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Solves in C beside those in Python."""

    compiler: str  # name and version
    solved: tuple[int, int]  # solves from multipliers that were solved, and all of them
    # Largest difference of a solved output from Python's, relative to max(1, |output|).
    difference: float
    # Status and steps of the solve from the user's start; None if it is not exported.
    cold: tuple[int, int] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"compiler            {self.compiler}",
            f"from multipliers    solved {self.solved[0]} of {self.solved[1]}",
            f"from Python         {self.difference:.2g} at most, relative to max(1, |number|)",
        ]
        if self.cold is not None:
            status, steps = self.cold
            ended = "not solved" if status else "solved"
            lines.append(f"from a cold start   {ended}, in {steps} steps")
        return "\n".join(lines)


def compare(export: Export, compiler: Compiler | None = None) -> Comparison:
    """Compile an export with all warnings as errors, run its solves, compare with Python.

    Args:
        export: the files, and the solves with Python's answers.
        compiler: the first one of this machine by default.

    Raises:
        BuildError: if there is no compiler, or the files do not compile.
    """
    compiler = compiler or compilers.find_compiler()
    if compiler is None:
        raise BuildError(compilers.nothing_found())
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "replay"
        sources = [file for file in export.files if file.endswith(".c") and file != "main.c"]
        # main.c has a main of its own; replay.c reads the solves from its input.
        arguments = [*flags_of(compiler), *sources, "-lm", GARBAGE, "-o", str(program)]
        run([*compiler.command, *arguments], export.folder)
        rows = replayed(program, export.solves)
    differences = [0.0]
    for case, (status, _, numbers) in zip(export.solves, rows, strict=True):
        if status == 0:
            expected = np.concatenate(list(case.outputs().values()))
            # Absolute below 1, relative above.
            size = np.maximum(1.0, np.abs(expected))
            differences.append(float(np.max(np.abs(numbers - expected) / size)))
    cold = None if export.cold is None else rows.pop()[:2]
    solved = sum(status == 0 for status, _, _ in rows)
    return Comparison(str(compiler), (solved, len(rows)), max(differences), cold)


def flags_of(compiler: Compiler) -> list[str]:
    """Strict flags, and this compiler's flags for portable code."""
    portable = [f for f in compiler.flags if f.startswith(("-mcpu", "-fno-sanitize"))]
    return [*STRICT, *SECTIONS, *portable]


def replayed(program: Path, cases: Sequence[Case]) -> list[tuple[int, int, Vector]]:
    """Status, steps and numbers of every solve, by the program of ``replay.c``."""
    rows = [line.split() for line in run([str(program)], program.parent, spoken(cases)).split("\n")]
    return [(int(row[0]), int(row[1]), np.array(row[2:], dtype=float)) for row in rows if row]


def spoken(cases: Sequence[Case]) -> str:
    """The solves as ``replay.c`` reads them."""
    lines = (np.concatenate(list(case.inputs().values())) for case in cases)
    # repr has the shortest digits that read back the same double.
    return "\n".join(" ".join(repr(float(number)) for number in line) for line in lines) + "\n"


def run(words: Sequence[str], folder: Path, text: str = "") -> str:
    """Run a program in a folder and return what it prints; raise BuildError with its message."""
    try:
        done = subprocess.run(
            words,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=compilers.environment(),
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{shlex.join(words)} cannot be run: {error}") from None
    if done.returncode:
        message = done.stderr.strip() or done.stdout.strip()
        raise BuildError(f"{shlex.join(words)} ended with {done.returncode}: {message[-2000:]}")
    return done.stdout
