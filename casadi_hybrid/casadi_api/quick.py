"""The shortest way through a warm solve: numbers straight to the engine, the answer straight out.

What it does not take, or the engine does not solve, goes the ordinary way as if this had not been;
that one also says what is wrong with an argument.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.attempts.quick import observe, result_of
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.casadi_api.convention import OUTPUTS as FUNCTION_OUTPUTS
from casadi_hybrid.casadi_api.function import default_of
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.stats import casadi_stats
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.compiler import BuildError
from casadi_hybrid.engine.external import External
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.warm import SOLVED, Engine, engine_of
from casadi_hybrid.engine.workspace import INPUTS, Workspace
from casadi_hybrid.point.working_set import WorkingSet
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result


class QuickRun:
    """A call that the engine has solved; its result and statistics are made where asked for."""

    def __init__(
        self, problem: Problem, options: NlpOptions, inputs: Vector, space: Workspace, found: Solved
    ) -> None:
        self._problem, self._options, self._found = problem, options, found
        inputs.setflags(write=False)
        self._inputs, self._places = inputs, space.places_in

    @cached_property
    def result(self) -> Result:
        """The result."""
        of = {name: self._inputs[place] for name, place in self._places.items()}
        bounds = Bounds(of["lbx"], of["ubx"], of["lbg"], of["ubg"])
        numbers = Numbers(of["x0"], of["p"], bounds, of["lam_x0"], of["lam_g0"])
        watch = self._watch = Watch(bounds)
        observe(self._found, watch)
        return result_of(self._problem, numbers, self._options.limits, self._found, watch)

    @cached_property
    def stats(self) -> dict[str, Any]:
        """The statistics; processor time is wall time, since nothing else happens in C."""
        result = self.result
        return casadi_stats(result, self._watch, None, result.elapsed)


class Quick:
    """Warm solves of one problem in one thread.

    Args:
        problem: one whose engine is there; ``options``: of the solver.
        engine: of the problem and this thread.
    """

    def __init__(self, problem: Problem, options: NlpOptions, engine: Engine) -> None:
        self._problem, self._options, self._engine = problem, options, engine
        self._limits = options.limits
        self._defaults = [default_of(problem, name) for name in INPUTS]
        self._space: Workspace | None = None
        self._lost = False

    def solve(
        self, given: tuple[Any, ...], sides: WorkingSet | None
    ) -> tuple[dict[str, ca.DM], QuickRun] | None:
        """Solve, or None where it has to be done the ordinary way.

        Args:
            given: the arguments in the order of
                :data:`~casadi_hybrid.engine.workspace.INPUTS`, None for what is left out.
            sides: the working set to try first, None for that of the multipliers.
        """
        space = self._engine.space
        if space is None:
            return None  # nothing was solved yet whose kinds of bounds could be the same
        if space is not self._space and not self._attach(space):
            return None
        space.limit(self._limits)
        there, handed = self._external.there, {}
        for i, value in enumerate(given):
            there[i] = _fill(self._targets[i], value, self._defaults[i])
            if not there[i]:
                # Of several columns CasADi would make several solves.
                if type(value) is not ca.DM or value.numel() not in (1, self._targets[i].size):
                    return None
                handed[INPUTS[i]] = value
        space.begin_with(sides)
        try:
            outputs = self._external.function.call(handed)
        except RuntimeError:  # of another shape; the ordinary way says which
            return None
        if self._external.status != SOLVED:
            return None
        run = QuickRun(self._problem, self._options, space.numbers_in.copy(), space, space.solved())
        return {name: outputs[name] for name in FUNCTION_OUTPUTS}, run

    def _attach(self, space: Workspace) -> bool:
        """Look at another workspace from now on; whether that can be done."""
        if self._lost:
            return False
        try:
            gradient = self._problem.parameter_gradient
            self._external = External(space, gradient, self._engine.evaluate)
        except BuildError:  # as where no folder for temporary files has any that may be run
            self._lost = True
            return False
        self._targets = [space.inputs[name] for name in INPUTS]
        self._space = space
        return True


def quick_of(problem: Problem, options: NlpOptions) -> Quick | None:
    """The shortest way for this problem and thread; None where there is none."""
    ordinary = options.iteration_callback or options.log or options.print_time
    if ordinary or options.warn_initial_bounds or not options.warm:
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
    if kind is float or kind is int:
        target.fill(value)
        return True
    return False
