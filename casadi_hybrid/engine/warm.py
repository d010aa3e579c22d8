"""The engine of a problem and thread, and what its warm mode says in words."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary, ref

from casadi_hybrid.engine.blocks.compiled import forms_of
from casadi_hybrid.engine.library import engine, engine_status
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.engine.workspace import Workspace, trigger
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem

_KINDS = 4  # of bounds between which a solver may change without anything to be made
WORDS = (
    "the warm mode solved it",
    "the bounds are of other kinds than those it was prepared for",
    "a function of the problem is not defined where the warm mode went",
    "the warm mode found no active set",
    "the steps of the warm mode did not get nearer",
    "the factorization of the engine was in doubt",
    "rounding may excuse a residual",
    "the limit of iterations was reached",
    "x or the multipliers are so large that they are looked at",
    "a number is not finite, or bounds cross",
    "there is no warm start",
)


class Engine:
    """The engine for one problem and thread.

    Args:
        library: the core.
        problem: one that it takes, see :func:`why_not`.
        evaluate: what evaluates a buffer, see :func:`~casadi_hybrid.engine.workspace.trigger`.

    Attributes:
        library, evaluate: as given.
        spaces: the workspaces for the last few kinds of bounds, the last one first.
    """

    def __init__(self, library: Any, problem: Problem, evaluate: int) -> None:
        # The engines of a thread are known for as long as their problems live.
        self.library, self._problem, self.evaluate = library, ref(problem), evaluate
        self.spaces: list[Workspace] = []

    def prepare(self, bounds: Bounds) -> Workspace:
        """The workspace for bounds of these kinds."""
        problem = self._problem()
        assert problem is not None  # whoever asks has it
        plan = plan_of(self.library, problem, bounds)
        found = next((space for space in self.spaces if space.plan is plan), None)
        if found is None:
            found = Workspace(
                self.library, plan, problem.functions, self.evaluate, *forms_of(problem)
            )
        self.use(found)
        return found

    def use(self, space: Workspace) -> None:
        """Make a workspace the first of those that are kept."""
        others = [other for other in self.spaces if other is not space]
        self.spaces = [space, *others[: _KINDS - 1]]


class _Engines(threading.local):
    """The engines of one thread, for as long as their problems live."""

    def __init__(self) -> None:
        self.known: WeakKeyDictionary[Problem, Engine | str] = WeakKeyDictionary()


_engines = _Engines()
_evaluate: list[int | None] = []


def engine_of(problem: Problem) -> Engine | str:
    """The engine of the asking thread for a problem, or why it takes none."""
    library = engine()
    if library is None:
        return engine_status().reason
    known = _engines.known.get(problem)
    if known is None:
        known = why_not(problem)
        if not known:
            known = Engine(library, problem, _trigger() or 0)
        _engines.known[problem] = known
    return known


def why_not(problem: Problem) -> str:
    """Why the engine does not take a problem, empty where it does."""
    functions = problem.functions
    if not problem.n or functions.first.nnz_out(0) != 1:
        return "the problem has no variable or no objective"
    if _trigger() is None:
        return "this CasADi does not export what evaluates a buffer"
    if functions.assemblies is not None:
        return ""  # maps of what has a scalar form
    for function in filter(None, (functions.first, functions.curvature)):
        if not function.is_a("SXFunction"):
            # What it calls may raise an exception, which may not pass through C.
            return "a function of the problem has no scalar form"
        if not all(called.is_a("SXFunction") for called in function.find_functions()):
            return "a function of the problem calls one that has no scalar form"
    return ""


def _trigger() -> int | None:
    if not _evaluate:
        _evaluate.append(trigger())
    return _evaluate[0]
