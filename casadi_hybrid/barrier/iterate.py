"""What the barrier iteration carries, its settings, and the measures both modes share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from casadi_hybrid.barrier.filter import Filter
from casadi_hybrid.barrier.pace import Mark
from casadi_hybrid.basics.arrays import changed, largest, rough_sum, sum_of_sizes
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.kernel.sparse import Index
from casadi_hybrid.point.limits import NU_LEAST, NU_START, floor_of
from casadi_hybrid.point.residuals import Tolerances
from casadi_hybrid.standard_form.form import Point, StandardForm

_EPS = float(np.finfo(float).eps)
_SPREAD = 1e10  # largest factor between z and ν/(distance to the bound)
_CLOSE = 0.1 * _SPREAD  # closer than that whatever the rounding
_S_MAX = 100.0  # multipliers of this mean size are not yet large


@dataclass(frozen=True, slots=True)
class Settings:
    """Constants of the barrier method; those of Wächter and Biegler where they have one.

    Args:
        tol: scaled error at which the solve may end.
        tolerances: what the unscaled residuals have to meet as well.
        nu_start, nu_least: first and least barrier parameter ν.
        kappa_nu, theta_nu, kappa_epsilon: ν⁺ = min(κν, ν^θ) once the barrier error is ≤ κ_ε ν.
        tau_least: least fraction to the boundary.
        push: relative distance of the start from its bounds.
        saddle: the least share of ν in the error at which it is held for the curvature.
        polish_below: ν below which the active set is tried.
        root_first: whether a root of c is looked for before f counts.
        cautious: whether by short steps.
        steps: the most steps of the run; the hot mode, which takes several at once, keeps to them.
        near: whether the barrier begins with the multipliers of a warm start.
        beside: Newton steps of a search beside a point without multipliers, which is all there is
            then; zero in any other run.
        rescale: whether the run ends where a restoration is due and rows have become so much less
            steep than at the start that their scales all but leave them out.
    """

    tol: float = 1e-8
    tolerances: Tolerances = field(default_factory=lambda: Tolerances(1e-6, 1e-6, 1e-6))
    nu_start: float = NU_START
    nu_least: float = NU_LEAST
    kappa_nu: float = 0.2
    theta_nu: float = 1.5
    kappa_epsilon: float = 10.0
    saddle: float = 0.1
    tau_least: float = 0.99
    push: float = 1e-2
    polish_below: float = 1e-3
    root_first: bool = False
    cautious: bool = False
    steps: int = 3000
    near: bool = False
    beside: int = 0
    rescale: bool = False

    @property
    def floor(self) -> float:
        """The least ν aimed at first, see :func:`~casadi_hybrid.point.limits.floor_of`."""
        return floor_of(self.tol, self.nu_least)

    def next_nu(self, nu: float, floor: float) -> float:
        """The barrier parameter after ν."""
        return max(floor, min(self.kappa_nu * nu, float(nu**self.theta_nu)))


class Detour:
    """What a restoration carries while it is under way; each kind has its own."""

    __slots__ = ()


@dataclass(frozen=True)
class Iterate:
    """One primal–dual point of the barrier method.

    Attributes:
        at: w with the functions there.
        y, z_lower, z_upper: multipliers of c = 0 and of the bounds (z ≥ 0).
        nu: barrier parameter ν.
        filter: pairs (θ, φ) no later point may match.
        floor: least ν aimed at.
        shift: last σ that gave the right inertia.
        flat, dependent: steps in a row in which K was singular without σ, or without ε.
        bent: factorizations in a row in which K had too many negative eigenvalues without σ.
        tiny: tiny steps in a row.
        short: steps in a row that the line search cut to a small part.
        theta_short: ‖c‖₁ before the first of them.
        watched: where to go back to if the full step taken unseen leads nowhere.
        fresh: whether ν has just fallen.
        guess: the active set as it was guessed when ν fell before.
        restoration: the state of the restoration while it is under way.
        mark: when something last improved.
        taken: the point that the last Newton step led to, and the parts of the step that w and z
            took; of no meaning where ``at`` is another point.
        crossed: the point that a step on an active set led to, where all products z·(distance) are
            zero, whatever ν says; of no meaning where ``at`` is another point.
        blame: multipliers of c that prove the violation ‖c‖₁ stationary; then this is the end.
    """

    at: Point
    y: Vector
    z_lower: Vector
    z_upper: Vector
    nu: float
    filter: Filter
    floor: float = 1e-9
    shift: float = 0.0
    flat: int = 0
    dependent: int = 0
    bent: int = 0
    tiny: int = 0
    short: int = 0
    theta_short: float = 0.0
    watched: Iterate | None = None
    fresh: bool = False
    guess: bytes = b""
    restoration: Detour | None = None
    mark: Mark | None = None
    blame: Vector | None = None
    taken: tuple[Point, float, float] | None = None
    crossed: Point | None = None

    @property
    def pull(self) -> Vector:
        """Aᵀy, kept for as long as A and y are the same."""
        at, y = self.at, self.y
        known: tuple[Point, Vector, Vector] | None = self.__dict__.get("_pull")
        if known is None or known[0] is not at or known[1] is not y:
            known = self.__dict__["_pull"] = at, y, at.A.T.dot(y)
        return known[2]

    def with_barrier(self, nu: float) -> Iterate:
        """This point with another ν, for which the filter is empty again."""
        if nu == self.nu:
            return self
        return changed(self, nu=nu, filter=self.filter.start(self.filter.theta_start), fresh=True)

    def barrier_diagonal(self, form: StandardForm) -> Vector:
        """Σ = Z_l/(w − l) + Z_u/(u − w)."""
        walls, at = form.walls, self.at
        if not walls.at_upper.size:
            return self.z_lower / at.below
        if not walls.at_lower.size:
            return self.z_upper / at.above
        return self.z_lower / at.below + self.z_upper / at.above

    def dual_steps(self, form: StandardForm, dw: Vector) -> tuple[Vector, Vector]:
        """Newton steps of z_l and z_u that belong to dw."""
        walls, at = form.walls, self.at
        # Where there is no bound z and the mask of ν are zero, and so is the step.
        lower, upper = self.z_lower, self.z_upper
        if walls.at_lower.size:
            lower = (self.nu * walls.lower - lower * dw) / at.below - lower
        if walls.at_upper.size:
            upper = (self.nu * walls.upper + upper * dw) / at.above - upper
        return lower, upper

    def with_safe_duals(self, form: StandardForm) -> Iterate:
        """Keep each z within a factor 1e10 of ν/(distance)."""
        lower, upper = safe_duals(form, self.at, self.nu, self.z_lower, self.z_upper)
        return changed(self, z_lower=lower, z_upper=upper)


def safe_duals(
    form: StandardForm, at: Point, nu: float, lower: Vector, upper: Vector
) -> tuple[Vector, Vector]:
    """Multipliers of bounds, each within a factor 1e10 of ν/(distance)."""
    walls = form.walls
    if walls.at_lower.size:
        lower = _kept_near(lower, at.below, nu, walls.lower, walls.at_lower)
    if walls.at_upper.size:
        upper = _kept_near(upper, at.above, nu, walls.upper, walls.at_upper)
    return lower, upper


def _kept_near(z: Vector, distance: Vector, nu: float, has: Vector, where: Index) -> Vector:
    products = (z * distance)[where]
    least, most = _ends(products)
    if nu <= _CLOSE * least and most <= _CLOSE * nu:
        return z  # as nearly always
    central = nu * has / distance
    return np.minimum(np.maximum(z, central / _SPREAD), central * _SPREAD)


class ScaledError:
    """The optimality error E_ν of Wächter and Biegler, their equation (5), for any ν."""

    def __init__(self, form: StandardForm, it: Iterate) -> None:
        at, walls = it.at, form.walls
        r = at.gradient + it.pull
        # The least and the largest product of a distance and its multiplier.
        least, most = np.inf, -np.inf
        if walls.at_lower.size:
            r -= it.z_lower
            least, most = _ends((at.below * it.z_lower)[walls.at_lower])
        if walls.at_upper.size:
            r += it.z_upper
            low, high = _ends((at.above * it.z_upper)[walls.at_upper])
            least, most = min(least, low), max(most, high)
        self._least, self._most = least, most
        bounds = walls.count
        s_d = _excess_mean((it.y, it.z_lower, it.z_upper), form.m + bounds)
        self._rest = max(largest(r) / s_d, largest(at.c))
        self._scale = _excess_mean((it.z_lower, it.z_upper), bounds)

    def at(self, nu: float) -> float:
        """E_ν."""
        return max(self._rest, max(self._most - nu, nu - self._least) / self._scale)


def _ends(v: Vector) -> tuple[float, float]:
    """The least and the largest entry."""
    return v.item(v.argmin()), v.item(v.argmax())


def _excess_mean(parts: tuple[Vector, ...], count: int) -> float:
    """The mean size of all entries in units of s_max, at least one."""
    count = max(1, count)
    if sum(map(rough_sum, parts)) <= 0.99 * _S_MAX * count:  # nearly always: no last digit is asked
        return 1.0
    first, *others = map(sum_of_sizes, parts)
    return max(_S_MAX, (first + sum(others)) / count) / _S_MAX


def scaled_error(form: StandardForm, it: Iterate, nu: float) -> float:
    """E_ν for one ν."""
    return ScaledError(form, it).at(nu)


def interior(form: StandardForm, w: Vector, push: float) -> Vector:
    """Move w inside its bounds by ``push``·max(1, |bound|), at most ``push`` of the interval."""
    w = w.copy()
    gap = form.upper - form.lower
    for has, bound, sign in (
        (form.has_lower, form.lower, 1.0),
        (form.has_upper, form.upper, -1.0),
    ):
        # A push of zero into an interval without end is zero.
        room = push * np.minimum(np.maximum(1.0, np.abs(bound[has])), gap[has])
        limit = bound[has] + sign * room
        w[has] = np.maximum(w[has], limit) if sign > 0 else np.minimum(w[has], limit)
    return w


def fraction_to_boundary(form: StandardForm, at: Point, dw: Vector, tau: float) -> float:
    """Largest α ≤ 1 after which every distance to a bound is at least 1 − τ of what it is."""
    walls = form.walls
    share = share_to_zero(at.below, dw, walls.at_lower, tau)
    if not walls.at_upper.size:
        return share
    return min(share, share_to_zero(at.above, -dw, walls.at_upper, tau))


def share_to_zero(v: Vector, dv: Vector, where: Index, tau: float) -> float:
    """Largest α ≤ 1 with v + α dv ≥ (1 − τ)v in these entries of v > 0."""
    if not where.size:
        return 1.0
    if where.size < v.size:
        v, dv = v[where], dv[where]
    rates = dv / v
    first = rates.argmin()
    if not rates.item(first) < 0.0:
        return 1.0
    return min(1.0, tau * v.item(first) / -dv.item(first))
