"""``casadi-hybrid export``: a solver of the user's problem as C99."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casadi_hybrid.cli.own import lacking_named, numbers_beside, stated_at
from casadi_hybrid.core.export.compare import compare
from casadi_hybrid.core.export.export import Export, check_name
from casadi_hybrid.core.export.layout import CLOSE
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.nlpsol.interface import nlpsol
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.output.files import writable
from casadi_hybrid.utils.output.text import show

# Names that are tried in a file if none is given.
FIRST = "problem", "mpc", "ocp", "nlp"


def add_arguments(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "export",
        help="a solver as C99 without dependencies, for machines without Python",
        description="Write a solver as C99, compile it with all warnings as "
        "errors, compare its answers with Python's, and print its memory. PROBLEM is "
        "an MPC, an OptimalControl, an nlp dictionary, a Problem or a solver in a module or a "
        "file, or a function there that returns one; or, in a tuple, one of these, a dictionary of "
        "arguments (p, lbx, …; of an MPC x and parameters) of the first solve, and a list of "
        "changes of them, solved one after another.",
    )
    parser.add_argument(
        "problem",
        metavar="PROBLEM",
        help="MODULE:NAME or FILE.py:NAME; without NAME it is "
        f"{' or '.join(map(repr, FIRST))}, whichever is there first",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="for the files")
    parser.add_argument(
        "--name", help="prefix of the names (default: name of the solver or the function)"
    )
    parser.add_argument(
        "--loops",
        action=argparse.BooleanOptionalAction,
        help="write repeated parts such as stages once (default: if the code is long otherwise)",
    )
    for flag, text in (
        ("--warm-only", "leave the search from any start out: less code and memory"),
        ("--no-compare", "write the files only; nothing is compiled"),
        ("--json", "print the figures as JSON"),
    ):
        parser.add_argument(flag, action="store_true", help=text)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return 1 if the answers of C and Python differ."""
    created = [path for path in (arguments.out, *arguments.out.parents) if not path.exists()]
    writable(arguments.out)
    try:
        written = export(arguments)
    finally:
        for path in created:  # leave nothing behind after an error
            if not any(path.iterdir()):
                path.rmdir()
    if arguments.no_compare or not arguments.json:
        show(written, written.to_dict() if arguments.json else None)
    if arguments.no_compare:
        return 0
    try:
        compared = compare(written)
    except BuildError as error:
        print(f"casadi-hybrid: error: {error}", file=sys.stderr)
        return 1
    show(compared, {**written.to_dict(), **compared.to_dict()} if arguments.json else None)
    solved, solves = compared.solved
    if solved and compared.difference <= CLOSE:
        return 0
    print(
        f"casadi-hybrid: error: C does not answer as Python does: it solved {solved} of {solves}, "
        f"its numbers are up to {compared.difference:.2g} from Python's, at most {CLOSE:g} is fine",
        file=sys.stderr,
    )
    return 1


def export(arguments: argparse.Namespace) -> Export:
    """Export the statement at a place, as :meth:`.NlpSolver.export` exports a solver."""
    from casadi_hybrid.control import MPC, OptimalControl  # noqa: PLC0415 - only for this

    place, name = arguments.problem, arguments.name
    label, value, namespace = stated_at(place, FIRST)
    parts = value if isinstance(value, tuple) else (value,)
    solver, values, loop = (*parts, {}, ())[:3] if len(parts) < 3 else parts[:3]
    if len(parts) > 3 or not isinstance(values, Mapping):
        raise InputError(
            f"{place} must return a problem, or a tuple of it, a dictionary of arguments and a "
            f"list of changes of them; it returned {value!r}"
        )
    options: dict[str, Any] = {"loops": arguments.loops, "cold": not arguments.warm_only, **values}
    if isinstance(solver, MPC | OptimalControl):
        if loop:
            raise InputError("the loop of a controller is its own; give no list of changes")
        with lacking_named(label):
            return solver.export(arguments.out, name=name, **options)
    if not isinstance(solver, Mapping | Problem | NlpSolver):
        raise InputError(
            f"{place} must return an nlp dictionary, a Problem, a solver of nlpsol, an "
            f"OptimalControl or an MPC, not {type(solver).__name__}"
        )
    if any(variable is solver for variable in namespace.values()):
        # The values beside a variable belong to it; a function returns its values itself.
        values_beside = numbers_beside(namespace).items()
        options = {k: value for k, value in values_beside if value is not solver} | options
    if not isinstance(solver, NlpSolver):
        solver = nlpsol(check_name(label if name is None else name), "hybrid", solver)
    return solver.export(arguments.out, name, loop=loop, **options)
