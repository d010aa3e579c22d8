"""The attempt from x0 alone on the engine, without what Python prepares for all other attempts."""

from __future__ import annotations

import ctypes as ct
import time
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.in_graph import first_of
from casadi_hybrid.attempts.solved import result_of
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import PAUSED, SOLVED
from casadi_hybrid.engine.workspace import Workspace
from casadi_hybrid.point.residuals import HUGE_MULTIPLIER
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.stopping import Limits

_PATIENCE = 0.1  # seconds; after more a solve is one for which the way is short beside it


@dataclass(frozen=True)
class ColdSolve:
    """What is known of an attempt that has solved, beside the workspace's outputs.

    Attributes:
        rows: the numbers of all iterates, see :meth:`~casadi_hybrid.course.record.Watch.take`.
        step: the last one before the solution; None where none was taken.
        undefined: trial points at which a function was not defined.
    """

    rows: list[list[float]]
    step: Vector | None
    undefined: int

    def result(
        self, problem: Problem, numbers: Numbers, limits: Limits, found: Solved, watch: Watch
    ) -> Result:
        """The result with its history, which the watch has then."""
        watch.take(self.rows, 0, 0.0)
        said = found.said
        evaluations = {"first": said.firsts, "second": said.seconds, "undefined": self.undefined}
        seconds = {"first": said.in_firsts, "second": said.in_seconds}
        made = result_of(problem, numbers, limits, found, self.step, evaluations, seconds)
        return altered(made, history=watch.course())


class ColdStart:
    """The first attempt of a solve without a warm start, where that is the barrier method's.

    The numbers are those of :func:`~casadi_hybrid.attempts.solve.solve_problem`, which is asked
    wherever this does not solve: then it is not tried again.

    Args:
        problem, limits: what is solved, and to which tolerances; without a limit in seconds.
    """

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self._first, self._composite = first_of(problem, limits)
        self._linear, self._works = problem.linear, True

    def solve(self, space: Workspace) -> ColdSolve | None:
        """Solve for the inputs of a workspace; None where that is not for here.

        Raises:
            KeyboardInterrupt: between two looks at the clock.
        """
        if not self._works or self._elsewhere(space.inputs):
            return None
        cold = space.cold_mode()
        pause, dense = cold.attempt.pause, cold.attempt.dense
        ct.pointer(cold.attempt)[0] = self._first
        cold.attempt.pause, cold.attempt.dense = pause, dense
        status, rows = cold.begin(), []
        over = time.perf_counter() + _PATIENCE
        while status == PAUSED and time.perf_counter() < over:
            status, more = cold.go_on()
            rows += more
        said = space.answer
        size = max(said.largest_x, said.largest_g)
        if status != SOLVED or size > HUGE_MULTIPLIER * max(1.0, said.steepest):
            self._works = False
            return None
        return ColdSolve(rows, cold.last_step(), cold.state.undefined)

    def _elsewhere(self, inputs: dict[str, Vector]) -> bool:
        """Whether another attempt comes first: a search for a root, or composite steps."""
        lbg, ubg, lbx, ubx = (inputs[name] for name in ("lbg", "ubg", "lbx", "ubx"))
        equal, free = lbg == ubg, lbx < ubx
        equations, open_x = int(np.count_nonzero(equal)), int(np.count_nonzero(free))
        if equations > open_x and not self._linear:
            return True
        if not (self._composite and equations and open_x):
            return False
        bounds = lbx[free], ubx[free], lbg[~equal], ubg[~equal]
        return not any(np.isfinite(side).any() for side in bounds)
