"""What a problem costs that is solved once: building its solver and its first call, beside IPOPT.

Milliseconds of processor time (medians of fresh problems, the solvers in turn) of building, of the
first call, and of a second one from the same start.

``python benchmarks/first_call.py`` prints a row for each problem and the geometric means of the
ratios. ``--set hs`` (the default) has the problems of Hock and Schittkowski, ``--small`` 22 of them
with 2 to 5 variables; ``--set control`` has those of optimal control, of each family the last of
its small, medium and large sizes. There IPOPT runs on the graph as it is and with ``expand``, and
the one counts whose building and first call take less. A problem counts where both solvers say
that they have solved it. ``--mx`` states a problem in MX; ``--repeat`` and ``--only`` choose.

``--script`` measures whole processes instead: milliseconds from the start of Python to its end, of
a script that states one small problem and solves it, the solvers in turn; first with the files of
the packages still in memory, then read from disk (Linux). Run it by the Python of an environment
into which the package was installed as a user does: bytecode is part of that.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import casadi as ca
from peers.cases import Case, cases, of_control
from problems.control import FAMILIES, SIZES

import casadi_hybrid as ch

SMALL = (1, 6, 7, 10, 11, 14, 15, 21, 22, 24, 26, 28, 35, 37, 38, 39, 40, 43, 45, 48, 50, 53)
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


def entries(group: str, small: bool) -> list[Case]:
    """The problems of a set."""
    if group == "hs":
        names = {f"HS{number}" for number in SMALL}
        return [case for case in cases("hs") if case.name in names or not small]
    sizes = ((family, family.sizes(size)[-1]) for family in FAMILIES.values() for size in SIZES)
    return [of_control(family.name, N) for family, N in sizes]


def fresh(case: Case, mx: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """CasADi's dictionary with new symbols, and the arguments of a call."""
    made = case.build()
    nlp = {key: made[key] for key in "xfg"}
    if mx:
        graph = ca.Function("graph", [nlp["x"]], [nlp["f"], nlp["g"]])
        x = ca.MX.sym("x", graph.size1_in(0))
        nlp = dict(zip("xfg", (x, *graph.call([x], True, False)), strict=True))
    bounds = {key: made[key] for key in ("lbx", "ubx", "lbg", "ubg")}
    return nlp, {"x0": list(case.x0) or made["x0"], **bounds}


def measure(case: Case, solver: str, mx: bool) -> tuple[float, ...] | None:
    """Milliseconds by :data:`PARTS`; None where the first call solved nothing."""
    nlp, arguments = fresh(case, mx)
    clock = time.process_time
    began = clock()
    if solver == "hybrid":
        made = ch.nlpsol("solver", "hybrid", nlp)
    else:
        made = ca.nlpsol("solver", "ipopt", nlp, QUIET | {"expand": solver == "expand"})
    built = clock()
    made(**arguments)
    called = clock()
    success = made.stats()["success"]
    between = clock()
    made(**arguments)
    again = clock()
    steps = built - began, called - built, again - between, called - began
    return tuple(1e3 * seconds for seconds in steps) if success else None


def medians(case: Case, solvers: Sequence[str], repeat: int, mx: bool) -> list[list[float]]:
    """Ours and the better one of the peers, by :data:`PARTS`; less where one solves nothing."""
    found: dict[str, list[tuple[float, ...]]] = {solver: [] for solver in solvers}
    for _ in range(repeat):
        for solver, times in found.items():
            times.extend(filter(None, [measure(case, solver, mx)]))
    ours, *peers = (
        [statistics.median(part) for part in zip(*times, strict=True)] for times in found.values()
    )
    peers = [times for times in peers if times]
    return [ours, min(peers, key=lambda times: times[3])] if ours and peers else []


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
    parser.add_argument("--set", choices=("hs", "control"), default="hs")
    parser.add_argument("--small", action="store_true", help="22 small ones of hs")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="parts of names of problems")
    parser.add_argument("--repeat", type=int, default=20, help="fresh problems for each")
    parser.add_argument("--mx", action="store_true", help="stated in MX")
    parser.add_argument("--script", action="store_true", help="whole scripts, each a process")
    chosen = parser.parse_args()
    if chosen.script:
        scripts(chosen.repeat)
        return
    found = entries(chosen.set, chosen.small)
    if chosen.only:
        found = [case for case in found if any(part in case.name for part in chosen.only)]
    solvers = ("hybrid", "ipopt") if chosen.set == "hs" else ("hybrid", "ipopt", "expand")
    for solver in solvers:  # libraries are loaded before anything is timed
        measure(cases("hs")[0], solver, chosen.mx)
    titles = "".join(f"{part:>11}" for part in PARTS[:3])
    print(f"{'':18}{titles} |{titles}  ours / IPOPT")
    ratios: list[list[float]] = []
    for case in found:
        both = medians(case, solvers, chosen.repeat, chosen.mx)
        if not both:
            print(f"{case.name:18} not solved by both", flush=True)
            continue
        ratios.append([a / b for a, b in zip(*both, strict=True)])
        columns = ("".join(f"{part:11.3f}" for part in times[:3]) for times in both)
        print(f"{case.name:18}{' |'.join(columns)}{ratios[-1][3]:14.2f}", flush=True)
    parts = list(zip(*ratios, strict=True))
    print(f"ours / IPOPT on {len(ratios)} of {len(found)} problems:", end=" ")
    print(", ".join(
        f"{part} {statistics.geometric_mean(each):.3f} (largest {max(each):.2f})"
        for part, each in zip(PARTS, parts, strict=True)
    ))  # fmt: skip


if __name__ == "__main__":
    main()
