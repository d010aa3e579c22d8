"""This package beside the solvers of CasADi's wheel, one Python call a step in warm closed loops.

    python benchmarks/warm_peers.py --quick
    python benchmarks/warm_peers.py --family pendulum --solvers hybrid ipopt --steps 20
    python benchmarks/warm_peers.py --horizon --clock processor --out figures

Closed loops with 1 % noise, each solver with its best settings. All get the same guesses, the last
solution shifted by one interval; every answer is judged by residuals that are computed anew.
``warm/`` has the parts: ``families`` the problems, ``stages`` their nonlinear programs, ``peers``
the solvers and their settings, ``loop`` the guesses and the clock, ``judge`` the verdict,
``report`` the tables. Files of a run: the text, all calls as CSV, and the performance profile.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import casadi as ca
from peers.report import profile
from warm.families import FAMILIES, HORIZONS, JUDGED, TUNING
from warm.loop import Call, measure
from warm.peers import PEERS, QUICK, chosen
from warm.report import CAPTION, block, conclusion, costs, growth, report, summarize
from warm.stages import program

from casadi_hybrid import __version__
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.output.files import add_figures

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def main(words: Sequence[str] | None = None) -> int:
    """Run with these words; 0, whoever was fastest, 2 for wrong input, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    others = f"also linear; for tuning: {', '.join(TUNING)}"
    add(
        "--family",
        nargs="+",
        choices=FAMILIES,
        metavar="NAME",
        help=f"of {', '.join(JUDGED)}; {others}",
    )
    add(
        "--solvers",
        nargs="+",
        metavar="NAME",
        help=f"of {', '.join(PEERS)}, or settings as sqpmethod/qrqp",
    )
    add("--seeds", type=int, metavar="K", help="loops of each problem (default 5)")
    add("--steps", type=int, metavar="K", help="warm steps a loop (default 60)")
    add("--sizes", type=int, nargs="+", metavar="N", help="horizons in place of its own")
    add("--patience", type=float, default=60.0, metavar="S", help="seconds of a setting (60)")
    add("--clock", choices=("wall", "processor"), default="wall", help="processor: if others run")
    add("--horizon", action="store_true", help="time against the horizon, up to 6400 intervals")
    add("--quick", action="store_true", help="1 loop of 10 steps, and the fastest settings only")
    add("--compiled", action="store_true", help="compiled functions or solvers; takes minutes")
    add("--out", type=Path, default=Path("output/benchmark"), metavar="DIR", help="for files")
    add_figures(parser)
    arguments = parser.parse_args(words)
    if arguments.compiled and shutil.which("cc") is None:
        parser.error("--compiled needs a C compiler called cc, and there is none on the path")
    try:
        return run(arguments)
    except (InputError, OSError) as error:
        print(f"warm_peers.py: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("warm_peers.py: interrupted", file=sys.stderr)
        return 130


def run(arguments: argparse.Namespace) -> int:
    """Measure, print and write; 0, whoever was fastest.

    Raises:
        InputError: for an unknown solver or a horizon that has no loop.
    """
    short = arguments.quick or arguments.horizon
    seeds = range(1, 1 + (arguments.seeds or (1 if short else 5)))
    steps = arguments.steps or (10 if short else 60)
    words = arguments.solvers or (QUICK if short else PEERS)
    settings = [setting for setting in chosen(words) if setting.loads()]
    arguments.out.mkdir(parents=True, exist_ok=True)
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    print(
        f"casadi_hybrid {__version__}, CasADi {ca.CasadiMeta.version()}, {os.cpu_count()} "
        f"processors, load {load}\n{len(seeds)} loops of {steps} warm steps each, "
        f"{len(settings)} settings, clock: {arguments.clock}"
    )
    if any(os.environ.get(name) != "1" for name in _THREADS):
        print(f"not all of {', '.join(_THREADS)} are 1: threads of BLAS may spoil the times")
    print(f"\n{CAPTION}", flush=True)
    calls: list[Call] = []
    try:
        for name in arguments.family or (HORIZONS if arguments.horizon else JUDGED):
            own = HORIZONS if arguments.horizon else {}
            for N in arguments.sizes or own.get(name, FAMILIES[name].horizons):
                print(f"{name} N={N} …", file=sys.stderr, flush=True)
                made = program(FAMILIES[name], N)
                patience, compiled = arguments.patience, arguments.compiled
                judged = measure(made, settings, seeds, steps, patience, compiled)
                calls += judged
                for place, cells in summarize(judged, arguments.clock).items():
                    print(block(place, cells), flush=True)
    finally:  # what is measured is not lost by an interruption
        paths = write(calls, arguments) if calls else []
    summary = summarize(calls, arguments.clock)
    if arguments.horizon:
        print(growth(summary))
    print(conclusion(calls, summary))
    print("written: " + ", ".join(map(str, paths)))
    return 0


def write(calls: Sequence[Call], arguments: argparse.Namespace) -> list[Path]:
    """Write the tables, all calls, and the performance profile of the best settings."""
    summary = summarize(calls, arguments.clock)
    stem = "horizon" if arguments.horizon else "benchmark"
    text, rows = (arguments.out / f"{stem}{end}" for end in (".txt", "-calls.csv"))
    parts = [f"Clock: {arguments.clock}", *[growth(summary)] * arguments.horizon]
    text.write_text("\n".join([*parts, report(calls, summary)]), encoding="utf-8")
    with rows.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(calls[0])))
        writer.writeheader()
        writer.writerows(map(asdict, calls))
    drawn = profile(
        costs(calls, summary, arguments.clock),
        arguments.out / f"profile.{arguments.figures}",
        across=r"within $\tau$ times the fastest solver of the step",
        up="share of steps solved",
    )
    return [text, rows, drawn]


if __name__ == "__main__":
    sys.exit(main())
