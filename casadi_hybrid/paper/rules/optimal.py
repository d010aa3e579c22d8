r"""The split of a given correction that allows the largest steps: the paper's problem (P), solved.

For a fixed M the weights a_x, a_d and S2 do not depend on the split, and the margin grows with η_x
up to the balance. (P) is therefore the search for the C_opt with the least

.. math::

    s(C) = \max\{\|A_M - B^T C B\|_2 / κ_x,\; \|B\|_2^2 \|C\|_2 / (κ_p κ_ω)\}, \qquad η_x ≤ 1/s,

which is S1 and S3: a linear matrix inequality in UᵀCU. A barrier method solves it, and its own gap
bounds the distance to the optimum.

For full column rank, full cancellation and R = I the closed form *is* the optimum: A_M = αBᵀB, and
the largest direction v of B has vᵀ(A_M − BᵀCB)v ≥ (α − ‖C‖)‖B‖², which it attains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.paper.rules.partial import bisect
from casadi_hybrid.paper.rules.parts import Candidate, StepRule, Undivided
from casadi_hybrid.paper.rules.spectra import LocalModel, symmetric_eigen, symmetric_norm
from casadi_hybrid.utils.errors import DesignError
from casadi_hybrid.utils.inputs import Matrix, Vector

_MOST_NEWTON = 500
_ACCURACY = 1e-5  # below 1e-6 rounding dominates
_CENTERED = 1e-3
_FASTER = 20.0

Block = tuple[Matrix, Matrix]


def least_restriction(model: LocalModel, M: Matrix, kappa: StepRule) -> tuple[Matrix, float]:
    """Return the C_opt that divides M (m×m, symmetric) with the least s, and a lower bound of s.

    The two values of s differ by at most 1e-5 s.

    Raises:
        DesignError: for rank B = 0, or if the barrier method does not converge.
    """
    if model.rank == 0:
        raise DesignError("the constraint Jacobian is zero; there is nothing to divide")
    basis, blocks = _inequalities(model, M, kappa)
    size = symmetric_norm(blocks[0][0])
    if size == 0.0:
        return np.zeros_like(M), 0.0
    # Barrier parameter 1/t; the duality gap of a centered point is rows/t.
    rows = sum(len(constant) for constant, _ in blocks)
    # z = (s, k): the objective and the entries of K on and above the diagonal.
    z = np.zeros(1 + len(basis))
    z[0] = 2.0 * size  # feasible: C_opt = 0 needs s = size
    t = rows / size
    for _ in range(_MOST_NEWTON):
        step, decrement = _newton(blocks, z, t)
        # The barrier is self-concordant, so a step of this length stays feasible.
        z = z + (step if decrement < 0.25 else step / (1.0 + decrement))
        # The bound of the gap below holds near the central path.
        if decrement > _CENTERED:
            continue
        gap = (rows + np.sqrt(rows) * decrement) / t
        if gap <= _ACCURACY * z[0]:
            C = model.jacobian.U @ np.tensordot(z[1:], basis, 1) @ model.jacobian.U.T
            return 0.5 * (C + C.T), float(z[0] - gap)
        # No larger t than needed: the accuracy of the equations falls with the square of the gap.
        t = min(_FASTER * t, 1.1 * (rows + np.sqrt(rows) * _CENTERED) / (_ACCURACY * z[0]))
    raise DesignError(
        f"the best split was not found to {_ACCURACY:.0e} in {_MOST_NEWTON} Newton steps; "
        "use the closed form"
    )


@dataclass(frozen=True, slots=True)
class OptimalSplit:
    """The C_opt of :func:`least_restriction`, for any R and rank of B."""

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield the one candidate."""
        C, _ = least_restriction(of.model, of.M, of.kappa)
        yield Candidate(of.alpha, np.nan, of.M - C, C)


@dataclass(frozen=True, slots=True)
class ClippedSplit:
    """C_opt = αR with its eigenvalues cut off at the c that makes S1 and S3 equal, by bisection.

    The closed form scales αR as a whole. For R = I both splits are the same.
    """

    def candidates(self, of: Undivided) -> Iterator[Candidate]:
        """Yield the one candidate."""
        e, W = symmetric_eigen(of.alpha * of.R)
        kappa, per_c = of.kappa, of.model.norm_B**2 / (of.kappa.kappa_p * of.kappa.kappa_omega)

        def cut(c: float) -> Matrix:
            return np.asarray((W * np.minimum(e, c)) @ W.T)

        def restricts_more(c: float) -> bool:
            return symmetric_norm(of.model.curvature(of.M - cut(c))) / kappa.kappa_x > c * per_c

        C = cut(bisect(restricts_more, 0.0, float(e[-1])))
        yield Candidate(of.alpha, np.nan, of.M - C, C)


def _inequalities(model: LocalModel, M: Matrix, kappa: StepRule) -> tuple[Matrix, list[Block]]:
    """Return the E_i of K = Σ k_i E_i, C = UKUᵀ, and s I + Σ k_i D_i + D_0 ⪰ 0 in four blocks."""
    # A block: D_0 and the (1 + p)×size×size array of I, D_1, …, D_p.
    r, G = model.rank, model.jacobian.U.T @ model.B
    rows, cols = np.triu_indices(r)
    i = np.arange(rows.size)
    basis = np.zeros((rows.size, r, r))
    # Symmetric K only: an unsymmetric part of C_opt would not lower either norm.
    basis[i, rows, cols] = basis[i, cols, rows] = 1.0
    A = model.curvature(M) / kappa.kappa_x
    augmented = G.T @ basis @ G / kappa.kappa_x
    optimistic = basis * (model.norm_B**2 / (kappa.kappa_p * kappa.kappa_omega))
    zero = np.zeros((r, r))
    # ‖X‖₂ ≤ s for symmetric X is s I − X ⪰ 0 and s I + X ⪰ 0.
    signed = ((-A, augmented), (A, -augmented), (zero, -optimistic), (zero, optimistic))
    return basis, [(D_0, np.concatenate([np.eye(len(D_0))[None], D])) for D_0, D in signed]


def _newton(blocks: list[Block], z: Vector, t: float) -> tuple[Vector, float]:
    """Return the Newton step on t s − Σ log det, and its decrement."""
    gradient = np.zeros(z.size)
    gradient[0] = t
    hessian = np.zeros((z.size, z.size))
    for D_0, D in blocks:
        # S⁻¹D_i, whose traces and products are the derivatives of −log det S.
        weighted = np.linalg.solve(D_0 + np.tensordot(z, D, 1), D)
        gradient -= np.einsum("aii->a", weighted)
        hessian += np.einsum("aij,bji->ab", weighted, weighted)
    step = np.asarray(np.linalg.solve(hessian, -gradient), dtype=np.float64)
    return step, float(np.sqrt(max(0.0, -float(gradient @ step))))
