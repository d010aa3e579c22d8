"""What the engine hands back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

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
    """

    numbers: Vector
    places: Mapping[str, slice]
    said: AnswerData

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


class ColdSolve(NamedTuple):
    """What is known of an attempt that has solved, beside the workspace's outputs.

    Attributes:
        warm: of the warm mode before it, which was in vain; None where there was none.
        rows: the numbers of all iterates, see :meth:`~casadi_hybrid.course.record.Watch.take`.
        step: the last one before the solution; None where none was taken.
        undefined: trial points at which a function was not defined.
        composite: whether by composite steps.
    """

    warm: AnswerData | None
    rows: list[list[float]]
    step: Vector | None
    undefined: int
    composite: bool
