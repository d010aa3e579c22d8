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

# Estimated distance from a solution, relative to max(1, |x|), above which a warning is given.
FAR = 1e-3
_copied = C.hybrid_answer.from_buffer_copy  # bound once: every solve calls it


@dataclass(eq=False)
class Solved:
    """A finished solve."""

    problem: Problem  # of the solve, as the limits
    limits: Limits
    _numbers: Vector  # of the core, in one array
    _places: Mapping[str, slice]
    said: Any  # hybrid_answer of C
    rows: Vector  # numbers of the iterates, a row of each
    called: tuple[str, str]  # form of the functions, and a note
    raised: BaseException | None = None
    undefined: EvaluationError | None = None

    @classmethod
    def of(cls, core: Core, problem: Problem, limits: Limits) -> Self:
        """Take the snapshot of the solve that a core has just finished."""
        # Copies: the core writes its next solve over them.
        numbers, rows = core.numbers.copy(), core.rows[: core.observer.count].copy()
        undefined = None if core.python is None else core.python.undefined
        snapshot = numbers, core.places, _copied(core.answer), rows, core.called, core.raised
        solved = cls(problem, limits, *snapshot, undefined)
        if solved.said.newton > FAR:
            warn(f"solution of {problem.name}: {solved.faint}", ScaleWarning)
        return solved

    @property
    def faint(self) -> str:
        """Sentence on a gradient of f within the tolerance but far from a minimum; else empty."""
        if not self.said.newton > FAR:  # true for NaN as well
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
        # Results share these arrays.
        self._numbers.setflags(write=False)
        return {name: self._numbers[place] for name, place in self._places.items()}
