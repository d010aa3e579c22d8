"""Bounds and constraints of a nonlinear program as one list of rows at one point.

The program min f(x) s.t. lbx ≤ x ≤ ubx, lbg ≤ g(x) ≤ ubg has the rows lower ≤ c ≤ upper with
c = (x; g), the Jacobian A = (I; J_g) and the multipliers λ = (lam_x; lam_g) of L = f + λᵀc:
positive at an upper bound, negative at a lower one, free for equal bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.rounding import counted_violation, violations
from casadi_hybrid.utils.inputs import Vector

Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
FirstOrderValues = tuple[float, Vector, Vector, Any]


class Measure(NamedTuple):
    """One residual in the infinity norm.

    Attributes:
        value: unscaled.
        scaled: relative to the size of the terms of the sum.
        where: the constraint or the variable with the largest unscaled entry.
    """

    value: float
    scaled: float
    where: str


@dataclass(frozen=True, eq=False)
class Rows:
    """Objective f and the rows at x, variables first; A is sparse by rows."""

    x: Vector
    f: float
    gradient: Vector
    value: Vector
    lower: Vector
    upper: Vector
    jacobian: Any
    names: tuple[str, ...]

    @classmethod
    def at(cls, x: Vector, first: FirstOrderValues, bounds: Bounds, names: tuple[str, ...]) -> Rows:
        """Stack bounds and constraints; ``first`` is f, ∇f, g and the sparse J_g at x."""
        f, gradient, g, J = first
        jacobian = sp.vstack((sp.eye_array(x.size), J), format="csr")
        lower = np.concatenate((bounds.lbx, bounds.lbg))
        upper = np.concatenate((bounds.ubx, bounds.ubg))
        return cls(x, f, gradient, np.concatenate((x, g)), lower, upper, jacobian, names)

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.x.size

    @cached_property
    def equations(self) -> Flags:
        """Mask of the rows whose two bounds are equal."""
        return np.asarray(self.lower == self.upper)

    @cached_property
    def violation(self) -> Vector:
        """Signed distance outside the bounds, zero for constraints within rounding."""
        violation, n = violations(self.value, self.lower, self.upper), self.n
        violation[n:] = counted_violation(violation[n:], self.terms[n:])
        return violation

    @cached_property
    def terms(self) -> Vector:
        """Size |x_i| of each variable and |J_g||x| + |g| of the terms of each constraint."""
        terms = np.abs(self.value)
        terms[self.n :] += abs(self.jacobian[self.n :]) @ np.abs(self.x)
        return terms

    @cached_property
    def sizes(self) -> Vector:
        """Largest entry of each row of A."""
        return largest_of(self.jacobian, 1)

    def pulls(self, multipliers: Vector) -> Vector:
        """Return |A|ᵀ|λ|, the sizes of the multiplier terms in ∂L/∂x."""
        return np.asarray(abs(self.jacobian).T @ np.abs(multipliers))

    def slope(self, multipliers: Vector) -> Vector:
        """Return ∇f + Aᵀλ."""
        return np.asarray(self.gradient + self.jacobian.T @ multipliers)

    def inside(self, sign: float) -> Vector:
        """Return distances inside the upper (sign > 0) or lower bounds, negative outside."""
        return sign * ((self.upper if sign > 0 else self.lower) - self.value)

    def near(self, sign: float, reach: float) -> Flags:
        """Mark rows within ``reach``·max(1, |bound|) of their upper (sign > 0) or lower bound."""
        bound = self.upper if sign > 0 else self.lower
        close = self.inside(sign) <= reach * np.maximum(1.0, np.abs(bound))
        return np.asarray(np.isfinite(bound) & close)

    def describe(self, i: int, sign: float) -> str:
        """Return row i as a relation: ``"speed ≤ 3"`` for sign > 0, ``≥`` for sign < 0."""
        if self.equations[i]:
            return f"{self.names[i]} = {self.upper[i]:g}"
        bound = self.upper[i] if sign > 0 else self.lower[i]
        return f"{self.names[i]} {'≤' if sign > 0 else '≥'} {bound:g}"


@dataclass(frozen=True, eq=False)
class Sides:
    """Bounds that x meets, violates or is close to: the candidates for multipliers."""

    row: Indices  # twice for a row close to both of its bounds
    sign: Vector  # +1 at the upper bound, −1 at the lower one, 0 for an equation
    distance: Vector  # inside the bound, or zero

    def columns(self, rows: Rows) -> Any:
        """Return the sides' gradients as columns, pointing out of the feasible set: n×k, sparse."""
        # Coefficients of columns that point outward are ≥ 0, as λ ≥ 0 at an upper bound.
        outward = np.where(self.sign == 0, 1.0, self.sign)
        return (sp.diags_array(outward) @ rows.jacobian[self.row]).T.tocsc()

    def multipliers(self, coefficients: Vector, size: int) -> Vector:
        """Return one multiplier per row from one coefficient per side."""
        multipliers = np.zeros(size)
        # add.at sums both sides of a row, which += would not.
        np.add.at(multipliers, self.row, np.where(self.sign == 0, 1.0, self.sign) * coefficients)
        return multipliers


def largest_of(matrix: Any, axis: int) -> Vector:
    """Return the largest |entry| of each row (axis 1) or column (axis 0); 1 if all are zero."""
    largest = abs(matrix).max(axis=axis).toarray().ravel()
    return np.where(largest > 0, largest, 1.0)


def nearby_sides(rows: Rows, reach: float) -> Sides:
    """Return the sides within ``reach``·max(1, |bound|), equations and violated rows included."""
    equations = np.flatnonzero(rows.equations)
    parts = [(equations, np.zeros(equations.size), np.zeros(equations.size))]
    for sign in (1.0, -1.0):
        near = np.flatnonzero(rows.near(sign, reach) & ~rows.equations)
        distance = np.maximum(rows.inside(sign)[near], 0.0)
        parts.append((near, np.full(near.size, sign), distance))
    return Sides(*(np.concatenate(column) for column in zip(*parts, strict=True)))
