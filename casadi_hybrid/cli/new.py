"""``casadi-hybrid new``: a commented start file for the user's problem."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from casadi_hybrid.cli.running import scenario_folder, scenario_path
from casadi_hybrid.utils.errors import InputError

_TEMPLATES = Path(__file__).with_name("templates")
KINDS = {
    "ocp": "an optimal control problem (default)",
    "mpc": "predictive control",
    "nlp": "a nonlinear program",
}


def add_arguments(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "new",
        help="write a commented start file that runs",
        description="Write NAME.py, a commented start file that runs as it is: an optimal control "
        "problem, a predictive controller in closed loop, a plain nonlinear program, or a copy of "
        "a scenario.",
    )
    parser.add_argument("name", metavar="NAME", help="of the file, without .py; may have a folder")
    kind = parser.add_mutually_exclusive_group()
    for name, text in KINDS.items():
        kind.add_argument(f"--{name}", dest="kind", action="store_const", const=name, help=text)
    kind.add_argument("--from", dest="scenario", metavar="SCENARIO", help="a copy of a scenario")
    parser.add_argument("--force", action="store_true", help="write over a file that exists")
    parser.set_defaults(kind="ocp", run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the file, print the command that runs it, and return 0."""
    name = arguments.name
    path = Path(name if name.endswith(".py") else f"{name}.py")
    if not re.fullmatch(r"[A-Za-z_]\w*", path.stem):
        raise InputError(
            f"NAME must be a word of letters, digits and _ so that it can be imported, got {name!r}"
        )
    if path.exists() and not arguments.force:
        raise InputError(f"{path} exists; take another name, or --force to write over it")
    if arguments.scenario is None:
        source = _TEMPLATES / f"{arguments.kind}.py"
    else:
        source = scenario_path(arguments.scenario, scenario_folder())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.read_bytes())
    print(f"{path} is written. Run it: python {path}")
    return 0
