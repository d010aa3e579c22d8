"""Functions as machine code: in parts that repeat if the core calls them without Python."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from casadi_hybrid.core.binding.core import why_not
from casadi_hybrid.core.evaluation.compiled import Compiled, compile_functions
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import CompilerWarning, warn

BACKGROUND = "background"
"""Option to compile in a thread while interpreted functions serve."""
_interpreted: WeakKeyDictionary[Problem, Problem] = WeakKeyDictionary()


def for_machine_code(problem: Problem) -> Problem:
    """The problem whose functions :func:`machine_code` has compiled.

    If the core takes it, an object of its own, since other solvers of the same problem may not be
    compiled. Else the same problem with whole functions that CasADi writes in C, with a warning if
    there is no compiler.
    """
    if not problem.compile:
        return problem.compiled() if why_not(problem) else problem.interpreted()
    interpreted = _interpreted.get(problem)  # all solvers share its code
    if interpreted is None:
        interpreted = _interpreted[problem] = problem.interpreted()
    return problem if why_not(interpreted) else interpreted


def machine_code(problem: Problem, wish: bool | str) -> Compiled | None:
    """The functions of a problem as machine code for the core, built or being built.

    None if it is not wished for, or the core does not take the problem.

    Args:
        problem: returned by :func:`for_machine_code`.
        wish: True to compile; :data:`BACKGROUND` to compile without waiting.

    Warns:
        CompilerWarning: if it was to be compiled at once and cannot be; ``note`` has the reason.
    """
    if not wish or why_not(problem):
        return None
    compiled = compile_functions(problem, wish == BACKGROUND)
    if wish != BACKGROUND and compiled.code is None:
        warn(
            f"the functions are not compiled: {compiled.note}; the interpreted functions are used "
            "instead, with the same results",
            CompilerWarning,
        )
    return compiled
