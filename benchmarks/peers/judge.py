"""What a returned point is, recomputed from the problem's own functions, unscaled.

A point is *solved* when all of these are at most 1e-6:

* the violation of every bound on x and g;
* ‖∇f + J_gᵀλ_g + λ_x‖_∞;
* |λ_i|·(distance to the bound that the sign of λ_i points to), and |λ_i| where there is none.

The solver's multipliers count first. Where they fail at a feasible point, multipliers are fitted by
bounded least squares over the rows that are active within 1e-8, 1e-6 or 1e-4, so that a solver that
returns no usable multipliers is judged by its point alone.

*Infeasible* is confirmed at a point that is violated by more than 1e-6 where no direction reduces
the violation to first order, in ‖·‖₂ or in ‖·‖₁; *unbounded* where f ≤ −1e10 at a feasible point.
Or by the collection, which knows of some problems that they are so.

Beyond ``DENSE`` entries of the Jacobian everything is sparse, and multipliers are fitted over the
active rows by sparse least squares, those of the wrong sign left out until none is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.sparse import block_array, csr_array, eye_array, issparse, vstack
from scipy.sparse.linalg import splu

Vector = NDArray[np.float64]
TOLERANCE, RELATIVE, UNBOUNDED = 1e-6, 1e-5, -1e10
ACTIVE = (1e-8, 1e-6, 1e-4)
DENSE, ROUNDS, PROXIMAL = 250_000, 5, 1e-9


class Judge:
    """The functions of one problem, evaluated at the points of its solvers."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        x, f, g = data["x"], data["f"], data["g"]
        outputs = [f, ca.gradient(f, x), g, ca.jacobian(g, x)]
        self._evaluate = ca.Function("values", [x], outputs)
        self._low = np.array([*data["lbg"], *data["lbx"]], dtype=float)
        self._high = np.array([*data["ubg"], *data["ubx"]], dtype=float)
        self._n, self._m = x.numel(), g.numel()

    def objective(self, x: Sequence[float]) -> float:
        """F(x)."""
        return self._at(x)[0]

    def violation(self, x: Sequence[float]) -> float:
        """The largest violation of a bound on x or g; infinite where undefined."""
        if not np.isfinite(x).all():
            return np.inf
        worst = self._violation(self._at(x)[2])
        return worst if np.isfinite(worst) else np.inf

    def residual(self, x: Sequence[float], lam_g: Sequence[float], lam_x: Sequence[float]) -> float:
        """The largest of violation, stationarity and complementarity; infinite where undefined."""
        if not np.isfinite(x).all():
            return np.inf
        _, gradient, values, normals = self._at(x)
        violation = self._violation(values)
        given = self._kkt(gradient, values, normals, np.array([*lam_g, *lam_x], dtype=float))
        best = max(violation, given)
        defined = np.isfinite(gradient).all() and _finite(normals)
        if violation <= TOLERANCE < best and defined:
            fits = (self._fit(gradient, values, normals, near) for near in ACTIVE)
            best = min(
                best, *(max(violation, self._kkt(gradient, values, normals, lam)) for lam in fits)
            )
        return best if np.isfinite(best) else np.inf

    def infeasible(self, x: Sequence[float]) -> bool:
        """Whether x is a stationary point of the violation that is not feasible."""
        if not np.isfinite(x).all():
            return False
        _, _, values, normals = self._at(x)
        signed = np.maximum(values - self._high, 0) - np.maximum(self._low - values, 0)
        defined = np.isfinite(signed).all() and _finite(normals)
        if not defined or np.abs(signed).max() <= TOLERANCE:
            return False
        return any(self._stuck(signed, values, normals, norm) for norm in (1, 2))

    def unbounded(self, x: Sequence[float]) -> bool:
        """Whether f is below −1e10 at a feasible point."""
        if not np.isfinite(x).all():
            return False
        f, _, values, _ = self._at(x)
        return f <= UNBOUNDED and self._violation(values) <= TOLERANCE * max(1.0, np.abs(x).max())

    def _at(self, x: Sequence[float]) -> tuple[float, Vector, Vector, Any]:
        point = np.array(x, dtype=float)
        f, gradient, g, jacobian = self._evaluate(point)
        values = np.concatenate((g.full().ravel(), point))
        if (self._m + self._n) * self._n > DENSE:
            rows = csr_array(jacobian.sparse())
            normals = csr_array(vstack((rows, eye_array(self._n)), format="csr"))
        else:
            normals = np.vstack((jacobian.full(), np.eye(self._n)))
        return float(f), gradient.full().ravel(), values, normals

    def _violation(self, values: Vector) -> float:
        return float(np.max(np.maximum(self._low - values, values - self._high), initial=0.0))

    def _kkt(self, gradient: Vector, values: Vector, normals: Any, lam: Vector) -> float:
        with np.errstate(invalid="ignore", over="ignore"):
            slope = np.abs(gradient + normals.T @ lam).max()
            bound = np.where(lam > 0, self._high, self._low)
            gap = np.where(np.isfinite(bound), np.abs(bound - values), 1.0)
            pairs = np.where(self._low == self._high, 0.0, np.abs(lam) * gap)
        worst = max(float(slope), float(pairs.max()))
        return worst if np.isfinite(worst) else np.inf

    def _fit(self, gradient: Vector, values: Vector, normals: Any, near: float) -> Vector:
        low, high = self._sides(values, near)
        return self._least(normals, -gradient, low, high)

    def _sides(self, values: Vector, near: float) -> tuple[Vector, Vector]:
        """Which rows are at their lower and at their upper bound."""
        with np.errstate(invalid="ignore"):
            slack = near * np.maximum(1.0, np.abs(values))
            return values <= self._low + slack, values >= self._high - slack

    @staticmethod
    def _least(normals: Any, target: Vector, low: Vector, high: Vector) -> Vector:
        """Least squares over multipliers of these sides, at low ≤ 0, at high ≥ 0."""
        lam, active = np.zeros(low.size), low | high
        if issparse(normals):
            for _ in range(ROUNDS):
                lam[:] = 0.0
                lam[active] = _sparse_least(normals[active], target)
                wrong = active & (((lam > 0) & ~high) | ((lam < 0) & ~low))
                lam[wrong] = 0.0
                if not wrong.any():
                    break
                active &= ~wrong
        elif active.any():
            least = np.where(low[active], -np.inf, 0.0)
            most = np.where(high[active], np.inf, 0.0)
            lam[active] = lsq_linear(normals[active].T, target, (least, most), method="bvls").x
        return lam

    def _stuck(self, signed: Vector, values: Vector, normals: Any, norm: int) -> bool:
        """Whether the gradient of the violation's norm vanishes up to multipliers.

        For ‖·‖₂ the bounds on x may hold it, for ‖·‖₁ the satisfied rows too, with |λ| ≤ 1.
        """
        weights = (
            signed if norm == 2 else np.sign(np.where(np.abs(signed) > TOLERANCE, signed, 0.0))
        )
        slope = normals.T @ weights
        low, high = self._sides(values, TOLERANCE)
        free = np.abs(signed) <= TOLERANCE
        if norm == 2:
            free[: self._m] = False
        lam = self._least(normals, -slope, low & free, high & free)
        lam[: self._m] = np.clip(lam[: self._m], -1.0, 1.0)
        left = np.linalg.norm(slope + normals.T @ lam)
        rows = np.abs(weights) > 0
        entries = normals[rows].data if issparse(normals) else normals[rows]
        scale = np.linalg.norm(entries) * np.linalg.norm(weights[rows])
        return bool(left <= RELATIVE * scale)


def _sparse_least(rows: Any, target: Vector) -> Vector:
    """λ of least ‖rowsᵀλ − target‖, of dependent rows too: proximal steps on one factorization."""
    count, n = rows.shape
    lam = np.zeros(count)
    if count == 0:
        return lam
    system = block_array([[eye_array(n), rows.T], [rows, -PROXIMAL * eye_array(count)]])
    factors = splu(system.tocsc())
    for _ in range(ROUNDS):
        lam = factors.solve(np.concatenate((target, -PROXIMAL * lam)))[n:]
    return lam


def _finite(normals: Any) -> bool:
    return bool(np.isfinite(normals.data if issparse(normals) else normals).all())
