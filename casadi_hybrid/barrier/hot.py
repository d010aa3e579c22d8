"""The hot mode: full Newton steps on an active set that is predicted anew at every step.

At one point the problem is replaced by its quadratic model,

    min ∇fᵀd + ½dᵀWd   s.t.   c + Ad = 0,   l ≤ w + d ≤ u,

whose active set is found by the primal–dual active-set method (Hintermüller, Ito and Kunisch,
SIAM J. Optim. 13, 2003): pin the bounds thought active, solve, drop those whose multiplier has the
wrong sign, add those that are violated, until nothing changes. Only the pinned diagonal of the
kernel changes on the way, so the functions are evaluated once a step. From a solution of a problem
nearby this needs a step or two; where it does not get nearer it gives up, and the cold mode runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from casadi_hybrid.barrier.iterate import Iterate, scaled_error
from casadi_hybrid.barrier.polish import (
    PRECISE,
    REMEDIES,
    Mask,
    Remedies,
    pinned_solution,
    pinned_step,
)
from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.kernel import Kernel
from casadi_hybrid.standard_form.form import ROOM, StandardForm

_STEPS, _SETS = 8, 12
_EXACT = 1e-11  # what is not solved there will not be, whatever the tolerance


def follow(
    form: StandardForm,
    kernel: Kernel,
    it: Iterate,
    solved: Callable[[Iterate], bool],
    active: tuple[Mask, Mask],
    *,
    within: Callable[[Iterate], bool],
    tol: float,
    patience: int = 0,
) -> tuple[Iterate | None, int]:
    """Return the iterate that is ``solved``, None where there is none, and the steps it took.

    Where a step on the factorization of the last one will do, it is tried before a new one is made:
    next to a solution the error after it is about 2e²/e₀, for an error e that was e₀ before.

    Args:
        form, kernel: the problem and a kernel analysed for it.
        it: where to begin; its multipliers of the bounds are not used.
        solved: the test of the end.
        active: the first guess, entries of w at their lower and at their upper bound.
        within: the test of the user's residuals alone. It decides where only rounding is left of
            the error, which may be more than a tolerance that asks for less than that.
        tol: the scaled error that ``solved`` asks for.
        patience: so many steps may get nearer by halves, as they do next to a double root; zero
            for the ordinary number of steps that have to be better.
    """
    error, steps, taken = np.inf, patience or _STEPS, 0
    before = scaled_error(form, it, 0.0)
    while taken < steps:
        taken += 1
        found = _step(form, kernel, it, active, PRECISE if patience else REMEDIES)
        if found is None:
            return None, taken
        it, active, D = found
        if solved(it):
            return it, taken
        # The first step may raise it: the multipliers of the guess need not fit the new data.
        now = scaled_error(form, it, 0.0)
        if now <= _EXACT if patience else now > 0.5 * error:
            rounding = not patience and now <= _EXACT and within(it)
            return changed(it, tiny=1) if rounding else None, taken
        if not patience and taken < steps and 2.0 * now * now <= tol * before:
            taken += 1
            again = _again(form, kernel, it, active, D)
            if again is not None and solved(again):
                return again, taken
        error = before = now
    return None, taken


def _step(
    form: StandardForm,
    kernel: Kernel,
    it: Iterate,
    active: tuple[Mask, Mask],
    remedies: Remedies,
) -> tuple[Iterate, tuple[Mask, Mask], Vector] | None:
    """The solution of the quadratic model, its active set, and what pinned it; or None."""
    at = it.at
    W = form.hessian(at, it.y)
    force = at.gradient + it.pull
    at_lower, at_upper = active
    remedy = 0
    room = ROOM * np.maximum(1.0, np.abs(at.w))  # rounding violates no bound
    for _ in range(_SETS):
        found = pinned_step(form, kernel, it, W, at_lower, at_upper, remedies[remedy:])
        if found is None:
            return None
        dw, dy, used, D = found
        remedy += used
        w, slope = at.w + dw, force + W @ dw + at.A.T @ dy
        pinned = at_lower | at_upper
        below, above = w < form.lower - room, w > form.upper + room
        lower = np.where(pinned, at_lower & (slope >= 0.0), form.has_lower & below)
        upper = np.where(pinned, at_upper & (slope <= 0.0), form.has_upper & above)
        if (lower == at_lower).all() and (upper == at_upper).all():
            break
        at_lower, at_upper = lower, upper
    else:
        return None
    new = _moved(form, it, (at_lower, at_upper), dw, dy)
    return None if new is None else (new, (at_lower, at_upper), D)


def _again(
    form: StandardForm, kernel: Kernel, it: Iterate, active: tuple[Mask, Mask], D: Vector
) -> Iterate | None:
    """One more step on the same set and factorization; None where it would leave the bounds."""
    dw, dy = pinned_solution(form, kernel, it, *active, D)
    w, room = it.at.w + dw, ROOM * np.maximum(1.0, np.abs(it.at.w))
    if ((w < form.lower - room) | (w > form.upper + room)).any():
        return None
    return _moved(form, it, active, dw, dy)


def _moved(
    form: StandardForm, it: Iterate, active: tuple[Mask, Mask], dw: Vector, dy: Vector
) -> Iterate | None:
    """The iterate after a step; None where a function is not defined there."""
    new = form.point_or_none(it.at.w + dw)
    if new is None:
        return None
    y = it.y + dy
    slope = new.gradient + new.A.T @ y
    z_lower = np.where(active[0], np.maximum(slope, 0.0), 0.0)
    z_upper = np.where(active[1], np.maximum(-slope, 0.0), 0.0)
    return replace(it, at=new, y=y, z_lower=z_lower, z_upper=z_upper, crossed=new)
