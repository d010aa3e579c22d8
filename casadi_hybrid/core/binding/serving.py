"""Functions as machine code: in parts that repeat if the core calls them without Python."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from casadi_hybrid.core.binding.core import why_not
from casadi_hybrid.core.evaluation.compiled import Compiled, compile_functions
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import CompilerWarning, warn

# Option to compile in a thread while interpreted functions serve.
BACKGROUND = "background"
_interpreted: WeakKeyDictionary[Problem, Problem] = WeakKeyDictionary()


def for_machine_code(problem: Problem) -> Problem:
    """Return the problem whose functions :func:`machine_code` has compiled."""
    # compiled(): whole functions that CasADi writes in C, with a warning without a compiler.
    if not problem.compile:
        return problem.compiled() if why_not(problem) else problem.interpreted()
    # An object of its own: other solvers of the same problem may not be compiled.
    interpreted = _interpreted.get(problem)  # all solvers share its code
    if interpreted is None:
        interpreted = _interpreted[problem] = problem.interpreted()
    return problem if why_not(interpreted) else interpreted


def machine_code(problem: Problem, wish: bool | str) -> Compiled | None:
    """Machine code for the core, built or being built; None if not wished for or not possible."""
    if not wish or why_not(problem):
        return None
    compiled = compile_functions(problem, wish == BACKGROUND)
    # In the background a failure is known later, by `note`.
    if wish != BACKGROUND and compiled.code is None:
        warn(
            f"the functions are not compiled: {compiled.note}; the interpreted functions are used "
            "instead, with the same results",
            CompilerWarning,
        )
    return compiled
