"""When iterates that run away prove that f falls without bound, and when they prove nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.nlp.residuals import met_far_out
from casadi_hybrid.nlp.standard import Bounds
from casadi_hybrid.status import StopReason
from casadi_hybrid.stopping import Progress

_LARGE, _FAR, _LOST = 1e5, 1e10, 1e20


@dataclass
class RayTest:
    """UNBOUNDED where x runs away along feasible points with falling f, else DIVERGED.

    Beyond ‖x‖_∞ = 1e10 a feasible point with f < 0 is the proof. Feasible means within 1e-2 at
    most: further out rounding alone may exceed that, and then a point counts that is feasible to
    1e-12 of the terms of each row, if a nearer one (‖x‖_∞ ≥ 1e5), where constants are not yet lost
    in rounding, was feasible with a larger f. Infeasible problems do not have one.
    """

    bounds: Bounds
    _seen: float = np.inf

    def __call__(self, progress: Progress) -> StopReason | None:
        """Return UNBOUNDED, DIVERGED (beyond 1e20) or None."""
        at = progress.state.carry.at
        size = float(np.abs(at.x).max())
        if size < _LARGE:
            return None
        if at.raw_f < 0.0:
            met = met_far_out(self.bounds, at.x, at.raw_g, at.raw_J)
            if met:
                self._seen = min(self._seen, at.raw_f)
            elif at.raw_f < self._seen < np.inf:
                met = met_far_out(self.bounds, at.x, at.raw_g, at.raw_J, cap=np.inf)
            if met and size > _FAR:
                return StopReason.UNBOUNDED
        return StopReason.DIVERGED if size > _LOST else None
