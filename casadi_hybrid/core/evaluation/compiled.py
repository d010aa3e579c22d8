"""The functions of a problem in parts: as programs, or as machine code that may come later."""

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

# Modules that only large or compiled functions need are imported by the functions below.

# Instructions of functions in which no repetition is searched for.
SMALL = 2_000
# Evaluations by CasADi's interpreter that take as long as the search for repetition. In functions
# not made of elements: 360 to 940 on the problems of benchmarks/first_call.py.
LISTED_AFTER = 500
# Evaluation by CasADi's interpreter, by programs for many stages at once, by machine code.
INTERPRETED, STAGED, COMPILED = "interpreted", "staged", "compiled"
# Note of a solve that had begun when the machine code arrived.
ARRIVED = "they were being compiled"


class Compiled:
    """Machine code of a problem's functions, once it is there."""

    def __init__(self, functions: Functions, background: bool) -> None:
        self.code: Code | None = None  # None until it is built
        self.note = "they are being compiled"  # why there is no code
        self.arrived = ct.c_int(0)
        self._functions: Functions | None = functions
        self._thread: threading.Thread | None = None
        if background:
            # A daemon: a compilation does not keep the process alive at its end.
            self._thread = threading.Thread(target=self._build, name="compile", daemon=True)
            self._thread.start()
        else:
            self._build()

    def wait(self) -> bool:
        """Wait until the code is built or refused; return True if it is built."""
        if self._thread is not None:
            self._thread.join()
        return self.code is not None

    def _build(self) -> None:
        functions, self._functions = self._functions, None
        assert functions is not None
        from casadi_hybrid.core.evaluation.forms import Code  # noqa: PLC0415
        from casadi_hybrid.core.evaluation.library import UntranslatedError  # noqa: PLC0415

        try:
            self.code = Code(functions.first, functions.curvature, functions.assemblies)
            self.note = ""
            # Last, since C reads it without a lock: then the code is complete.
            self.arrived.value = 1
        except (UntranslatedError, BuildError, MemoryError) as error:
            self.note = str(error) or "there is not enough memory"


_compiled: WeakKeyDictionary[Problem, Compiled] = WeakKeyDictionary()
_listed: WeakKeyDictionary[Problem, Lists | None] = WeakKeyDictionary()
_lock = Lock()


def _forget_unfinished() -> None:
    """Forget code that is being built: a forked child does not have the threads that build it."""
    for problem, compiled in list(_compiled.items()):
        if compiled.code is None:
            del _compiled[problem]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_unfinished)


def compile_functions(problem: Problem, background: bool) -> Compiled:
    """Compile a problem's functions in scalar operations for the core, once for all its solvers."""
    with _lock.held:
        compiled = _compiled.get(problem)
        if compiled is None:
            compiled = _compiled[problem] = Compiled(problem.functions, background)
    if not background:
        # Another solver may have begun it in a thread. Outside of the lock others may go on.
        compiled.wait()
    return compiled


def forms_of(problem: Problem, repeated: bool) -> tuple[Lists | None, Compiled | None]:
    """Functions of a problem as programs, and as machine code; None for a form that is not used."""
    with _lock.held:
        # Without repeated solves the search would cost more than it saves, see LISTED_AFTER.
        if problem not in _listed and (repeated or problem.functions.assemblies is not None):
            _listed[problem] = _lists(problem.functions)
        return _listed.get(problem), _compiled.get(problem)


def _lists(functions: Functions) -> Lists | None:
    # CasADi's interpreter is as fast for small functions.
    if functions.instructions < SMALL:
        return None
    from casadi_hybrid.core.evaluation.forms import Lists  # noqa: PLC0415
    from casadi_hybrid.core.evaluation.library import UntranslatedError  # noqa: PLC0415

    try:
        return Lists(functions.first, functions.curvature, functions.assemblies)
    except (UntranslatedError, BuildError, MemoryError):
        return None


def _find(graph: ca.Function) -> Elements | None:
    from casadi_hybrid.core.evaluation.elements import find_elements  # noqa: PLC0415

    return find_elements(graph)


find_by(_find)
