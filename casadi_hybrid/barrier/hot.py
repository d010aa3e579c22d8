"""The hot mode: full Newton steps on an active set that is predicted anew at every step.

At one point the problem is replaced by its quadratic model,

    min ∇fᵀd + ½dᵀWd   s.t.   c + Ad = 0,   l ≤ w + d ≤ u,

whose active set is found by the primal–dual active-set method (Hintermüller, Ito and Kunisch,
SIAM J. Optim. 13, 2003): pin the bounds thought active, solve, drop those whose multiplier has the
wrong sign, add those that are violated, until nothing changes. That settles many bounds at once,
but its sets may pin dependent rows, and then they lead nowhere. So as soon as there is not less to
change than before, it is done one bound at a time, by the homotopy of parametric active-set methods
(Ferreau, Bock and Diehl, Int. J. Robust Nonlinear Control 18, 2008): the iterate solves a model
whose data differ; on the line from there to the solution with the bounds pinned now, the data
become the model's, and the first bound that is met or whose multiplier becomes zero is changed.
Where it depends on those that are pinned, multipliers fall so steeply that the next step drops the
right one of them.

Only the pinned diagonal of the kernel changes on the way, so the functions are evaluated once a
step. From a solution of a problem nearby this needs a step or two. Where the set changes much, full
steps may lead away before they lead near, so a few are taken before that is held against them (the
watchdog of Chamberlain, Powell, Lemaréchal and Pedersen, Math. Program. Study 16, 1982); where they
do not get nearer it gives up, and the cold mode runs. So it does where the first step, a full one
that the model's equations promise to solve everything, leaves most of the violation: that is not
nearby, and of several solutions nothing but luck says which one such steps come to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

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
from casadi_hybrid.basics.arrays import changed, largest
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.kernel import Kernel
from casadi_hybrid.standard_form.form import ROOM, StandardForm

_STEPS, _SETS, _WALK = 8, 12, 60
# Where the model has no minimum, it gets one by σ, as in the cold mode.
CONVEX: Remedies = (*REMEDIES, (1e-10, 1e-4), (1e-10, 1e-3), (1e-10, 1e-2), (1e-10, 1e-1))
# So many steps may leave more than half of the error before them. Of 92 solves in the loops looked
# at that were given up at the first of these, 16 come to a solution with one, 8 with two, 1 with
# three.
_WAIT = 2
_SURE = 20.0  # of e²/e₀, ten times what is expected: a step in vain costs more than one saved
_EXACT = 1e-11  # what is not solved there will not be, whatever the tolerance
# Of a violation larger than the first of these the first step may leave this part. In the loops
# looked at, steps after one that left up to 0.63 mostly came to a solution; of 28 that left more
# than 0.67 one did, a worse one than the barrier method's.
_OUTSIDE, _LEFT = 1e-2, 2.0 / 3.0


def follow(
    form: StandardForm,
    kernel: Kernel,
    it: Iterate,
    solved: Callable[[Iterate], bool],
    active: tuple[Mask, Mask],
    *,
    within: Callable[[Iterate], bool],
    tol: float,
    most: int,
    patience: int = 0,
) -> tuple[Iterate | None, int]:
    """Return the iterate that is ``solved``, None where there is none, and the steps it took.

    Where ``most`` steps do not suffice that is the last one.

    Where a step on the factorization of the last one will do, it is tried before a new one is made:
    next to a solution the error after it is about 2e²/e₀, for an error e that was e₀ before.

    Args:
        form, kernel: the problem and a kernel analysed for it.
        it: where to begin, inside the bounds.
        solved: the test of the end.
        active: the first guess, entries of w at their lower and at their upper bound.
        within: the test of the user's residuals alone. It decides where only rounding is left of
            the error, which may be more than a tolerance that asks for less than that.
        tol: the scaled error that ``solved`` asks for.
        most: steps that there are, at least one.
        patience: so many steps may get nearer by halves, as they do next to a double root; zero
            for the ordinary number of steps that have to be better.
    """
    steps, taken = min(patience or _STEPS, most), 0
    mark, waited = np.inf, 0
    before = scaled_error(form, it, 0.0)
    while taken < steps:
        taken += 1
        found = _step(form, kernel, it, active, PRECISE if patience else CONVEX)
        if found is None:
            return None, taken
        violation = 0.0 if patience or taken > 1 else largest(it.at.c)
        it, active, D = found
        if solved(it):
            return it, taken
        if taken == most and not patience:  # none is left to do better
            break
        if violation > _OUTSIDE and largest(it.at.c) > _LEFT * violation:
            return None, taken
        # The first step may raise it: the multipliers of the guess need not fit the new data.
        now = scaled_error(form, it, 0.0)
        mark, waited = (now, 0) if now <= 0.5 * mark else (mark, waited + 1)
        stuck = waited > _WAIT or (waited > 0 and now <= _EXACT)
        if now <= _EXACT if patience else stuck:
            rounding = not patience and now <= _EXACT and within(it)
            return changed(it, tiny=1) if rounding else None, taken
        if not patience and taken < steps and _SURE * now * now <= tol * before:
            taken += 1
            again = _again(form, kernel, it, active, D)
            if again is not None and solved(again):
                return again, taken
        before = now
    return it if taken == most else None, taken


def _step(
    form: StandardForm,
    kernel: Kernel,
    it: Iterate,
    active: tuple[Mask, Mask],
    remedies: Remedies,
) -> tuple[Iterate, tuple[Mask, Mask], Vector] | None:
    """The solution of the quadratic model, its active set, and what pinned it; or None."""
    model = _Model(form, kernel, it, remedies)
    first = model.pinned(*active)
    found = _exchanged(model, first, *active) or _walked(model, first, *active)
    if found is None:
        return None
    solution, at_lower, at_upper = found
    new = _moved(form, it, (at_lower, at_upper), solution.dw, solution.dy)
    return None if new is None else (new, (at_lower, at_upper), solution.D)


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


class _Pinned(NamedTuple):
    """The model's solution with bounds pinned by D, and which should not, or should, have been."""

    dw: Vector
    dy: Vector
    z: Vector
    leave: Mask
    below: Mask
    above: Mask
    D: Vector

    @property
    def wrong(self) -> int:
        """How many."""
        return int((self.leave | self.below | self.above).sum())


