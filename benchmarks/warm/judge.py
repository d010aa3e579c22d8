"""What a returned point is worth: residuals from the problem's own functions, unscaled.

Nothing that a solver says of its point counts. The residual is the largest of

* the violation of every bound on x and g,
* ‖∇f + J_gᵀλ_g + λ_x‖_∞,
* |λ_i|·(distance to the bound that the sign of λ_i points to), and |λ_i| where there is none,

in the convention L = f + λ_gᵀg + λ_xᵀx, λ positive at an upper bound. Interior-point solvers move
bounds outwards by 1e-8·max(1, |bound|); the distance is to the bound or to the moved one, whichever
is nearer. Some plugins return multipliers of x that they were given, or none: λ_x is also read off
the slope, and the better of the two counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from warm.stages import Program, Vector

TOLERANCE = 1e-6
MOVED = 1e-8
"""IPOPT's and fatrop's relaxation of bounds."""


class Judge:
    """The functions of one program, evaluated at points and multipliers."""

    def __init__(self, program: Program) -> None:
        nlp = program.nlp
        x, p, f, g = (nlp[key] for key in ("x", "p", "f", "g"))
        lam = ca.SX.sym("lam", g.numel())
        slope = ca.gradient(f + ca.dot(lam, g), x)
        self._evaluate = ca.Function("judge", [x, p, lam], [f, g, slope])
        self._low = np.concatenate((program.lbg, program.lbx))
        self._high = np.concatenate((program.ubg, program.ubx))
        self._rows = program.lbg.size
        moved = np.where(self._low < self._high, MOVED, 0.0)
        self._least = self._low - moved * _size(self._low)
        self._most = self._high + moved * _size(self._high)

    def __call__(self, answer: Mapping[str, Any], p: Any) -> tuple[float, float]:
        """The residual and the objective, from the functions; infinite where undefined."""
        x, lam_x, lam_g = (np.asarray(answer[key]).ravel() for key in ("x", "lam_x", "lam_g"))
        if not (np.isfinite(x).all() and np.isfinite(lam_g).all()):
            return np.inf, np.inf
        f, g, slope = (value.full().ravel() for value in self._evaluate(x, p, lam_g))
        values = np.concatenate((g, x))
        violation = np.maximum(self._least - values, values - self._most).max(initial=0.0)
        found = [self._dual(values, slope, lam_g, lam) for lam in (lam_x, self._read(x, slope))]
        residual = max(float(violation), min(found))
        return (residual if np.isfinite(residual) else np.inf), float(f[0])

    def _read(self, x: Vector, slope: Vector) -> Vector:
        """−∇L as the multipliers of x, where it points to a bound that exists and is near."""
        low, high = self._low[self._rows :], self._high[self._rows :]
        bound = np.where(slope < 0, high, low)
        with np.errstate(invalid="ignore"):
            near = np.abs(x - bound) * np.abs(slope) <= TOLERANCE
        return np.where(np.isfinite(bound) & near, -slope, 0.0)

    def _dual(self, values: Vector, slope: Vector, lam_g: Vector, lam_x: Vector) -> float:
        """The larger of stationarity and complementarity."""
        lam = np.concatenate((lam_g, lam_x))
        with np.errstate(invalid="ignore", over="ignore"):
            gaps = []
            for low, high in ((self._low, self._high), (self._least, self._most)):
                bound = np.where(lam > 0, high, low)
                gaps.append(np.where(np.isfinite(bound), np.abs(bound - values), 1.0))
            pairs = np.where(self._low == self._high, 0.0, np.abs(lam) * np.minimum(*gaps))
            worst = max(np.abs(slope + lam_x).max(), pairs.max())
        return float(worst) if np.isfinite(worst) else np.inf


def _size(bounds: Vector) -> Vector:
    return np.where(np.isfinite(bounds), np.maximum(1.0, np.abs(bounds)), 1.0)
