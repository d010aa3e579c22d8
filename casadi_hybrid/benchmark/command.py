"""The command ``casadi-hybrid benchmark``: what its options mean, the run, and its files."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import casadi as ca

from casadi_hybrid import __version__
from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.inputs import count, positive
from casadi_hybrid.benchmark.families import FAMILIES, HORIZONS, JUDGED, TUNING
from casadi_hybrid.benchmark.measure import Call, Plan, measure
from casadi_hybrid.benchmark.peers import PEERS, QUICK, Setting, chosen, loads
from casadi_hybrid.benchmark.stages import Family, program
from casadi_hybrid.benchmark.summary import summarize
from casadi_hybrid.benchmark.table import (
    CLOCKS,
    horizon_report,
    report,
    write_calls,
    write_summary,
)

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def add_arguments(commands: Any) -> None:
    """Add the command to the others."""
    parser = commands.add_parser(
        "benchmark",
        help="warm steps of predictive controllers beside the solvers of CasADi's wheel",
        description="Measure one Python call a step in warm closed loops with 1 %% noise, of this "
        "package and of the solvers in CasADi's wheel, each with its best settings. All get the "
        "same guesses; every answer is judged by residuals that are computed anew.",
    )
    parser.add_argument(
        "--family",
        nargs="+",
        metavar="NAME",
        default=[],
        help=f"problems (default: {' '.join(JUDGED)}; also linear; for tuning: {' '.join(TUNING)})",
    )
    parser.add_argument(
        "--solvers",
        nargs="+",
        metavar="NAME",
        default=[],
        help=f"solvers ({' '.join(PEERS)}) or single settings (sqpmethod/qrqp, …); default: all",
    )
    parser.add_argument("--seeds", type=int, metavar="K", help="loops of each problem (default 5)")
    parser.add_argument("--steps", type=int, metavar="K", help="warm steps a loop (default 60)")
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="N", default=[], help="horizons in place of its own"
    )
    parser.add_argument(
        "--horizon",
        action="store_true",
        help="time against the horizon instead: linear up to N = 800, van_der_pol up to 6400",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds for one setting on one problem; the rest is left out (default 60)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="1 loop of 10 steps, and the fastest settings only"
    )
    parser.add_argument(
        "--clock",
        choices=list(CLOCKS),
        default="wall",
        help="wall, or the processor time of the call, for a busy machine (default wall)",
    )
    parser.add_argument(
        "--compiled", action="store_true", help="with compiled functions; not available yet"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("output/benchmark"), metavar="DIR", help="for files"
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, print and write; 0, whoever was fastest.

    Raises:
        InputError: for an unknown family or solver, or a number out of range.
    """
    if arguments.compiled:
        raise InputError(
            "--compiled is not available yet: all solvers run CasADi's interpreted functions; "
            "leave it out"
        )
    short = arguments.quick or arguments.horizon
    seeds = count(arguments.seeds or (1 if short else 5), "--seeds", at_least=1)
    steps = count(arguments.steps or (10 if short else 60), "--steps", at_least=1)
    plan = Plan(range(1, seeds + 1), steps, positive(arguments.patience, "--patience"))
    words = arguments.solvers or (QUICK if short else PEERS)
    settings = [setting for setting in chosen(words) if loads(setting)]
    families = _families(arguments.family or list(HORIZONS if arguments.horizon else JUDGED))
    began = time.perf_counter()
    print(_heading(plan, settings), flush=True)
    calls: list[Call] = []
    for family in families:
        own = HORIZONS.get(family.name) if arguments.horizon else family.horizons
        for N in arguments.sizes or own or family.horizons:
            calls += measure(program(family, N), settings, plan, _Progress(began))
    _Progress(began).clear()
    _show(calls, arguments.out, arguments.horizon, arguments.clock)
    return 0


def _families(names: Sequence[str]) -> list[Family]:
    for name in names:
        if name not in FAMILIES:
            near = suggest(name, FAMILIES)
            raise InputError(f"no family {name!r}{near}; there are {', '.join(FAMILIES)}")
    return [FAMILIES[name] for name in dict.fromkeys(names)]


def _heading(plan: Plan, settings: Sequence[Setting]) -> str:
    lines = [
        f"casadi_hybrid {__version__}, CasADi {ca.CasadiMeta.version()}, "
        f"{os.cpu_count()} processors, load {_load()}",
        f"{len(plan.seeds)} loops of {plan.steps} warm steps each, interpreted functions, "
        f"{len(settings)} settings",
    ]
    many = [name for name in _THREADS if os.environ.get(name) != "1"]
    if many:
        lines.append(
            f"{' and '.join(many)} not set to 1: threads of BLAS may wait for each other and "
            "spoil the times"
        )
    return "\n".join(lines) + "\n"


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


class _Progress:
    """One line on a terminal that is written over; nothing elsewhere."""

    def __init__(self, began: float) -> None:
        self._began = began

    def __call__(self, words: str) -> None:
        if sys.stderr.isatty():
            seconds = time.perf_counter() - self._began
            print(f"\r\033[K{seconds:5.0f} s  {words}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _show(calls: Sequence[Call], folder: Path, against: bool, clock: str) -> None:
    """Print the tables and write the files."""
    from casadi_hybrid.benchmark.figure import horizons, profile, spreads  # noqa: PLC0415
    from casadi_hybrid.plotting import save  # noqa: PLC0415

    summary = summarize(calls, CLOCKS[clock])
    text = f"Clock: {clock}\n" + report(calls, summary)
    if against:
        text = horizon_report(summary) + "\n" + text
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    stem = "horizon" if against else "benchmark"
    paths = [folder / f"{stem}{end}" for end in (".txt", ".csv", "-calls.csv")]
    paths[0].write_text(text, encoding="utf-8")
    write_summary(summary, paths[1])
    write_calls(calls, paths[2])
    if against:
        paths.append(save(horizons(summary), folder / "horizon.png"))
    else:
        paths.append(save(profile(calls, summary, CLOCKS[clock]), folder / "profile.png"))
        paths.append(save(spreads(summary), folder / "times.png"))
    print("written: " + ", ".join(str(path) for path in paths))
