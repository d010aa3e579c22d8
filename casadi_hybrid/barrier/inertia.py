"""Factoring the kernel with the right inertia, and first multipliers from it."""

from __future__ import annotations

import numpy as np

from casadi_hybrid.barrier.iterate import Iterate
from casadi_hybrid.barrier.pace import FEASIBLE
from casadi_hybrid.basics.arrays import all_finite, changed, largest
from casadi_hybrid.basics.errors import StallError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.kernel.kernel import Kernel
from casadi_hybrid.kernel.sparse import is_sparse
from casadi_hybrid.problem.evaluator import Operator
from casadi_hybrid.standard_form.form import Point, StandardForm

lapack = LateModule("scipy.linalg.lapack")
_FIRST, _LEAST = 1e-4, 1e-20
# Multipliers grow with σ: far from feasibility the restoration does better than a larger one.
_LARGEST, _FAR_LARGEST = 1e40, 1e12
_OFTEN = 3
_FIRST_GROWTH, _GROWTH, _DECAY = 100.0, 8.0, 3.0  # of σ: before any has served, then, and after
_STEEPER = 8.0
_SMALL, _POWER = 1e-8, 0.25  # ε = 1e-8 ν^(1/4)
_RANK = 10.0  # times rounding: a pivot of QR as small is none
_LEAST_SQUARES = 1e-8  # ε of the multipliers that balance a slope
_IMPLAUSIBLE = 1e3
# σI and not a convexification of W's diagonal blocks, stage by stage. Tried: mirrored eigenvalues
# take nearly twice the steps of swing-ups and parking; the least part of a projection that the
# inertia allows takes fewer there, more past obstacles, and nearly twice as many on Hock and
# Schittkowski's problems, where a block is all of W.
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
    found so here: their pivots are rounding errors, of either sign. Where K without σ, or without
    ε, was singular in three steps in a row (a variable that nothing depends on, rows that depend
    on each other everywhere), it is not tried without any more. σ is at ``least`` that number.

    Raises:
        StallError: when no σ does.
    """
    D = it.barrier_diagonal(form)
    small = _SMALL * it.nu**_POWER
    shift = max(least, _lower(it.shift)) if it.flat >= _OFTEN else least
    first = shift
    epsilon = small if dependent or it.dependent >= _OFTEN else 0.0
    plain_epsilon, singular = epsilon, False
    while True:
        kernel.factor(W, D + shift if shift else D, it.at.A, epsilon)
        if kernel.negative == form.m and not kernel.singular:
            bent = shift > first and not singular
            return _kept(it, shift, epsilon, singular, plain_epsilon, bent)
        singular = singular or (kernel.singular and shift == least)
        if epsilon == 0.0 and (kernel.singular or kernel.negative < form.m):
            epsilon = small
            continue
        if shift == least and kernel.singular:
            epsilon = plain_epsilon  # the rows were not to blame
        if shift == least:
            shift = max(least, _FIRST if it.shift == 0.0 else _lower(it.shift))
            shift = _STEEPER * least if shift == least > 0.0 else shift
        else:
            shift *= _FIRST_GROWTH if it.shift == 0.0 else _GROWTH
        if shift > (_FAR_LARGEST if it.at.theta > FEASIBLE else _LARGEST):
            raise StallError(StopReason.STALLED, "the kernel cannot be made quasi-definite")


def _kept(
    it: Iterate, shift: float, epsilon: float, singular: bool, plain_epsilon: float, bent: bool
) -> Iterate:
    """The iterate with what was learned."""
    times = it.bent + 1 if bent else 0
    flat = it.flat if it.flat >= _OFTEN else (it.flat + 1 if singular and shift > 0.0 else 0)
    mended = singular and shift == 0.0 and epsilon > plain_epsilon
    dependent = it.dependent if it.dependent >= _OFTEN else (it.dependent + 1 if mended else 0)
    shift = shift if shift > 0.0 else it.shift
    if (shift, flat, dependent, times) == (it.shift, it.flat, it.dependent, it.bent):
        return it
    return changed(it, shift=shift, flat=flat, dependent=dependent, bent=times)


def _lower(shift: float) -> float:
    return max(_LEAST, shift / _DECAY)


def rows_are_dependent(A: Operator) -> bool:
    """Whether a full matrix A has a rank below its number of rows, to rounding."""
    if is_sparse(A) or 0 in A.shape:
        return False  # the sparse kernel makes up for it by itself
    if A.shape[0] > A.shape[1]:
        return True
    pivots = np.abs(np.diagonal(lapack.dgeqp3(A.T)[0]))
    return bool(pivots.min() <= _RANK * max(A.shape) * _EPS * largest(pivots))


def least_squares_multipliers(
    form: StandardForm, kernel: Kernel, at: Point, z_lower: Vector, z_upper: Vector
) -> Vector:
    """y minimizing ‖∇f + Aᵀy − z_l + z_u‖; zero where that is implausibly large."""
    if form.m == 0:
        return np.zeros(0)
    kernel.factor(form.zero_hessian(), np.ones(form.n), at.A, _LEAST_SQUARES)
    slope = at.gradient - z_lower + z_upper
    y = kernel.solve(-np.concatenate((slope, np.zeros(form.m))))[form.n :]
    return np.zeros(form.m) if largest(y) > _IMPLAUSIBLE or not all_finite(y) else y
