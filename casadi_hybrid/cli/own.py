"""A user's own problem: what a file states, as a problem with its numbers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from traceback import extract_tb
from types import ModuleType, SimpleNamespace
from typing import Any

import casadi as ca

from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.nlpsol.solver import NlpSolver
from casadi_hybrid.utils.errors import InputError, suggest

NAMES = ("problem", "nlp", "opti", "ocp")
"""What is looked for in a file where nothing is named."""
NUMBERS = ("x0", "p", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0")
ANSWER = "answer"
TOGETHER = "numbers"
"""A dictionary of numbers, for files in which p is the symbol."""


@dataclass(frozen=True)
class Own:
    """A problem of the user's.

    Attributes:
        name: of what was read.
        problem: it, with its default numbers.
        numbers: those of the solve that stand beside it, by nlpsol's names.
        answer: a point that stands in the file to be judged; None without one.
        stated: the optimal control problem that it is the program of; None without one.
    """

    name: str
    problem: Problem
    numbers: dict[str, Any] = field(default_factory=dict)
    answer: Any = None
    stated: Any = None


def read(place: str) -> Own:
    """Read ``FILE.nl``, ``FILE.py``, ``FILE.py:NAME`` or ``MODULE:NAME``.

    NAME is a variable, or a function that is called: a Problem, CasADi's dictionary, a ca.Opti, a
    solver of nlpsol, an optimal control problem, or a tuple of one of these and a dictionary of
    numbers, of the last as its ``solve`` takes them. Beside a dictionary or a solver the file's own
    variables x0, p, lbx, … are its numbers, or a dictionary of them, also beside the last.
    """
    if place.endswith(".nl"):
        if not Path(place).is_file():
            raise InputError(f"there is no file {place}")
        return Own(Path(place).stem, Problem.from_nlp(place, name=Path(place).stem))
    name, found, there = stated_at(place, NAMES)
    parts = found if isinstance(found, tuple) else (found,)
    numbers = parts[1] if len(parts) > 1 else {}
    together, controlled = there.get(TOGETHER), hasattr(parts[0], "to_verify")
    if isinstance(together, Mapping) and controlled:
        numbers = numbers or together
    if not isinstance(numbers, Mapping):
        raise InputError(f"what stands beside the problem in {place} must be a dictionary")
    if controlled:  # an optimal control problem, or several in one
        return _controlled(name, parts[0], numbers, there.get(ANSWER))
    problem, beside = _problem(parts[0], place, name)
    if isinstance(parts[0], Mapping | NlpSolver):
        numbers = {**numbers_beside(there), **numbers}
    for word in numbers:
        if word not in NUMBERS:
            raise InputError(f"{place}: {word!r} is no number of a solve{suggest(word, NUMBERS)}")
    return Own(name, problem, {**beside, **numbers}, there.get(ANSWER))


def numbers_beside(there: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a solve among the variables of a file, or in a dictionary there."""
    together, symbols = there.get(TOGETHER), (ca.SX, ca.MX)
    if not isinstance(together, Mapping) or not set(NUMBERS) & set(together):
        together = {}
    known = {word: value for word in NUMBERS if (value := there.get(word)) is not None}
    plain = {k: v for k, v in known.items() if not (callable(v) or isinstance(v, symbols))}
    return {**plain, **together}


def _controlled(name: str, ocp: Any, numbers: Mapping[str, Any], answer: Any) -> Own:
    """An optimal control problem with the numbers of one solve; its limits may follow them."""
    with lacking_named(name):
        program = ocp.numbers(**{str(word): value for word, value in numbers.items()})
    none = {"x": program.x0, "lam_x": program.x0, "lam_g": program.lbg, "f": 0.0}
    begun = ocp.solution(program, none, {})
    stated = SimpleNamespace(
        to_verify=lambda found: ocp.to_verify(found if hasattr(found, "program") else begun)
    )
    return Own(name, stated.to_verify(None).problem, program.arguments, answer, stated)


