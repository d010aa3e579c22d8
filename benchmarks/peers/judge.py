"""The judge of all comparisons: residuals recomputed from the problem's own functions, unscaled.

A point is *solved* when all of these are at most 1e-6:

* the violation of every bound on x and g;
* ‖∇f + J_gᵀλ_g + λ_x‖_∞;
* |λ_i|·(distance to the bound that the sign of λ_i points to), and |λ_i| where there is none.

The solver's multipliers count first, then its λ_g with λ_x read off the gradient, because some
plugins return no λ_x. Where both fail at a feasible point, multipliers are fitted by bounded least
squares over the rows that are active within 1e-8, 1e-6 or 1e-4.

*Infeasible* is confirmed at a point that is violated by more than 1e-6 where no direction reduces
the violation to first order, in ‖·‖₂ or in ‖·‖₁; *unbounded* where f ≤ −1e10 at a feasible point.
The collection confirms both for problems it knows to be so.

Kinds of an answer: solved; verdict (the solver says infeasible or unbounded, and that is
confirmed); value (it says success, the point is feasible and has the published least value, but no
multipliers: where the collection calls that right); honest (it says that it failed); false (it says
success, and the point is no KKT point); wrong (a verdict that is not confirmed); crash; time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.sparse import block_array, csr_array, eye_array, issparse, vstack
from scipy.sparse.linalg import splu

if TYPE_CHECKING:
    from peers.cases import Case
    from peers.workers import Answer

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Point = Sequence[float] | Vector
GOOD = ("solved", "verdict")
KINDS = (*GOOD, "value", "honest", "false", "wrong", "crash", "time")
TOLERANCE, RELATIVE, UNBOUNDED = 1e-6, 1e-5, -1e10
ACTIVE = (1e-8, 1e-6, 1e-4)
DENSE, ROUNDS, PROXIMAL = 250_000, 5, 1e-9
BOUNDS = ("lbg", "lbx", "ubg", "ubx")


class Functions:
    """f, g and their derivatives; the Jacobian is made where it is asked for."""

    def __init__(self, x: Any, p: Any, f: Any, g: Any) -> None:
        self._symbols = x, p, f, g
        lam = type(x).sym("lam", g.numel())
        slope = ca.gradient(f + ca.dot(lam, ca.densify(g)), x)
        self.values = ca.Function("values", [x, p, lam], [f, slope, g])
        self.n, self.m = x.numel(), g.numel()

    @cached_property
    def rows(self) -> ca.Function:
        """(x, p) → f, ∇f, g, J_g."""
        x, p, f, g = self._symbols
        return ca.Function("rows", [x, p], [f, ca.gradient(f, x), g, ca.jacobian(g, x)])


class Judge:
    """The functions of one problem, evaluated at the points of its solvers.

    Args:
        data: the expressions x, f, g and, with parameters, p; the numbers lbx, ubx, lbg, ubg, which
            :meth:`at` gives where they change from call to call.
        relaxed: relative move of the bounds outwards that a solver makes and the judge forgives.
    """

    def __init__(self, data: Mapping[str, Any], relaxed: float = 0.0) -> None:
        x, p = data["x"], data.get("p", type(data["x"])(0, 1))
        self._functions = Functions(x, p, data["f"], data["g"])
        self._m, self._relaxed, self._p = self._functions.m, relaxed, np.zeros(0)
        if all(key in data for key in BOUNDS):
            self._bound(data)

    def at(self, **numbers: Any) -> Judge:
        """The same functions with other numbers: p, or lbx, ubx, lbg and ubg, or all five."""
        other = copy(self)
        if "lbg" in numbers:
            other._bound(numbers)
        other._p = np.ravel(numbers.get("p", self._p)).astype(float)
        return other

    def objective(self, x: Point) -> float:
        """F(x)."""
        return float(self._evaluate(x)[0])

    def violation(self, x: Point) -> float:
        """The largest violation of a bound on x or g; infinite where undefined."""
        if not np.isfinite(x).all():
            return np.inf
        worst = self._violation(self._evaluate(x)[2])
        return worst if np.isfinite(worst) else np.inf

    def residual(self, x: Point, lam_g: Point, lam_x: Point, fit: bool = True) -> float:
        """The largest of violation, stationarity and complementarity; infinite where undefined.

        Without ``fit`` no multipliers are fitted: cheaper, for many calls.
        """
        if not np.isfinite(x).all():
            return np.inf
        _, slope, values = self._evaluate(x, lam_g)
        violation = self._violation(values)
        read = self._read_off(slope, values)
        worst = min(
            self._kkt(slope + lam, values, np.concatenate((lam_g, lam)))
            for lam in (np.asarray(lam_x, dtype=float), read)
        )
        best = max(violation, worst)
        if fit and violation <= TOLERANCE < best:
            _, gradient, _, normals = self._at(x)
            if np.isfinite(gradient).all() and _finite(normals):
                fits = (self._fit(gradient, values, normals, near) for near in ACTIVE)
                errors = (self._kkt(gradient + normals.T @ lam, values, lam) for lam in fits)
                best = min(best, *(max(violation, error) for error in errors))
        return best if np.isfinite(best) else np.inf

    def infeasible(self, x: Point) -> bool:
        """Whether x is a stationary point of the violation that is not feasible."""
        if not np.isfinite(x).all():
            return False
        _, _, values, normals = self._at(x)
        signed = np.maximum(values - self._high, 0) - np.maximum(self._low - values, 0)
        defined = np.isfinite(signed).all() and _finite(normals)
        if not defined or np.abs(signed).max() <= TOLERANCE:
            return False
        return any(self._stuck(signed, values, normals, norm) for norm in (1, 2))

    def unbounded(self, x: Point) -> bool:
        """Whether f is below −1e10 at a feasible point."""
        if not np.isfinite(x).all():
            return False
        f, _, values = self._evaluate(x)
        return f <= UNBOUNDED and self._violation(values) <= TOLERANCE * max(1.0, np.abs(x).max())

    def _bound(self, numbers: Mapping[str, Any]) -> None:
        lbg, lbx, ubg, ubx = (np.ravel(numbers[key]).astype(float) for key in BOUNDS)
        self._low, self._high = np.concatenate((lbg, lbx)), np.concatenate((ubg, ubx))
        moved = np.where(self._low < self._high, self._relaxed, 0.0)
        with np.errstate(invalid="ignore"):  # 0·∞ where nothing is moved
            self._least = self._low - np.nan_to_num(moved * np.maximum(1, np.abs(self._low)))
            self._most = self._high + np.nan_to_num(moved * np.maximum(1, np.abs(self._high)))

    def _evaluate(self, x: Any, lam_g: Any = 0.0) -> tuple[float, Vector, Vector]:
        """F, ∇f + J_gᵀλ_g, and the values of g and x."""
        point, lam = np.array(x, dtype=float), np.broadcast_to(lam_g, self._m)
        f, slope, g = self._functions.values(point, self._p, lam)
        return float(f), slope.full().ravel(), np.concatenate((g.full().ravel(), point))

    def _at(self, x: Point) -> tuple[float, Vector, Vector, Any]:
        """F, ∇f, the values of g and x, and their Jacobian."""
        point = np.array(x, dtype=float)
        f, gradient, g, jacobian = self._functions.rows(point, self._p)
        values = np.concatenate((g.full().ravel(), point))
        n = point.size
        if values.size * n > DENSE:
            rows = csr_array(jacobian.sparse())
            normals = csr_array(vstack((rows, eye_array(n)), format="csr"))
        else:
            normals = np.vstack((jacobian.full(), np.eye(n)))
        return float(f), gradient.full().ravel(), values, normals

    def _violation(self, values: Vector) -> float:
        return float(np.max(np.maximum(self._least - values, values - self._most), initial=0.0))

    def _read_off(self, slope: Vector, values: Vector) -> Vector:
        """λ_x = −slope where it points to a bound that is near enough."""
        low, high, x = self._low[self._m :], self._high[self._m :], values[self._m :]
        with np.errstate(invalid="ignore", over="ignore"):
            bound = np.where(slope < 0, high, low)
            near = np.isfinite(bound) & (np.abs(x - bound) * np.abs(slope) <= TOLERANCE)
        return np.where(near | (low == high), -slope, 0.0)

    def _kkt(self, slope: Vector, values: Vector, lam: Vector) -> float:
        """The larger of ‖∇L‖_∞, of this slope, and complementarity."""
        with np.errstate(invalid="ignore", over="ignore"):
            gaps = []
            for low, high in ((self._low, self._high), (self._least, self._most)):
                bound = np.where(lam > 0, high, low)
                gaps.append(np.where(np.isfinite(bound), np.abs(bound - values), 1.0))
            pairs = np.where(self._low == self._high, 0.0, np.abs(lam) * np.minimum(*gaps))
            worst = max(float(np.abs(slope).max()), float(pairs.max()))
        return worst if np.isfinite(worst) else np.inf

    def _fit(self, gradient: Vector, values: Vector, normals: Any, near: float) -> Vector:
        low, high = self._sides(values, near)
        return self._least_squares(normals, -gradient, low, high)

    def _sides(self, values: Vector, near: float) -> tuple[Mask, Mask]:
        """Masks of the rows at their lower and at their upper bound."""
        with np.errstate(invalid="ignore"):
            slack = near * np.maximum(1.0, np.abs(values))
            return values <= self._low + slack, values >= self._high - slack

    @staticmethod
    def _least_squares(normals: Any, target: Vector, low: Mask, high: Mask) -> Vector:
        """Least squares over multipliers of these sides, at low ≤ 0, at high ≥ 0."""
        lam, active = np.zeros(low.size), low | high
        if issparse(normals):
            for _ in range(ROUNDS):
                lam[:] = 0.0
                lam[active] = _sparse_least_squares(normals[active], target)
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
        violated = np.where(np.abs(signed) > TOLERANCE, signed, 0.0)
        weights = signed if norm == 2 else np.sign(violated)
        slope = normals.T @ weights
        low, high = self._sides(values, TOLERANCE)
        free = np.abs(signed) <= TOLERANCE
        if norm == 2:
            free[: self._m] = False
        lam = self._least_squares(normals, -slope, low & free, high & free)
        lam[: self._m] = np.clip(lam[: self._m], -1.0, 1.0)
        left = np.linalg.norm(slope + normals.T @ lam)
        rows = np.abs(weights) > 0
        entries = normals[rows].data if issparse(normals) else normals[rows]
        scale = np.linalg.norm(entries) * np.linalg.norm(weights[rows])
        return bool(left <= RELATIVE * scale)


@dataclass(frozen=True)
class Outcome:
    """A judged answer; ``kind`` is one of ``KINDS``."""

    kind: str
    f: float
    residual: float
    answer: Answer


def judged(case: Case, judge: Judge, answer: Answer) -> Outcome:
    """Put an answer under one of the kinds."""
    if answer.end != "returned":
        return Outcome("time" if answer.end == "timeout" else "crash", np.nan, np.inf, answer)
    x = answer.x
    residual, f = judge.residual(x, answer.lam_g, answer.lam_x), judge.objective(x)
    if residual <= TOLERANCE:
        return Outcome("solved", f, residual, answer)
    confirmed = {
        "infeasible": case.truth == "infeasible" or judge.infeasible(x),
        "unbounded": case.truth == "unbounded" or judge.unbounded(x),
    }
    if answer.claim in confirmed:
        return Outcome("verdict" if confirmed[answer.claim] else "wrong", f, residual, answer)
    kind = "false" if answer.claim == "success" else "honest"
    if kind == "false" and "value" in case.good and case.f_star is not None:
        near = abs(f - case.f_star) <= TOLERANCE * max(1.0, abs(case.f_star))
        kind = "value" if near and judge.violation(x) <= TOLERANCE else kind
    return Outcome(kind, f, residual, answer)


def _sparse_least_squares(rows: Any, target: Vector) -> Vector:
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
