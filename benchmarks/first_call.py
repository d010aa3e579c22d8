"""What a small problem costs in a script: building its solver and calling it once, beside IPOPT.

Milliseconds of processor time (medians of 20 fresh problems each, the solvers in turn) of building,
of the first call, and of a second one from the same start, for problems of Hock & Schittkowski with
2 to 5 variables.

``python benchmarks/first_call.py`` prints a row for each and the geometric means of the ratios;
``--mx`` states the same in MX, ``--repeat`` and ``--only`` choose.

``--script`` measures whole processes instead: milliseconds from the start of Python to its end, of
a script that states one small problem and solves it, the solvers in turn; first with the files of
the packages still in memory, then read from disk (Linux). Run it by the Python of an environment
into which the package was installed as a user does: bytecode is part of that.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import casadi as ca
from problems.hs import HS, NLP

import casadi_hybrid as ch

NUMBERS = (
    1, 6, 7, 10, 11, 14, 15, 21, 22, 24, 26, 28, 35, 37, 38, 39, 40, 43, 45, 48, 50, 53,
)  # fmt: skip
PARTS = ("build", "first", "second", "build + first")
QUIET = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}
SCRIPT = """
import casadi as ca
x = ca.SX.sym("x", 2)
f = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
solver = {solver}, {{"x": x, "f": f, "g": ca.sumsqr(x)}}, {options})
assert solver(x0=[0, 0], lbg=0, ubg=1) and solver.stats()["success"]
"""
SCRIPTS = {
    "hybrid": "import casadi_hybrid as ch"
    + SCRIPT.format(solver='ch.nlpsol("solver", "hybrid"', options={}),
    "ipopt": SCRIPT.format(solver='ca.nlpsol("solver", "ipopt"', options=QUIET),
}


def fresh(entry: NLP, mx: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """CasADi's dictionary with new symbols, and the arguments of a call."""
    made = entry.build()
    nlp = {key: made[key] for key in "xfg"}
    if mx:
        graph = ca.Function("graph", [nlp["x"]], [nlp["f"], nlp["g"]])
        x = ca.MX.sym("x", graph.size1_in(0))
        nlp = dict(zip("xfg", (x, *graph.call([x], True, False)), strict=True))
    bounds = {key: made[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    return nlp, {"x0": list(entry.x0), **bounds}


def measure(entry: NLP, solver: str, mx: bool) -> tuple[float, ...]:
    """Milliseconds by :data:`PARTS`."""
    nlp, arguments = fresh(entry, mx)
    clock = time.process_time
    began = clock()
    if solver == "hybrid":
        made = ch.nlpsol("solver", "hybrid", nlp)
    else:
        made = ca.nlpsol("solver", "ipopt", nlp, QUIET)
    built = clock()
    made(**arguments)
    called = clock()
    made(**arguments)
    again = clock()
    steps = built - began, called - built, again - called, called - began
    return tuple(1e3 * seconds for seconds in steps)


def forget() -> None:
    """Take the installed packages out of the memory that the system keeps files in."""
    for file in Path(sysconfig.get_path("purelib")).rglob("*.*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def scripts(repeat: int) -> None:
    """Print what whole scripts take: the median, and between what the middle half of them is."""
    # As a user has it: bytecode of the installation, and no checkout in the path.
    own = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
    for what in ("read from memory", "read from disk")[: 1 + hasattr(os, "posix_fadvise")]:
        found: dict[str, list[float]] = {"hybrid": [], "ipopt": []}
        for _ in range(repeat + 1):
            for solver, times in found.items():
                if what == "read from disk":
                    forget()
                began = time.perf_counter()
                command = [sys.executable, "-c", SCRIPTS[solver]]
                subprocess.run(command, env=own, cwd=sys.prefix, check=True)
                times.append(1e3 * (time.perf_counter() - began))
        text = f"{what}:"
        for solver, (_, *times) in found.items():  # the first brings in what all need
            low, middle, high = statistics.quantiles(times, n=4)
            text += f" {solver} {middle:.0f} ms ({low:.0f} to {high:.0f}),"
        ours, theirs = (statistics.median(times[1:]) for times in found.values())
        print(f"{text} ours / IPOPT {ours / theirs:.2f}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", type=int, default=NUMBERS, help="numbers in the book")
    parser.add_argument("--repeat", type=int, default=20, help="fresh problems for each")
    parser.add_argument("--mx", action="store_true", help="stated in MX")
    parser.add_argument("--script", action="store_true", help="whole scripts, each a process")
    chosen = parser.parse_args()
    if chosen.script:
        scripts(chosen.repeat)
        return
    entries = [entry for entry in HS if entry.number in chosen.only]
    for solver in ("hybrid", "ipopt"):  # libraries are loaded before anything is timed
        measure(entries[0], solver, chosen.mx)
    titles = "".join(f"{part:>9}" for part in PARTS[:3])
    print(f"{'':6}{titles} |{titles}  ours / IPOPT")
    ratios: list[list[float]] = []
    for entry in entries:
        found: dict[str, list[tuple[float, ...]]] = {"hybrid": [], "ipopt": []}
        for _ in range(chosen.repeat):
            for solver, times in found.items():
                times.append(measure(entry, solver, chosen.mx))
        ours, theirs = (
            [statistics.median(part) for part in zip(*times, strict=True)]
            for times in found.values()
        )
        ratios.append([a / b for a, b in zip(ours, theirs, strict=True)])
        columns = ("".join(f"{part:9.3f}" for part in times[:3]) for times in (ours, theirs))
        print(f"{entry.name:6}{' |'.join(columns)}{ratios[-1][3]:14.2f}", flush=True)
    means = (math.exp(statistics.mean(map(math.log, part))) for part in zip(*ratios, strict=True))
    print("geometric means of ours / IPOPT:", end=" ")
    print(", ".join(f"{part} {mean:.2f}" for part, mean in zip(PARTS, means, strict=True)))


if __name__ == "__main__":
    main()
