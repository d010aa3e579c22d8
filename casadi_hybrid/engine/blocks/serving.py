"""Functions as machine code: by the parts that repeat where the engine in C calls them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from casadi_hybrid.basics.errors import CompilerWarning
from casadi_hybrid.engine.blocks.compiled import (
    ARRIVED,
    COMPILED,
    INTERPRETED,
    STAGED,
    Compiled,
    compile_functions,
    lists_of,
)
from casadi_hybrid.engine.warm import why_not
from casadi_hybrid.problem.problem import Problem

if TYPE_CHECKING:
    from casadi_hybrid.result import Result

BACKGROUND = "background"
"""The wish for what is compiled while interpreted functions serve."""
_FOR_THE_ENGINE = "the compiled ones are for the engine in C"
_interpreted: WeakKeyDictionary[Problem, Problem] = WeakKeyDictionary()


def for_machine_code(problem: Problem) -> Problem:
    """The problem whose functions :func:`machine_code` has compiled.

    Where the engine takes it, an object of its own: another solver of the same problem may not have
    asked for it. Elsewhere the same problem with whole functions that CasADi writes in C, with a
    warning where there is no compiler.
    """
    if not problem.compile:
        return problem.interpreted() if _taken(problem) else problem.compiled()
    known = _interpreted.get(problem)  # its solvers share what is built
    if known is None:
        known = _interpreted[problem] = problem.interpreted()
    return known if _taken(known) else problem


def machine_code(problem: Problem, wish: bool | str) -> Compiled | None:
    """The functions of a problem as machine code for the engine, or on the way to it.

    None where that was not asked for, or the engine does not take the problem.

    Args:
        problem: made by :func:`for_machine_code`.
        wish: whether to compile; :data:`BACKGROUND` is not to wait for it.

    Warns:
        CompilerWarning: where it cannot be had and was asked for at once; the note of what comes
            back says why in any case.
    """
    if not wish or not _taken(problem):
        return None
    found = compile_functions(problem, wish == BACKGROUND)
    if wish != BACKGROUND and found.code is None:
        warnings.warn(
            f"the functions are not compiled: {found.note}; the interpreted functions are used "
            "instead, with the same results",
            CompilerWarning,
            stacklevel=5,
        )
    return found


def functions_of(
    problem: Problem, result: Result, wished: bool, compiled: Compiled | None, ready: bool
) -> tuple[str, str]:
    """Which functions a run has called, and why not the compiled ones where they were asked for.

    Args:
        wished: whether they were asked for.
        compiled: what came of that; ``ready``: whether it was there when the run began.
    """
    if compiled is None and problem.functions.backend == COMPILED:
        return COMPILED, ""
    otherwise = INTERPRETED
    if result.engine == "c" and lists_of(problem) is not None:
        otherwise = STAGED
    if compiled is None and problem.compile:
        return otherwise, "they could not be compiled"
    if compiled is None:  # also where a solver was made with the engine and is used without it
        return otherwise, _FOR_THE_ENGINE if wished else ""
    if not ready:
        return otherwise, compiled.note or ARRIVED
    if result.engine != "c":
        return INTERPRETED, _FOR_THE_ENGINE
    return COMPILED, ""


def _taken(problem: Problem) -> bool:
    return not why_not(problem)
