"""``casadi-hybrid export``: the problem that a user's function states, written as C99."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.casadi_api.interface import nlpsol
from casadi_hybrid.casadi_api.solver import NlpSolver
from casadi_hybrid.engine.export.export import Export, check_name
from casadi_hybrid.problem.problem import Problem

FUNCTION = "problem"
"""The function that is called where none is named."""
_PARTS = 3


@dataclass(frozen=True, slots=True)
class Given:
    """What a user's function returned.

    Attributes:
        name: of the function.
        problem: an nlp dictionary, a Problem or a solver.
        arguments: of the first solve.
        loop: changes of the arguments for the solves after it.
    """

    name: str
    problem: Any
    arguments: Mapping[str, Any]
    loop: Iterable[Mapping[str, Any]]


def read(place: str) -> Given:
    """Call the function that ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION`` names.

    Raises:
        InputError: where there is no such function, or it returns something else than an nlp
            dictionary, a Problem or a solver, with arguments and a list of changes of them beside
            it or not.
    """
    where, colon, name = place.rpartition(":")
    if not colon or name.endswith(".py"):  # a path may have a colon of its own
        where, name = place, FUNCTION
    module = _module(where)
    function = getattr(module, name, None)
    if not callable(function):
        known = [word for word, value in vars(module).items() if callable(value)]
        raise InputError(f"{where} has no function {name!r}{suggest(name, known)}")
    found = function()
    parts = found if isinstance(found, tuple) else (found,)
    problem, arguments, loop = (*parts, {}, ())[:_PARTS] if len(parts) < _PARTS else parts[:_PARTS]
    if len(parts) > _PARTS or not isinstance(arguments, Mapping):
        raise InputError(
            f"{place} must return a problem, or a tuple of it, a dictionary of arguments and a "
            f"list of changes of them; it returned {found!r}"
        )
    if not isinstance(problem, Mapping | Problem | NlpSolver):
        raise InputError(
            f"{place} must return an nlp dictionary, a Problem or a solver of nlpsol, not "
            f"{type(problem).__name__}"
        )
    return Given(name, problem, arguments, loop)


def export(
    given: Given, folder: Path, name: str | None = None, loops: bool | None = None
) -> Export:
    """Write what was read, see :meth:`casadi_hybrid.casadi_api.solver.NlpSolver.export`.

    Raises:
        InputError: as there.
        OSError: as there.
    """
    solver = given.problem
    if not isinstance(solver, NlpSolver):
        solver = nlpsol(check_name(given.name if name is None else name), "hybrid", solver)
    return solver.export(folder, name, loop=given.loop, loops=loops, **given.arguments)


def _module(where: str) -> ModuleType:
    """A module by its name, or from a file."""
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
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module
