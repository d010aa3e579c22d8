"""The functions of a problem in parts: as lists, or as machine code, which may come later."""

from __future__ import annotations

import ctypes as ct
import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import casadi as ca

from casadi_hybrid.problem.building import BuildError
from casadi_hybrid.problem.graph.functions import Functions
from casadi_hybrid.problem.graph.generate import find_by
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.lock import Lock

if TYPE_CHECKING:
    from casadi_hybrid.core.evaluation.forms import Code, Lists
    from casadi_hybrid.problem.elements.element import Elements

SMALL = 2_000
"""Instructions of functions in which nothing is looked for."""
LISTED_AFTER = 500
"""Evaluations by CasADi's interpreter that take about as long as to find what repeats in functions
that are not made of elements: 360 to 940 on the problems of ``benchmarks/first_call.py``."""
INTERPRETED, STAGED, COMPILED = "interpreted", "staged", "compiled"
"""What runs call: CasADi's interpreter, lists for many stages at once, or machine code."""
ARRIVED = "they were being compiled"
"""The note of a run that had begun when they came."""


class Compiled:
    """The machine code of a problem's functions, once it is there.

    Args:
        functions: of the problem.
        background: whether to return at once and build in a thread.

    Attributes:
        code: None as long as there is none.
        note: why there is none, a sentence; empty where there is.
        arrived: for C, 1 as soon as there is one.
    """

    def __init__(self, functions: Functions, background: bool) -> None:
        self.code: Code | None = None
        self.note = "they are being compiled"
        self.arrived = ct.c_int(0)
        self._functions: Functions | None = functions
        self._thread: threading.Thread | None = None
        if background:
            self._thread = threading.Thread(target=self._build, name="compile", daemon=True)
            self._thread.start()
        else:
            self._build()

    def wait(self) -> bool:
        """Wait until it is built or refused; whether it is there."""
        if self._thread is not None:
            self._thread.join()
        return self.code is not None

    def _build(self) -> None:
        functions, self._functions = self._functions, None
        assert functions is not None
        # As all of this room, for those alone whose functions are large, or are to be compiled.
        from casadi_hybrid.core.evaluation.forms import Code  # noqa: PLC0415
        from casadi_hybrid.core.evaluation.library import UntranslatedError  # noqa: PLC0415

        try:
            self.code = Code(functions.first, functions.curvature, functions.assemblies)
            self.note = ""
            self.arrived.value = 1
        except (UntranslatedError, BuildError, MemoryError) as error:
            self.note = str(error) or "there is not enough memory"


# What was asked for, for as long as the problems live.
_compiled: WeakKeyDictionary[Problem, Compiled] = WeakKeyDictionary()
_listed: WeakKeyDictionary[Problem, Lists | None] = WeakKeyDictionary()
_lock = Lock()


def _start_anew() -> None:
    """Forget what is being built: a child has not the threads that build."""
    for problem, one in list(_compiled.items()):
        if one.code is None:
            del _compiled[problem]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def compile_functions(problem: Problem, background: bool) -> Compiled:
    """Have a problem's functions compiled for the engine; what is known of them already, else.

    Args:
        problem: one whose functions are in scalar operations.
        background: whether to return at once, with a thread that builds.
    """
    with _lock.held:
        found = _compiled.get(problem)
        if found is None:
            found = _compiled[problem] = Compiled(problem.functions, background)
    if not background:
        found.wait()
    return found


def forms_of(problem: Problem, repeated: bool) -> tuple[Lists | None, Compiled | None]:
    """The functions of a problem as lists, and what :func:`compile_functions` has made of them.

    None for lists where CasADi's interpreter is as fast, and for machine code where nobody has
    asked.

    Args:
        problem: one whose functions are in scalar operations.
        repeated: whether it is solved again and again, see :data:`LISTED_AFTER`.
    """
    with _lock.held:
        if problem not in _listed and (repeated or problem.functions.assemblies is not None):
            _listed[problem] = _lists(problem.functions)
        return _listed.get(problem), _compiled.get(problem)


def _lists(functions: Functions) -> Lists | None:
    if functions.instructions < SMALL:
        return None
    from casadi_hybrid.core.evaluation.forms import Lists  # noqa: PLC0415
    from casadi_hybrid.core.evaluation.library import UntranslatedError  # noqa: PLC0415

    try:
        return Lists(functions.first, functions.curvature, functions.assemblies)
    except (UntranslatedError, BuildError, MemoryError):
        return None


def _find(graph: ca.Function) -> Elements | None:
    from casadi_hybrid.core.evaluation.elements import find_elements  # noqa: PLC0415 - large ones

    return find_elements(graph)


find_by(_find)