@contextmanager
def lacking_named(own: str) -> Iterator[None]:
    """Say of a reference that was not given how the file of a problem gives it."""
    from casadi_hybrid.control.model.signals import LackingError  # noqa: PLC0415 - only for this

    try:
        yield
    except LackingError as error:
        raise InputError(
            f"{error}. Here it stands in the file, problem = ({own}, {{…}}) with a dictionary of "
            "such numbers, and the command reads FILE.py:problem"
        ) from None


def stated_at(place: str, names: Sequence[str]) -> tuple[str, Any, Mapping[str, Any]]:
    """The name of ``FILE.py:NAME`` or ``MODULE:NAME``, what it is, and the variables beside it.

    What a function returns stands for it. Without a name the first of ``names`` that is there.
    """
    where, colon, name = place.rpartition(":")
    if not colon or name.endswith(".py"):  # a path may have a colon of its own
        where, name = place, ""
    with _raising(where):
        there = vars(module_at(where))
    name = name or next((known for known in names if known in there), "")
    if name not in there:
        looked = repr(name) if name else f"{', '.join(names[:-1])} or {names[-1]}"
        own = there["__name__"]
        known = [word for word, value in there.items() if word[0] != "_" and _states(value, own)]
        near = suggest(name, known) if name else ""
        raise InputError(f"{where} has no {looked}{near}; name what states it as FILE.py:NAME")
    found = there[name]
    if callable(found) and not isinstance(found, NlpSolver | ca.Function):
        needed = [str(p) for p in signature(found).parameters.values() if p.default is p.empty]
        if missing := ", ".join(said for said in needed if said[0] != "*"):
            advice = f"write a function there that needs nothing, as def mine(): return {name}(…)"
            raise InputError(f"{name} of {where} needs {missing}; {advice}, and name that")
        with _raising(f"{name} of {where}"):
            found = found()
    return name, found, there


@contextmanager
def _raising(what: str) -> Iterator[None]:
    """Raise what the user's own code raises as a sentence with its line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        others, at = (str(Path(__file__).parents[1]), sys.prefix, sys.base_prefix, "<frozen"), ""
        for part in extract_tb(error.__traceback__):
            at = at if part.filename.startswith(others) else f"{part.filename}:{part.lineno}: "
        raise InputError(f"{at}{what} raised {type(error).__name__}: {error}") from error


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


def _states(value: Any, module: str) -> bool:
    """Whether a problem can be read from it; not from what the module only imports."""
    if callable(value) and not hasattr(value, "export"):
        return bool(getattr(value, "__module__", "") == module)
    kinds = Mapping | Problem | ca.Opti | tuple
    return isinstance(value, kinds) or hasattr(type(value), "export")


def _problem(found: Any, place: str, name: str) -> tuple[Problem, dict[str, Any]]:
    """The problem, and the numbers that it brings."""
    if isinstance(found, Problem):
        return found, {}
    if isinstance(found, Mapping | NlpSolver):
        nlp = found.oracle() if isinstance(found, NlpSolver) else found
        return Problem.from_nlp(nlp, name=name), {}
    if isinstance(found, ca.Opti):
        return _of_opti(found, name)
    raise InputError(
        f"{place} must be a Problem, CasADi's dictionary, a ca.Opti, an OptimalControl, a solver "
        f"of nlpsol, or a function that returns one, not {type(found).__name__}"
    )


def _of_opti(opti: ca.Opti, name: str) -> tuple[Problem, dict[str, Any]]:
    nlp = {"x": opti.x, "f": opti.f, "p": opti.p}
    value, start = opti.debug.value, opti.initial()
    numbers = {"x0": value(opti.x, start)}
    if opti.np:
        numbers["p"] = value(opti.p)
    if opti.ng:
        nlp["g"] = opti.g
        numbers |= {"lbg": value(opti.lbg, start), "ubg": value(opti.ubg, start)}
    return Problem.from_nlp(nlp, name=name), numbers
