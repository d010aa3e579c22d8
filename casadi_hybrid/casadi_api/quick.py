"""The shortest way through a solve: numbers straight to the engine, the answer straight out.

What it does not take, or the engine does not solve, goes the ordinary way as if this had not been;
that one also says what is wrong with an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.at_once import ColdSolve, ColdStart, numbers_of
from casadi_hybrid.attempts.solved import Outline, observe, outline_of, rows_of, warm_result
from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.building import BuildError
from casadi_hybrid.casadi_api.graphs.function import defaults_of
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.stats import casadi_stats
from casadi_hybrid.course.record import Watch, lists_of
from casadi_hybrid.engine.external import OTHER_SHAPE, OUTPUTS_OF_CASADI, External
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import (
    COLD,
    IN_VAIN,
    LIMIT,
    OTHER_PATTERN,
    SOLVED,
)
from casadi_hybrid.engine.warm import Engine, engine_of
from casadi_hybrid.engine.workspace import INPUTS, Workspace
from casadi_hybrid.point.working_set import WorkingSet
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.stopping import Limits

_LEFT = (COLD, *IN_VAIN)  # to the barrier method
_REAL = frozenset((float, int, np.float64))


class QuickRun:
    """A call that the engine has solved; its result and statistics are made where asked for."""

    def __init__(
        self,
        problem: Problem,
        options: NlpOptions,
        inputs: Vector,
        places: Mapping[str, slice],
        found: Solved,
        functions: tuple[str, str] = ("interpreted", ""),
        cold: ColdSolve | None = None,
        own: Limits | None = None,
    ) -> None:
        self._problem, self._options, self._found = problem, options, found
        self._cold, self._own = cold, own
        inputs.setflags(write=False)
        self._inputs, self._places, self._functions = inputs, places, functions

    @property
    def outputs(self) -> Vector:
        """All outputs side by side, as the engine has them."""
        return self._found.numbers

    @property
    def elapsed(self) -> float:
        """Seconds in the engine."""
        return float(self._found.said.elapsed)

    @cached_property
    def result(self) -> Result:
        """The result."""
        numbers = numbers_of({name: self._inputs[place] for name, place in self._places.items()})
        watch = self._watch = Watch(numbers.bounds)
        problem, found = self._problem, self._found
        limits = self._own or self._options.limits
        if self._cold is not None:
            return self._cold.result(problem, numbers, limits, found, watch)
        observe(found.said, watch)
        made = warm_result(problem, numbers, limits, found)
        result = altered(made, history=watch.course(), limits=limits)
        return _cut(result, limits) if found.said.status == LIMIT else result

    @cached_property
    def stats(self) -> dict[str, Any]:
        """The statistics; processor time is wall time, since nothing else happens in C."""
        said = self._found.said
        result: Result | Outline
        if self._cold is None and said.status == SOLVED:
            result, lists = outline_of(self._problem, said), lists_of(rows_of(said))
        else:
            result, lists = self.result, self._watch.lists
        return casadi_stats(result, lists, None, result.elapsed, self._functions)


class Quick:
    """Solves of one problem in one thread, as far as the warm mode and one attempt solve them.

    Args:
        problem: one whose engine is there; ``options``: of the solver.
        engine: of the problem and this thread.
    """

    def __init__(self, problem: Problem, options: NlpOptions, engine: Engine) -> None:
        self._problem, self._options, self._engine = problem, options, engine
        self._limits = options.limits
        self._defaults = defaults_of(problem)
        self._externals: dict[Workspace, External] = {}
        self._cold_start = ColdStart(problem, self._limits)
        self._lost = False

    def solve(
        self, given: tuple[Any, ...], sides: WorkingSet | None, own: Limits | None = None
    ) -> tuple[dict[str, ca.DM], QuickRun] | None:
        """Solve, or None where it has to be done the ordinary way.

        Args:
            given: the arguments in the order of
                :data:`~casadi_hybrid.engine.workspace.INPUTS`, None for what is left out.
            sides: the working set to try first, None for that of the multipliers.
            own: limits of this solve alone. Then only the warm mode is for here, and where it
                reaches a limit its point is the answer.

        Raises:
            CutShort: by Ctrl-C, where there is an iterate already.
        """
        ends = (SOLVED,) if own is None else (SOLVED, LIMIT)
        engine = self._engine
        for space in engine.spaces or self._first(given):
            external = self._externals.get(space) or self._external(space)
            if external is None:
                return None
            space.limit(own or self._limits)
            space.begin_with(sides)
            outputs = self._call(space, external, given)
            cold, status = None, external.status
            if outputs is not None and status in _LEFT and own is None:
                cold = self._cold_start.solve(space, status)
                outputs, status = None if cold is None else external.known(), external.status
            failed = space.outside is not None and space.outside.raised
            if outputs is not None and status in ends and not failed:
                if engine.spaces[0] is not space:
                    engine.use(space)
                inputs, found = space.numbers_in.copy(), space.solved()
                run = QuickRun(
                    self._problem, self._options, inputs, space.places_in, found, space.called,
                    cold, own,
                )  # fmt: skip
                return {name: outputs[name] for name in OUTPUTS_OF_CASADI}, run
            if outputs is None or status != OTHER_PATTERN:
                in_vain = status in IN_VAIN and sides is None and not failed
                if in_vain and own is not None:  # else the attempt after it has spoken there since
                    space.in_vain = status, space.numbers_in.copy()
                return None
        return None  # nothing was solved yet under bounds of these kinds

    def _first(self, given: tuple[Any, ...]) -> list[Workspace]:
        """The workspace for the bounds of a first solve; none where an argument is wrong.

        With what is made for it here the second solve, which may be the first in a loop, finds all
        there.
        """
        named = dict(zip(INPUTS, given, strict=True))
        try:
            return [self._engine.prepare(self._problem.numbers(**named).bounds)]
        except InputError:  # the ordinary way says which
            return []

    def _call(
        self, space: Workspace, external: External, given: tuple[Any, ...]
    ) -> dict[str, ca.DM] | None:
        """What the engine says in a workspace; None where it does not take an argument."""
        matrices, inputs, defaults = external.matrices, space.inputs, self._defaults
        for i, value in enumerate(given):
            if type(value) is ca.DM:
                matrices[i] = int(value.this)
            elif _fill(inputs[INPUTS[i]], value, defaults[i]):
                matrices[i] = None
            else:
                return None
        outputs: dict[str, ca.DM]
        if external.fetches:
            outputs = external.ready.call({})
            if external.status != OTHER_SHAPE:
                return outputs
            external.fetches = False  # who gives one of another shape will do so again
        pairs = zip(INPUTS, given, strict=True)
        handed = {name: value for name, value in pairs if type(value) is ca.DM}
        external.there[:] = [name not in handed for name in INPUTS]
        try:
            outputs = external.function.call(handed)
        except RuntimeError:  # of another shape; the ordinary way says which
            return None
        # Of several columns CasADi has made several solves.
        return outputs if outputs["f"].numel() == 1 else None

    def _external(self, space: Workspace) -> External | None:
        """The workspace as a Function, made at its first use; None where that cannot be done."""
        found = self._externals.get(space)
        if found is None and not self._lost:
            kept = self._engine.spaces
            self._externals = {key: one for key, one in self._externals.items() if key in kept}
            try:
                gradient = self._problem.parameter_gradient if self._problem.n_p else None
                found = External(space, gradient, self._engine.evaluate)
            except BuildError:  # as where no folder for temporary files has any that may be run
                self._lost = True
                return None
            self._externals[space] = found
        return found


def _cut(result: Result, limits: Limits) -> Result:
    """The result of a warm mode that a limit has ended."""
    late = result.elapsed >= limits.max_time
    feasible = result.residuals.feasibility <= limits.tolerances.feasibility
    return altered(
        result,
        stop=StopReason.TIME_LIMIT if late else StopReason.ITERATION_LIMIT,
        point=PointStatus.FEASIBLE_NOT_STATIONARY if feasible else PointStatus.NOT_CONVERGED,
    )


def quick_of(problem: Problem, options: NlpOptions) -> Quick | None:
    """The shortest way for this problem and thread; None where there is none."""
    if not (options.silent and options.warm):
        return None
    if options.limits.max_time < np.inf or problem.m_h or problem.shapes:
        return None
    engine = engine_of(problem)
    return None if isinstance(engine, str) else Quick(problem, options, engine)


def _fill(target: Vector, value: Any, default: Vector) -> bool:
    """Write an argument where the engine reads it; False for what needs more than a copy."""
    kind = type(value)
    if kind is np.ndarray:
        if value.shape != target.shape or value.dtype != np.float64:
            return False
        target[:] = value
        return True
    if value is None:
        target[:] = default
        return True
    if kind is list or kind is tuple:
        if len(value) != target.size or not _REAL.issuperset(map(type, value)):
            return False
        try:
            target[:] = value
        except OverflowError:  # a whole number beyond all others
            return False
        return True
    if kind is float or kind is int:
        target.fill(value)
        return True
    return False
