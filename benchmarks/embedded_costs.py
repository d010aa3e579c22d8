"""Costs of an exported solver: flash, stack and instructions, as far as this machine has the tools.

Flash is counted by ``size`` after the linker has left out what is not called, the stack from the
call graph that GCC writes, and instructions under valgrind.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from casadi_hybrid.core.export.compare import GARBAGE, flags_of, run, spoken
from casadi_hybrid.core.export.export import Export
from casadi_hybrid.problem.building.compiler import Compiler

CALLS = ("-fcallgraph-info=su", "-fstack-usage")
FRAME = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes \(([\w,]+)')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
INDIRECT = "__indirect_call"


@dataclass(frozen=True)
class Costs:
    """Costs of one solver; None where a tool is missing.

    Attributes:
        seconds: of compiling.
        flash: bytes of code and constants.
        stack: bytes of the deepest chain of calls.
        instructions: of every solve of the export.
    """

    seconds: float
    flash: int | None
    stack: int | None
    instructions: list[int] | None


def costs(export: Export, compiler: Compiler, folder: Path) -> Costs:
    """Compile an export into a folder and count."""
    gcc = "gcc" in compiler.version
    words = [*compiler.command, *flags_of(compiler), *(CALLS if gcc else ())]
    objects, began = [], time.perf_counter()
    for file in export.files:
        if file.endswith(".c") and file != "main.c":
            objects.append(folder / Path(file.replace("/", "_")).with_suffix(".o"))
            run([*words, "-c", file, "-o", str(objects[-1])], export.folder)
    seconds = time.perf_counter() - began
    program = folder / "replay"
    run([*compiler.command, *map(str, objects), "-lm", GARBAGE, "-o", str(program)], folder)
    flash = None
    if gcc and shutil.which("size"):
        own = [str(path) for path in objects if path.name != "replay.o"]
        kept, entry = str(folder / "kept"), f"-Wl,-e,{export.name}_solve"
        run([*compiler.command, "-nostdlib", "-r", GARBAGE, entry, *own, "-o", kept], folder)
        text, data, _ = map(int, run(["size", kept], folder).splitlines()[1].split()[:3])
        flash = text + data  # nothing but constants with addresses in them is data
    stack = None
    if gcc:
        graphs = [path.with_suffix(".ci").read_text("utf-8") for path in objects]
        pointed = [f"{export.name}.c:{word}" for word in ("first", "second")]
        stack = deepest(graphs, f"{export.name}_solve", pointed)
    counted = counts(export, program) if shutil.which("valgrind") else None
    return Costs(seconds, flash, stack, counted)


def counts(export: Export, program: Path) -> list[int]:
    """Instructions of every solve."""
    name, out = f"{export.name}_solve_in", program.with_name("counted")
    options = f"--callgrind-out-file={out}", f"--toggle-collect={name}", f"--dump-after={name}"
    words = ["valgrind", "-q", "--tool=callgrind", *options, str(program)]
    run(words, program.parent, spoken(export.solves))
    found = []
    for number in range(1, len(export.solves) + 1):
        text = Path(f"{out}.{number}").read_text(encoding="utf-8")
        summary = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
        found.append(int(summary[1]) if summary else 0)
    return found


def deepest(graphs: Sequence[str], entry: str, pointed: Sequence[str]) -> int | None:
    """Bytes of stack at most below a function; None where they have no bound.

    Args:
        graphs: the files that ``-fcallgraph-info=su`` wrote.
        entry: the function.
        pointed: the titles of the functions that are called through pointers.
    """
    text = "\n".join(graphs)
    listed = FRAME.findall(text)
    frames = {title: int(size) for title, size, _ in listed}
    calls: dict[str, set[str]] = defaultdict(set)
    for source, target in EDGE.findall(text):
        calls[source].add(target)
    calls[INDIRECT] = set(pointed)
    known: dict[str, float] = {}

    def depth(title: str) -> float:
        if title not in known:
            known[title] = float("inf")  # what is reached from itself stays so
            known[title] = frames.get(title, 0) + max(map(depth, calls[title]), default=0)
        return known[title]

    bounded = all(kind != "dynamic" for *_, kind in listed)  # as an array of variable length is
    return int(depth(entry)) if bounded and depth(entry) < float("inf") else None
