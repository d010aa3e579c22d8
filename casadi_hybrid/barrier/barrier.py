r"""The cold mode: a primal–dual barrier method on the quasi-definite kernel, with a filter.

For the standard form min f(w), c(w) = 0, l ≤ w ≤ u each iteration solves

    [ W + Σ + σI   Aᵀ ] [ dw ]     [ ∇φ_ν + Aᵀy ]
    [     A      −εI ] [ dy ] = − [      c      ],   Σ = Z_l/(w − l) + Z_u/(u − w),

with φ_ν = f − νΣlog(w − l) − νΣlog(u − w). This is the law of :mod:`casadi_hybrid.law` with base
multiplier y, correction M = ε⁻¹I and primal metric P = (W + Σ + σI + AᵀMA)⁻¹; σ is raised until
the kernel's inertia says that P is positive definite where it has to be. Globalization is the
filter line search of Wächter and Biegler (Math. Program. 106, 2006) with second-order corrections
on the same factor, and ν falls by min(0.2ν, ν^1.5). Where the filter blocks, or nothing improves
any more (:mod:`casadi_hybrid.barrier.pace`), :mod:`casadi_hybrid.barrier.elastic` reduces ‖c‖₁ by
the same steps on the kernel with a penalty for every row; where that ends at a stationary
violation, :mod:`casadi_hybrid.barrier.restoration` (one finite penalty) reduces ‖c‖₂, which can
prove it. Once ν is small and the active set clear, :mod:`casadi_hybrid.barrier.polish` jumps to
its solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casadi_hybrid.barrier.elastic import (
    Elastic,
    after_elastic,
    begin_elastic,
    elastic_step,
    restored,
)
from casadi_hybrid.barrier.filter import Filter
from casadi_hybrid.barrier.hot import follow
from casadi_hybrid.barrier.inertia import least_squares_multipliers, rows_are_dependent
from casadi_hybrid.barrier.iterate import NU_START, Iterate, ScaledError, Settings, interior
from casadi_hybrid.barrier.leap import leap, runs_away
from casadi_hybrid.barrier.merit import Merit
from casadi_hybrid.barrier.newton import newton_step
from casadi_hybrid.barrier.pace import CRAWL, FEASIBLE, ROUNDS, STALL, mark_of
from casadi_hybrid.barrier.polish import active_guess, polish, sharpened
from casadi_hybrid.barrier.restoration import Restoration, begin_restoration, restore_step
from casadi_hybrid.basics.arrays import Lazy, changed, largest
from casadi_hybrid.basics.errors import EvaluationError, StallError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.iterations.base import Start
from casadi_hybrid.kernel.kernel import Kernel
from casadi_hybrid.law import State
from casadi_hybrid.point.kkt import kkt_residuals
from casadi_hybrid.point.residuals import Residuals
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.evaluator import Operator
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.standard_form.certificate import STATIONARY_VIOLATION, violation_slope
from casadi_hybrid.standard_form.form import EASED, Point, StandardForm, eased

_CLEAR, _LATE = 100.0, 1.1e-9  # at the second ν an active set is tried also if it is not clear
# Where multipliers are far off a ν as small as that of a warm start holds the iterates to edges
# that are not the solution's. Each tenfold more costs a convex problem another iteration or two,
# and one that bends downwards has the ν of a cold start as soon as that is seen.
_FAR_OFF, _NU_FAR_OFF = 1.0, 1e-3
_AT_FLOOR, _LOWER = 1.001, 0.1  # so near the floor ν is on it, and how far the floor is lowered
_SHARES = (1.0, 1e-2, 1e-4)  # of the push off bounds, until all functions are defined there
_ROUNDED = 1e-11  # of ‖w‖_∞: a ‖c‖₁ as small is rounding
_LEAST_Z, _LARGEST_Z = 1e-8, 1e3  # multipliers of bounds after a search for a root
# As if it had been the last σ: where variables are flat, a larger one holds up every warm step.
_SHIFT_NEARBY = 1e-10
# Factorizations in a row after which what bends downwards is no wrong guess of the active set,
# where the given multipliers nearly solve the problem. Where they are far off, one says it.
_SADDLE = 8
_LEAP = 10  # steps of iterates that run away before the first leap
_UNDEFINED = 10  # steps without a second derivative


@dataclass(frozen=True)
class Begun:
    """An iteration that was begun elsewhere: its iterate, the steps until then, and whether rows of
    A are known to be dependent.
    """

    iterate: Iterate
    t: int
    dependent: bool


class Barrier:
    """Interior-point iteration on one standard form (one solve)."""

    label = "hybrid (barrier)"

    def __init__(
        self, form: StandardForm, settings: Settings, warm: WarmStart | None = None
    ) -> None:
        self.form = form
        self.settings = settings
        self._warm = warm
        self.begun: Begun | None = None
        self._dependent = False
        self._undefined = 0
        self._asked: tuple[Iterate, tuple[Vector, Vector]] | None = None
        self._judged: tuple[Iterate, Residuals] | None = None
        self._measured: tuple[Iterate, ScaledError] | None = None
        self._size, self._away, self._leap_after = largest(form.start), 0, _LEAP
        self._warm_start_waits = False
        self._no_memory = np.zeros(form.program.m)
        self._no_memory.setflags(write=False)

    @Lazy
    def _kernel(self) -> Kernel:
        """Made where it is needed."""
        return self.form.kernel()

    # --- the iteration's contract -------------------------------------------------------------

    def init(self, oracle: Oracle, start: Start) -> State:
        """Push the start into the bounds and estimate multipliers by least squares.

        A warm start is the start as it is, from which the first step is that of the hot mode. An
        iteration that was ``begun`` elsewhere goes on from there.
        """
        if self.begun is not None:
            self._dependent = self.begun.dependent
            return self._sharpened(self.begun.iterate, self.begun.t)
        given = None if self._warm is None else self._given(self._warm)
        if given is None:
            return self.state_of(self._cold(), 0)
        self._warm_start_waits = True
        return self.state_of(given, 0)

    def _cold(self) -> Iterate:
        """Where the barrier iteration begins.

        Raises:
            EvaluationError: where no function is defined there.
        """
        form, settings = self.form, self.settings
        at = self._first_point()
        z_lower = np.where(form.has_lower, 1.0, 0.0)
        z_upper = np.where(form.has_upper, 1.0, 0.0)
        self._dependent = rows_are_dependent(at.A)
        it = self._beginning(at, self._least_squares(at, z_lower, z_upper), z_lower, z_upper)
        if self._warm is not None and settings.near:
            it = self._nearby(it, self._warm)
        if settings.root_first and form.m:
            it = begin_restoration(form, it, at.theta, 0.0, cautious=settings.cautious)
        return it

    def _beginning(self, at: Point, y: Vector, z_lower: Vector, z_upper: Vector) -> Iterate:
        settings, filter_ = self.settings, Filter.start(at.theta)
        return Iterate(at, y, z_lower, z_upper, settings.nu_start, filter_, floor=settings.floor)

    def _first_point(self) -> Point:
        """Inside the bounds; less far where a function is not defined there.

        Raises:
            EvaluationError: where none is defined at the smallest share either.
        """
        form, settings = self.form, self.settings
        *shares, last = _SHARES
        for share in shares:
            at = form.point_or_none(interior(form, form.start, share * settings.push))
            if at is not None:
                return at
        return form.point(interior(form, form.start, last * settings.push))

    def _given(self, warm: WarmStart) -> Iterate | None:
        """The start as it is, with the given multipliers; None where a function is undefined."""
        form = self.form
        at = form.point_or_none(np.clip(form.start, form.lower, form.upper))
        if at is None:
            return None
        return self._beginning(at, *form.from_user_multipliers(warm.lam_x, warm.lam_g))

    def _hot(self, it: Iterate, t: int) -> State:
        """Newton steps on the working set, or on that of the multipliers; else the cold start."""
        form = self.form
        known = None if self._warm is None else self._warm.working_set
        active = active_guess(form, it) if known is None else form.from_working_set(known)
        hot, spent = follow(
            form, self._kernel, it, self._solved, active,
            within=self._within, tol=self.settings.tol, most=max(1, self.settings.steps - t),
            patience=self.settings.beside,
        )  # fmt: skip
        if hot is not None:
            return self._sharpened(hot, t + spent)
        return self.state_of(self._cold(), t + spent)

    def _nearby(self, it: Iterate, warm: WarmStart) -> Iterate:
        """The given multipliers, those of bounds at least on the central path of ν.

        With a ν as small as that of a warm start only where they nearly solve this problem. The
        first σ, where one is needed, is small too: a large one is no guard so near.
        """
        form = self.form
        y, z_lower, z_upper = form.from_user_multipliers(warm.lam_x, warm.lam_g)
        given = changed(it, y=y, z_lower=z_lower, z_upper=z_upper)
        if ScaledError(form, given).at(0.0) > _FAR_OFF:
            given = changed(given, nu=max(it.nu, _NU_FAR_OFF))
        return changed(_central(form, given), shift=_SHIFT_NEARBY)

    def evaluate(self, oracle: Oracle, state: State) -> Point:
        """Return the point the state carries: its trial step has evaluated it already."""
        iterate: Iterate = state.carry
        return iterate.at

    def residuals(self, state: State, at: Point) -> Residuals:
        """KKT residuals in the user's units."""
        return self._residuals(state.carry)

    def multipliers(self, state: State) -> tuple[Vector, Vector]:
        """(lam_x, lam_g) in the user's units."""
        return self._multipliers(state.carry)

    def settled(self, state: State, at: Point) -> bool:
        """Also the scaled error has to be small, as in IPOPT, unless steps have become tiny."""
        iterate: Iterate = state.carry
        return iterate.tiny > 0 or self._error(iterate).at(0.0) <= self.settings.tol

    def leaves(self, state: State, at: Point) -> bool:
        """Never: where the scaled error is not small yet, steps make it so."""
        return False

    def remarks(self, oracle: Oracle, state: State, at: Point) -> tuple[str, ...]:
        """Nothing here; the interface explains a result."""
        return ()

    def step(self, oracle: Oracle, state: State, at: Point) -> tuple[State, None]:
        """Take one step of the mode that is due.

        Raises:
            StallError: at a stationary violation, or when nothing moves any more.
        """
        iterate: Iterate = state.carry
        if self._warm_start_waits:
            self._warm_start_waits = False
            return self._hot(iterate, state.t), None
        if iterate.blame is not None:
            raise StallError(
                StopReason.LOCALLY_INFEASIBLE,
                "the sum of the violations is stationary but not zero: the constraints are "
                "inconsistent, or this is a local minimum of their violation",
            )
        if iterate.restoration is not None:
            return self._restore(iterate, state.t), None
        far = self._leap(iterate.at)
        if far is not None:
            return self.state_of(changed(iterate, at=far), state.t + 1), None
        iterate = self._lower_barrier(iterate, state.t)
        iterate, spent, solved = self._polish(iterate, self.settings.steps - state.t)
        t = state.t + spent
        if solved:
            return self._sharpened(iterate, t), None
        if spent and t >= self.settings.steps:
            return self.state_of(iterate, t), None
        return self._newton(iterate, t), None

    def _leap(self, at: Point) -> Point | None:
        """Far out on the way on which the iterates have run for some time, None for no proof."""
        if not runs_away(at, self._size):
            return None
        self._away += 1
        if self._away < self._leap_after:
            return None
        self._leap_after *= 2
        return leap(self.form, self._kernel, at)

    # --- the barrier parameter ----------------------------------------------------------------

    def _lower_barrier(self, it: Iterate, t: int) -> Iterate:
        it = self._off_saddle(it)
        settings, floor = self.settings, it.floor
        error = self._error(it)
        if error.at(0.0) <= settings.tol and it.nu <= floor * _AT_FLOOR:
            floor = max(_LOWER * floor, settings.nu_least)  # unscaled residuals ask for more
        nu, of_nu = it.nu, error.at(it.nu)
        # Where f still bends downwards a small error is that of a saddle. The way from there is
        # long, and a small ν would have it go along the bounds by short steps.
        held = it.bent > 0 and of_nu > settings.saddle * nu
        while not held and nu > floor and of_nu <= settings.kappa_epsilon * nu:
            nu = settings.next_nu(nu, floor)
            of_nu = error.at(nu)
        kept = it if floor == it.floor else changed(it, floor=floor)
        lowered = kept.with_barrier(nu)
        mark = mark_of(lowered.mark, nu, lowered.at.theta, lowered.at.f, of_nu, t, bent=it.bent > 0)
        return lowered if mark is lowered.mark else changed(lowered, mark=mark)

    def _off_saddle(self, it: Iterate) -> Iterate:
        """The ν of a cold start where the Lagrangian bends downwards at a warm one."""
        start = self.settings.nu_start
        waits = _SADDLE if it.nu == start else 1
        if not self.settings.near or it.bent < waits or it.nu not in (start, _NU_FAR_OFF):
            return it
        return _central(self.form, it.with_barrier(NU_START))

    # --- the Newton step ----------------------------------------------------------------------

    def _newton(self, it: Iterate, t: int) -> State:
        assert it.mark is not None
        idle = t - it.mark.t
        if idle >= CRAWL and it.mark.theta > FEASIBLE:
            return self._block(it, t)
        if idle >= STALL or it.mark.rounds >= ROUNDS:
            raise StallError(StopReason.STALLED, "nothing improves any more")
        try:
            new = self._newton_step(it)
        except StallError:
            if it.at.theta <= self.settings.tol:
                raise
            new = None
        return self._block(it, t) if new is None else self._sharpened(self._at_root(new), t + 1)

    def _newton_step(self, it: Iterate) -> Iterate | None:
        """As its name says; once more where what was learned elsewhere misleads here."""
        form, settings, kernel, bound = self.form, self.settings, self._kernel, self._dependent
        try:
            new = newton_step(form, settings, kernel, it, self._hessian(it), dependent=bound)
            if new is not None or not form.forget():
                return new
        except StallError:
            if not form.forget():
                raise
        return newton_step(form, settings, kernel, it, self._hessian(it), dependent=bound)

    def _hessian(self, it: Iterate) -> Operator:
        """∇²L; the identity where it is not defined, a few times in a solve.

        Raises:
            EvaluationError: when it is not defined again and again.
        """
        form = self.form
        try:
            return form.hessian(it.at, it.y)
        except EvaluationError:
            self._undefined += 1
            if self._undefined > _UNDEFINED:
                raise
            return form.identity()

    def _at_root(self, it: Iterate) -> Iterate:
        """Without an objective a feasible point is a solution, whatever the barrier still wants."""
        if not self.form.program.feasibility:
            return it
        if float(np.abs(it.at.c).max(initial=0.0)) > self.settings.tol:
            return it
        none = np.zeros(self.form.n)
        root = changed(it, y=np.zeros(self.form.m), z_lower=none, z_upper=none, tiny=1)
        return root if self._within(root) else it

    # --- leaving the ordinary step ------------------------------------------------------------

    def _block(self, it: Iterate, t: int) -> State:
        """Reduce the violation alone; StallError where there is none."""
        merit = Merit(self.form, it)
        if merit.theta <= _ROUNDED * max(1.0, float(np.abs(it.at.w).max(initial=0.0))):
            raise StallError(StopReason.STALLED, "no step decreases the barrier function any more")
        if self.settings.rescale:
            form = self.form
            if eased(form.bounds, form.at_start.J, it.at.raw_J) >= EASED:
                raise StallError(StopReason.STALLED, "the scales of the start do not fit any more")
        blocked = changed(it, filter=merit.extended(), short=0, watched=None)
        # More equations than unknowns: their least squares are what is asked for.
        begin = begin_restoration if self.form.m > self.form.n else begin_elastic
        return self._restore(begin(self.form, blocked, merit.theta), t)

    def _restore(self, it: Iterate, t: int) -> State:
        r = it.restoration
        assert r is not None
        if isinstance(r, Elastic):
            return self._elastic(it, r, t)
        assert isinstance(r, Restoration)
        try:
            at, restoration = restore_step(self.form, self._kernel, it, self.settings)
        except StallError as error:
            if float(np.abs(it.at.c).max()) <= FEASIBLE:
                raise
            if violation_slope(self.form, it.at) <= STATIONARY_VIOLATION:
                raise StallError(StopReason.LOCALLY_INFEASIBLE, str(error)) from error
            if r.least is None:
                raise
            return self.state_of(r.least, t + 1)
        moved = changed(it, at=at, restoration=restoration)
        if restoration is None:  # acceptable to the filter again
            moved = _marked(self._resumed(moved, r.goal), t + 1)
        return self.state_of(moved, t + 1)

    def _elastic(self, it: Iterate, r: Elastic, t: int) -> State:
        """The least ‖c‖₁ first; where that leads no further, the least ‖c‖₂, which can prove it."""
        try:
            found = elastic_step(self._kernel, it, self.settings)
        except StallError:
            found = None
        if found is None:
            return self._restore(
                begin_restoration(self.form, it, r.theta, least=self._proof(it, r)), t
            )
        at, elastic = found
        moved = changed(it, at=at, restoration=elastic)
        merit = Merit(self.form, moved)
        if restored(it, merit.theta, merit.phi):
            moved = _marked(after_elastic(self.form, moved), t + 1)
        return self.state_of(moved, t + 1)

    def _proof(self, it: Iterate, r: Elastic) -> Iterate | None:
        """The iterate as the end of the solve, where ‖c‖₁ is stationary; else None."""
        y = r.inner.y
        if float(np.abs(it.at.c).max()) <= FEASIBLE:
            return None
        if violation_slope(self.form, it.at, y) > STATIONARY_VIOLATION:
            return None
        return changed(it, blame=y)

    def _resumed(self, it: Iterate, goal: float) -> Iterate:
        form = self.form
        if goal == 0.0:
            # At a root no bound has to push: without an objective it is a solution as it is.
            free = np.zeros(form.n)
            y = self._least_squares(it.at, free, free)
            root = changed(it, y=y, z_lower=free, z_upper=free, tiny=1)
            if self._within(root):
                return root
        below, above = it.at.below, it.at.above
        z_lower = np.where(form.has_lower, np.clip(it.nu / below, _LEAST_Z, _LARGEST_Z), 0.0)
        z_upper = np.where(form.has_upper, np.clip(it.nu / above, _LEAST_Z, _LARGEST_Z), 0.0)
        y = self._least_squares(it.at, z_lower, z_upper)
        return changed(it, y=y, z_lower=z_lower, z_upper=z_upper, tiny=0)

    def _polish(self, it: Iterate, most: int) -> tuple[Iterate, int, bool]:
        """Try the active set once it was guessed twice: (iterate, steps spent, whether solved).

        Steps of a try that fails are spent all the same, so they are counted; there are ``most``.
        """
        if not (it.fresh and it.nu <= self.settings.polish_below):
            return it, 0, False
        lower, upper = active_guess(self.form, it)
        guess = lower.tobytes() + upper.tobytes()
        tried = changed(it, guess=guess, fresh=False)
        if guess != it.guess or not (it.nu <= _LATE or _clear(self.form, it)):
            return tried, 0, False
        found, steps = polish(self.form, self._kernel, it, self._solved, most)
        return (tried, steps, False) if found is None else (found, steps, True)

    def _solved(self, it: Iterate) -> bool:
        """Whether the scaled error and the user's residuals are both within tolerance."""
        if self._error(it).at(0.0) > self.settings.tol:
            return False
        return self._within(it)

    def _within(self, it: Iterate) -> bool:
        """Whether the user's residuals are within tolerance."""
        return self.settings.tolerances.merit(self._residuals(it)) <= 1.0

    def _residuals(self, it: Iterate) -> Residuals:
        """Kept like the multipliers: a solution of an active set has been judged already."""
        if self._judged is None or self._judged[0] is not it:
            at, multipliers = it.at, self._multipliers(it)
            found = kkt_residuals(
                self.form.bounds, at.x, at.raw_gradient, at.raw_g, at.raw_J, *multipliers
            )
            self._judged = it, found
        return self._judged[1]

    def _sharpened(self, it: Iterate, t: int) -> State:
        """The state of an iterate; with a few more steps where rounding alone excuses a solution.

        It excuses a hundred times what a careful sum leaves, and a step from where a residual was
        first excused there is often nothing to excuse.
        """
        if it.restoration is None and self._solved(it) and self._plain_merit(it) > 1.0:
            most = self.settings.steps - t
            it, spent = sharpened(
                self.form, self._kernel, it, self._solved, self._plain_merit, most
            )
            t += spent
        return self.state_of(it, t)

    def _plain_merit(self, it: Iterate) -> float:
        """The residuals that nothing excuses, in units of their tolerances."""
        at, multipliers = it.at, self._multipliers(it)
        plain = kkt_residuals(
            self.form.bounds, at.x, at.raw_gradient, at.raw_g, at.raw_J, *multipliers, plain=True
        )
        return self.settings.tolerances.merit(plain)

    def _multipliers(self, it: Iterate) -> tuple[Vector, Vector]:
        """Those of the last iterate asked for are kept: its state, residuals and end ask again."""
        if self._asked is None or self._asked[0] is not it:
            found = self.form.user_multipliers(it.at, it.y, it.z_upper - it.z_lower)
            self._asked = it, found
        return self._asked[1]

    def _error(self, it: Iterate) -> ScaledError:
        """The scaled error, kept like the multipliers."""
        if self._measured is None or self._measured[0] is not it:
            self._measured = it, ScaledError(self.form, it)
        return self._measured[1]

    def _least_squares(self, at: Point, z_lower: Vector, z_upper: Vector) -> Vector:
        return least_squares_multipliers(self.form, self._kernel, at, z_lower, z_upper)

    def state_of(self, it: Iterate, t: int) -> State:
        """The state of an iterate after step t."""
        lam_g = self._multipliers(it)[1]
        return State(it.at.x, lam_g, self._no_memory, lam_g, t, it)


def _clear(form: StandardForm, it: Iterate) -> bool:
    """Whether every bound is clearly active or not: multiplier and distance differ by a factor."""
    for has, z, distance in (
        (form.has_lower, it.z_lower, it.at.below),
        (form.has_upper, it.z_upper, it.at.above),
    ):
        near = has & (z < _CLEAR * distance) & (distance < _CLEAR * z)
        if near.any():
            return False
    return True


def _central(form: StandardForm, it: Iterate) -> Iterate:
    """The iterate with multipliers of bounds that are at least on the central path of its ν."""
    z_lower = np.where(form.has_lower, np.maximum(it.z_lower, it.nu / it.at.below), 0.0)
    z_upper = np.where(form.has_upper, np.maximum(it.z_upper, it.nu / it.at.above), 0.0)
    return changed(it, z_lower=z_lower, z_upper=z_upper)


def _marked(it: Iterate, t: int) -> Iterate:
    """The iterate after a restoration."""
    return it if it.mark is None else changed(it, mark=it.mark.restored(t))
