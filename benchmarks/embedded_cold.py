"""Whether exported solvers solve what Python solves, from the problems' own starts.

    python benchmarks/embedded_cold.py [--compiler COMMAND] [SET ...]

Each problem of a set (by default hs, Hock and Schittkowski's) that Python solves is exported,
compiled with all warnings as errors and solved from its start without multipliers. "same" are those
with Python's numbers to 1e-12, relative to max(1, |number|), in as many steps; "another way" those
that are solved otherwise, listed with the difference of f.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from peers.cases import cases

from casadi_hybrid import InputError, nlpsol
from casadi_hybrid.core.export.compare import STRICT, spoken
from casadi_hybrid.core.export.export import Export

SAME = 1e-12


class Core:
    """The core's objects, compiled once.

    Args:
        words: of the compiler's command.
        folder: for the objects.
    """

    def __init__(self, words: list[str], folder: Path) -> None:
        self._words, self._folder = [*words, *STRICT], folder
        self._objects: list[str] = []

    def link(self, export: Export) -> Path:
        """The program of ``replay.c``."""
        if not self._objects:
            core = map(str, (export.folder / "core").glob("*.c"))
            self._run(["-c", *core], self._folder)
            self._objects = [str(path) for path in self._folder.glob("*.o")]
        own = [file for file in export.files if file.startswith(f"{export.name}") and ".c" in file]
        self._run([*own, "replay.c", *self._objects, "-lm", "-o", "replay"], export.folder)
        return export.folder / "replay"

    def _run(self, words: list[str], folder: Path) -> None:
        subprocess.run([*self._words, *words], cwd=folder, check=True)


def verdict(export: Export, core: Core) -> tuple[str, str]:
    """How the solve from the start compares with Python's, and what is to be said of it."""
    case = export.solves[-1]
    done = subprocess.run(
        [core.link(export)], input=spoken([case]), capture_output=True, text=True, check=True
    )
    status, steps, *numbers = done.stdout.split()
    if status != "0":
        return f"status {status}", f"after {steps} steps; {case.answer.iterations} in Python"
    expected = np.concatenate(list(case.outputs().values()))
    apart = np.abs(np.array(numbers, float) - expected) / np.maximum(1.0, np.abs(expected))
    if int(steps) == case.answer.iterations and apart.max() <= SAME:
        return "same", ""
    return "another way", f"{steps} steps, {case.answer.iterations} in Python, f {apart[0]:.1g} off"


def judged(case: Any, core: Core, folder: Path) -> tuple[str, str]:
    """The verdict on one problem."""
    made = case.build()
    bounds = {key: made[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    solver = nlpsol("one", "hybrid", {key: made[key] for key in ("x", "f", "g")})
    try:
        export = solver.export(folder, x0=list(case.x0), **bounds)
    except InputError as error:
        return "not solved by Python", str(error)[:80]
    return verdict(export, core)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", default=["hs"])
    parser.add_argument("--compiler", metavar="COMMAND", default="cc")
    arguments = parser.parse_args()
    for name in arguments.sets:
        counts = Counter[str]()
        with TemporaryDirectory() as objects:
            core = Core(shlex.split(arguments.compiler), Path(objects))
            for case in cases(name):
                with TemporaryDirectory() as folder:
                    found, said = judged(case, core, Path(folder))
                counts[found] += 1
                if said:
                    print(f"{case.name}: {found}: {said}", flush=True)
        print(f"{name}: " + ", ".join(f"{number} {word}" for word, number in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
