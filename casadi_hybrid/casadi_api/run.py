"""What stays of one call of a solver."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.engine.solved import Solved

if TYPE_CHECKING:
    from casadi_hybrid.casadi_api.callbacks import StepCallback
    from casadi_hybrid.result.result import Result
    from casadi_hybrid.session import solve as sessions
else:
    sessions = LateModule("casadi_hybrid.session.solve")


class Run(Solved):
    """A solve with its result, and what was called with each iterate."""

    callback: StepCallback | None = None

    @cached_property
    def result(self) -> Result:
        """The result, made where it is asked for."""
        return sessions.result_of(self)
