"""``casadi-hybrid reproduce``, ``study`` and ``claims``: the paper's experiment and theorems."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from casadi_hybrid.utils.inputs import count
from casadi_hybrid.utils.output.files import add_figures, writable
from casadi_hybrid.utils.output.text import show
from casadi_hybrid.utils.record.collect import Unfinished

_STOPPED = 130


def _shape(text: str) -> tuple[int, int]:
    n, _, m = text.partition("x")
    if not (n.isdecimal() and m.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; write NxM, such as 5x3")
    return int(n), int(m)


# Flag, type, nargs, metavar and help. Omitted options take the defaults of the functions.
Option = tuple[str, Callable[[str], Any], int | str | None, str | tuple[str, str], str]
_REPRODUCE: Sequence[Option] = (
    ("--instances", int, None, "N", "problems per level, five of them fitted seeds (default 50)"),
    ("--shape", int, 2, ("N", "M"), "variables and constraints (default: the paper's 3 5)"),
)
_RULES = "methods (default: auto whitened closed-form matrix-lookahead matrix-memory)"
_STUDY: Sequence[Option] = (
    ("--shapes", _shape, "+", "NxM", "variables x constraints (default: 3x5 5x3 8x5 20x12)"),
    ("--conditions", float, "+", "K", "of J at x* (default: 1 2 3 5 8 13 30 100 1e3 1e4)"),
    ("--radii", float, "+", "R", "distances of the start from x* (default: 0.1 1.0)"),
    ("--seeds", int, None, "N", "instances of each (default 50)"),
    ("--first-seed", int, None, "S", "the first (100; below it the rules' constants were chosen)"),
    ("--rules", str, "+", "RULE", _RULES),
    ("--budget", int, None, "ITER", "iterations a run (default 500)"),
)
_CLAIMS: Sequence[Option] = (
    ("--seed", int, None, "S", "of instances, matrices and noise (0)"),
    ("--iterations", int, None, "T", "steps of every trajectory (200)"),
    ("--models", int, None, "K", "local models of each design claim (6)"),
)


def add_arguments(commands: Any) -> None:
    """Add the subcommands."""
    parser = commands.add_parser(
        "reproduce",
        help="the paper's tables beside the printed ones",
        description="Run the paper's experiment and print its tables beside the printed ones, "
        "the shares that stay below 1e-3 and that converge, and the fitted constants. "
        "Finished instances are kept in DIR/record: an interrupted run continues from there.",
    )
    _add(parser, reproduce, _REPRODUCE)
    _add_common(parser, "output/reproduce", "tables")
    parser = commands.add_parser(
        "study",
        help="a population study: shape × condition × start radius × seeds × rules",
        description="Run rules on instances of many shapes and condition numbers; write one "
        "table and one figure. An interrupted study continues where it stopped. The results do not "
        "depend on the number of processes.",
    )
    _add(parser, study, _STUDY)
    parser.add_argument(
        "--table",
        choices=("csv", "parquet"),
        default="csv",
        help="runs.csv, or runs.parquet, which needs pyarrow (default csv)",
    )
    _add_common(parser, "output/study", "table")
    parser = commands.add_parser(
        "claims",
        help="the paper's theorems, checked by running them",
        description="Run every theorem's claim and the counter-example to each hypothesis.",
    )
    _add(parser, claims, _CLAIMS)
    parser.add_argument("--json", action="store_true", help="print the claims as JSON")


def _add(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
    options: Sequence[Option],
) -> None:
    parser.set_defaults(run=run)
    for flag, kind, nargs, metavar, text in options:
        parser.add_argument(
            flag, type=kind, nargs=nargs, metavar=metavar, help=text, default=argparse.SUPPRESS
        )


def _values(arguments: argparse.Namespace, options: Sequence[Option]) -> dict[str, Any]:
    """Return the options that the user gave, with lists as tuples."""
    names = (flag.removeprefix("--").replace("-", "_") for flag, *_ in options)
    values = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


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
    command.add_argument(
        "--fresh", action="store_true", help="delete the record in DIR and start over"
    )
    command.add_argument("--json", action="store_true", help=f"print the {shown} as JSON")


def _how(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the run itself."""
    if arguments.workers is not None:
        count(arguments.workers, "--workers", at_least=1)
    return {key: getattr(arguments, key) for key in ("workers", "cluster", "fresh")}


def study(arguments: argparse.Namespace) -> int:
    """Run a population study; return 2 if a file could not be written."""
    from casadi_hybrid.paper.study import Plan, Settings, run_study, write  # noqa: PLC0415

    values, how = _values(arguments, _STUDY), {"table": arguments.table, **_how(arguments)}
    settings = Settings(**{key: values.pop(key) for key in ("rules", "budget") if key in values})
    run = partial(run_study, Plan(**values), settings, arguments.output, **how)
    return _finish(arguments, run, write)


def reproduce(arguments: argparse.Namespace) -> int:
    """Run the paper's experiment; return 2 if a file could not be written."""
    from casadi_hybrid.paper.experiment.files import write  # noqa: PLC0415
    from casadi_hybrid.paper.experiment.reproduce import reproduce as run_all  # noqa: PLC0415

    values, how = _values(arguments, _REPRODUCE), _how(arguments)
    for flag, numbers in values.items():
        for number in numbers if flag == "shape" else (numbers,):
            count(number, f"--{flag}", at_least=1)
    folder = writable(arguments.output) / "record"
    return _finish(arguments, partial(run_all, **values, folder=folder, **how), write)


def claims(arguments: argparse.Namespace) -> int:
    """Check the claims; return 1 if one does not hold."""
    from casadi_hybrid.paper.claims import check_all, table  # noqa: PLC0415 - only for this command

    checked = check_all(**_values(arguments, _CLAIMS))
    show(table(checked), [claim.to_dict() for claim in checked] if arguments.json else None)
    return 0 if all(claim.held for claim in checked) else 1


def _finish(
    arguments: argparse.Namespace,
    run: Callable[[], Any],
    write: Callable[[Any, Path, str], list[Path]],
) -> int:
    """Run, print and write. The result is printed before its files, which may fail."""
    try:
        result = run()
    except Unfinished as stop:
        if stop.done:
            show(stop.found, stop.found.to_dict() if arguments.json else None)
        print(
            f"\ncasadi-hybrid: interrupted after {stop.done} of {stop.total}, which are kept in "
            f"{arguments.output}; the same command goes on from there",
            file=sys.stderr,
        )
        return _STOPPED
    if not arguments.json:
        show(result)
    paths, failure = [], result.unwritten
    try:
        paths = write(result, arguments.output, arguments.figures)
    except OSError as error:
        failure = failure or str(error)
    files = [str(path) for path in paths]
    if arguments.json or files:
        data = {**result.to_dict(), "files": files} if arguments.json else None
        show(f"\nwritten: {', '.join(files)}", data)
    if failure:
        print(f"casadi-hybrid: error: not everything was written: {failure}", file=sys.stderr)
        return 2
    return 0
