"""Restoration: reduce ½‖c‖² within the bounds, by the same kernel with finite penalty.

Newton on ½‖c(w)‖² + ζ/2‖D(w − w_R)‖² − ν_r Σlog(distances) is the kernel step with E = I,

    [ Σc_i∇²c_i + Σ + ζD² + σI   Aᵀ ] [ dw ]     [ barrier and proximal forces ]
    [            A              −I ] [ dy ] = − [              c              ],

the law with M = I. It ends where the filter takes the point again, or at a stationary violation:
the certificate of local infeasibility.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from casadi_hybrid.errors import StallError
from casadi_hybrid.inputs import Vector
from casadi_hybrid.nlp.filter import Merit
from casadi_hybrid.nlp.iterate import Iterate, Settings, fraction_to_boundary
from casadi_hybrid.nlp.kkt import Kernel
from casadi_hybrid.nlp.standard import Point, StandardForm
from casadi_hybrid.status import StopReason

_REDUCTION = 0.9
_LEAST_NU = 1e-9


@dataclass(frozen=True, slots=True)
class Restoration:
    """What the restoration carries.

    Attributes:
        reference: w_R where it began.
        theta: ‖c‖₁ there.
        nu: its own barrier parameter ν_r, in units of ½‖c‖².
        z_lower, z_upper: its own bound multipliers.
        shift: last σ.
        steps: steps taken.
        patience: steps without a decrease of the violation left.
    """

    reference: Vector
    theta: float
    nu: float
    z_lower: Vector
    z_upper: Vector
    shift: float = 0.0
    steps: int = 0


def begin_restoration(form: StandardForm, it: Iterate, theta: float) -> Iterate:
    """Start at the present point."""
    nu = 1e-2 * min(max(it.nu, 1e-8), 0.1) * max(min(theta, 1.0), 1e-8)
    below, above = it.distances(form)
    z_lower = np.where(form.has_lower, nu / below, 0.0)
    z_upper = np.where(form.has_upper, nu / above, 0.0)
    return replace(it, restoration=Restoration(it.at.w, theta, nu, z_lower, z_upper))


def restore_step(
    form: StandardForm, kernel: Kernel, it: Iterate, settings: Settings
) -> tuple[Point, Restoration | None]:
    """Take one step; return the point and the state, None when the restoration is over.

    Raises:
        StallError: at a stationary violation, or when nothing moves.
    """
    r = it.restoration
    assert r is not None
    at = it.at
    inner = replace(it, nu=r.nu, z_lower=r.z_lower, z_upper=r.z_upper)
    below, above = inner.distances(form)
    weight = 1.0 / np.maximum(1.0, np.abs(r.reference))
    zeta = 1e-4 * np.sqrt(r.nu)
    prox = zeta * weight**2
    force = prox * (at.w - r.reference) + r.nu * (form.has_upper / above - form.has_lower / below)
    slope_vector = force + at.A.T @ at.c
    stationary = float(np.abs(slope_vector).max(initial=0.0))
    if stationary <= max(10 * r.nu, 1e-10 * r.theta):
        return at, _with_smaller_barrier(r, at)

    W = form.hessian(at, at.c, objective=0.0)
    D = inner.barrier_diagonal(form) + prox
    shift = 0.0
    while True:
        kernel.factor(W, D + shift, at.A, 1.0)
        if kernel.negative == form.m and not kernel.singular:
            break
        shift = max(1e-8, r.shift / 3.0) if shift == 0.0 else 8.0 * shift
        if shift > 1e40:
            raise StallError(StopReason.STALLED, "the restoration's kernel is singular")
    dw = kernel.solve(-np.concatenate((force, at.c)))[: form.n]
    dz_lower, dz_upper = inner.dual_steps(form, dw)
    size = float(np.abs(dw).max(initial=0.0))
    if size <= 1e-11 * (1.0 + float(np.abs(at.w).max(initial=0.0))):
        return at, _with_smaller_barrier(r, at)
    alpha = fraction_to_boundary(form, at.w, dw, settings.tau_least)
    value = _value(form, at, r, prox)
    slope = float(slope_vector @ dw)
    least = 1e-11 * (1.0 + float(np.abs(at.w).max(initial=0.0))) / size
    new = None
    while alpha > least:
        new = form.point_or_none(at.w + alpha * dw)
        if new is not None and _value(form, new, r, prox) <= value + 1e-4 * alpha * slope:
            break
        alpha *= 0.5
    else:
        return at, _with_smaller_barrier(r, at)
    assert new is not None
    moved = replace(
        inner, at=new, z_lower=inner.z_lower + alpha * dz_lower,
        z_upper=inner.z_upper + alpha * dz_upper,
    ).with_safe_duals(form)  # fmt: skip
    merit = Merit(form, replace(it, at=new))
    if merit.theta <= _REDUCTION * r.theta and not it.filter.blocks(merit.theta, merit.phi):
        return new, None
    return new, replace(
        r, z_lower=moved.z_lower, z_upper=moved.z_upper, shift=shift, steps=r.steps + 1
    )


def _with_smaller_barrier(r: Restoration, at: Point) -> Restoration:
    if r.nu <= _LEAST_NU * max(1.0, r.theta):
        _fail(at)
    return replace(r, nu=0.03 * r.nu, steps=r.steps + 1)


def _value(form: StandardForm, at: Point, r: Restoration, prox: Vector) -> float:
    below = (at.w - form.lower)[form.has_lower]
    above = (form.upper - at.w)[form.has_upper]
    if (below <= 0).any() or (above <= 0).any():
        return np.inf
    logs = float(np.log(below).sum() + np.log(above).sum())
    away = at.w - r.reference
    return float(0.5 * at.c @ at.c + 0.5 * away @ (prox * away) - r.nu * logs)


def _fail(at: Point) -> None:
    violation = float(np.abs(at.c).max(initial=0.0))
    if violation <= 1e-7:
        raise StallError(StopReason.STALLED, "the violation is at the level of rounding")
    raise StallError(
        StopReason.LOCALLY_INFEASIBLE,
        "the constraint violation is stationary but not zero: the constraints are inconsistent, "
        "or this is a local minimum of their violation",
    )
