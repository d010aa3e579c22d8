"""The engine of a problem and thread."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary, ref

from casadi_hybrid.engine.blocks.compiled import forms_of
from casadi_hybrid.engine.library import engine
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.engine.solve import Core
from casadi_hybrid.engine.workspace import Workspace, trigger
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem

_KINDS = 4  # of bounds between which a solver may change without anything to be made


class Engine:
    """The engine for one problem and thread.

    Args:
        library: the core.
        problem: one that it takes, see :func:`why_not`.
        evaluate: what evaluates a buffer, see :func:`~casadi_hybrid.engine.workspace.trigger`.

    Attributes:
        library, evaluate: as given.
    """

    def __init__(self, library: Any, problem: Problem, evaluate: int | None) -> None:
        # The engines of a thread are known for as long as their problems live.
        self.library, self._problem, self.evaluate = library, ref(problem), evaluate
        self._cores: list[Core] = []

    def cores(self, limits: Limits, alone: bool = False) -> list[Core]:
        """The solvers that are not in use, the last one first."""
        return [
            one
            for one in self._cores
            if not one.busy
            and one.alone is alone
            and (one.limits is limits or one.limits == limits)
        ]

    def use(self, core: Core) -> None:
        """Make a solver the first of those that are kept."""
        if self._cores[0] is not core:
            self._cores = [core, *(other for other in self._cores if other is not core)]

    def core(self, bounds: Bounds, limits: Limits, alone: bool = False) -> Core:
        """The solver for bounds of these kinds; another one while that is in use.

        Args:
            bounds, limits: of the solve.
            alone: whether by composite steps alone.
        """
        plan = plan_of(self.library, self.problem, bounds)
        for one in self.cores(limits, alone):
            if one.space.plan is plan:
                self.use(one)
                return one
        made = self.another(bounds, limits, alone)
        self._cores = [made, *self._cores[: _KINDS - 1]]
        return made

    @property
    def problem(self) -> Problem:
        """The problem."""
        problem = self._problem()
        assert problem is not None  # whoever asks has it
        return problem

    def another(self, bounds: Bounds, limits: Limits, alone: bool = False) -> Core:
        """A solver for bounds of these kinds, for who keeps it."""
        problem = self.problem
        plan = plan_of(self.library, problem, bounds)
        forms = (None, None) if self.evaluate is None else forms_of(problem)
        space = Workspace(self.library, plan, problem.functions, self.evaluate, *forms)
        return Core(self.library, problem, limits, space, alone)


class _Engines(threading.local):
    """The engines of one thread, for as long as their problems live."""

    def __init__(self) -> None:
        self.known: WeakKeyDictionary[Problem, Engine | str] = WeakKeyDictionary()
        self.of_python: WeakKeyDictionary[Problem, Engine] = WeakKeyDictionary()


_engines = _Engines()
_evaluate: list[int | None] = []


def engine_of(problem: Problem) -> Engine | str:
    """The engine of the asking thread for a problem, or why it takes none.

    Raises:
        BuildError: where the core cannot be loaded.
    """
    known = _engines.known.get(problem)
    if known is None:
        known = why_not(problem)
        if not known:
            known = Engine(engine(), problem, _trigger() or 0)
        _engines.known[problem] = known
    return known


def any_engine_of(problem: Problem) -> Engine:
    """The same, by whose functions Python is asked where they may raise.

    Raises:
        BuildError: where the core cannot be loaded.
    """
    known = engine_of(problem)
    if not isinstance(known, str):
        return known
    found = _engines.of_python.get(problem)
    if found is None:
        found = _engines.of_python[problem] = Engine(engine(), problem, None)
    return found


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
