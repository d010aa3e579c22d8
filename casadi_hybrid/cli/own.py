"""A user's own problem: what a file states, as a problem with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca

from casadi_hybrid.basics.errors import InputError, suggest
from casadi_hybrid.casadi_api.solver import NlpSolver
from casadi_hybrid.cli.embedded import module_at
from casadi_hybrid.problem.problem import Problem

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
    solver of nlpsol, or a tuple of one of these and a dictionary of numbers. Beside a dictionary
    or a solver the file's own variables x0, p, lbx, … are its numbers, or a dictionary of them.

    Raises:
        InputError: where there is no such file or name, or it is something else.
    """
    if place.endswith(".nl"):
        if not Path(place).is_file():
            raise InputError(f"there is no file {place}")
        return Own(Path(place).stem, Problem.from_nlp(place, name=Path(place).stem))
    where, colon, name = place.rpartition(":")
    if not colon or name.endswith(".py"):  # a path may have a colon of its own
        where, name = place, ""
    try:
        module = module_at(where)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{where} raised {type(error).__name__}: {error}") from error
    there = vars(module)
    name = name or next((known for known in NAMES if known in there), "")
    if name not in there:
        looked = repr(name) if name else f"{', '.join(NAMES[:-1])} or {NAMES[-1]}"
        mine = [word for word in there if not word.startswith("_")]
        near = suggest(name, mine) if name else ""
        raise InputError(f"{where} has no {looked}{near}; name what states it as FILE.py:NAME")
    found = there[name]
    if callable(found) and not isinstance(found, NlpSolver | ca.Function):
        found = found()
    parts = found if isinstance(found, tuple) else (found,)
    numbers = parts[1] if len(parts) > 1 else {}
    problem, beside = _problem(parts[0], place, name)
    if isinstance(parts[0], Mapping | NlpSolver):
        beside = {word: there[word] for word in NUMBERS if _numeric(there.get(word))}
        together = there.get(TOGETHER)
        if isinstance(together, Mapping) and not numbers and together.keys() & set(NUMBERS):
            numbers = together
    if not isinstance(numbers, Mapping):
        raise InputError(f"what stands beside the problem in {place} must be a dictionary")
    for word in numbers:
        if word not in NUMBERS:
            raise InputError(f"{place}: {word!r} is no number of a solve{suggest(word, NUMBERS)}")
    stated = parts[0] if hasattr(parts[0], "to_verify") else None
    return Own(name, problem, {**beside, **numbers}, there.get(ANSWER), stated)


def _numeric(value: Any) -> bool:
    """Whether a variable of the file is a number; p and x0 may be symbols there."""
    return value is not None and not isinstance(value, ca.SX | ca.MX) and not callable(value)


def _problem(found: Any, place: str, name: str) -> tuple[Problem, dict[str, Any]]:
    """The problem, and the numbers that it brings."""
    if isinstance(found, Problem):
        return found, {}
    if hasattr(found, "to_verify"):  # an optimal control problem, or several in one
        stated = found.to_verify(None)
        return stated.problem, dict(stated.numbers)
    if isinstance(found, NlpSolver):
        return Problem.from_nlp(found.oracle(), name=name), {}
    if isinstance(found, Mapping):
        return Problem.from_nlp(found, name=name), {}
    if isinstance(found, ca.Opti):
        return _of_opti(found, name)
    raise InputError(
        f"{place} must be a Problem, CasADi's dictionary, a ca.Opti, an OptimalControl, a solver "
        f"of nlpsol, or a function that returns one, not {type(found).__name__}"
    )


def _of_opti(opti: ca.Opti, name: str) -> tuple[Problem, dict[str, Any]]:
    nlp = {"x": opti.x, "f": opti.f, "g": opti.g, "p": opti.p}
    value, start = opti.debug.value, opti.initial()
    numbers = {
        "x0": value(opti.x, start),
        "lbg": value(opti.lbg, start),
        "ubg": value(opti.ubg, start),
    }
    if opti.np:
        numbers["p"] = value(opti.p)
    if not opti.ng:
        del nlp["g"], numbers["lbg"], numbers["ubg"]
    return Problem.from_nlp(nlp, name=name), numbers
