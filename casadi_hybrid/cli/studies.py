"""``casadi-hybrid study`` and ``reproduce``: long runs that can be taken up again."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.formats import add_figures
from casadi_hybrid.basics.record.collect import Unfinished
from casadi_hybrid.basics.record.folder import writable

_STOPPED = 130


def add_arguments(commands: Any) -> None:
    """Add the subcommands."""
    _add_reproduce(commands)
    _add_study(commands)


def _add_reproduce(commands: Any) -> None:
    reproduce = commands.add_parser(
        "reproduce",
        help="the paper's tables beside the printed ones",
        description="Run the paper's experiment and print its tables beside the printed ones, "
        "what they do not show (who stays below 1e-3, who arrives), and what was fitted. "
        "Finished instances are kept in DIR/record: a run that was cut short goes on from there.",
    )
    reproduce.add_argument(
        "--instances",
        type=int,
        default=50,
        metavar="N",
        help="problems per level, the five fitted seeds among them (default 50)",
    )
    reproduce.add_argument(
        "--shape",
        type=int,
        nargs=2,
        default=(3, 5),
        metavar=("N", "M"),
        help="variables and constraints (default: the paper's 3 5)",
    )
    _add_common(reproduce, "output/reproduce", "tables")


def _add_study(commands: Any) -> None:
    study = commands.add_parser(
        "study",
        help="a population study: shape × condition × start radius × seeds × rules",
        description="Run rules on instances of many shapes and condition numbers; write one "
        "table and one figure. A study that was cut short goes on where it stopped; the same "
        "numbers come out whatever carries the work.",
    )
    study.add_argument(
        "--shapes",
        type=_shape,
        nargs="+",
        default=[(3, 5), (5, 3), (8, 5), (20, 12)],
        metavar="NxM",
        help="variables x constraints (default: 3x5 5x3 8x5 20x12)",
    )
    study.add_argument(
        "--conditions",
        type=float,
        nargs="+",
        default=[1, 2, 3, 5, 8, 13, 30, 100, 1e3, 1e4],
        metavar="K",
        help="condition numbers of the Jacobian at x* (default: 1 2 3 5 8 13 30 100 1e3 1e4)",
    )
    study.add_argument(
        "--radii",
        type=float,
        nargs="+",
        default=[0.1, 1.0],
        metavar="R",
        help="distances of the start from x* (default: 0.1 1.0)",
    )
    study.add_argument(
        "--seeds", type=int, default=50, metavar="N", help="instances of each (default 50)"
    )
    study.add_argument(
        "--first-seed",
        type=int,
        default=100,
        metavar="S",
        help="number of the first (100; the rules' constants were chosen on numbers below)",
    )
    study.add_argument(
        "--rules",
        nargs="+",
        default=["auto", "whitened", "closed-form", "matrix-lookahead", "matrix-memory"],
        metavar="RULE",
        help="names of methods (default: auto whitened closed-form matrix-lookahead matrix-memory)",
    )
    study.add_argument(
        "--budget", type=int, default=500, metavar="ITER", help="iterations a run (default 500)"
    )
    study.add_argument(
        "--table",
        choices=("csv", "parquet"),
        default="csv",
        help="the record: runs.csv, or runs.parquet, which needs pyarrow (default csv)",
    )
    _add_common(study, "output/study", "table")


def _add_common(command: argparse.ArgumentParser, folder: str, shown: str) -> None:
    command.add_argument(
        "--output", type=Path, default=Path(folder), metavar="DIR", help="for files"
    )
    add_figures(command)
    command.add_argument("--workers", type=int, metavar="W", help="processes (default: cores)")
    command.add_argument(
        "--cluster",
        metavar="WHERE",
        help="a Dask cluster in place of processes: 'local', or the address of its scheduler",
    )
    command.add_argument("--fresh", action="store_true", help="forget what DIR holds, start over")
    command.add_argument("--json", action="store_true", help=f"print the {shown} as JSON")


def _shape(text: str) -> tuple[int, int]:
    n, _, m = text.partition("x")
    if not (n.isdecimal() and m.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; write NxM, such as 5x3")
    return int(n), int(m)


def study(arguments: argparse.Namespace) -> int:
    """Run a population study; 2 where something could not be written."""
    from casadi_hybrid.study import Plan, Settings, run_study, write  # noqa: PLC0415

    _check_workers(arguments)
    plan = Plan(
        tuple(arguments.shapes),
        tuple(arguments.conditions),
        tuple(arguments.radii),
        arguments.seeds,
        arguments.first_seed,
    )
    settings = Settings(tuple(arguments.rules), arguments.budget)

    def run() -> Any:
        return run_study(
            plan, settings, arguments.output, workers=arguments.workers,
            cluster=arguments.cluster, table=arguments.table, fresh=arguments.fresh,
        )  # fmt: skip

    return _finish(arguments, run, write)


def reproduce(arguments: argparse.Namespace) -> int:
    """Run the paper's experiment; 2 where something could not be written."""
    from casadi_hybrid.paper.files import write  # noqa: PLC0415
    from casadi_hybrid.paper.reproduce import reproduce as run_all  # noqa: PLC0415

    if arguments.instances < 1:
        raise InputError(f"--instances must be at least 1, got {arguments.instances}")
    if min(arguments.shape) < 1:
        raise InputError(f"--shape needs two positive numbers, got {arguments.shape}")
    _check_workers(arguments)

    def run() -> Any:
        return run_all(
            arguments.instances, shape=tuple(arguments.shape), workers=arguments.workers,
            cluster=arguments.cluster, folder=writable(arguments.output) / "record",
            fresh=arguments.fresh,
        )  # fmt: skip

    return _finish(arguments, run, write)


def _check_workers(arguments: argparse.Namespace) -> None:
    if arguments.workers is not None and arguments.workers < 1:
        raise InputError(f"--workers must be at least 1, got {arguments.workers}")


def _finish(
    arguments: argparse.Namespace,
    run: Callable[[], Any],
    write: Callable[[Any, Path, str], list[Path]],
) -> int:
    """Run, print and write: what was found is printed first, whatever becomes of the files."""
    try:
        found = run()
    except Unfinished as stop:
        if stop.done:
            print(json.dumps(stop.found.to_dict()) if arguments.json else stop.found, flush=True)
        print(
            f"\ncasadi-hybrid: interrupted after {stop.done} of {stop.total}, which are kept in "
            f"{arguments.output}; the same command goes on from there",
            file=sys.stderr,
        )
        return _STOPPED
    if not arguments.json:
        print(found, flush=True)
    paths, failure = [], found.unwritten
    try:
        paths = write(found, arguments.output, arguments.figures)
    except OSError as error:
        failure = failure or str(error)
    files = [str(path) for path in paths]
    if arguments.json:
        print(json.dumps({**found.to_dict(), "files": files}))
    elif files:
        print("\nwritten: " + ", ".join(files))
    if failure:
        print(f"casadi-hybrid: error: not everything was written: {failure}", file=sys.stderr)
        return 2
    return 0
