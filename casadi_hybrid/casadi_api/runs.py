"""What stays of a solver's calls: the run, what it raises, and which was the last one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.casadi_api.quick import QuickRun

if TYPE_CHECKING:
    from casadi_hybrid.engine.in_graph import Pool
    from casadi_hybrid.result import Result


class SolveError(RuntimeError):
    """A solve did not succeed and ``error_on_fail`` was set, or its time was over at once.

    Attributes:
        result: the :class:`~casadi_hybrid.Result`; None where no point was looked at.
    """

    def __init__(self, message: str, result: Result | None) -> None:
        self.result = result
        super().__init__(message, result)

    def __str__(self) -> str:
        return str(self.args[0])


class Run(NamedTuple):
    """What stays of one call."""

    result: Result
    stats: dict[str, Any]
    p: Vector
    raised: BaseException | None = None
    """What a user's callback or model function raised on the way."""


class Latest:
    """The last run of each thread and of all.

    Attributes:
        pool: the memory with which the engine solves in graphs, where it does: of these solves only
            the numbers are kept.
    """

    def __init__(self) -> None:
        self.pool: Pool | None = None
        self._run: Run | QuickRun | None = None
        self._calls = 0  # solves in graphs at the time of the latest run
        self._of_thread = threading.local()

    def note(self, run: Run | QuickRun) -> None:
        """Make a run the last one, of the asking thread and of all."""
        self._run = self._of_thread.run = run
        self._calls = self._of_thread.calls = 0 if self.pool is None else self.pool.calls()

    def forget(self) -> None:
        """Let there be none: the one that was begun has no point, and no other stands for it."""
        self._run = self._of_thread.run = None

    def find(self, again: Callable[[list[Vector]], object]) -> Run | QuickRun | None:
        """The last run of the asking thread, or of any where that has made none.

        Args:
            again: solves once more, and notes it, what was solved in a graph, from its arguments.
        """
        of_thread, pool = self._of_thread, self.pool
        own: Run | QuickRun | None = getattr(of_thread, "run", None)
        if pool is None:
            return own or self._run
        found = pool.last(getattr(of_thread, "calls", 0), threading.get_ident())
        if found is not None:
            again(found[1])
            return self._run
        if own is None:
            found = pool.last(self._calls)
            if found is not None:
                again(found[1])
                self._calls = found[0]
                del of_thread.run, of_thread.calls  # it is not of this thread
        return own or self._run
