"""Multipliers by least squares: of any sign by singular values, with signs by pivoting.

    minimize ‖s + G ν‖² + ‖W ν‖²   subject to   ν_i ≥ 0 where signed

for a slope s, gradients in the columns of G (n×k, sparse) and W = diag(distances to the bounds).
The second term is the complementarity residual. The passive set (the positive ν) is found by block
principal pivoting with Kim and Park's backup rule (SIAM J. Scientific Computing 33, 2011), each
least-squares problem by sparse LDLᵀ. A proximal term that vanishes in the limit selects ν near the
one of least norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.utils.errors import EvaluationError
from casadi_hybrid.utils.inputs import Matrix, Vector
from casadi_hybrid.utils.linear_algebra.factorization import SymmetricFactor
from casadi_hybrid.verify.first_order.rows import Flags, largest_of

# Weight of the proximal term for columns of size one, and its steps at most.
PROXIMAL = 1e-12
PROXIMAL_STEPS = 10
# Exchanges at most, and full ones without progress before single ones.
PIVOTS = 100
FULL_EXCHANGES = 3
ROUNDING = 1e-13
LP_SECONDS = 5.0
RANK_TOLERANCE = 1e-9  # fraction of the largest singular value that counts as zero
# Gauss–Newton steps, relative rounding of h at which they end, and their largest size.
SETTLING_STEPS = 3
SETTLED = 1e-14
TRUST = 1e-3


def fit_signed(slope: Vector, gradients: Any, distances: Vector, signed: Flags) -> Vector:
    """Return ν of the module's problem, zero for a zero column of G; diag W is ``distances``."""
    k = gradients.shape[1]
    if k == 0:
        return np.zeros(0)
    # Columns of size one: the proximal term then treats all ν alike.
    size = largest_of(gradients, 0)
    problem = _Scaled(slope, (gradients / size).tocsc(), (distances / size) ** 2, signed)
    nu = np.zeros(k)
    for _ in range(PROXIMAL_STEPS):
        try:
            # The anchor moves to each ν, so the proximal term vanishes in the limit.
            last, nu = nu, problem.minimize(nu)
        except FloatingPointError:
            break
        if np.abs(nu - last).max() <= 1e-12 * max(1.0, float(np.abs(nu).max())):
            break
    return np.asarray(nu / size)


