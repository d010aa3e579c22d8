"""One Newton step of the barrier method: the kernel, the filter line search, its remedies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.barrier.inertia import factor_with_inertia
from casadi_hybrid.barrier.iterate import (
    Iterate,
    Settings,
    fraction_to_boundary,
    safe_duals,
    share_to_zero,
)
from casadi_hybrid.barrier.merit import Merit
from casadi_hybrid.barrier.pace import FEASIBLE
from casadi_hybrid.basics.arrays import changed, largest
from casadi_hybrid.basics.errors import StallError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.kernel.kernel import Kernel
from casadi_hybrid.problem.evaluator import Operator
from casadi_hybrid.standard_form.form import Point, StandardForm

_EPS = float(np.finfo(float).eps)
_MAX_CORRECTIONS = 4
_CORRECTED = 0.99  # of θ, below which a correction has to bring it for another one
_TINY_STEPS = 3
_TINY = 10.0 * _EPS
_SHORT, _MAX_SHORT, _REST = 0.05, 5, 20
_STIFF, _STIFFER, _STIFFEST = 1e-4, 100.0, 1e8
_LEAST_STIFF = 1e-9  # shorter steps under such a shift are rounding


class Direction(NamedTuple):
    """The Newton direction at an iterate and how far the bounds let it go."""

    force: Vector
    dw: Vector
    dy: Vector
    dz_lower: Vector
    dz_upper: Vector
    tau: float
    alpha: float
    alpha_z: float


def newton_step(
    form: StandardForm,
    settings: Settings,
    kernel: Kernel,
    it: Iterate,
    W: Operator,
    *,
    dependent: bool = False,
) -> Iterate | None:
    """The next iterate; None where the filter accepts no step.

    Args:
        form, settings, kernel, it: the problem, the constants, the kernel, the iterate.
        W: ∇²_ww of f + yᵀc there.
        dependent: whether rows of A are known to be dependent.

    Raises:
        StallError: when steps have become tiny or the kernel cannot be made quasi-definite.
    """
    merit = Merit(form, it)
    least = 0.0
    while True:
        it = factor_with_inertia(form, kernel, it, W, dependent=dependent, least=least)
        d = _direction(form, settings, kernel, it, merit)
        new = _search(form, settings, kernel, it, merit, d)
        if new is not None and least and _distance(new.at.w, it.at.w) <= _LEAST_STIFF:
            new = None
            break
        if new is not None or merit.theta > FEASIBLE or it.watched is not None:
            break
        # Only the objective is at stake, and its model misleads: a shorter, steeper step.
        least = max(_STIFF, _STIFFER * least)
        if least > _STIFFEST:
            break
    return it.watched if new is None and it.watched is not None else new


def _direction(
    form: StandardForm, settings: Settings, kernel: Kernel, it: Iterate, merit: Merit
) -> Direction:
    force = merit.gradient + it.pull
    return _solved(form, settings, kernel, it, force, it.at.c)


def _solved(
    form: StandardForm, settings: Settings, kernel: Kernel, it: Iterate, force: Vector, c: Vector
) -> Direction:
    """The direction for these right-hand sides of both rows of the kernel."""
    at = it.at
    d = kernel.solve(-np.concatenate((force, c)))
    dw, dy = d[: form.n], d[form.n :]
    dz_lower, dz_upper = it.dual_steps(form, dw)
    tau = max(settings.tau_least, 1.0 - it.nu)
    alpha = fraction_to_boundary(form, at, dw, tau)
    walls = form.walls
    alpha_z = min(
        share_to_zero(it.z_lower, dz_lower, walls.at_lower, tau),
        share_to_zero(it.z_upper, dz_upper, walls.at_upper, tau),
    )
    return Direction(force, dw, dy, dz_lower, dz_upper, tau, alpha, alpha_z)


def _search(
    form: StandardForm,
    settings: Settings,
    kernel: Kernel,
    it: Iterate,
    merit: Merit,
    d: Direction,
) -> Iterate | None:
    at, alpha = it.at, d.alpha
    size = largest(d.dw) / (1.0 + at.size)
    if size < _TINY:
        if it.tiny >= _TINY_STEPS and it.nu <= it.floor:
            raise StallError(StopReason.STALLED, "the steps have become tiny")
        new = form.point_or_none(at.w + alpha * d.dw)
        moved = _moved(form, it, new or at, alpha, d, tiny=it.tiny + 1)
        # At the end of the path for this ν, whatever the error there says.
        return moved.with_barrier(settings.next_nu(it.nu, it.floor)) if it.tiny else moved

    slope = float(merit.gradient @ d.dw)
    least = merit.smallest_step(slope)
    if it.short >= _MAX_SHORT and form.m:
        # The filter lets the iterate crawl. Far from feasibility that is the restoration's work
        # where it has led away from there: short steps that come nearer get through by themselves,
        # and keep the multipliers. Close to it one full step is taken unseen. Where the next one
        # finds nothing that the filter and this point accept, the iteration goes back here.
        far = merit.theta > FEASIBLE
        if far and merit.theta > it.theta_short:
            return None
        it = changed(it, short=0)
        new = None if far else form.point_or_none(at.w + alpha * d.dw)
        if new is not None and merit.theta_of(new) <= it.filter.theta_max:
            back = changed(it, short=-_REST)
            return _moved(form, it, new, alpha, d, filter=merit.extended(), watched=back)
    first = True
    while alpha >= least:
        new = form.point_or_none(at.w + alpha * d.dw)
        if new is not None:
            verdict = merit.verdict(new, alpha, slope)
            if not verdict and first and merit.theta_of(new) >= merit.theta:
                corrected = _correct(form, settings, kernel, it, merit, d, new, slope)
                if corrected is not None:
                    new, verdict, d = corrected
                    alpha = d.alpha
            if verdict:
                passed = merit.extended() if verdict == "h" else it.filter
                short = it.short + 1 if alpha <= _SHORT * d.alpha else min(it.short, 0)
                return _moved(
                    form, it, new, alpha, d, filter=passed, tiny=0, short=short,
                    theta_short=merit.theta if short == 1 else it.theta_short, watched=None,
                )  # fmt: skip
        first = False
        alpha *= 0.5
    return None


def _correct(
    form: StandardForm,
    settings: Settings,
    kernel: Kernel,
    it: Iterate,
    merit: Merit,
    d: Direction,
    new: Point,
    slope: float,
) -> tuple[Point, str, Direction] | None:
    """Second-order corrections on the same factor: the point, the filter's word, the direction."""
    at, alpha = it.at, d.alpha
    residual = alpha * at.c + new.c
    theta = merit.theta_of(new)
    for _ in range(_MAX_CORRECTIONS):
        bent = _solved(form, settings, kernel, it, d.force, residual)
        trial = form.point_or_none(at.w + bent.alpha * bent.dw)
        if trial is None:
            return None
        verdict = merit.verdict(trial, alpha, slope)
        if verdict:
            return trial, verdict, bent
        now = merit.theta_of(trial)
        if now > _CORRECTED * theta:
            return None
        theta, residual = now, bent.alpha * residual + trial.c
    return None


def _moved(
    form: StandardForm, it: Iterate, new: Point, alpha: float, d: Direction, **others: Any
) -> Iterate:
    z_lower, z_upper = safe_duals(
        form,
        new,
        it.nu,
        it.z_lower + d.alpha_z * d.dz_lower,
        it.z_upper + d.alpha_z * d.dz_upper,
    )
    y = it.y + alpha * d.dy
    taken = (new, alpha, d.alpha_z)
    return changed(it, at=new, y=y, z_lower=z_lower, z_upper=z_upper, taken=taken, **others)


def _distance(new: Vector, old: Vector) -> float:
    """Relative."""
    return largest(new - old) / (1.0 + largest(old))
