"""Factoring the kernel with the right inertia, and first multipliers from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import lapack

from casadi_hybrid.errors import StallError
from casadi_hybrid.inputs import Vector
from casadi_hybrid.nlp.evaluator import Operator
from casadi_hybrid.nlp.iterate import Iterate
from casadi_hybrid.nlp.kkt import Kernel
from casadi_hybrid.nlp.sparse import is_sparse
from casadi_hybrid.nlp.standard import Point, StandardForm
from casadi_hybrid.status import StopReason

_FIRST, _LEAST, _LARGEST = 1e-4, 1e-20, 1e40
_IMPLAUSIBLE = 1e3
_EPS = float(np.finfo(float).eps)


def factor_with_inertia(
    form: StandardForm,
    kernel: Kernel,
    it: Iterate,
    W: Operator,
    *,
    dependent: bool = False,
    least: float = 0.0,
) -> Iterate:
    """Factor K(Σ + σI, ε) with the least σ that leaves m negative eigenvalues; keep σ.

    σ is found as in Wächter and Biegler, section 3.1: a third of the last one that worked, then
    eight times more at each try. ε > 0 makes up for ``dependent`` rows of A, known to be so or
    found so here: their pivots are rounding errors, of either sign. σ is at ``least`` that number.

    Raises:
        StallError: when no σ does.
    """
    D = it.barrier_diagonal(form)
    small = 1e-8 * it.nu**0.25
    shift, epsilon = least, small if dependent else 0.0
    while True:
        kernel.factor(W, D + shift, it.at.A, epsilon)
        if kernel.negative == form.m and not kernel.singular:
            return replace(it, shift=shift) if shift > 0.0 else it
        if epsilon == 0.0 and (kernel.singular or kernel.negative < form.m):
            epsilon = small
            if kernel.singular:
                continue
        if shift == 0.0:
            shift = _FIRST if it.shift == 0.0 else max(_LEAST, it.shift / 3.0)
        else:
            shift *= 100.0 if it.shift == 0.0 else 8.0
        if shift > _LARGEST:
            raise StallError(StopReason.STALLED, "the kernel cannot be made quasi-definite")


def rows_are_dependent(A: Operator) -> bool:
    """Whether a full matrix A has a rank below its number of rows, to rounding."""
    if is_sparse(A) or 0 in A.shape:
        return False  # the sparse kernel makes up for it by itself
    if A.shape[0] > A.shape[1]:
        return True
    pivots = np.abs(np.diagonal(lapack.dgeqp3(A.T)[0]))
    return bool(pivots.min() <= 10 * max(A.shape) * _EPS * pivots.max())


def least_squares_multipliers(
    form: StandardForm, kernel: Kernel, at: Point, z_lower: Vector, z_upper: Vector
) -> Vector:
    """y minimizing ‖∇f + Aᵀy − z_l + z_u‖; zero where that is implausibly large."""
    if form.m == 0:
        return np.zeros(0)
    kernel.factor(form.zero_hessian(), np.ones(form.n), at.A, 1e-8)
    slope = at.gradient - z_lower + z_upper
    y = kernel.solve(-np.concatenate((slope, np.zeros(form.m))))[form.n :]
    large = float(np.abs(y).max(initial=0.0)) > _IMPLAUSIBLE
    return np.zeros(form.m) if large or not np.isfinite(y).all() else y
