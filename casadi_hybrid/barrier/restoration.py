r"""Reduce the violation ½‖c‖² within the bounds, by the same kernel with finite penalty.

The barrier function here is v(w) = ½‖c(w)‖² + ζ/2‖w − w_R‖²_U − ν_r Σlog(distances), and its
damped Newton step is the kernel step with E = I, that is the law with correction M = I:

    [ V + Σ + ζU + δD   Aᵀ ] [ dw ]     [ barrier and proximal forces ]
    [        A          −I ] [ dy ] = − [              c              ].

V = 0 (Gauss and Newton) while ‖c‖² falls fast, V = Σc_i∇²c_i once it does not (Fletcher and Xu,
IMA J. Numer. Anal. 7, 1987): the first is right near a root, the second near a least violation
that is not zero. δ is the damping of Levenberg and Marquardt, D the largest squared column norms
of A so far (Moré, 1978), so that steps do not depend on the units of w.

It ends where the filter takes the point again, with a goal of zero only at a root, or at a
stationary violation: the certificate of local infeasibility.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from casadi_hybrid.barrier.iterate import Detour, Iterate, Settings, fraction_to_boundary, interior
from casadi_hybrid.barrier.merit import Merit
from casadi_hybrid.barrier.pace import FEASIBLE
from casadi_hybrid.basics.errors import StallError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.kernel.kernel import Kernel
from casadi_hybrid.kernel.sparse import column_squares
from casadi_hybrid.problem.evaluator import Operator
from casadi_hybrid.standard_form.certificate import STATIONARY_VIOLATION, violation_slope
from casadi_hybrid.standard_form.form import TINY, Point, StandardForm

_REDUCTION = 0.9
_ROOM = 1e-2
WATCH, _SLOW = 30, 0.98
_LEAST_NU = 1e-12
_NU_SHARE, _NU_LOW, _NU_HIGH = 1e-2, 1e-8, 0.1  # of the first ν: times θ ≤ 1, and its limits
_LESS_NU, _PUSHED = 0.03, 10.0  # ν⁺ = 0.03ν where the slope is no steeper than 10ν
_FORGET = 0.1  # what is left of D at the next step where columns shrink
_PROOF = 0.01 * STATIONARY_VIOLATION
_LET_GO, _LAST_NU = 1e-4, 0.99  # ν⁺ = 1e-4ν, or a little below the least one, where it is proved
_PROXIMITY = 1e-4  # ζ = 1e-4 √ν
_ROUNDED = 1e-7  # a violation as small is rounding
_POLISH, _POLISH_LARGE = 20, 4  # steps from a stationary ‖c‖₁ to a stationary ‖c‖₂
_FLAT = 1e-11  # cosine between c and a column of A that counts as zero
_ROOT, _ROUGH_ROOT = 1e-11, 1e-6
_FAST = 0.8  # v⁺ ≤ 0.8v: Gauss–Newton goes on
_DAMPING, _CAUTIOUS = 1e-3, 1.0
_LEAST_DAMPING, _LARGEST_DAMPING = 1e-14, 1e16
# A step is refused that gains less than 1e-4 of what its model says: the damping, 1e-8 at least,
# grows fourfold, then eightfold, … After a good and long one it is a tenth, after a bad one four
# times as large.
_GAINED, _REFUSED, _GROWTH, _FASTER = 1e-4, 1e-8, 4.0, 2.0
_GOOD, _LONG, _BAD, _LESS, _MORE = 0.75, 0.5, 0.25, 0.1, 4.0
_UNIT = 1e-12  # of the largest unit, the least one
_STILL = 1e-12  # of ‖w‖_∞: no step


@dataclass(frozen=True, slots=True)
class Restoration(Detour):
    """What the restoration carries.

    Attributes:
        reference: w_R where it began.
        theta: ‖c‖₁ there.
        goal: the part of it to be reached; 0 asks for a root.
        nu: its own barrier parameter ν_r, in units of ½‖c‖².
        z_lower, z_upper: its own bound multipliers.
        units: D, squared column norms.
        cautious: whether D is one number, their mean, and δ large: short steps that stay in the
            basin of the start.
        damping: δ.
        curved: whether V is the curvature of c.
        steps: steps taken.
        mark: ‖c‖² when they were last a multiple of 30.
        least: where ‖c‖₁ was found to be stationary.
    """

    reference: Vector
    theta: float
    goal: float
    nu: float
    z_lower: Vector
    z_upper: Vector
    units: Vector
    cautious: bool
    damping: float
    curved: bool = False
    steps: int = 0
    mark: float = np.inf
    least: Iterate | None = None


def begin_restoration(
    form: StandardForm,
    it: Iterate,
    theta: float,
    goal: float = _REDUCTION,
    *,
    cautious: bool = False,
    least: Iterate | None = None,
) -> Iterate:
    """Start at the present point, or where its slacks fit and its bounds leave it room."""
    it = _with_room(form, it, theta)
    bounded = bool(form.has_lower.any() or form.has_upper.any())
    nu = (
        _NU_SHARE * min(max(it.nu, _NU_LOW), _NU_HIGH) * max(min(theta, 1.0), _NU_LOW)
        if bounded
        else 0.0
    )
    below, above = it.at.below, it.at.above
    z_lower = np.where(form.has_lower, nu / below, 0.0)
    z_upper = np.where(form.has_upper, nu / above, 0.0)
    units, damping = _units(it.at, cautious), _CAUTIOUS if cautious else _DAMPING
    return replace(
        it,
        restoration=Restoration(
            it.at.w, theta, goal, nu, z_lower, z_upper, units, cautious, damping, least=least
        ),
    )


def _with_room(form: StandardForm, it: Iterate, theta: float) -> Iterate:
    """Slacks at the values of their rows, and w a little inside its bounds.

    Where the filter has blocked, many entries are next to their bounds, and a barrier lets them
    leave by no more than twice their distance a step.
    """
    w = form.with_slacks(it.at)
    at = form.point_or_none(interior(form, w, _ROOM * min(1.0, theta)))
    return it if at is None else replace(it, at=at)


def restore_step(
    form: StandardForm, kernel: Kernel, it: Iterate, settings: Settings
) -> tuple[Point, Restoration | None]:
    """Take one step; return the point and the state, None when the restoration is over.

    Raises:
        StallError: at a stationary violation, or when nothing moves.
    """
    r = it.restoration
    assert isinstance(r, Restoration)
    at = it.at
    inner = replace(it, nu=r.nu, z_lower=r.z_lower, z_upper=r.z_upper)
    below, above = inner.at.below, inner.at.above
    prox = _proximity(r)
    force = prox * (at.w - r.reference) + r.nu * (form.has_upper / above - form.has_lower / below)
    gradient = force + at.A.T @ at.c
    r = replace(r, units=np.maximum(_FORGET * r.units, _units(at, r.cautious)))
    flat = _FLAT * np.sqrt(r.units) * float(np.linalg.norm(at.c))
    if (np.abs(gradient) <= np.maximum(_PUSHED * r.nu, flat)).all():
        return at, _closer(form, r, at)
    units = np.maximum(r.units, _UNIT * max(float(r.units.max(initial=0.0)), TINY))
    V = form.hessian(at, at.c, objective=0.0) if r.curved else form.zero_hessian()
    D = inner.barrier_diagonal(form) + prox
    value = _value(form, at, r, prox)
    damping, growth = r.damping, _GROWTH
    curved = r.curved
    while True:
        kernel.factor(V, D + damping * units, at.A, 1.0)
        if curved and (kernel.negative != form.m or kernel.singular):
            V, curved = form.zero_hessian(), False
            continue
        if kernel.negative == form.m and not kernel.singular:
            dw = kernel.solve(-np.concatenate((force, at.c)))[: form.n]
            alpha = fraction_to_boundary(form, at, dw, settings.tau_least)
            step = alpha * dw
            size = float(np.abs(step).max(initial=0.0))
            if size <= _STILL * (1.0 + float(np.abs(at.w).max(initial=0.0))):
                return at, _closer(form, r, at)
            new = form.point_or_none(at.w + step)
            if new is not None:
                expected = _expected(V, D, at, step, gradient)
                gained = value - _value(form, new, r, prox)
                if gained > _GAINED * expected:
                    break
        damping = max(damping, _REFUSED) * growth
        growth *= _FASTER
        if damping > _LARGEST_DAMPING:
            return at, _closer(form, r, at)
    ratio = gained / expected
    if ratio > _GOOD and alpha > _LONG:
        damping = max(_LESS * damping, _LEAST_DAMPING)
    elif ratio < _BAD:
        damping *= _MORE
    dz_lower, dz_upper = inner.dual_steps(form, dw)
    moved = replace(
        inner, at=new, z_lower=inner.z_lower + alpha * dz_lower,
        z_upper=inner.z_upper + alpha * dz_upper,
    ).with_safe_duals(form)  # fmt: skip
    merit = Merit(form, replace(it, at=new))
    if merit.theta <= r.goal * r.theta and not it.filter.blocks(merit.theta, merit.phi):
        return new, None
    if r.goal == 0.0 and float(np.abs(new.c).max(initial=0.0)) <= _ROOT:
        return new, None
    r = _watched(replace(r, steps=r.steps + 1), new, dense=form.dense)
    fast = float(new.c @ new.c) <= _FAST * float(at.c @ at.c)
    return new, replace(
        r, z_lower=moved.z_lower, z_upper=moved.z_upper, damping=damping, curved=not fast
    )


def _units(at: Point, cautious: bool) -> Vector:
    squares = column_squares(at.A)
    return np.full(squares.size, squares.mean()) if cautious and squares.size else squares


def _watched(r: Restoration, at: Point, *, dense: bool) -> Restoration:
    """Give up where the violation hardly falls any more: it tends to a limit at infinity."""
    if r.least is not None and r.steps >= (_POLISH if dense else _POLISH_LARGE):
        raise StallError(StopReason.STALLED, "the sum of the violations is stationary")
    if r.steps % WATCH:
        return r
    now = float(at.c @ at.c)
    if now > _SLOW * r.mark:
        slope = np.abs(at.A.T @ at.c).max(initial=0.0)
        steepest = max(1.0, float(r.units.max(initial=0.0)))
        flat = slope <= STATIONARY_VIOLATION * np.sqrt(steepest * now)
        raise StallError(
            StopReason.LOCALLY_INFEASIBLE if flat else StopReason.STALLED,
            f"the constraint violation fell by less than 1 % over {WATCH} steps",
        )
    return replace(r, mark=now)


def _expected(V: Operator, D: Vector, at: Point, step: Vector, gradient: Vector) -> float:
    """Decrease of v along the step that its quadratic model expects."""
    along = at.A @ step
    bend = float(step @ (V @ step) + step @ (D * step) + along @ along)
    return -float(gradient @ step) - 0.5 * bend


def _proximity(r: Restoration) -> Vector:
    """ζU; none where a root is asked for."""
    zeta = _PROXIMITY * np.sqrt(r.nu) if r.goal > 0.0 else 0.0
    return np.asarray(zeta / np.maximum(1.0, np.abs(r.reference)) ** 2)


def _closer(form: StandardForm, r: Restoration, at: Point) -> Restoration | None:
    """With a smaller barrier; None at a root. Raises StallError where there is none."""
    violation = float(np.abs(at.c).max(initial=0.0))
    if r.goal == 0.0 and violation <= _ROUGH_ROOT:
        return None
    size = float(np.linalg.norm(at.c))
    least = _LEAST_NU * size * min(1.0, size)
    if r.nu > least:
        # Where the verdict is clear the barrier has only to let go of the bounds.
        proved = violation > FEASIBLE and violation_slope(form, at) <= _PROOF
        return replace(r, nu=max(_LET_GO * r.nu, _LAST_NU * least) if proved else _LESS_NU * r.nu)
    if violation <= _ROUNDED:
        raise StallError(StopReason.STALLED, "the violation is at the level of rounding")
    raise StallError(
        StopReason.LOCALLY_INFEASIBLE,
        "the constraint violation is stationary but not zero: the constraints are inconsistent, "
        "or this is a local minimum of their violation",
    )


def _value(form: StandardForm, at: Point, r: Restoration, prox: Vector) -> float:
    if at.outside:
        return np.inf
    logs = float(np.log(at.below).sum() + np.log(at.above).sum())
    away = at.w - r.reference
    return float(0.5 * at.c @ at.c + 0.5 * away @ (prox * away) - r.nu * logs)
