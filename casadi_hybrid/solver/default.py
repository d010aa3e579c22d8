"""The default method: checked values in, iterates shown on the way, a result out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from casadi_hybrid.core.binding.core import engine_of
from casadi_hybrid.core.binding.view import View
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.point.limits import METHOD_NAMES, Limits
from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.call import Call
from casadi_hybrid.solver.record.answer import altered
from casadi_hybrid.solver.record.history import Recorder
from casadi_hybrid.solver.record.progress import Progress
from casadi_hybrid.solver.record.record import Watch
from casadi_hybrid.solver.result import Result
from casadi_hybrid.solver.run import Session, solve
from casadi_hybrid.utils.errors import InputError, Interrupted
from casadi_hybrid.utils.status import StopReason


@dataclass(frozen=True)
class Automatic:
    """The default method: the core in C, for every problem."""

    label: str = METHOD_NAMES[0]
    limits: ClassVar[Limits] = Limits()

    def refusal(self, problem: Problem, bounds: Bounds) -> str:
        """Nothing: every problem is accepted."""
        return ""

    def run(self, problem: Problem, call: Call) -> Result:
        """Solve by the core."""
        return solve_call(Session(problem, call.limits), call, self.label)


class _Follower(Watch):
    """Shows iterates to the callback, the stopping tests and the history of a call as well.

    Attributes:
        recorder: has the iterates, where a history is wanted.
        reason: of the stopping test that ended the solve, else None.
    """

    def __init__(self, call: Call) -> None:
        super().__init__(log=call.log)
        self._call, self.recorder = call, Recorder()
        self.reason: StopReason | None = None

    def see(self, view: View) -> bool:
        super().see(view)
        t, f, *residuals = view.row[:5]
        progress = Progress(
            int(t), view.x, f, view.g, view.lam_g, Residuals(*residuals), view.row[-1]
        )
        call = self._call
        if call.history:
            self.recorder.hold(progress.t - 1)
            self.recorder.take(
                progress,
                lam_x=view.lam_x,
                nu=view.row[5],
                shift=view.row[9],
                complementarity=progress.residuals.complementarity,
            )
        if call.callback is not None and call.callback(progress) is True:
            return True
        self.reason = next((r for test in call.stopping if (r := test(progress))), None)
        return self.reason is not None

    def added_to(self, result: Result, steps: int) -> Result:
        """The result with the history and the reason of a stopping test."""
        self.recorder.hold(steps)
        if self.recorder.rows:
            result = altered(result, history=self.recorder.history())
        if self.reason is not None and result.stop is StopReason.STOPPED_BY_USER:
            result = altered(result, stop=self.reason)
        return result


def solve_call(session: Session, call: Call, label: str) -> Result:
    """Solve for checked values, with the course of the solve in the result, also after Ctrl-C.

    Args:
        label: of the method; the result has it where it is no name of the default method.
    """
    if call.x_prev is not None:
        raise InputError(f"x_prev is for methods with memory; method {label!r} has none")
    problem, limits = session.problem, session.limits
    watched = call.history or call.callback is not None or call.stopping or call.log
    follower = _Follower(call) if watched else None
    engine = engine_of(problem)
    core = engine.core(call.numbers.bounds, limits)
    core.fill(call.numbers, call.warm)
    run = solve(core, problem, limits, follower)
    assert run is not None  # the values are checked, and the core is one for such bounds
    if engine.evaluate is not None:
        session.keep(core)
    result = run.result if follower is None else follower.added_to(run.result, run.said.steps)
    if label not in METHOD_NAMES:
        result = altered(result, method=label)
    if run.raised is None:
        return result
    if isinstance(run.raised, Interrupted):
        run.raised.result = result
    raise run.raised
