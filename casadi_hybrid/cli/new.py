"""``casadi-hybrid new``: a commented start file for the user's problem."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from casadi_hybrid.cli.running import scenario_folder, scenario_summaries
from casadi_hybrid.utils.errors import InputError, suggest

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
        text = _TEMPLATES.joinpath(f"{arguments.kind}.py").read_text("utf-8")
    else:
        text = _copy(arguments.scenario, path.stem)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"{path} is written. Run it: python {path}")
    return 0


def _copy(scenario: str, name: str) -> str:
    """Text of a scenario under another name, with the path to the modules shared by scenarios."""
    folder = scenario_folder()
    names = scenario_summaries(folder)
    if scenario not in names:
        raise InputError(f"no scenario {scenario!r} in {folder}{suggest(scenario, names)}")
    text = (folder / f"{scenario}.py").read_text("utf-8")
    text = text.replace(f'NAME = "{scenario}"', f'NAME = "{name}"', 1)
    # The modules shared by scenarios are no part of the package's interface.
    begin = re.search(r"^(?:import|from) (?!__future__)", text, flags=re.MULTILINE)
    assert begin is not None
    path = (
        "import sys\n\nfrom casadi_hybrid.cli.running import scenario_folder\n\n"
        "# The modules that this file shares with the scenarios (drawing, reporting, solving, …).\n"
        "sys.path.insert(0, str(scenario_folder()))\n\n"
    )
    return text[: begin.start()] + path + text[begin.start() :]
