"""``casadi-hybrid run``: a scenario of a checkout, of the installed package or of a folder."""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from casadi_hybrid.utils.errors import InputError, suggest
from casadi_hybrid.utils.output.files import writable
from casadi_hybrid.utils.output.text import aligned, show

_PACKAGE = Path(__file__).resolve().parent.parent


def add_arguments(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "run",
        help="solve a scenario, have its answers judged, draw it",
        description="Run the file of a scenario in a folder of its own: it prints its answer and "
        "the verdict, and writes its figures there, beside report.txt with the printed text. "
        "Further options go to the file.",
        add_help=False,
    )
    name: Any = parser.add_argument(
        "scenario", nargs="?", help="name of the scenario; leave out to list them"
    )
    name.completer = lambda **_: scenario_summaries(scenario_folder())  # argcomplete's
    parser.add_argument("--output", type=Path, help="default: output/NAME", metavar="DIR")
    parser.add_argument("--scenarios", type=Path, help="folder of the scenarios", metavar="DIR")
    parser.add_argument("-h", "--help", action="store_true", help="this help, or the scenario's")
    parser.set_defaults(run=run, show_help=parser.format_help)


def run(arguments: argparse.Namespace) -> int:
    """Run a scenario, or list or describe them; return the exit code."""
    folder = arguments.scenarios or scenario_folder()
    names = scenario_summaries(folder)
    if not names:
        raise InputError(f"there are no scenarios in {folder}")
    if arguments.scenario is None:
        show(arguments.show_help())
        show("\n  ".join(["scenarios:", *aligned([*names.items()])]))
        return 0
    path = scenario_path(arguments.scenario, folder)
    if arguments.help:
        print(_docstring(path))
        return 0
    return run_file(path, writable(arguments.output or Path("output", path.stem)), arguments.rest)


def run_file(path: Path, output: Path, options: Sequence[str] = ()) -> int:
    """Run a file in a folder, which gets its figures and report.txt; return the exit code."""
    # The matrices of scenarios are small: one BLAS thread is fastest, by far on a busy machine.
    environment = {"OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1", **os.environ}
    command = [sys.executable, "-u", str(path.resolve()), *options]
    title = _docstring(path).partition("\n")[0]
    show(f"{path.stem}: {title}\n")
    with (
        subprocess.Popen(
            command, cwd=output, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
        ) as process,
        (output / "report.txt").open("w", encoding="utf-8") as report,
    ):
        for line in process.stdout or ():
            show(line.rstrip("\n"))
            report.write(line)
    files = " ".join(sorted(str(file) for file in output.iterdir()))
    show(f"\n{'Failed' if process.returncode else 'Accepted'}. Written: {files}")
    return process.returncode


def scenario_path(name: str, folder: Path) -> Path:
    """File of a scenario; raises InputError for an unknown name, with a similar one."""
    names = scenario_summaries(folder)
    if name not in names:
        raise InputError(f"no scenario {name!r} in {folder}{suggest(name, names)}")
    return folder / f"{name}.py"


def scenario_summaries(folder: Path) -> dict[str, str]:
    """First line of the docstring by scenario, a file with a function ``problem``; none is run."""
    summaries = {}
    for path in sorted(folder.glob("*.py")):
        module = _parsed(path)
        if any(getattr(node, "name", "") == "problem" for node in module.body):
            summaries[path.stem] = (ast.get_docstring(module) or "").partition("\n")[0]
    return summaries


def _docstring(path: Path) -> str:
    return ast.get_docstring(_parsed(path)) or ""


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def scenario_folder() -> Path:
    """Folder ``./scenarios`` if it has scenarios, or the one of the checkout or the package."""
    for parent in (Path.cwd(), _PACKAGE.parent, _PACKAGE):
        folder = parent / "scenarios"
        if folder.is_dir() and scenario_summaries(folder):
            return folder
    raise InputError(
        "no folder 'scenarios' here, in the package or beside it; name one with --scenarios"
    )
