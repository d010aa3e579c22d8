"""What an export needs: it is compiled, run, and its memory and instructions are counted."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.export.export import Case, Export
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.building.compiler import Compiler, environment, find_compiler

STRICT = (
    "-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I.",
)  # fmt: skip
_CALLS = ("-fcallgraph-info=su", "-fstack-usage")
_FRAME = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes \(([\w,]+)')
_EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
_INDIRECT = "__indirect_call"
_SECONDS = 600.0


@dataclass(slots=True)
class Measured:
    """What was measured; a figure that could not be had is None, and :attr:`notes` says why.

    Attributes:
        compiler: and its version.
        seconds: of compiling all files, and of the functions' file alone.
        code: bytes of code and constants by part: core, functions, plan, stored start, interface.
        static: bytes of static memory that is written to, beside a controller.
        controller: bytes of a controller, which you declare.
        stack: bytes of the deepest chain of calls.
        solved: how many of the solves from multipliers were solved, and of how many.
        difference: the largest of any output from Python's, relative to max(1, |output|), of the
            solves that were solved.
        instructions: of the longest solve, and its number in the loop, 0 the stored start.
        cold: status and steps of the solve from a start as it was given, where it is exported.
        cold_instructions: of that solve.
        notes: sentences.
    """

    compiler: str
    seconds: tuple[float, float] = (0.0, 0.0)
    code: dict[str, int] = field(default_factory=dict)
    static: int | None = None
    controller: int | None = None
    stack: int | None = None
    solved: tuple[int, int] = (0, 0)
    difference: float = np.nan
    instructions: tuple[int, int] | None = None
    cold: tuple[int, int] | None = None
    cold_instructions: int | None = None
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        of_all, of_functions = self.seconds
        parts = ", ".join(f"{name} {size}" for name, size in self.code.items())
        most, number = self.instructions or (0, 0)
        status, steps = self.cold or (0, 0)
        ended = "not solved" if status else "solved"
        beside = ", for NAME_solve alone: NAME_step needs none" if self.controller else ""
        rows: dict[str, tuple[Any, str]] = {
            "compiler": (True, self.compiler),
            "compile time": (True, f"{of_all:.1f} s, of it the functions {of_functions:.1f} s"),
            "code and constants": (parts, f"{sum(self.code.values())} bytes: {parts}"),
            "controller": (self.controller, f"{self.controller} bytes, its solvers' memory in it"),
            "static memory": (self.static, f"{self.static} bytes written to{beside}"),
            "stack": (self.stack, f"{self.stack} bytes at most, without the C library's own"),
            "from multipliers": (True, f"solved {self.solved[0]} of {self.solved[1]}"),
            "from Python": (True, f"{self.difference:.2g} at most, relative to max(1, |number|)"),
            "instructions": (
                self.instructions, f"{most} at most, in solve {number} of {self.solved[1] - 1}"
            ),
            "from a cold start": (self.cold, f"{ended}, in {steps} steps"),
            "instructions, cold": (self.cold_instructions, f"{self.cold_instructions}"),
            **{f"note {i}": (True, note) for i, note in enumerate(self.notes, 1)},
        }  # fmt: skip
        known = {name: value for name, (there, value) in rows.items() if there not in (None, "")}
        return "\n".join(f"{name:<18}  {value}" for name, value in known.items())


def measure(export: Export, compiler: Compiler | None = None, count: bool = True) -> Measured:
    """Compile an export with all warnings as errors, run its solves, measure.

    Args:
        export: what was written.
        compiler: by default the first that is found.
        count: whether instructions are counted, which takes some fifty times as long as the solves.

    Raises:
        BuildError: where there is no compiler, or the files do not compile.
    """
    compiler = compiler or find_compiler()
    if compiler is None:
        raise BuildError("there is no C compiler to measure the export with")
    found = Measured(str(compiler), controller=export.controller or None)
    with tempfile.TemporaryDirectory() as folder:
        build = Build(export, compiler, Path(folder))
        build.compile(found)
        build.run(found)
        if count:
            build.count(found)
    return found


class Build:
    """An export compiled by a compiler into a folder."""

    def __init__(self, export: Export, compiler: Compiler, folder: Path) -> None:
        self._export, self._compiler, self._folder = export, compiler, folder
        self._replay = folder / "replay"

    def compile(self, found: Measured) -> None:
        """All files, and what the objects have."""
        export, began = self._export, time.perf_counter()
        # What the compiler needs for itself: nothing for this very processor alone.
        own = (f for f in self._compiler.flags if f.startswith(("-mcpu", "-fno-sanitize")))
        flags = [*STRICT, *own]
        calls = self._knows_calls()
        if calls:
            flags += _CALLS
        else:
            found.notes.append("the stack is not known: this compiler lists no calls, gcc does")
        objects: dict[str, Path] = {}
        of_functions = 0.0
        for file in export.files:
            if file.endswith(".c") and file != "main.c":
                start = time.perf_counter()
                objects[file] = self._object(file, flags)
                if file == f"{export.name}_functions.c":
                    of_functions = time.perf_counter() - start
        self._run([*self._compiler.command, *map(str, objects.values()), "-lm",
                   "-o", str(self._replay)])  # fmt: skip
        found.seconds = time.perf_counter() - began, of_functions
        del objects["replay.c"]
        self._sizes(objects, found)
        if calls:
            texts = [path.with_suffix(".ci").read_text("utf-8") for path in objects.values()]
            programs = [f.removesuffix("_plan.c") for f in export.files if f.endswith("_plan.c")]
            pointed = [f"{name}.c:{word}" for name in programs for word in ("first", "second")]
            entry = "step" if f"{export.name}_control.c" in export.files else "solve"
            found.stack = deepest(texts, f"{export.name}_{entry}", pointed)
            if found.stack is None:
                said = "the stack has no bound: a function calls itself, or its frame varies"
                found.notes.append(said)

    def run(self, found: Measured) -> None:
        """The solves, compared with Python's."""
        answers = self.answers()
        apart = [0.0]
        for case, (status, _, numbers) in zip(self._export.solves, answers, strict=True):
            if status == 0:
                expected = np.concatenate(list(case.outputs().values()))
                size = np.maximum(1.0, np.abs(expected))
                apart.append(float(np.max(np.abs(numbers - expected) / size)))
        found.difference = max(apart)
        if self._export.cold is not None:
            *answers, (status, steps, _) = answers
            found.cold = status, steps
        found.solved = sum(status == 0 for status, _, _ in answers), len(answers)

    def answers(self) -> list[tuple[int, int, Vector]]:
        """Status, steps and numbers of every solve."""
        lines = self._run([str(self._replay)], spoken(self._export.solves)).splitlines()
        rows = [line.split() for line in lines]
        return [(int(row[0]), int(row[1]), np.array(row[2:], dtype=float)) for row in rows]

    def count(self, found: Measured) -> None:
        """Instructions of the longest solve."""
        if shutil.which("valgrind") is None:
            found.notes.append("instructions were not counted: there is no valgrind here")
            return
        name, out = f"{self._export.name}_solve_in", self._folder / "counted"
        self._run(
            ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}",
             f"--toggle-collect={name}", f"--dump-after={name}", str(self._replay)],
            spoken(self._export.solves),
        )  # fmt: skip
        counts = []
        for number in range(1, len(self._export.solves) + 1):
            text = Path(f"{out}.{number}").read_text(encoding="utf-8")
            counted = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            counts.append(int(counted[1]) if counted else 0)
        if self._export.cold is not None:
            found.cold_instructions = counts.pop()
        most = int(np.argmax(counts))
        found.instructions = counts[most], most

    def _object(self, file: str, flags: Sequence[str]) -> Path:
        path = self._folder / Path(file.replace("/", "_")).with_suffix(".o").name
        self._run([*self._compiler.command, *flags, "-c", file, "-o", str(path)])
        return path

    def _knows_calls(self) -> bool:
        probe = self._folder / "probe.c"
        probe.write_text("int probe(void);\nint probe(void) { return 0; }\n", encoding="utf-8")
        try:
            return self._object(str(probe), _CALLS).with_suffix(".ci").exists()
        except BuildError:
            return False

    def _sizes(self, objects: dict[str, Path], found: Measured) -> None:
        if shutil.which("size") is None:
            found.notes.append("sizes of the code are not known: there is no program size here")
            return
        static = 0
        for file, path in objects.items():
            text, data, bss = self._run(["size", str(path)]).splitlines()[1].split()[:3]
            word = file.removesuffix(".c").rpartition("_")[2]
            part = word if word in ("functions", "plan", "stored") else "interface"
            part = "core" if file.startswith("core/") else part
            found.code[part] = found.code.get(part, 0) + int(text)
            # Constants with addresses in them are counted as data by some.
            if file.endswith("_plan.c"):
                found.code[part] += int(data)
                static -= int(data)
            static += int(data) + int(bss)
        found.static = static

    def _run(self, words: Sequence[str], text: str = "") -> str:
        try:
            done = subprocess.run(
                words, input=text, capture_output=True, text=True, check=False,
                cwd=self._export.folder, env=environment(), timeout=_SECONDS,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f"{shlex.join(words)} cannot be run: {error}") from None
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip()
            raise BuildError(f"{shlex.join(words)} ended with {done.returncode}: {said[-2000:]}")
        return done.stdout