_Found = tuple[_Pinned, Mask, Mask] | None


class _Model:
    """The quadratic model at one iterate."""

    def __init__(self, form: StandardForm, kernel: Kernel, it: Iterate, remedies: Remedies) -> None:
        self.form, self.it = form, it
        self._kernel, self._remedies = kernel, remedies
        self._W = form.hessian(it.at, it.y)
        self._force = it.at.gradient + it.pull
        self._room = ROOM * np.maximum(1.0, np.abs(it.at.w))  # rounding violates no bound

    def pinned(self, at_lower: Mask, at_upper: Mask) -> _Pinned | None:
        """Its solution with these bounds as equations; None for a wrong inertia."""
        form, at = self.form, self.it.at
        form.evaluator.in_time()  # of one model there may be many factorizations
        found = pinned_step(
            form, self._kernel, self.it, self._W, at_lower, at_upper, self._remedies
        )
        if found is None:
            return None
        dw, dy, used, D = found
        self._remedies = self._remedies[used:]
        w, slope = at.w + dw, self._force + self._W @ dw + at.A.T @ dy
        z = np.where(at_lower, slope, np.where(at_upper, -slope, 0.0))
        free = ~(at_lower | at_upper)
        below = free & form.has_lower & (w < form.lower - self._room)
        above = free & form.has_upper & (w > form.upper + self._room)
        return _Pinned(dw, dy, z, z < 0.0, below, above, D)


def _exchanged(model: _Model, now: _Pinned | None, at_lower: Mask, at_upper: Mask) -> _Found:
    """From these sets and what they gave: change all that is wrong, as long as it becomes less."""
    for _ in range(_SETS):
        if now is None:
            return None
        wrong = now.wrong
        if wrong == 0:
            return now, at_lower, at_upper
        at_lower, at_upper = at_lower & ~now.leave | now.below, at_upper & ~now.leave | now.above
        now = model.pinned(at_lower, at_upper)
        if now is not None and now.wrong >= wrong:
            return None
    return None


def _walked(model: _Model, now: _Pinned | None, at_lower: Mask, at_upper: Mask) -> _Found:
    """From there too: change what is met first on the way from the iterate, one after the other."""
    form, it, last = model.form, model.it, -1
    at_lower, at_upper = at_lower.copy(), at_upper.copy()
    w, z = it.at.w, np.where(at_lower, it.z_lower, np.where(at_upper, it.z_upper, 0.0))
    for _ in range(_WALK):
        if now is None or now.wrong == 0:
            return None if now is None else (now, at_lower, at_upper)
        leave, below, above = now.leave, now.below, now.above
        step, part = it.at.w + now.dw - w, np.ones(form.n)
        part[leave] = z[leave] / (z - now.z)[leave]
        part[below] = (form.lower - w)[below] / step[below]
        part[above] = (form.upper - w)[above] / step[above]
        first = int(part.argmin())
        if first == last and leave[first]:  # one just met: only rounding gives it this sign
            return None
        least, last = max(0.0, part.item(first)), first
        w, z = w + least * step, np.maximum(0.0, z + least * (now.z - z))
        z[first] = 0.0
        at_lower[first], at_upper[first] = below[first], above[first]
        now = model.pinned(at_lower, at_upper)
    return None
