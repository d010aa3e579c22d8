"""Snapshot of a finished solve by the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from casadi_hybrid.core.binding.core import Core
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import EvaluationError, ScaleWarning, warn
from casadi_hybrid.utils.inputs import Vector

FAR = 1e-3
"""Estimated distance from a solution, relative to max(1, |x|), from which a warning is due."""
_copied = C.hybrid_answer.from_buffer_copy  # looked up once, since every solve calls it


@dataclass(eq=False)
class Solved:
    """One solve as C wrote it, taken apart where it is asked for.

    Attributes:
        problem, limits: what was solved.
        _numbers, _places: the numbers of the solve in one array, and which part has which name, as
            of :class:`~casadi_hybrid.core.binding.core.Core`.
        said: what C says beside them, ``hybrid_answer``.
        rows: the numbers of its iterates, a row of each.
        called: which functions were called, and a note.
        raised: what a user's function raised on the way, or Ctrl-C.
        undefined: where functions run Python: what was not defined last.
    """

    problem: Problem
    limits: Limits
    _numbers: Vector
    _places: Mapping[str, slice]
    said: Any
    rows: Vector
    called: tuple[str, str]
    raised: BaseException | None = None
    undefined: EvaluationError | None = None

    @classmethod
    def of(cls, core: Core, problem: Problem, limits: Limits) -> Self:
        """Take the snapshot of the solve that a core has just ended."""
        python = core.python
        made = cls(
            problem, limits, core.numbers.copy(), core.places, _copied(core.answer),
            core.rows[: core.observer.count].copy(), core.called, core.raised,
            None if python is None else python.undefined,
        )  # fmt: skip
        if made.said.newton > FAR:
            warn(f"solution of {problem.name}: {made.faint}", ScaleWarning)
        return made

    @property
    def faint(self) -> str:
        """Sentence on a gradient of f within the tolerance far from a minimum; empty for none."""
        if not self.said.newton > FAR:  # (false for NaN as well)
            return ""
        slope = float(np.abs(self.arrays["gradient0"]).max(initial=0.0))
        return (
            f"the gradient of f at the start was {slope:.1e}, at a tolerance of "
            f"{self.limits.scaled_tol:g}, and x may be off by {self.said.newton:.1e} of "
            "max(1, |x|): state f in smaller units, so that its values are larger, or lower "
            "the tolerance"
        )

    @cached_property
    def arrays(self) -> dict[str, Vector]:
        """All arrays of the solve by name, read-only."""
        self._numbers.setflags(write=False)
        return {name: self._numbers[place] for name, place in self._places.items()}
