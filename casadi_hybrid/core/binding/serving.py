"""Functions as machine code: by the parts that repeat where the engine in C calls them."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from casadi_hybrid.core.binding.core import why_not
from casadi_hybrid.core.evaluation.compiled import Compiled, compile_functions
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import CompilerWarning, warn

BACKGROUND = "background"
"""The wish for what is compiled while interpreted functions serve."""
_interpreted: WeakKeyDictionary[Problem, Problem] = WeakKeyDictionary()


def for_machine_code(problem: Problem) -> Problem:
    """The problem whose functions :func:`machine_code` has compiled.

    Where the engine takes it, an object of its own: another solver of the same problem may not have
    asked for it. Elsewhere the same problem with whole functions that CasADi writes in C, with a
    warning where there is no compiler.
    """
    if not problem.compile:
        return problem.compiled() if why_not(problem) else problem.interpreted()
    known = _interpreted.get(problem)  # its solvers share what is built
    if known is None:
        known = _interpreted[problem] = problem.interpreted()
    return problem if why_not(known) else known


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
    if not wish or why_not(problem):
        return None
    found = compile_functions(problem, wish == BACKGROUND)
    if wish != BACKGROUND and found.code is None:
        warn(
            f"the functions are not compiled: {found.note}; the interpreted functions are used "
            "instead, with the same results",
            CompilerWarning,
        )
    return found
