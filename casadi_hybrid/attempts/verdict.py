"""From the last and best iterate to the result: what the point is, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.barrier.barrier import Barrier
from casadi_hybrid.barrier.iterate import Iterate
from casadi_hybrid.barrier.pace import BESIDE, FITS, OUTSIDE
from casadi_hybrid.basics.arrays import largest, rough_sum
from casadi_hybrid.basics.errors import EvaluationError, OutOfTimeError
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.loop import Outcome
from casadi_hybrid.point.kkt import violations
from casadi_hybrid.point.residuals import HUGE_MULTIPLIER, Residuals, Tolerances
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.standard_form.certificate import STATIONARY_VIOLATION, violation_slope
from casadi_hybrid.standard_form.form import Linearization, Point, StandardForm
from casadi_hybrid.stopping import Progress

_ASIDE, _NEAR = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3), 1e-7


@dataclass
class Trail:
    """Remembers the last step of x that was not zero, and the feasible iterate with the least f.

    And, of the feasible iterates that violate a row by more than rounding does, the last
    one whose multipliers balance half of ∇f, or else the one that is nearest to that: from outside
    Newton steps on a tangent row come nearer by half each time, and multipliers keep their sign.

    Args:
        feasibility: the largest violation of a feasible iterate.
    """

    feasibility: float
    step: Vector | None = None
    feasible: Progress | None = None
    beside: Progress | None = None
    x_before: Vector | None = None

    def __call__(self, progress: Progress) -> None:
        """Look at one iterate."""
        x = progress.state.x
        if self.x_before is not None:
            step = x - self.x_before
            if rough_sum(step):
                self.step = step
        self.x_before = x
        if progress.residuals.feasibility <= self.feasibility:
            self._look_beside(progress)
            known = self.feasible
            f = progress.state.carry.at.raw_f
            if known is None or f <= known.state.carry.at.raw_f:
                self.feasible = progress

    def _look_beside(self, progress: Progress) -> None:
        r, known = progress.residuals, self.beside
        carry = progress.state.carry
        if r.feasibility < OUTSIDE * BESIDE or carry.restoration is not None:
            return
        fits = FITS * max(1.0, largest(carry.at.raw_gradient))
        if known is None or r.stationarity <= max(known.residuals.stationarity, fits):
            self.beside = progress


def make_result(
    program: Problem,
    barrier: Barrier,
    outcome: Outcome,
    tolerances: Tolerances,
    x0: Vector,
    trail: Trail,
    why: str,
) -> Result:
    """The best point of a solve with the verdict on it; ``why`` not by the engine in C."""
    best, form = outcome.best, barrier.form
    reason, detail = outcome.reason, outcome.detail
    if reason is StopReason.LOCALLY_INFEASIBLE and trail.feasible is not None:
        # The constraints can be met, so this says nothing of them.
        best, reason = trail.feasible, StopReason.STALLED
        detail = f"the iterates left the feasible points and found no way back ({detail})"
    if best is None or not isinstance(best.state.carry, Iterate):
        # No function is defined at the first iterate, which lies inside the bounds.
        error = outcome.error or EvaluationError("a function of the problem", "", np.nan)
        return undefined_result(program, form.bounds, form.evaluator.p, x0, tolerances, error, why)
    state = best.state
    at = state.carry.at
    lam_x, lam_g = barrier.multipliers(state)
    feasible = best.residuals.feasibility <= tolerances.feasibility
    with np.errstate(over="ignore", invalid="ignore"):
        slope = None if feasible else violation_slope(form, at, state.carry.blame)
    point = _judge(at, best.residuals, tolerances, lam_x, lam_g, slope)
    if reason is StopReason.UNBOUNDED:
        # The ray is the proof: far out f may fall ever more slowly, and rounding be a violation.
        point = PointStatus.FEASIBLE_NOT_STATIONARY
    beside = None
    size = max(largest(lam_x), largest(lam_g))
    # The last steps may have thrown the multipliers off: that they are huge is sign enough.
    lost = reason is StopReason.STALLED and point is PointStatus.FEASIBLE_NOT_STATIONARY
    lost = lost and size > HUGE_MULTIPLIER * max(1.0, largest(at.raw_gradient))
    if lost or point is PointStatus.FRITZ_JOHN_POINT:
        if trail.beside is None:
            beside = _aside(form, at)
        else:
            near = trail.beside.state
            beside = near.x, WarmStart(*barrier.multipliers(near))
    return Result(
        x=at.x,
        f=at.raw_f,
        g=at.raw_g,
        bounds=form.bounds,
        lam_x=lam_x,
        lam_g=lam_g,
        residuals=best.residuals,
        stop=agreed(reason, point),
        point=point,
        detail=detail,
        error=outcome.error or (None if point is PointStatus.KKT_POINT else form.undefined),
        certificate=slope,
        start=form.at_start,
        end=Linearization(at.x, at.raw_gradient, at.raw_J),
        step=trail.step,
        beside=beside,
        iterations=outcome.iterations,
        evaluations=dict(form.evaluator.counts),
        seconds=dict(form.evaluator.seconds),
        elapsed=outcome.elapsed,
        tolerances=tolerances,
        method=barrier.label,
        engine_note=why,
        kernel="lapack" if form.dense else "feral",
        **context_of(program, x0, form.evaluator.p),
    )


def _aside(form: StandardForm, at: Point) -> tuple[Vector, WarmStart] | None:
    """A point a little down the slope of f at which a row is violated, but within tolerance.

    Iterates that began where no multipliers exist have never been anywhere else.
    """
    bounds = form.bounds
    direction = -at.gradient / max(largest(at.gradient), 1e-300)
    for length in _ASIDE:
        try:
            trial = form.point_or_none(at.w + length * direction)
        except (EvaluationError, OutOfTimeError):
            return None
        if trial is None:
            return None
        violation = largest(violations(trial.raw_g, bounds.lbg, bounds.ubg))
        if violation >= OUTSIDE * BESIDE:
            none = WarmStart(np.zeros_like(at.x), np.zeros_like(at.raw_g))
            return None if violation > _NEAR else (trial.x, none)
    return None


def agreed(reason: StopReason, point: PointStatus) -> StopReason:
    """The reason as far as the point bears it out."""
    if reason is StopReason.LOCALLY_INFEASIBLE and point is not PointStatus.INFEASIBLE_STATIONARY:
        return StopReason.STALLED
    if reason is not StopReason.STALLED:
        return reason
    if point is PointStatus.KKT_POINT:
        return StopReason.CONVERGED  # no further progress was needed
    return StopReason.NO_MULTIPLIERS if point is PointStatus.FRITZ_JOHN_POINT else reason


def context_of(program: Problem, x0: Vector, p: Vector) -> dict[str, Any]:
    """What a result says of its problem."""
    names = program.functions
    remarks = []
    if names.lacking:
        remarks.append(f"there are no second derivatives to rely on: {names.lacking}")
    if names.differenced:
        remarks.append(
            "first derivatives are finite differences, so residuals are known no better than "
            "these: about 1e-8 of the size of what is differenced"
        )
    return {
        "hessian": names.hessian,
        "remarks": tuple(remarks),
        "problem": program.name,
        "constraint_names": names.constraint_names,
        "variable_names": names.variable_names,
        "patterns": names.patterns,
        "x0": x0,
        "p": p,
    }


def _judge(
    at: Point,
    r: Residuals,
    tolerances: Tolerances,
    lam_x: Vector,
    lam_g: Vector,
    slope: float | None,
) -> PointStatus:
    if tolerances.merit(r) <= 1:
        return PointStatus.KKT_POINT
    if r.feasibility <= tolerances.feasibility:
        # Multipliers without bound whose pull on x vanishes: constraints degenerate here.
        size = float(np.sqrt(lam_x @ lam_x + lam_g @ lam_g))
        pull = float(np.linalg.norm(at.raw_J.T @ lam_g + lam_x))
        degenerate = size > 1e3 and pull <= 1e-2 * size
        return PointStatus.FRITZ_JOHN_POINT if degenerate else PointStatus.FEASIBLE_NOT_STATIONARY
    if slope is not None and slope <= STATIONARY_VIOLATION:
        return PointStatus.INFEASIBLE_STATIONARY
    stationary = max(r.stationarity, r.complementarity) <= tolerances.stationarity
    return PointStatus.STATIONARY_NOT_FEASIBLE if stationary else PointStatus.NOT_CONVERGED


def undefined_result(
    program: Problem,
    bounds: Bounds,
    p: Vector,
    x0: Vector,
    tolerances: Tolerances,
    error: EvaluationError,
    why: str,
) -> Result:
    """The result where no iterate could be evaluated: x where that was tried, nothing known."""
    return Result(
        x=x0 if error.x is None else error.x,
        f=np.nan,
        g=np.full(program.m, np.nan),
        bounds=bounds,
        lam_x=np.zeros(program.n),
        lam_g=np.zeros(program.m),
        residuals=Residuals(np.inf, np.inf, np.inf),
        stop=StopReason.EVALUATION_ERROR,
        point=PointStatus.UNDEFINED,
        detail=f"iteration 0: {error}",
        error=error,
        iterations=0,
        evaluations={},
        elapsed=0.0,
        tolerances=tolerances,
        method=Barrier.label,
        engine_note=why,
        **context_of(program, x0, p),
    )