def fit_largest(
    slope: Vector, gradients: Any, distances: Vector, signed: Flags, start: Vector, unit: float
) -> Vector:
    """Return ν with the least max(‖s + Gν‖_∞, ‖Wν‖_∞), by a linear program around ``start``."""
    # Least squares may leave one entry above a tolerance `unit` that other multipliers meet.
    k = start.size
    # Steps δ = δ'·unit/size keep the program's numbers near one.
    size = unit / largest_of(gradients, 0)
    G = gradients @ sp.diags_array(size) / unit
    W = sp.diags_array(distances * size / unit)
    here = np.concatenate((slope + gradients @ start, distances * start)) / unit
    both, bound = sp.vstack((G, W)), np.ones((here.size, 1))
    lower = np.append(np.where(signed, -start / size, -np.inf), 0.0)
    # Variables δ' and t: minimize t with −t ≤ here + (G; W)δ' ≤ t. Out of time x is None.
    solution = linprog(
        np.append(np.zeros(k), 1.0),
        A_ub=sp.block_array([[both, -bound], [-both, -bound]], format="csr"),
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
            # Half the gradient of the objective.
            pull = self._G.T @ residual + self._weights * nu + PROXIMAL * (nu - anchor)
            allowed = np.where(signed, np.maximum(nu, 0.0), nu)
            misfit = self._slope + self._G @ allowed
            value = float(misfit @ misfit + allowed @ (self._weights * allowed))
            if value < least:
                best, least = allowed, value
            small = ROUNDING * max(1.0, float(np.abs(nu).max()))
            flat = ROUNDING * max(1.0, float(np.abs(self._slope).max(initial=0.0)))
            # Infeasible: ν < 0 in the passive set, a negative gradient outside.
            wrong = signed & np.where(passive, nu < -small, pull < -flat)
            count = int(np.count_nonzero(wrong))
            if count == 0:
                return allowed
            # Exchange all infeasible indices; after a few rounds without progress only the last.
            if count < fewest:
                fewest, chances = count, FULL_EXCHANGES
            elif chances:
                chances -= 1
            else:
                wrong = np.arange(signed.size) == np.flatnonzero(wrong)[-1]
            passive = passive ^ wrong
        return best

    def _solve(self, passive: Flags, anchor: Vector) -> tuple[Vector, Vector]:
        """Return ν with zeros off the passive set, and the residual s + Gν."""
        n = self._slope.size
        # Most proximal steps share the passive set, and thus the factors.
        if self._last is None or not np.array_equal(self._last[0], passive):
            G, D = self._G[:, passive], sp.diags_array(self._weights[passive] + PROXIMAL)
            # The residual is an unknown too: this avoids the squared condition number of GᵀG.
            K = sp.block_array([[sp.eye_array(n), -G], [-G.T, -D]])
            self._last = passive, SymmetricFactor(K)
        z = self._last[1].solve(np.concatenate((self._slope, -PROXIMAL * anchor[passive])))
        nu = np.zeros(passive.size)
        nu[passive] = z[n:]
        return nu, z[:n]


@dataclass(frozen=True, eq=False)
class Fit:
    """Least-squares multipliers and the subspaces of the Jacobian.

    Attributes:
        multipliers: λ of minimum norm among the minimizers of ‖∇f + Jᵀλ‖₂.
        rank: numerical rank of J.
        condition: largest over smallest nonzero singular value of the row-scaled J (1 if rank 0).
        kernel: n×(n − rank), an orthonormal basis Z of ker J.
        free: m×(m − rank), an orthonormal basis of ker Jᵀ: λ may move along it.
    """

    multipliers: Vector
    rank: int
    condition: float
    kernel: Matrix
    free: Matrix

    @property
    def unique(self) -> bool:
        """True for full row rank: at most one λ satisfies ∇f + Jᵀλ = 0."""
        return bool(self.free.shape[1] == 0)


def fit_multipliers(gradient: Vector, jacobian: Matrix, *, max_rank: int | None = None) -> Fit:
    """Return the minimum-norm least-squares multipliers of ∇f + Jᵀλ = 0, J being m×n.

    The rank is that of J with rows scaled to a largest entry of one, independent of units, and at
    most ``max_rank`` (see :func:`settled_rank`).
    """
    rows = _row_sizes(jacobian)
    U, sigma, Vt = np.linalg.svd(jacobian / rows[:, None])
    rank = _rank(sigma)
    if max_rank is not None:
        rank = min(rank, max_rank)
    # λ̂ = −(Âᵀ)⁺∇f of the scaled rows, and λ = λ̂/size.
    multipliers = -(U[:, :rank] / sigma[:rank]) @ (Vt[:rank] @ gradient) / rows
    # Minimum norm in unscaled multipliers: without the part in ker Jᵀ.
    free = np.linalg.qr(U[:, rank:] / rows[:, None])[0]
    multipliers = multipliers - free @ (free.T @ multipliers)
    condition = float(sigma[0] / sigma[rank - 1]) if rank else 1.0
    for array in (multipliers, free, Vt):
        array.setflags(write=False)
    return Fit(multipliers, rank, condition, Vt[rank:].T, free)


def settled_rank(first: Callable[[Vector], Evaluation], start: Evaluation) -> int:
    """Return the rank of J on h = 0, near a point that violates it slightly."""
    # If J loses rank on the feasible set, it has full rank a tiny distance away, and huge
    # multipliers fit any gradient there. So the rank is computed after a few steps towards h = 0.
    here = start
    rank = int(min(start.B.shape))
    for step in range(SETTLING_STEPS + 1):
        rows = _row_sizes(here.B)
        U, sigma, Vt = np.linalg.svd(here.B / rows[:, None], full_matrices=False)
        rank = min(rank, _rank(sigma))
        noise = SETTLED * np.maximum(1.0, np.abs(here.B) @ np.abs(here.x))
        if step == SETTLING_STEPS or np.all(np.abs(here.h) <= noise):
            break
        # The minimum-norm Gauss–Newton step in the coordinates of the singular vectors.
        move = (U.T @ (here.h / rows))[:rank] / sigma[:rank]
        # A direction of a tiny singular value would lead far away.
        move[np.abs(move) > TRUST * max(1.0, float(np.abs(start.x).max()))] = 0.0
        try:
            here = first(here.x - Vt[:rank].T @ move)
        except EvaluationError:
            break
    return rank


def _row_sizes(jacobian: Matrix) -> Vector:
    size = np.abs(jacobian).max(axis=1)
    return np.where(size > 0, size, 1.0)


def _rank(sigma: Vector) -> int:
    return int(np.count_nonzero(sigma > RANK_TOLERANCE * sigma[0]))
