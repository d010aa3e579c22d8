"""Crossover: guess the active set and take Newton steps on its KKT equations.

The same kernel, now as the semismooth active-set step: D = 1e14·max(1, |W|) pins an active bound,
D = 0 leaves an inactive one out. A step is kept only when the KKT error of the whole problem says
that the guess was right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.barrier.iterate import Iterate, scaled_error
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.kernel import Kernel
from casadi_hybrid.kernel.sparse import largest_entry
from casadi_hybrid.problem.evaluator import Operator
from casadi_hybrid.standard_form.form import StandardForm

Mask = NDArray[np.bool_]

_PIN = 1e14
# (ε, σ): as it is, for dependent gradients of active rows, for variables that nothing bends.
Remedies = tuple[tuple[float, float], ...]
REMEDIES: Remedies = ((0.0, 0.0), (1e-10, 0.0), (1e-10, 1e-8))
# Next to a point without multipliers ε times their changes exceeds what is left of the rows.
PRECISE: Remedies = ((0.0, 0.0), (0.0, 1e-8), *REMEDIES[1:])
FLAT = (
    1e-8  # larger σ are not for variables that nothing bends, but for curvature of the wrong sign
)
_STEPS = 4
_BETTER, _ENOUGH = 0.1, 1e-9  # what a step has to leave of the error at most, or in itself
_SHARPER = 2


def polish(
    form: StandardForm, kernel: Kernel, it: Iterate, solved: Callable[[Iterate], bool], most: int
) -> tuple[Iterate | None, int]:
    """Return the iterate that is ``solved``, None where there is none, and the steps it took.

    Those are ``most``, at least one, or fewer.
    """
    at_lower, at_upper = active_guess(form, it)
    current, most = it, min(_STEPS, most)
    error = scaled_error(form, it, 0.0)
    for step in range(1, most + 1):
        new = _newton(form, kernel, current, at_lower, at_upper)
        if new is None:
            return None, step
        if solved(new):
            return new, step
        now = scaled_error(form, new, 0.0)
        if now > max(_BETTER * error, _ENOUGH):
            return None, step
        current, error = new, now
    return None, most


def sharpened(
    form: StandardForm,
    kernel: Kernel,
    it: Iterate,
    solved: Callable[[Iterate], bool],
    merit: Callable[[Iterate], float],
    most: int,
) -> tuple[Iterate, int]:
    """Of a solution and what a few more steps on its active set lead to, the least by ``merit``.

    The steps taken are the second, ``most`` or fewer; they end where the merit is within one, falls
    no more, or not solved any more.
    """
    at_lower, at_upper = active_guess(form, it)
    least, most = merit(it), min(_SHARPER, most)
    for step in range(1, most + 1):
        new = _newton(form, kernel, it, at_lower, at_upper)
        if new is None or not solved(new) or not merit(new) < least:
            return it, step
        it, least = new, merit(new)
        if least <= 1.0:
            return it, step
    return it, most


def active_guess(form: StandardForm, it: Iterate) -> tuple[Mask, Mask]:
    """Bounds whose multiplier exceeds the distance to them: (at the lower, at the upper)."""
    below, above = it.at.below, it.at.above
    at_lower = form.has_lower & (it.z_lower > below)
    return at_lower, form.has_upper & (it.z_upper > above) & ~at_lower


def pinned_step(
    form: StandardForm,
    kernel: Kernel,
    it: Iterate,
    W: Operator,
    at_lower: Mask,
    at_upper: Mask,
    remedies: Remedies = REMEDIES,
) -> tuple[Vector, Vector, int, Vector] | None:
    """The Newton step (dw, dy) onto c = 0 and the bounds named; None for a wrong inertia.

    The third is the number of the first of the remedies for a singular kernel that was of use:
    where sets change at one point, those before it need not be tried again. The last is the
    diagonal that pins the bounds, for :func:`pinned_solution`.
    """
    at = it.at
    pinned = at_lower | at_upper
    largest = largest_entry(W)
    D = np.where(pinned, _PIN * max(1.0, largest), 0.0)
    bent = False
    for number, (epsilon, shift) in enumerate(remedies):  # noqa: B007
        if bent and shift <= FLAT:
            continue
        kernel.factor(W, D + shift * max(1.0, largest), at.A, epsilon)
        if kernel.negative == form.m and not kernel.singular:
            break
        bent = bent or (epsilon > 0.0 and not kernel.singular)
    else:
        return None
    return *pinned_solution(form, kernel, it, at_lower, at_upper, D), number, D


def pinned_solution(
    form: StandardForm, kernel: Kernel, it: Iterate, at_lower: Mask, at_upper: Mask, D: Vector
) -> tuple[Vector, Vector]:
    """The step of the last factorization, with this diagonal, for the residuals at an iterate."""
    at = it.at
    pinned = at_lower | at_upper
    bound = np.where(at_lower, form.lower, np.where(at_upper, form.upper, at.w))
    move = np.where(pinned, bound - at.w, 0.0)
    # Pinned entries: D·dw = D·move dominates their row, the more so as the multiplier is known.
    force = at.gradient + it.pull + np.where(pinned, it.z_upper - it.z_lower, 0.0)
    d = kernel.solve(np.concatenate((D * move - force, -at.c)))
    dw, dy = d[: form.n], d[form.n :]
    dw[pinned] = move[pinned]
    return dw, dy


def _newton(
    form: StandardForm, kernel: Kernel, it: Iterate, at_lower: Mask, at_upper: Mask
) -> Iterate | None:
    found = pinned_step(form, kernel, it, form.hessian(it.at, it.y), at_lower, at_upper)
    if found is None:
        return None
    w, y = it.at.w + found[0], it.y + found[1]
    inside = np.where(form.has_lower, w - form.lower, 0.0) >= 0.0
    inside &= np.where(form.has_upper, form.upper - w, 0.0) >= 0.0
    if not inside.all():
        return None
    new = form.point_or_none(w)
    if new is None:
        return None
    slope = new.gradient + new.A.T.dot(y)
    z_lower = np.where(at_lower, slope, 0.0)
    z_upper = np.where(at_upper, -slope, 0.0)
    if (z_lower < 0).any() or (z_upper < 0).any():
        return None
    return replace(it, at=new, y=y, z_lower=z_lower, z_upper=z_upper, crossed=new)
