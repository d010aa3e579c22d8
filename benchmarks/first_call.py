"""What a small problem costs in a script: building its solver and calling it once, beside IPOPT.

Milliseconds of processor time (medians of 20 fresh problems each, the solvers in turn) of building,
of the first call, and of a second one from the same start, for problems of Hock & Schittkowski with
2 to 5 variables.

``python benchmarks/first_call.py`` prints a row for each and the geometric means of the ratios;
``--mx`` states the same in MX, ``--repeat`` and ``--only`` choose.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Any

import casadi as ca
from problems.hs import HS, NLP

import casadi_hybrid as ch

NUMBERS = (
    1, 6, 7, 10, 11, 14, 15, 21, 22, 24, 26, 28, 35, 37, 38, 39, 40, 43, 45, 48, 50, 53,
)  # fmt: skip
PARTS = ("build", "first", "second", "build + first")
QUIET = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}


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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", type=int, default=NUMBERS, help="numbers in the book")
    parser.add_argument("--repeat", type=int, default=20, help="fresh problems for each")
    parser.add_argument("--mx", action="store_true", help="stated in MX")
    chosen = parser.parse_args()
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
