"""When an attempt has had its share of the steps."""

from __future__ import annotations

from dataclasses import dataclass

from casadi_hybrid.barrier.pace import CONVERGING
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.point.residuals import Tolerances
from casadi_hybrid.stopping import Progress


@dataclass
class Patience:
    """Ends an attempt after its ``steps``, but not while each brings the residuals down by half.

    An attempt that has begun to converge needs a few more; another one would begin from nothing.
    """

    steps: int
    tolerances: Tolerances
    before: float = 0.0

    def __call__(self, progress: Progress) -> StopReason | None:
        """Return ITERATION_LIMIT or None."""
        now = self.tolerances.merit(progress.residuals)
        converging = now < CONVERGING * self.before
        self.before = now
        if progress.state.t < self.steps or converging:
            return None
        return StopReason.ITERATION_LIMIT
