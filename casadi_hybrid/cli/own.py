"""The problem stated in a user's file, with its values and its answer."""

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

# Names that are tried in a file if none is given.
NAMES = ("problem", "nlp", "opti", "ocp")
NUMBERS = ("x0", "p", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0")
ANSWER = "answer"
# Name of a dictionary of values, for files in which p is the symbol.
TOGETHER = "numbers"


@dataclass(frozen=True)
class Own:
    """A problem of the user."""

    name: str  # of the problem in its file
    problem: Problem
    numbers: dict[str, Any] = field(default_factory=dict)  # arguments of nlpsol in the file
    answer: Any = None  # a point in the file to be judged
    stated: Any = None  # the optimal control problem behind the problem


def read(place: str) -> Own:
    """Read ``FILE.nl``, ``FILE.py``, ``FILE.py:NAME`` or ``MODULE:NAME``.

    NAME is a variable or a function without arguments: a problem of any kind, or a tuple of it and
    a dictionary of values.
    """
    if place.endswith(".nl"):
        if not Path(place).is_file():
            raise InputError(f"there is no file {place}")
        return Own(Path(place).stem, Problem.from_nlp(place, name=Path(place).stem))
    name, value, namespace = stated_at(place, NAMES)
    statement, *rest = value if isinstance(value, tuple) else (value,)
    numbers = rest[0] if rest else {}
    is_controlled = hasattr(statement, "to_verify")  # an optimal control problem, or a joint one
    if is_controlled and isinstance(namespace.get(TOGETHER), Mapping):
        numbers = numbers or namespace[TOGETHER]
    if not isinstance(numbers, Mapping):
        raise InputError(f"the values beside the problem in {place} must be a dictionary")
    if is_controlled:
        return _controlled(name, statement, numbers, namespace.get(ANSWER))
    problem, values = _problem(statement, place, name)
    if isinstance(statement, Mapping | NlpSolver):
        # Beside CasADi's dictionary or a solver the variables x0, p, lbx, … are read.
        numbers = {**numbers_beside(namespace), **numbers}
    for word in numbers:
        if word not in NUMBERS:
            raise InputError(f"{place}: {word!r} is no number of a solve{suggest(word, NUMBERS)}")
    return Own(name, problem, {**values, **numbers}, namespace.get(ANSWER))


def numbers_beside(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a solve among the variables of a file, or in its dictionary ``numbers``."""
    values = {}
    for name in NUMBERS:
        value = namespace.get(name)
        if value is not None and not callable(value) and not isinstance(value, ca.SX | ca.MX):
            values[name] = value
    together = namespace.get(TOGETHER)
    if isinstance(together, Mapping) and set(NUMBERS) & set(together):
        values.update(together)
    return values


def _controlled(name: str, ocp: Any, numbers: Mapping[str, Any], answer: Any) -> Own:
    """An optimal control problem with the values of one solve, on which its limits may depend."""
    with lacking_named(name):
        program = ocp.numbers(**{str(word): value for word, value in numbers.items()})
    raw = {"x": program.x0, "lam_x": program.x0, "lam_g": program.lbg, "f": 0.0}
    start = ocp.solution(program, raw, {})
    stated = SimpleNamespace(
        to_verify=lambda answer: ocp.to_verify(answer if hasattr(answer, "program") else start)
    )
    return Own(name, stated.to_verify(None).problem, program.arguments, answer, stated)


@contextmanager
def lacking_named(name: str) -> Iterator[None]:
    """Add to the error of a missing reference how the file of a problem states it."""
    from casadi_hybrid.control.model.signals import LackingError  # noqa: PLC0415 - only for this

    try:
        yield
    except LackingError as error:
        raise InputError(
            f"{error}. Here it stands in the file, problem = ({name}, {{…}}) with a dictionary of "
            "such numbers, and the command reads FILE.py:problem"
        ) from None


def stated_at(place: str, names: Sequence[str]) -> tuple[str, Any, Mapping[str, Any]]:
    """Name and value of ``FILE.py:NAME`` or ``MODULE:NAME``, and the variables beside it."""
    where, colon, name = place.rpartition(":")
    if not colon or name.endswith(".py"):  # a path may contain a colon
        where, name = place, ""
    with _raising(where):
        namespace = vars(module_at(where))
    # Without NAME the first of these names in the file is read.
    name = name or next((known for known in names if known in namespace), "")
    if name not in namespace:
        raise InputError(_not_stated(where, name, names, namespace))
    value = namespace[name]
    if callable(value) and not isinstance(value, NlpSolver | ca.Function):
        parameters = signature(value).parameters.values()
        needed = [
            str(parameter) for parameter in parameters if parameter.default is parameter.empty
        ]
        if missing := ", ".join(text for text in needed if text[0] != "*"):
            advice = f"write a function there that needs nothing, as def mine(): return {name}(…)"
            raise InputError(f"{name} of {where} needs {missing}; {advice}, and name that")
        with _raising(f"{name} of {where}"):
            value = value()
    return name, value, namespace


def _not_stated(where: str, name: str, names: Sequence[str], namespace: Mapping[str, Any]) -> str:
    """Message for a file without the name, or without any of the ``names``."""
    advice = "name what states it as FILE.py:NAME"
    if not name:
        return f"{where} has no {', '.join(names[:-1])} or {names[-1]}; {advice}"
    module = namespace["__name__"]
    known = [k for k, value in namespace.items() if k[0] != "_" and _states(value, module)]
    return f"{where} has no {name!r}{suggest(name, known)}; {advice}"


@contextmanager
def _raising(label: str) -> Iterator[None]:
    """Turn an exception of the user's code into a sentence with its line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        foreign, line = (str(Path(__file__).parents[1]), sys.prefix, sys.base_prefix, "<frozen"), ""
        for frame in extract_tb(error.__traceback__):
            if not frame.filename.startswith(foreign):
                line = f"{frame.filename}:{frame.lineno}: "
        raise InputError(f"{line}{label} raised {type(error).__name__}: {error}") from error


def module_at(where: str) -> ModuleType:
    """Import a module by its name, or from a file; raises InputError without such a module."""
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
    # A module stays in sys.modules: nothing else keeps its ca.Callback, and a dataclass looks it
    # up. The name is its own, since a user's queue.py must not replace Python's.
    name = f"casadi_hybrid_file_{path.stem.replace('.', '_')}"
    while name in sys.modules:
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):  # stdout belongs to the command
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        sys.path.remove(folder)
    if folder not in sys.path:
        sys.path.append(folder)  # for late imports in the functions of the file
    return module


def _states(value: Any, module: str) -> bool:
    """True if a problem can be read from a value, which the module itself defines."""
    if callable(value) and not hasattr(value, "export"):
        return bool(getattr(value, "__module__", "") == module)
    kinds = Mapping | Problem | ca.Opti | tuple
    return isinstance(value, kinds) or hasattr(type(value), "export")


def _problem(statement: Any, place: str, name: str) -> tuple[Problem, dict[str, Any]]:
    """The problem of a statement, and its values."""
    if isinstance(statement, Problem):
        return statement, {}
    if isinstance(statement, ca.Opti):
        return _of_opti(statement, name)
    if isinstance(statement, NlpSolver):
        return Problem.from_nlp(statement.oracle(), name=name), {}
    if isinstance(statement, Mapping):
        return Problem.from_nlp(statement, name=name), {}
    raise InputError(
        f"{place} must be a Problem, CasADi's dictionary, a ca.Opti, an OptimalControl, a solver "
        f"of nlpsol, or a function that returns one, not {type(statement).__name__}"
    )


def _of_opti(opti: ca.Opti, name: str) -> tuple[Problem, dict[str, Any]]:
    # opti.debug has values before a solve.
    nlp = {"x": opti.x, "f": opti.f, "p": opti.p}
    value, start = opti.debug.value, opti.initial()
    numbers = {"x0": value(opti.x, start)}
    if opti.np:
        numbers["p"] = value(opti.p)
    if opti.ng:
        nlp["g"] = opti.g
        numbers |= {"lbg": value(opti.lbg, start), "ubg": value(opti.ubg, start)}
    return Problem.from_nlp(nlp, name=name), numbers
