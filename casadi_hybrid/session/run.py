"""What stays of one solve by the core: result and statistics are made when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.engine.header import C
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem

if TYPE_CHECKING:
    from casadi_hybrid.engine.core import Core
    from casadi_hybrid.result import record as records
    from casadi_hybrid.result.record import Watch
    from casadi_hybrid.result.result import Result
    from casadi_hybrid.session import solve as sessions
else:
    sessions = LateModule("casadi_hybrid.session.solve")
    records = LateModule("casadi_hybrid.result.record")


class Run:
    """One solve as C wrote it, taken apart where it is asked for.

    Args:
        problem, limits: what was solved.
        numbers, places: the numbers of the solve in one array, and which part has which name, as of
            :class:`~casadi_hybrid.engine.core.Core`.
        answer: the bytes of ``hybrid_answer``.
        rows: the numbers of its iterates.
        called: which functions were called, and a note.
        raised: what a user's function raised on the way, or Ctrl-C.
        undefined: where functions run Python: what was not defined last.

    Attributes:
        problem, limits, raised, undefined: as given.
        callback: what was called with each iterate.
    """

    callback: Any = None

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        numbers: Vector,
        places: Mapping[str, slice],
        answer: bytes,
        rows: Vector,
        called: tuple[str, str],
        raised: BaseException | None = None,
        undefined: EvaluationError | None = None,
    ) -> None:
        self.problem, self.limits, self._called = problem, limits, called
        self._numbers, self._places, self._answer, self._rows = numbers, places, answer, rows
        self.raised, self.undefined = raised, undefined

    @classmethod
    def of(cls, core: Core, problem: Problem, limits: Limits) -> Run:
        """Of the solve that a core has ended."""
        python = core.python
        return cls(
            problem, limits, core.numbers.copy(), core.places, bytes(core.answer), core.rows(),
            core.called, core.raised, None if python is None else python.undefined,
        )  # fmt: skip

    def array(self, name: str) -> Vector:
        """The numbers of this name, which cannot be written to."""
        self._numbers.setflags(write=False)
        return self._numbers[self._places[name]]

    @cached_property
    def said(self) -> Any:
        """What C says beside them, ``hybrid_answer``."""
        return C.hybrid_answer.from_buffer_copy(self._answer)

    @cached_property
    def numbers(self) -> Numbers:
        """What was solved for."""
        bounds = Bounds(*map(self.array, ("lbx", "ubx", "lbg", "ubg")))
        x0, p, lam_x0, lam_g0 = map(self.array, ("x0", "p", "lam_x0", "lam_g0"))
        return Numbers(x0, p, bounds, lam_x0, lam_g0)

    @cached_property
    def result(self) -> Result:
        """The result."""
        return sessions.result_of(self, self._watch.course())

    @cached_property
    def _watch(self) -> Watch:
        made = records.Watch()
        made.take(self._rows.tolist())
        made.hold(self.said.steps)
        return made

    @cached_property
    def stats(self) -> dict[str, Any]:
        """The statistics under CasADi's keys."""
        from casadi_hybrid.casadi_api.stats import casadi_stats  # noqa: PLC0415 - where asked for

        return casadi_stats(self.result, self._watch.lists, self.callback, self._called)
