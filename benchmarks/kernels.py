"""One benchmark under several kernels of OpenBLAS: which verdicts and iteration counts differ.

    python benchmarks/kernels.py [--kernels NAME NAME ...] -- BENCHMARK.py [ARGUMENT ...] --json {}

Everything after ``--`` is the benchmark's own command, with ``{}`` for the file of its outcomes:

    python benchmarks/kernels.py --kernels Haswell SkylakeX -- \\
        benchmarks/wheel_peers.py --set hs --solvers hybrid --json {}

Any benchmark with ``--json`` will do: ``wheel_peers.py`` (``--set hs`` and others),
``control_peers.py``, ``squares_peers.py``, ``hopeless_peers.py``. It runs once per kernel, in a
process of its own with OPENBLAS_CORETYPE set; that NumPy and SciPy load the kernel is checked
before. What it prints is shown where it fails. Two kernels add the same numbers in another order,
which is all that another processor changes in a dense factorization.

Listed is every problem whose kind (or root), status or iteration count is not the same under all
kernels. A verdict is the kind and the status. A limit in seconds makes verdicts of its own: leave
room, and run nothing beside.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hs_peers import align

KERNELS = ("Haswell", "SkylakeX")
# OpenBLAS names its Prescott kernel after the oldest processor that shares it.
OTHER_NAMES = {"Katmai": "Prescott"}
Key = tuple[str, str]


@dataclass(frozen=True)
class Outcome:
    """What is compared of one solve."""

    kind: str
    status: str
    iterations: int | None

    @property
    def verdict(self) -> tuple[str, str]:
        """Kind and status."""
        return self.kind, self.status

    def cells(self) -> list[str]:
        """For the list."""
        return [self.kind, self.status, "–" if self.iterations is None else str(self.iterations)]


Table = dict[Key, Outcome]


def environment(kernel: str) -> dict[str, str]:
    """That of a process under this kernel, on one thread."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS")}
    return {**threads, **os.environ, "OPENBLAS_CORETYPE": kernel}


def loaded(kernel: str) -> list[str]:
    """The kernels that NumPy and SciPy say they load when this one is asked for."""
    command = [sys.executable, "-c", "import numpy, scipy.linalg"]
    variables = {**environment(kernel), "OPENBLAS_VERBOSE": "2"}
    said = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    lines = (said.stdout + said.stderr).splitlines()
    names = [line.removeprefix("Core: ") for line in lines if line.startswith("Core: ")]
    return [OTHER_NAMES.get(name, name) for name in names]


def outcome(entry: Mapping[str, Any]) -> Outcome:
    """From one entry of a benchmark's file."""
    answer = entry["answer"]
    kind = entry["kind"] if "kind" in entry else "root" if entry["root"] else "no root"
    return Outcome(kind, answer["status"] or answer["end"], answer["iterations"])


def run(command: Sequence[str], kernel: str) -> Table:
    """The benchmark's outcomes under a kernel, by problem and solver."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes.json"
        words = [sys.executable, *(word.replace("{}", str(path)) for word in command)]
        done = subprocess.run(
            words, env=environment(kernel), stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            print(done.stdout, file=sys.stderr)
            sys.exit(f"the benchmark ended with {done.returncode} under {kernel}")
        entries = json.loads(path.read_text(encoding="utf-8"))
    return {(entry["problem"], entry["solver"]): outcome(entry) for entry in entries}


def spread(found: Sequence[Outcome]) -> int:
    """The most iterations less the fewest, of those that are told."""
    counts = [one.iterations for one in found if one.iterations is not None]
    return max(counts) - min(counts) if counts else 0


def report(tables: Mapping[str, Table]) -> str:
    """The list of the differences, and a line of counts."""
    first = next(iter(tables.values()))
    keys = [key for key in first if all(key in table for table in tables.values())]
    several = len({solver for _, solver in keys}) > 1
    name = {key: f"{key[0]} ({key[1]})" if several else key[0] for key in keys}
    rows = [["problem", *(part for kernel in tables for part in (kernel, "status", "it."))]]
    verdicts, counts = 0, dict[Key, int]()
    for key in keys:
        found = [table[key] for table in tables.values()]
        if len(set(found)) == 1:
            continue
        rows.append([name[key], *(cell for one in found for cell in one.cells())])
        verdicts += len({one.verdict for one in found}) > 1
        if len({one.iterations for one in found}) > 1:
            counts[key] = spread(found)
    line = (
        f"{len(keys)} problems, {verdicts} verdicts differ, {len(counts)} iteration counts differ"
    )
    if counts:
        worst = max(counts, key=counts.__getitem__)
        between = " and ".join(table[worst].cells()[-1] for table in tables.values())
        line += f" (largest {counts[worst]}: {name[worst]}, {between})"
    lines = [align(rows), ""] if len(rows) > 1 else []
    missing = {key[0] for table in tables.values() for key in table} - {key[0] for key in keys}
    if missing:
        lines.append(f"not in every run: {', '.join(sorted(missing))}")
    return "\n".join([*lines, line])


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        usage="%(prog)s [--kernels NAME NAME ...] -- BENCHMARK.py [ARGUMENT ...] --json {}",
    )
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS), help="of OpenBLAS")
    chosen, command = parser.parse_args(words[:at]), words[at + 1 :]
    if not any("{}" in word for word in command):
        parser.error("after -- the command of a benchmark, with {} for its --json file")
    kernels = list(dict.fromkeys(chosen.kernels))
    for kernel in kernels:
        names = sorted(set(loaded(kernel)))
        if names != [kernel]:
            parser.error(f"{kernel}: NumPy and SciPy load {' and '.join(names) or 'no OpenBLAS'}")
    print(report({kernel: run(command, kernel) for kernel in kernels}))


if __name__ == "__main__":
    main()
