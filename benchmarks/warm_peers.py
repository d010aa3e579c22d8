"""This package beside the solvers of CasADi's wheel, one Python call a step in warm closed loops.

    python benchmarks/warm_peers.py --quick
    python benchmarks/warm_peers.py --family pendulum --solvers hybrid ipopt --steps 20
    python benchmarks/warm_peers.py --horizon --clock processor --out figures

``--help`` lists the options, ``warm/`` has the parts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import casadi as ca
from warm.families import FAMILIES, HORIZONS, JUDGED, TUNING
from warm.measure import Call, Plan, measure
from warm.peers import PEERS, QUICK, Setting, chosen, loads
from warm.stages import program
from warm.summary import summarize
from warm.table import (
    CAPTION,
    CLOCKS,
    as_records,
    block,
    conclusion,
    horizon_report,
    report,
    write_csv,
)

from casadi_hybrid import __version__
from casadi_hybrid.utils.errors import InputError, suggest
from casadi_hybrid.utils.inputs import count, positive
from casadi_hybrid.utils.output.files import add_figures, writable

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_FAMILIES = f"problems (default: {' '.join(JUDGED)}; also linear; for tuning: {' '.join(TUNING)})"
_SOLVERS = f"solvers ({' '.join(PEERS)}) or single settings (sqpmethod/qrqp, …); default: all"
_OPTIONS: Sequence[tuple[str, Callable[[str], Any], str | None, str, Any, str]] = (
    ("--family", str, "+", "NAME", (), _FAMILIES),
    ("--solvers", str, "+", "NAME", (), _SOLVERS),
    ("--seeds", int, None, "K", None, "loops of each problem (default 5)"),
    ("--steps", int, None, "K", None, "warm steps a loop (default 60)"),
    ("--sizes", int, "+", "N", (), "horizons in place of its own"),
    ("--patience", float, None, "S", 60.0, "processor seconds of a setting on a problem (60)"),
    ("--out", Path, None, "DIR", Path("output/benchmark"), "for files"),
)
_SWITCHES = (
    ("--horizon", "time against the horizon instead: linear up to 800, van_der_pol up to 6400"),
    ("--quick", "1 loop of 10 steps, and the fastest settings only"),
    ("--compiled", "with functions or whole solvers compiled by cc -O2; takes minutes to build"),
    ("--json", "print one record for each setting as JSON"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Run with these words; 0, whoever was fastest, 2 for wrong input, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        description="Measure one Python call a step in warm closed loops with 1 % noise, of this "
        "package and of the solvers in CasADi's wheel, each with its best settings. All get the "
        "same guesses; every answer is judged by residuals that are computed anew."
    )
    for flag, kind, nargs, metavar, default, text in _OPTIONS:
        parser.add_argument(
            flag, type=kind, nargs=nargs, metavar=metavar, default=default, help=text
        )
    for flag, text in _SWITCHES:
        parser.add_argument(flag, action="store_true", help=text)
    parser.add_argument(
        "--clock",
        choices=list(CLOCKS),
        default="wall",
        help="wall, or the processor time of the call, for a busy machine (default wall)",
    )
    add_figures(parser)
    try:
        return run(parser.parse_args(words))
    except (InputError, OSError) as error:
        print(f"warm_peers.py: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("warm_peers.py: interrupted", file=sys.stderr)
        return 130


def run(arguments: argparse.Namespace) -> int:
    """Measure, print and write; 0, whoever was fastest.

    Raises:
        InputError: for an unknown family or solver, or a number out of range.
    """
    if arguments.compiled and shutil.which("cc") is None:
        raise InputError("--compiled needs a C compiler called cc, and there is none on the path")
    short = arguments.quick or arguments.horizon
    seeds = count(arguments.seeds or (1 if short else 5), "--seeds", at_least=1)
    steps = count(arguments.steps or (10 if short else 60), "--steps", at_least=1)
    patience = positive(arguments.patience, "--patience")
    plan = Plan(range(1, seeds + 1), steps, patience, arguments.compiled)
    words = arguments.solvers or (QUICK if short else PEERS)
    settings = [setting for setting in chosen(words) if loads(setting)]
    names = dict.fromkeys(arguments.family or (HORIZONS if arguments.horizon else JUDGED))
    for name in names:
        if name not in FAMILIES:
            raise InputError(f"no family {name!r}{suggest(name, FAMILIES)}")
    writable(arguments.out)
    clock = CLOCKS[arguments.clock]
    if not arguments.json:
        print(_heading(plan, settings, arguments.clock), flush=True)
    calls: list[Call] = []
    progress = _Progress()
    try:
        for name in names:
            family = FAMILIES[name]
            own = HORIZONS.get(name, family.horizons) if arguments.horizon else family.horizons
            for N in arguments.sizes or own:
                found = measure(program(family, N), settings, plan, progress)
                calls += found
                progress.clear()
                if not arguments.json:
                    ((place, cells),) = summarize(found, clock).items()
                    print(block(place, cells), flush=True)
    finally:  # what is measured is not lost by an interruption
        progress.clear()
        if calls:
            paths = _write(calls, arguments, clock)
    summary = summarize(calls, clock)
    if arguments.json:
        records = as_records(summary)
        print(json.dumps({"settings": records, "files": [str(path) for path in paths]}))
        return 0
    if arguments.horizon:
        print(horizon_report(summary))
    print(conclusion(calls, summary))
    print("written: " + ", ".join(str(path) for path in paths))
    return 0


def _heading(plan: Plan, settings: Sequence[Setting], clock: str) -> str:
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    lines = [
        f"casadi_hybrid {__version__}, CasADi {ca.CasadiMeta.version()}, "
        f"{os.cpu_count()} processors, load {load}",
        f"{len(plan.seeds)} loops of {plan.steps} warm steps each, "
        f"{'compiled' if plan.compiled else 'interpreted'} functions, "
        f"{len(settings)} settings, clock: {clock}",
    ]
    many = [name for name in _THREADS if os.environ.get(name) != "1"]
    if many:
        lines.append(
            f"{' and '.join(many)} not set to 1: threads of BLAS may wait for each other and "
            "spoil the times"
        )
    return "\n".join([*lines, "", CAPTION])


class _Progress:
    """One line on a terminal that is written over; elsewhere a line for each program."""

    def __init__(self) -> None:
        self._began, self._last = time.perf_counter(), ""

    def __call__(self, words: str) -> None:
        line = f"{time.perf_counter() - self._began:5.0f} s  {words}"
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        elif (label := words.partition(":")[0]) != self._last:
            self._last = label
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _write(calls: Sequence[Call], arguments: argparse.Namespace, clock: str) -> list[Path]:
    """Write table, CSV and figures."""
    from warm.figure import horizons, profile, spreads  # noqa: PLC0415

    from casadi_hybrid.utils.output.plotting import save  # noqa: PLC0415

    folder, against = arguments.out, arguments.horizon
    summary = summarize(calls, clock)
    text = f"Clock: {arguments.clock}\n" + report(calls, summary)
    if against:
        text = horizon_report(summary) + "\n" + text
    folder.mkdir(parents=True, exist_ok=True)
    stem = "horizon" if against else "benchmark"
    paths = [folder / f"{stem}{end}" for end in (".txt", ".csv", "-calls.csv")]
    paths[0].write_text(text, encoding="utf-8")
    for path, records in zip(paths[1:], (as_records(summary), map(asdict, calls)), strict=True):
        write_csv(records, path)
    figures = {"profile": profile(calls, summary, clock), "times": spreads(summary)}
    if against:
        figures = {"horizon": horizons(summary)}
    named = ((folder / f"{name}.{arguments.figures}", made) for name, made in figures.items())
    return [*paths, *(save(made, path) for path, made in named)]


if __name__ == "__main__":
    sys.exit(main())
