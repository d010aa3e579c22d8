"""One call's run: its result and statistics, made where they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from casadi_hybrid.basics.errors import MissingNumberError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.engine.solved import NOTHING, Solved
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem

if TYPE_CHECKING:
    from casadi_hybrid.casadi_api.callbacks import StepCallback
    from casadi_hybrid.engine.in_graph import Pool
    from casadi_hybrid.result import record as records
    from casadi_hybrid.result.record import Watch
    from casadi_hybrid.result.result import Result
    from casadi_hybrid.session import solve as sessions
else:
    sessions = LateModule("casadi_hybrid.session.solve")
    records = LateModule("casadi_hybrid.result.record")

_CALLED = ("interpreted", "")
_NONE = np.zeros((0, 11))  # rows of iterates


class Run:
    """What stays of one call; its result and statistics are made where they are asked for.

    Args:
        problem, limits: what was solved.
        inputs, places: the numbers in one array, and which part of it has which name.
        found: what the core says; rows: the numbers of its iterates.
        functions: which functions were called, and a note.
        raised: what a user's function raised on the way, or Ctrl-C.
        callback: what was called with each iterate.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        inputs: Vector,
        places: Mapping[str, slice],
        found: Solved,
        *,
        rows: Vector,
        functions: tuple[str, str],
        raised: BaseException | None = None,
        callback: StepCallback | None = None,
    ) -> None:
        self._problem, self._limits = problem, limits
        inputs.setflags(write=False)
        self._inputs, self._places, self._found = inputs, places, found
        self._rows, self._functions = rows, functions
        self.raised, self.callback = raised, callback

    @property
    def p(self) -> Vector:
        """Parameter values."""
        return self._inputs[self._places["p"]]

    @property
    def outputs(self) -> Vector:
        """All outputs side by side."""
        return self._found.numbers

    @cached_property
    def result(self) -> Result:
        """The result."""
        of = {name: self._inputs[place] for name, place in self._places.items()}
        bounds = Bounds(of["lbx"], of["ubx"], of["lbg"], of["ubg"])
        numbers = Numbers(of["x0"], of["p"], bounds, of["lam_x0"], of["lam_g0"])
        made = sessions.result_of(self._problem, numbers, self._limits, self._found)
        return sessions.finished(made, self._watch.course(), self.raised)

    @cached_property
    def _watch(self) -> Watch:
        made = records.Watch()
        made.take(self._rows.tolist())
        made.hold(self._found.steps)
        return made

    @cached_property
    def stats(self) -> dict[str, Any]:
        """The statistics under CasADi's keys."""
        from casadi_hybrid.casadi_api.stats import casadi_stats  # noqa: PLC0415 - where asked for

        lists = self._watch.lists
        return casadi_stats(self.result, lists, self.callback, self._functions)


class Latest:
    """The last run of each thread and of all.

    Attributes:
        pool: the memory of solves in graphs, where C makes them: of these only the inputs are kept.
    """

    def __init__(self) -> None:
        self.pool: Pool | None = None
        self._run: Run | None = None
        self._calls = 0  # solves in graphs at the time of the latest run
        self._of_thread = threading.local()

    def note(self, run: Run | None) -> None:
        """Make a run the last one, of the asking thread and of all."""
        self._run = self._of_thread.run = run
        self._calls = self._of_thread.calls = 0 if self.pool is None else self.pool.calls()

    def find(self, again: Callable[[list[Vector]], Run | None]) -> Run | None:
        """The last run of the asking thread, or of any where that has made none.

        Args:
            again: solves once more what was solved in a graph; None where it was not begun.
        """
        of_thread, pool = self._of_thread, self.pool
        own: Run | None = getattr(of_thread, "run", None)
        if pool is None:
            return own or self._run
        mine = pool.last(getattr(of_thread, "calls", 0), threading.get_ident())
        found = mine or (None if own else pool.last(self._calls))
        run = None if found is None else again(found[1])
        if found is None or run is None:
            return own or self._run
        self._run, self._calls = run, found[0]
        if mine:
            of_thread.run, of_thread.calls = run, found[0]
        return run


def without_numbers(
    problem: Problem, limits: Limits, row: Sequence[Vector], missing: MissingNumberError
) -> Run:
    """The run of a solve in a graph, one of whose arguments has no number."""
    x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = row
    numbers = Numbers(x0, p, Bounds(lbx, ubx, lbg, ubg), lam_x0, lam_g0)
    made = Run(
        problem, limits, p.copy(), {"p": slice(None)}, NOTHING, rows=_NONE, functions=_CALLED
    )
    made.__dict__["result"] = sessions.undefined_result(problem, numbers, limits, missing)
    return made