def spoken(cases: Sequence[Case]) -> str:
    """The solves as ``replay.c`` reads them."""
    lines = (np.concatenate(list(case.inputs().values())) for case in cases)
    return "\n".join(" ".join(repr(float(number)) for number in line) for line in lines) + "\n"


def deepest(texts: Sequence[str], entry: str, pointed: Sequence[str]) -> int | None:
    """Bytes of stack at most below a function; None where they have no bound.

    Args:
        texts: what ``-fcallgraph-info=su`` wrote.
        entry: the function.
        pointed: the titles of what is called through pointers.
    """
    text = "\n".join(texts)
    listed = _FRAME.findall(text)
    frames = {title: int(size) for title, size, _ in listed}
    calls: dict[str, set[str]] = defaultdict(set)
    for source, target in _EDGE.findall(text):
        calls[source].add(target)
    calls[_INDIRECT] = set(pointed)
    known: dict[str, float] = {}

    def depth(title: str) -> float:
        if title not in known:
            known[title] = np.inf  # what is reached from itself stays so
            known[title] = frames.get(title, 0) + max(map(depth, calls[title]), default=0)
        return known[title]

    bounded = all(kind != "dynamic" for *_, kind in listed)  # as an array of variable length is
    return int(depth(entry)) if bounded and depth(entry) < np.inf else None
