"""``casadi-hybrid export``: the problem that a user's function states, written as C99."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.basics.record.folder import writable
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.casadi_api.solver import NlpSolver
from casadi_hybrid.engine.export.export import Export, check_name
from casadi_hybrid.engine.export.layout import CLOSE
from casadi_hybrid.engine.export.measure import measure
from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.problem import Problem

FIRST = "problem", "mpc", "ocp"
"""What is taken where nothing is named: the first that is there."""
_PARTS = 3


@dataclass(frozen=True, slots=True)
class Given:
    """What a user's function returned.

    Attributes:
        name: of the function.
        problem: an nlp dictionary, a Problem, a solver, an OptimalControl or an MPC.
        arguments: of the first solve.
        loop: changes of the arguments for the solves after it.
    """

    name: str
    problem: Any
    arguments: Mapping[str, Any]
    loop: Iterable[Mapping[str, Any]]


def add_arguments(commands: Any) -> None:
    """Add the command to the others."""
    parser = commands.add_parser(
        "export",
        help="a solver as C99 without dependencies, for machines without Python",
        description="Write a solver as C99, compile it with all warnings as "
        "errors, compare it with Python, and print its memory, stack and instructions. PROBLEM is "
        "an MPC or an OptimalControl in a module or a file, or a function there that returns one, "
        "an nlp dictionary, a Problem or a solver; or, in a tuple, one of these, a dictionary of "
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
        "--name", help="what names begin with (default: that of the solver or the function)"
    )
    parser.add_argument(
        "--loops",
        action=argparse.BooleanOptionalAction,
        help="write what repeats, as stages do, once (default: where straight code is long)",
    )
    parser.add_argument(
        "--warm-only",
        action="store_true",
        help="leave the search from any start out: less code and memory",
    )
    parser.add_argument(
        "--no-measure", action="store_true", help="write the files only; nothing is compiled"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; its exit code: 1 where C does not answer as Python does.

    Raises:
        InputError: for wrong input.
        OSError: where the folder cannot be written to.
    """
    writable(arguments.out)
    written = export(
        read(arguments.problem), arguments.out, arguments.name, arguments.loops,
        cold=not arguments.warm_only,
    )  # fmt: skip
    if not arguments.json:
        print(written, flush=True)
    if arguments.no_measure:
        if arguments.json:
            print(json.dumps(written.to_dict()))
        return 0
    try:
        measured = measure(written)
    except BuildError as error:
        print(f"casadi-hybrid: error: {error}", file=sys.stderr)
        return 1
    readme = written.folder / "README.md"
    text = f"\n## Measured on the machine that wrote it\n\n```text\n{measured}\n```\n"
    readme.write_text(readme.read_text(encoding="utf-8") + text, encoding="utf-8")
    print(json.dumps({**written.to_dict(), **measured.to_dict()}) if arguments.json else measured)
    solved, solves = measured.solved
    if solved and measured.difference <= CLOSE:
        return 0
    print(
        f"casadi-hybrid: error: C does not answer as Python does: it solved {solved} of {solves}, "
        f"its numbers are up to {measured.difference:.2g} from Python's, at most {CLOSE:g} is fine",
        file=sys.stderr,
    )
    return 1


def read(place: str) -> Given:
    """Return what ``MODULE:NAME`` or ``FILE.py:NAME`` names, or the function of that name returns.

    Raises:
        InputError: where there is none, or it is something else than an nlp dictionary, a Problem,
            a solver, an OptimalControl or an MPC, with arguments and a list of changes of them
            beside it or not.
    """
    where, colon, name = place.rpartition(":")
    if not colon or name.endswith(".py"):  # a path may have a colon of its own
        where, name = place, ""
    module = module_at(where)
    name = name or next((word for word in FIRST if hasattr(module, word)), FIRST[0])
    found = getattr(module, name, None)
    if not _named(found):
        if not callable(found):
            own = module.__name__
            known = [
                word for word, value in vars(module).items()
                if _named(value) or (callable(value) and value.__module__ == own)
            ]  # fmt: skip
            raise InputError(f"{where} has no function {name!r}{suggest(name, known)}")
        found = found()
    parts = found if isinstance(found, tuple) else (found,)
    problem, arguments, loop = (*parts, {}, ())[:_PARTS] if len(parts) < _PARTS else parts[:_PARTS]
    if len(parts) > _PARTS or not isinstance(arguments, Mapping):
        raise InputError(
            f"{place} must return a problem, or a tuple of it, a dictionary of arguments and a "
            f"list of changes of them; it returned {found!r}"
        )
    if not isinstance(problem, Mapping | Problem | NlpSolver) and not _named(problem):
        raise InputError(
            f"{place} must return an nlp dictionary, a Problem, a solver of nlpsol, an "
            f"OptimalControl or an MPC, not {type(problem).__name__}"
        )
    return Given(name, problem, arguments, loop)


def export(
    given: Given,
    folder: Path,
    name: str | None = None,
    loops: bool | None = None,
    *,
    cold: bool = True,
) -> Export:
    """Write what was read, see :meth:`casadi_hybrid.casadi_api.solver.NlpSolver.export`.

    Raises:
        InputError: as there.
        OSError: as there.
    """
    solver = given.problem
    if _named(solver):
        if given.loop:
            raise InputError("the loop of a controller is its own; give no list of changes")
        written = solver.export(folder, name=name, loops=loops, cold=cold, **given.arguments)
        assert isinstance(written, Export)
        return written
    if not isinstance(solver, NlpSolver):
        solver = nlpsol(check_name(given.name if name is None else name), "hybrid", solver)
    return solver.export(folder, name, loop=given.loop, loops=loops, cold=cold, **given.arguments)


def _named(value: Any) -> bool:
    """Whether it is an optimal control problem or a controller, which are exported by name."""
    from casadi_hybrid.control import MPC, OptimalControl  # noqa: PLC0415 - only for this

    return isinstance(value, MPC | OptimalControl)


def module_at(where: str) -> ModuleType:
    """Import a module by its name, or from a file.

    Both stay among Python's modules: a problem may call what lies in its file, as a ``ca.Callback``
    that nothing else keeps, and a dataclass looks its module up. A file's module has a name of its
    own there, since a ``queue.py`` of the user's is not Python's.

    Raises:
        InputError: where there is none. What the module itself raises is passed on.
    """
    path = Path(where)
    if path.suffix != ".py":
        try:
            sys.path.insert(0, "")
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            message = f"there is no module {error.name!r}; a file's name ends in .py"
            raise InputError(message) from None
        finally:
            sys.path.remove("")
    if not path.is_file():
        raise InputError(f"there is no file {where}")
    name = f"casadi_hybrid_file_{path.stem.replace('.', '_')}"
    while name in sys.modules:
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    beside = str(path.resolve().parent)
    sys.path.insert(0, beside)
    try:
        with redirect_stdout(sys.stderr):  # what a command prints is its own
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        sys.path.remove(beside)
    if beside not in sys.path:
        sys.path.append(beside)  # for what the file's functions import when they are called
    return module
