"""The first attempt after the warm mode on the engine, straight from its memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from casadi_hybrid.attempts.attempt import composite_attempt, first_attempt, warm_attempt
from casadi_hybrid.attempts.data import attempts_of
from casadi_hybrid.basics.errors import Interrupted
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.cold import AttemptData, Cold
from casadi_hybrid.engine.solved import ColdSolve
from casadi_hybrid.engine.structures import (
    COLD,
    IN_VAIN,
    PAUSED,
    SOLVED,
    AnswerData,
)
from casadi_hybrid.engine.workspace import Workspace
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem

if TYPE_CHECKING:
    from casadi_hybrid.course.record import Watch
    from casadi_hybrid.result import Result

_LEFT_MOST = 31  # of solves before the next is tried


def numbers_of(inputs: Mapping[str, Vector]) -> Numbers:
    """The numbers of a solve, copied from what the engine reads."""
    of = {name: value.copy() for name, value in inputs.items()}
    bounds = Bounds(of["lbx"], of["ubx"], of["lbg"], of["ubg"])
    return Numbers(of["x0"], of["p"], bounds, of["lam_x0"], of["lam_g0"])


class CutShort(Interrupted):
    """An attempt was ended by Ctrl-C; beside the result it has what the statistics are made from.

    Attributes:
        p: the parameter values.
        watch: with the iterates.
        functions: how the problem's functions were evaluated, and a note.
    """

    def __init__(self, result: Result, p: Vector, watch: Watch, functions: tuple[str, str]) -> None:
        self.p, self.watch, self.functions = p, watch, functions
        super().__init__("", result)


class ColdStart:
    """The attempt after the warm mode in vain, or of a solve without a warm start.

    The numbers are those of :func:`~casadi_hybrid.attempts.solve.solve_problem`, which is asked
    wherever this does not solve. Where that was without a warm start, several times in a row, some
    solves are left to it before the next is tried here.

    Args:
        problem, limits: what is solved, and to which tolerances; without a limit in seconds.
    """

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self._problem, self._limits = problem, limits
        self._first, self._near, self._composite = attempts_of(problem, limits)
        self._linear = problem.linear
        self._vain = self._left = 0  # solves in vain in a row; solves to be left out

    def solve(self, space: Workspace, status: int) -> ColdSolve | None:
        """Solve for the inputs of a workspace; None where that is not for here.

        Args:
            space: with the inputs.
            status: how the warm mode has ended there.

        Raises:
            CutShort: by Ctrl-C, between two looks at the clock.
            KeyboardInterrupt: by Ctrl-C before the first iterate.
        """
        near = status in IN_VAIN
        if not near and (status != COLD or self._is_left()):
            return None
        attempt = self._near if near else self._begins_with(space.inputs)
        if attempt is None:
            return None
        warm = AnswerData.from_buffer_copy(space.answer) if near else None
        composite = bool(attempt.composite)
        cold = space.cold_mode(composite=composite)
        cold.set(attempt, 0 if warm is None else warm.steps)
        began, rows = time.perf_counter(), list[list[float]]()
        status = cold.begin()
        try:
            while status == PAUSED:
                status, more = cold.go_on()
                rows += more
        except KeyboardInterrupt:
            if cold.state.best.t < 0:
                raise
            due = rows + cold.due()
            raise self._cut_short(space, cold, composite, warm, due, began) from None
        said = space.answer
        solved = status == SOLVED and not said.huge
        if not near:
            self._note(solved)
        if not solved:
            return None
        return ColdSolve(warm, rows, cold.last_step(), cold.state.undefined, composite)

    def _is_left(self) -> bool:
        """Whether this solve is left to others, since the last ones were in vain."""
        self._left -= 1
        return self._left >= 0

    def _note(self, solved: bool) -> None:
        """After one in vain the next is tried, after two in a row the one after that, then 3, 7, …

        So one that fails does not slow down those after it, and where all do, few are begun twice.
        """
        self._left = 0 if solved else self._vain
        self._vain = 0 if solved else min(2 * self._vain + 1, _LEFT_MOST)

    def _cut_short(
        self,
        space: Workspace,
        cold: Cold,
        composite: bool,
        warm: AnswerData | None,
        rows: list[list[float]],
        began: float,
    ) -> CutShort:
        """What Ctrl-C becomes: it has the best iterate until then."""
        from casadi_hybrid.answer import altered  # noqa: PLC0415 - seldom
        from casadi_hybrid.attempts.compiled import Handed  # noqa: PLC0415
        from casadi_hybrid.attempts.one import go_on  # noqa: PLC0415
        from casadi_hybrid.attempts.outline import spent_in  # noqa: PLC0415
        from casadi_hybrid.attempts.solved import observe_start  # noqa: PLC0415
        from casadi_hybrid.course.record import Watch  # noqa: PLC0415

        numbers = numbers_of(space.inputs)
        watch, runs = Watch(numbers.bounds), [space.answer]
        if warm is not None:
            observe_start(warm, watch)
            runs.insert(0, warm)
        watch.take(rows, 0, 0.0)
        spent = spent_in(*runs, undefined=cold.state.undefined)
        why = "it was interrupted"
        handed = Handed(cold, why, began, *spent, space.answer.steps, interrupted=True)
        x0, of = numbers.x0, WarmStart(numbers.lam_x0, numbers.lam_g0)
        if warm is not None:
            attempt = warm_attempt(x0, of)
        elif composite:
            attempt = composite_attempt(x0)
        else:
            attempt = first_attempt(self._problem, x0, False)
        try:
            ended = go_on(
                self._problem, numbers, self._limits, watch, (), (), attempt, 0, handed, why
            )
        except Interrupted as halt:
            ended = halt.result
        watch.hold(ended.iterations)
        made = altered(ended, history=watch.course(), limits=self._limits)
        return CutShort(made, numbers.p, watch, space.called)

    def _begins_with(self, inputs: dict[str, Vector]) -> AttemptData | None:
        """The attempt from x0 alone; None where that begins with a search for a root."""
        lbg, ubg, lbx, ubx = (inputs[name] for name in ("lbg", "ubg", "lbx", "ubx"))
        equal, free = lbg == ubg, lbx < ubx
        equations, open_x = int(np.count_nonzero(equal)), int(np.count_nonzero(free))
        if self._composite is not None and equations and open_x:
            bounds = lbx[free], ubx[free], lbg[~equal], ubg[~equal]
            if not any(np.isfinite(side).any() for side in bounds):
                return self._composite
        return None if equations > open_x and not self._linear else self._first
