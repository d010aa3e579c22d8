"""One solve of a nonlinear program: standard form, barrier iteration, the common loop, result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from casadi_hybrid.errors import EvaluationError
from casadi_hybrid.inputs import Vector
from casadi_hybrid.iterations.base import Start
from casadi_hybrid.loop import Outcome, iterate
from casadi_hybrid.nlp.barrier import Barrier
from casadi_hybrid.nlp.iterate import Settings
from casadi_hybrid.nlp.program import Program
from casadi_hybrid.nlp.residuals import violations
from casadi_hybrid.nlp.standard import Bounds, Point, StandardForm
from casadi_hybrid.oracle import Oracle
from casadi_hybrid.residuals import Residuals, Tolerances
from casadi_hybrid.status import PointStatus, StopReason
from casadi_hybrid.stopping import KKTTest, LimitTest, Progress, StoppingTest


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Limits and tolerances of a solve.

    Args:
        tol: scaled optimality error at which the solve may end (IPOPT's ``tol``).
        residual_tol: what the unscaled KKT residuals have to meet as well.
        max_iter: steps.
        max_time: wall-clock seconds.
    """

    tol: float = 1e-8
    residual_tol: float = 1e-6
    max_iter: int = 3000
    max_time: float = np.inf

    @property
    def tolerances(self) -> Tolerances:
        """The residual tolerance for each of the three residuals."""
        return Tolerances(self.residual_tol, self.residual_tol, self.residual_tol)


@dataclass(frozen=True, eq=False)
class NlpResult:
    """The best point of a solve. Sign: L = f + lam_gᵀg + lam_xᵀx.

    Attributes:
        x, f, g, lam_x, lam_g: the point and its multipliers; a multiplier is positive at an
            active upper bound and negative at an active lower one.
        residuals: feasibility, stationarity and complementarity, unscaled.
        stop, point, detail: why the solve stopped, what the point is, particulars.
        iterations, evaluations, elapsed: cost.
    """

    x: Vector
    f: float
    g: Vector
    lam_x: Vector
    lam_g: Vector
    residuals: Residuals
    stop: StopReason
    point: PointStatus
    detail: str
    iterations: int
    evaluations: Mapping[str, int] = field(repr=False)
    elapsed: float
    tolerances: Tolerances = field(repr=False)

    @property
    def success(self) -> bool:
        """Whether x is a KKT point within tolerance."""
        return self.point is PointStatus.KKT_POINT


def solve_program(
    program: Program,
    x0: Vector,
    p: Vector,
    bounds: Bounds,
    options: SolveOptions,
    *,
    warm: tuple[Vector, Vector] | None = None,
    observers: Sequence[Callable[[Progress], None]] = (),
    tests: Sequence[StoppingTest] = (),
) -> NlpResult:
    """Solve from x0 by the barrier iteration.

    Args:
        program: the problem.
        x0, p, bounds: checked numbers of the right sizes.
        options: limits and tolerances.
        warm: (lam_x0, lam_g0) of a solution nearby. The active set they name is tried first by
            Newton steps from x0 (the hot mode); where that does not solve, the cold solve runs.
        observers, tests: further observers and stopping tests of the loop; the progress' ``at``
            is a :class:`~casadi_hybrid.nlp.standard.Point`.
    """
    tolerances = options.tolerances
    try:
        form = StandardForm(program, bounds, p, x0)
    except EvaluationError as error:
        return _undefined(program, x0, options, error)
    barrier = Barrier(form, Settings(tol=options.tol, tolerances=tolerances), warm)
    outcome = iterate(
        Oracle(program.functions, p),
        barrier,
        Start(x0, np.zeros(program.m)),
        [KKTTest(tolerances), *tests, LimitTest(options.max_iter, options.max_time)],
        tolerances,
        observers,
    )
    return _result(program, barrier, outcome, options, x0)


def _result(
    program: Program, barrier: Barrier, outcome: Outcome, options: SolveOptions, x0: Vector
) -> NlpResult:
    best = outcome.best
    if best is None:
        error = EvaluationError("a function of the problem", "", np.nan)
        return _undefined(program, x0, options, error)
    state = best.state
    at = state.carry.at
    lam_x, lam_g = barrier.multipliers(state)
    return NlpResult(
        x=at.x,
        f=at.raw_f,
        g=at.raw_g,
        lam_x=lam_x,
        lam_g=lam_g,
        residuals=best.residuals,
        stop=outcome.reason,
        point=_judge(barrier, at, best.residuals, options.tolerances),
        detail=outcome.detail,
        iterations=outcome.iterations,
        evaluations=dict(barrier.form.evaluator.counts),
        elapsed=outcome.elapsed,
        tolerances=options.tolerances,
    )


def _judge(barrier: Barrier, at: Point, r: Residuals, tolerances: Tolerances) -> PointStatus:
    if tolerances.merit(r) <= 1:
        return PointStatus.KKT_POINT
    if r.feasibility <= tolerances.feasibility:
        return PointStatus.FEASIBLE_NOT_STATIONARY
    if _violation_is_stationary(barrier.form.bounds, at):
        return PointStatus.INFEASIBLE_STATIONARY
    stationary = max(r.stationarity, r.complementarity) <= tolerances.stationarity
    return PointStatus.STATIONARY_NOT_FEASIBLE if stationary else PointStatus.NOT_CONVERGED


def _violation_is_stationary(bounds: Bounds, at: Point) -> bool:
    """Whether no feasible direction of the box reduces ½‖violation of g‖² to first order."""
    v = violations(at.raw_g, bounds.lbg, bounds.ubg)
    slope = at.raw_J.T @ v
    room = 1e-6 * np.maximum(1.0, np.abs(at.x))
    blocked = ((slope > 0) & (at.x <= bounds.lbx + room)) | (
        (slope < 0) & (at.x >= bounds.ubx - room)
    )
    size = float(np.linalg.norm(v))
    scale = max(1e-6 * float(np.sqrt((at.raw_J**2).sum())), 1e-9)
    return float(np.linalg.norm(np.where(blocked, 0.0, slope))) <= 10.0 * scale * size


def _undefined(
    program: Program, x0: Vector, options: SolveOptions, error: EvaluationError
) -> NlpResult:
    return NlpResult(
        x=x0,
        f=np.nan,
        g=np.full(program.m, np.nan),
        lam_x=np.zeros(program.n),
        lam_g=np.zeros(program.m),
        residuals=Residuals(np.inf, np.inf, np.inf),
        stop=StopReason.EVALUATION_ERROR,
        point=PointStatus.UNDEFINED,
        detail=str(error),
        iterations=0,
        evaluations={},
        elapsed=0.0,
        tolerances=options.tolerances,
    )
