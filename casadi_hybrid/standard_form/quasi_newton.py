r"""Curvature learned from first derivatives: damped BFGS in every block of the Hessian.

Between two points s = x⁺ − x and y = ∇ₓL(x⁺, λ) − ∇ₓL(x, λ) with the newer multipliers λ. What the
Lagrangian couples by a sum alone (:mod:`casadi_hybrid.problem.blocks`) has curvature of its own, so
each block learns from its part of s and y, and the matrix has no entries outside of them: in
optimal control by multiple shooting a step teaches as many stages as there are. A block is kept
positive definite by Powell's damping (Math. Programming 14, 1978),

    B⁺ = B − Bss'B/s'Bs + rr'/s'r,   r = θy + (1 − θ)Bs,  s'r ≥ s'Bs/5,

so that the kernel has the right inertia without a shift, wherever its rows are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.sparse import Index
from casadi_hybrid.problem.blocks import Blocks
from casadi_hybrid.problem.evaluator import Operator

Stack = NDArray[np.float64]
_DAMPING = 0.2
_LEAST, _LARGEST = 1e-8, 1e8  # of the first curvature of a block
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a Lagrangian was last seen: x, ∇f and J_g."""

    x: Vector
    gradient: Vector
    J: Operator


class QuasiNewton:
    """The curvature of objective·f + λᵀg as far as the points of one solve have shown it.

    Args:
        blocks: those of the Hessian.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._n = blocks.n
        sizes = sorted({one.size for one in blocks.members})
        self._members: list[Index] = [
            np.array([one for one in blocks.members if one.size == size]) for size in sizes
        ]
        self._last: _Place | None = None
        self.forget()

    def forget(self) -> bool:
        """Begin again with the identity; whether anything was known."""
        known = any(fresh.size and not fresh.all() for fresh in getattr(self, "_fresh", []))
        self._fresh = [np.ones(len(members), dtype=bool) for members in self._members]
        self._B: list[Stack] = [
            np.tile(np.eye(members.shape[1]), (len(members), 1, 1)) for members in self._members
        ]
        return known

    def learn(
        self, x: Vector, gradient: Vector, J: Operator, objective: float, lam: Vector
    ) -> None:
        """Compare the slopes at x with those at the point before, for these multipliers."""
        last, self._last = self._last, _Place(x, gradient, J)
        if last is None:
            return
        s = x - last.x
        least = 10.0 * _EPS * (1.0 + float(np.abs(x).max(initial=0.0)))
        if float(np.abs(s).max(initial=0.0)) <= least:
            return
        y = objective * (gradient - last.gradient) + (J.T @ lam - last.J.T @ lam)
        for k, members in enumerate(self._members):
            self._update(k, s[members], y[members], least)

    def _update(self, k: int, s: Stack, y: Stack, least: float) -> None:
        B, fresh = self._B[k], self._fresh[k]
        moved = np.abs(s).max(axis=1) > least
        sy = np.einsum("ki,ki->k", s, y)
        first = moved & fresh & (sy > 0.0)
        if first.any():
            scale = np.einsum("ki,ki->k", y, y)[first] / sy[first]
            B[first] *= np.clip(scale, _LEAST, _LARGEST)[:, None, None]
        fresh &= ~first
        Bs = np.einsum("kij,kj->ki", B, s)
        sBs = np.einsum("ki,ki->k", s, Bs)
        damped = sy < _DAMPING * sBs
        share = np.ones_like(sy)
        np.divide((1.0 - _DAMPING) * sBs, sBs - sy, out=share, where=damped)
        r = share[:, None] * y + (1.0 - share)[:, None] * Bs
        sr = np.einsum("ki,ki->k", s, r)
        good = moved & (sBs > 0.0) & (sr > 0.0)
        if not good.any():
            return
        r, Bs, sr, sBs = r[good], Bs[good], sr[good], sBs[good]
        B[good] += np.einsum("ki,kj->kij", r, r / sr[:, None])
        B[good] -= np.einsum("ki,kj->kij", Bs, Bs / sBs[:, None])

    def full(self) -> Stack:
        """The n×n matrix."""
        H = np.zeros((self._n, self._n))
        for members, B in zip(self._members, self._B, strict=True):
            H[members[:, :, None], members[:, None, :]] = B
        return H

    def entries(self, rows: Index, cols: Index) -> Vector:
        """The entries at the places of the pattern of all blocks, in its order."""
        where = [
            (members[:, None, :] * self._n + members[:, :, None]).ravel()
            for members in self._members
        ]
        data = np.empty(rows.size)
        keys = cols * self._n + rows
        for places, B in zip(where, self._B, strict=True):
            data[np.searchsorted(keys, places)] = B.ravel()
        return data
