"""What the engine hands back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from casadi_hybrid.basics.errors import EvaluationError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.structures import AnswerData
from casadi_hybrid.point.residuals import Residuals


class Solved(NamedTuple):
    """A solution as C wrote it; taken apart where it is asked for.

    Args:
        numbers: x, f, g, … in one array.
        places: which part of it has which name of
            :data:`~casadi_hybrid.engine.workspace.OUTPUTS`.
        said: what C says beside them.
        step: the last step to x; None where none was taken.
        x_undefined: the last point where a function was not defined; None where all were.
        by_python: whether Python evaluates the functions.
        undefined: what was said at that point, where it does.
    """

    numbers: Vector
    places: Mapping[str, slice]
    said: AnswerData
    step: Vector | None = None
    x_undefined: Vector | None = None
    by_python: bool = False
    undefined: EvaluationError | None = None

    def array(self, name: str) -> Vector:
        """``x, f, g, lam_x, lam_g`` in the user's units; first derivatives: ``gradient`` and the
        nonzeros ``J`` at x, ``gradient0`` and ``J0`` at the start.
        """
        return self.numbers[self.places[name]]

    @property
    def steps(self) -> int:
        """Newton steps from the first iterate to x."""
        return int(self.said.steps)

    @property
    def residuals(self) -> Residuals:
        """At x."""
        end = self.said.end
        return Residuals(end.feasibility, end.stationarity, end.complementarity)


NOTHING = Solved(np.zeros(0), {}, AnswerData())
"""Of a solve that was not begun."""
