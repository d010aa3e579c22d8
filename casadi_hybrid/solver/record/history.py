"""An iterate of a running solve, and the course of a solve as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.problem.point.residuals import Residuals
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.status import StopReason

Array = NDArray[np.float64]


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Course:
    """Objective and residuals of every iterate.

    Attributes:
        t: iteration numbers.
        f, feasibility, stationarity: objective and unscaled residuals, one an iterate.
        elapsed: seconds since the start.
        complementarity: the third residual. Under other methods than the default one this, ``nu``
            and ``shift`` are None.
        nu: the barrier parameter ν (of the scaled problem); 0 at a solution by SQP.
        shift: the last nonzero shift of the Hessian, 0 if none was needed.
    """

    t: NDArray[np.intp]
    f: Array
    feasibility: Array
    stationarity: Array
    elapsed: Array
    complementarity: Array | None = None
    nu: Array | None = None
    shift: Array | None = None

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def further(self) -> Mapping[str, Array]:
        """Further curves over the steps by their labels; none under the default method."""
        return {}


@dataclass(frozen=True, eq=False, kw_only=True)
class History(Course):
    """The iterates themselves, one row an iterate.

    The default method may take several steps from one row to the next, and may restart elsewhere.

    Attributes:
        x: (T+1)×n.
        multipliers: (T+1)×m, the multipliers of all rows.
        h: (T+1)×m, the constraint values.
        lam_x: (T+1)×n, the multipliers of the bounds on x; None under methods for equations.
    """

    x: Array
    multipliers: Array
    h: Array
    lam_x: Array | None = None


class Recorder:
    """Collects the rows of a :class:`History`: no Jacobian, no Hessian."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def take(self, progress: Progress, **of_method: Any) -> None:
        """Take one row, with further values of the method."""
        residuals = progress.residuals
        row = {
            "t": progress.t,
            "x": progress.x,
            "multipliers": progress.multipliers,
            "h": progress.g,
            "f": progress.f,
            "feasibility": residuals.feasibility,
            "stationarity": residuals.stationarity,
            "elapsed": progress.elapsed,
        }
        self.rows.append(row | of_method)

    def hold(self, until: int) -> None:
        """Repeat the last row for the steps after it, up to step ``until``."""
        # The steps on an active set have no iterates, except the last one.
        while self.rows and self.rows[-1]["t"] < until:
            self.rows.append({**self.rows[-1], "t": self.rows[-1]["t"] + 1})

    def columns(self) -> dict[str, Any]:
        """The rows as one array for each field."""
        return {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}

    def history(self) -> History:
        """Return the collected rows."""
        return History(**self.columns())
