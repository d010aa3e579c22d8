"""``casadi-hybrid run``: a scenario of a checkout, of the installed package or of a folder."""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from casadi_hybrid.utils.errors import InputError, suggest
from casadi_hybrid.utils.output.text import aligned

_PACKAGE = Path(__file__).resolve().parent.parent


def add_arguments(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "run",
        help="solve a scenario, have its answers judged, draw it",
        description="Solve a scenario, have its answers judged and draw it. Further "
        "options go to the scenario; --json prints its tables for a program.",
        add_help=False,
    )
    name: Any = parser.add_argument(
        "scenario", nargs="?", help="name of the scenario; leave out to list them"
    )
    name.completer = lambda **_: scenario_summaries(scenario_folder())  # argcomplete's
    parser.add_argument("--scenarios", type=Path, help="folder of the scenarios", metavar="DIR")
    parser.add_argument("-h", "--help", action="store_true", help="this help, or the scenario's")
    parser.set_defaults(run=run, show_help=parser.format_help)


def run(arguments: argparse.Namespace) -> int:
    """Run a scenario with the rest of the options, or list them; return the exit code."""
    folder = arguments.scenarios or scenario_folder()
    names = scenario_summaries(folder)
    if not names:
        raise InputError(f"there are no scenarios in {folder}")
    if arguments.scenario is None:
        print(arguments.show_help())
        print("scenarios:", *aligned([*names.items()]), sep="\n  ")
        return 0
    name = arguments.scenario
    if name not in names:
        raise InputError(f"no scenario {name!r} in {folder}{suggest(name, names)}")
    # The matrices of scenarios are small: one BLAS thread is fastest, by far on a busy machine.
    environment = {"OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1", **os.environ}
    command = [sys.executable, str(folder / f"{name}.py"), *arguments.rest]
    if arguments.help:
        command.append("--help")
    else:
        print(f"{name}: {names[name]}", file=sys.stderr, flush=True)
    return subprocess.run(command, env=environment, check=False).returncode


def scenario_summaries(folder: Path) -> dict[str, str]:
    """Scenarios of a folder by name, with their one-line SUMMARY; no module is executed."""
    summaries: dict[str, str] = {}
    for path in sorted(folder.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SUMMARY":
                summaries[path.stem] = ast.literal_eval(node.value)
    return summaries


def scenario_folder() -> Path:
    """Folder ``./scenarios`` if it has scenarios, or the one of the checkout or the package."""
    for parent in (Path.cwd(), _PACKAGE.parent, _PACKAGE):
        folder = parent / "scenarios"
        if folder.is_dir() and scenario_summaries(folder):
            return folder
    raise InputError(
        "no folder 'scenarios' here, in the package or beside it; name one with --scenarios"
    )
