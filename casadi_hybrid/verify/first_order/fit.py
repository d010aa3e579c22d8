"""Least squares with signs: multipliers that make a point stationary, if any do.

    minimize ‖s + G ν‖² + ‖W ν‖²   subject to   ν_i ≥ 0 where signed

for a slope s, gradients in the columns of G (n×k, sparse) and W = diag(distances to the bounds).
The second term is the complementarity residual: a bound that x only comes close to may have a
multiplier as far as that is worth it. The passive set (the positive ν) is found by block principal
pivoting with Kim and Park's backup rule (SIAM J. Scientific Computing 33, 2011), each least-squares
problem by sparse LDLᵀ of its augmented system. Dependent columns are told apart by a proximal term
that vanishes in the limit, which selects ν near the one of least norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from casadi_hybrid.basics.factorization import SymmetricFactor
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.verify.first_order.rows import Flags, largest_of

PROXIMAL = 1e-12
PROXIMAL_STEPS = 10
PIVOTS = 100
FULL_EXCHANGES = 3
ROUNDING = 1e-13
LP_SECONDS = 5.0


def fit_signed(slope: Vector, gradients: Any, distances: Vector, signed: Flags) -> Vector:
    """Return ν (see the module), zero where a column of G is zero.

    Args:
        slope, gradients, distances: s, G (its columns are scaled to entries of one), diag W.
        signed: which ν must not be negative.
    """
    k = gradients.shape[1]
    if k == 0:
        return np.zeros(0)
    size = largest_of(gradients, 0)
    problem = _Scaled(slope, (gradients / size).tocsc(), (distances / size) ** 2, signed)
    nu = np.zeros(k)
    for _ in range(PROXIMAL_STEPS):
        try:
            last, nu = nu, problem.minimize(nu)
        except FloatingPointError:
            break
        if np.abs(nu - last).max() <= 1e-12 * max(1.0, float(np.abs(nu).max())):
            break
    return np.asarray(nu / size)


def fit_largest(
    slope: Vector, gradients: Any, distances: Vector, signed: Flags, start: Vector, unit: float
) -> Vector:
    """Return ν with the least max(‖s + Gν‖_∞, ‖Wν‖_∞), by a linear program around ``start``.

    Least squares spread a residual over its entries, which may leave one of them above a tolerance
    that other multipliers meet. The linear program settles whether any do. Residuals are measured
    in ``unit``; ``start`` comes back where the program takes longer than :data:`LP_SECONDS`.
    """
    k = start.size
    # Steps δ = δ'·unit/size keep the program's numbers near one.
    size = unit / largest_of(gradients, 0)
    G = gradients @ sp.diags_array(size) / unit
    W = sp.diags_array(distances * size / unit)
    here = np.concatenate((slope + gradients @ start, distances * start)) / unit
    both = sp.vstack((G, W))
    ones = np.ones((here.size, 1))
    lower = np.append(np.where(signed, -start / size, -np.inf), 0.0)
    solution = linprog(
        np.append(np.zeros(k), 1.0),
        A_ub=sp.vstack((sp.hstack((both, -ones)), sp.hstack((-both, -ones))), format="csr"),
        b_ub=np.concatenate((-here, here)),
        bounds=np.column_stack((lower, np.full(k + 1, np.inf))),
        options={"time_limit": LP_SECONDS},
    )
    if solution.x is None:
        return start
    moved = start + size * solution.x[:k]
    return np.asarray(np.where(signed, np.maximum(moved, 0.0), moved))


class _Scaled:
    """The least-squares problem with columns of size one, and a proximal term around an anchor."""

    def __init__(self, slope: Vector, G: Any, weights: Vector, signed: Flags) -> None:
        self._slope, self._G, self._weights, self._signed = slope, G, weights, signed
        self._last: tuple[Flags, SymmetricFactor] | None = None

    def minimize(self, anchor: Vector) -> Vector:
        signed = self._signed
        passive = ~signed | (anchor > 0) if anchor.any() else np.ones(signed.size, dtype=bool)
        best, least = anchor, np.inf
        fewest, chances = signed.size + 1, FULL_EXCHANGES
        for _ in range(PIVOTS):
            nu, residual = self._solve(passive, anchor)
            pull = self._G.T @ residual + self._weights * nu + PROXIMAL * (nu - anchor)
            allowed = np.where(signed, np.maximum(nu, 0.0), nu)
            value = self._objective(allowed)
            if value < least:
                best, least = allowed, value
            small = ROUNDING * max(1.0, float(np.abs(nu).max()))
            flat = ROUNDING * max(1.0, float(np.abs(self._slope).max(initial=0.0)))
            wrong = signed & np.where(passive, nu < -small, pull < -flat)
            count = int(np.count_nonzero(wrong))
            if count == 0:
                return allowed
            if count < fewest:
                fewest, chances = count, FULL_EXCHANGES
            elif chances:
                chances -= 1
            else:
                wrong = np.arange(signed.size) == np.flatnonzero(wrong)[-1]
            passive = passive ^ wrong
        return best

    def _objective(self, nu: Vector) -> float:
        residual = self._slope + self._G @ nu
        return float(residual @ residual + nu @ (self._weights * nu))

    def _solve(self, passive: Flags, anchor: Vector) -> tuple[Vector, Vector]:
        """Return ν with zeros off the passive set, and the residual s + Gν.

        The residual is an unknown of the augmented system, so that it does not suffer from the
        squared condition of normal equations.
        """
        n = self._slope.size
        right = np.concatenate((self._slope, -PROXIMAL * anchor[passive]))
        z = self._factor(passive).solve(right)
        nu = np.zeros(passive.size)
        nu[passive] = z[n:]
        return nu, z[:n]

    def _factor(self, passive: Flags) -> SymmetricFactor:
        """Factor [I, −G; −Gᵀ, −D] of the passive set, the same in most proximal steps."""
        if self._last is None or not np.array_equal(self._last[0], passive):
            n, G = self._slope.size, self._G[:, passive]
            D = sp.diags_array(self._weights[passive] + PROXIMAL)
            K = sp.block_array([[sp.eye_array(n), -G], [-G.T, -D]])
            self._last = passive, SymmetricFactor(K)
        return self._last[1]
