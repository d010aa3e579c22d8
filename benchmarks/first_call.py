"""Costs of a problem that is solved once, building its solver and one call, beside IPOPT.

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
from peers.cases import Case, case_named, cases, of_control
from peers.report import spread, table
from problems.control import FAMILIES, SIZES

import casadi_hybrid as ch

SMALL = (1, 6, 7, 10, 11, 14, 15, 21, 22, 24, 26, 28, 35, 37, 38, 39, 40, 43, 45, 48, 50, 53)
PARTS = ("build", "first", "second", "build + first")
QUIET = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}
SCRIPT = """
import casadi as ca
x = ca.SX.sym("x", 2)
f = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
solver = {make}("solver", "{name}", {{"x": x, "f": f, "g": ca.sumsqr(x)}}, {of})
assert solver(x0=[0, 0], lbg=0, ubg=1) and solver.stats()["success"]
"""
SCRIPTS = {
    "hybrid": "import casadi_hybrid as ch" + SCRIPT.format(make="ch.nlpsol", name="hybrid", of={}),
    "ipopt": SCRIPT.format(make="ca.nlpsol", name="ipopt", of=QUIET),
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
    make, plugin, options = ca.nlpsol, "ipopt", QUIET | {"expand": solver == "expand"}
    if solver == "hybrid":
        make, plugin, options = ch.nlpsol, "hybrid", {}
    clock = time.process_time
    began = clock()
    solve = make("solver", plugin, nlp, options)
    built = clock()
    solve(**arguments)
    called = clock()
    success = solve.stats()["success"]
    between = clock()
    solve(**arguments)
    parts = built - began, called - built, clock() - between, called - began
    return tuple(1e3 * seconds for seconds in parts) if success else None


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
            with file.open("rb") as opened:
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def scripts(repeat: int) -> None:
    """Print the medians and quartiles of whole scripts."""
    # As a user has it: bytecode of the installation, and no checkout in the path.
    own = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
    for files in ("read from memory", "read from disk")[: 1 + hasattr(os, "posix_fadvise")]:
        times: dict[str, list[float]] = {solver: [] for solver in SCRIPTS}
        for _ in range(repeat + 1):
            for solver, script in SCRIPTS.items():
                if files == "read from disk":
                    forget()
                began = time.perf_counter()
                subprocess.run([sys.executable, "-c", script], env=own, cwd=sys.prefix, check=True)
                times[solver].append(1e3 * (time.perf_counter() - began))
        texts, middles = [], []
        for solver, (_, *each) in times.items():  # the first brings in what all need
            low, middle, high = statistics.quantiles(each, n=4)
            texts.append(f"{solver} {middle:.0f} ms ({low:.0f} to {high:.0f})")
            middles.append(middle)
        ratio = middles[0] / middles[1]
        print(f"{files}: {', '.join(texts)}, ours / IPOPT's {ratio:.2f}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=("hs", "control"), default="hs")
    parser.add_argument("--small", action="store_true", help="22 small ones of hs")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names of problems")
    parser.add_argument("--repeat", type=int, default=20, help="fresh problems for each")
    parser.add_argument("--mx", action="store_true", help="stated in MX")
    parser.add_argument("--script", action="store_true", help="whole scripts, each a process")
    chosen = parser.parse_args()
    if chosen.script:
        scripts(chosen.repeat)
        return
    problems = [
        case
        for case in entries(chosen.set, chosen.small)
        if any(part in case.name for part in chosen.only)
    ]
    solvers = ("hybrid", "ipopt") if chosen.set == "hs" else ("hybrid", "ipopt", "expand")
    for solver in solvers:  # libraries are loaded before anything is timed
        measure(case_named("hs", "HS1"), solver, chosen.mx)
    titles = (f"{part}, {who}" for who in ("ours", "IPOPT's") for part in PARTS[:3])
    rows = [["problem", *titles, "ratio"]]
    ratios: dict[str, dict[str, float]] = {part: {} for part in PARTS}
    for case in problems:
        print(case.name, file=sys.stderr, flush=True)
        if not (both := medians(case, solvers, chosen.repeat, chosen.mx)):
            rows.append([case.name, "not solved by both", *[""] * 6])
            continue
        for part, ours, theirs in zip(PARTS, *both, strict=True):
            ratios[part][case.name] = ours / theirs
        cells = [f"{ms:.3f}" for times in both for ms in times[:3]]
        rows.append([case.name, *cells, f"{ratios[PARTS[3]][case.name]:.2f}"])
    print(table(rows))
    print(f"ours / IPOPT's on {len(ratios[PARTS[0]])} of {len(problems)} problems:")
    for part, each in ratios.items():
        print(f"  {part}: {spread(each)}")


if __name__ == "__main__":
    main()
