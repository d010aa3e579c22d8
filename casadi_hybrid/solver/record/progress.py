"""An iterate of a running solve, for callbacks and stopping tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.status import StopReason


@dataclass(frozen=True, eq=False)
class Progress:
    """An iterate of a running solve, in the user's units.

    Attributes:
        t: number of steps so far.
        x, f, g: the iterate, its objective, and all rows of the constraints.
        multipliers: of all rows; under the paper's methods the memory-free ones.
        residuals: KKT residuals of (x, multipliers).
        elapsed: wall-clock seconds since the start of the solve.
    """

    t: int
    x: Vector
    f: float
    g: Vector
    multipliers: Vector
    residuals: Residuals
    elapsed: float


StoppingTest = Callable[[Progress], StopReason | None]
"""A function of the progress that returns the reason to stop, or None to go on."""
