"""An iteration as a method of the solver, for equations alone."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np

from casadi_hybrid.paper.iterations.base import Iteration, Start
from casadi_hybrid.paper.iterations.loop import Outcome, iterate
from casadi_hybrid.paper.iterations.result import IterationLog, IterationRecorder, IterationResult
from casadi_hybrid.paper.iterations.stopping import IterationProgress, diverged
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.graph.functions import Evaluation
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.point.limits import METHOD_NAMES, Limits
from casadi_hybrid.problem.point.linearization import Linearization
from casadi_hybrid.problem.point.residuals import Residuals, Tolerances
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.methods import Call
from casadi_hybrid.solver.solve import context_of, unknown_at
from casadi_hybrid.utils.arrays import largest
from casadi_hybrid.utils.errors import Interrupted
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.status import PointStatus, StopReason

_REMEDY = f"use method={METHOD_NAMES[0]!r}"


@dataclass(frozen=True)
class OnEquations:
    """One iteration of the family, or a baseline, on min f(x, p) s.t. h(x, p) = 0."""

    iteration: Iteration
    name: str

    limits: ClassVar[Limits] = Limits(Tolerances(), max_iter=1000, divergence=1e10)

    @property
    def label(self) -> str:
        """Label of the iteration."""
        return self.iteration.label

    def refusal(self, problem: Problem, bounds: Bounds) -> str:
        """Reason why this problem is rejected; empty if accepted."""
        who = f"method {self.name!r}"
        names, m_h = problem.functions, problem.m_h
        if not problem.m:
            return f"h is empty; {who} corrects constraints: give at least one, or {_REMEDY}"
        reason = ""
        # A row with lbg = ubg is an equation; h is the row minus this number.
        inequalities = np.flatnonzero(bounds.lbg < bounds.ubg)
        if inequalities.size:
            i = inequalities[0]
            lower, upper = (
                f"lbg[{i - m_h}] = {bounds.lbg[i]:g}",
                f"ubg[{i - m_h}] = {bounds.ubg[i]:g}",
            )
            reason = f"{names.constraint_names[i]!r} is an inequality ({lower} < {upper})"
        for side, values in (("lbx", bounds.lbx), ("ubx", bounds.ubx)):
            bounded = np.flatnonzero(np.isfinite(values))
            if bounded.size and not reason:
                i = bounded[0]
                bound = f"a bound ({side}[{i}] = {values[i]:g})"
                reason = f"the variable {names.variable_names[i]!r} has {bound}"
        return reason and f"{who} takes equations only, but {reason}; {_REMEDY}"

    def run(self, problem: Problem, call: Call) -> IterationResult:
        """Run the loop and judge its best point."""
        numbers, limits = call.numbers, call.limits

        def stop(progress: IterationProgress) -> StopReason | None:
            # First a solution, then failures, last the limits: the reason that says most.
            if call.callback is not None and call.callback(progress):
                return StopReason.STOPPED_BY_USER
            # merit: the largest residual divided by its tolerance.
            if limits.tolerances.merit(progress.residuals) <= 1:
                return StopReason.CONVERGED
            reason = diverged(progress, limits.divergence)
            for test in call.stopping:
                reason = reason or test(progress)
            if reason is None and progress.t >= limits.max_iter:
                reason = StopReason.ITERATION_LIMIT
            if reason is None and progress.elapsed >= limits.max_time:
                reason = StopReason.TIME_LIMIT
            return reason

        recorder = IterationRecorder()
        observers = [recorder.see] if call.history else []
        if call.log:
            observers.append(IterationLog(call.log).see)
        oracle = Oracle(problem.functions, numbers.p, numbers.bounds.lbg)
        start = Start(numbers.x0, numbers.lam_g0, call.x_prev)
        try:
            outcome = iterate(oracle, self.iteration, start, stop, limits.tolerances, observers)
        except Interrupted as halt:
            halt.result = self._result(problem, call, halt.result, oracle, recorder)
            raise
        return self._result(problem, call, outcome, oracle, recorder)

    def _result(
        self,
        problem: Problem,
        call: Call,
        outcome: Outcome,
        oracle: Oracle,
        recorder: IterationRecorder,
    ) -> IterationResult:
        best, numbers, tolerances = outcome.best, call.numbers, call.limits.tolerances
        # Without any evaluated point the result is the start, its functions unknown.
        answer = unknown_at(numbers.x0, problem)
        answer |= dict.fromkeys(("lam_g", "mu", "effective_multipliers"), numbers.lam_g0)
        if best is not None:
            state, at, residuals = best.state, best.at, best.residuals
            answer |= {
                "x": state.x,
                "lam_g": state.multipliers,
                "mu": state.mu,
                "effective_multipliers": state.effective,
                "f": at.f,
                # h was g − lbg.
                "g": at.h + numbers.bounds.lbg,
                "end": Linearization(state.x, at.gradient, at.B),
                "residuals": residuals,
                "point": judge(at, residuals, tolerances, state.multipliers),
            }
        return IterationResult(
            **answer,
            stop=outcome.reason,
            detail=outcome.detail,
            error=outcome.error,
            iterations=outcome.iterations,
            evaluations=dict(oracle.counts),
            elapsed=outcome.elapsed,
            method=self.label,
            hessian=oracle.hessian,
            history=recorder.history() if recorder.rows else None,
            options=_settings(self.iteration),
            **context_of(problem, numbers.x0, numbers.p, numbers.bounds, call.limits),
        )


def judge(
    at: Evaluation, residuals: Residuals, tolerances: Tolerances, multipliers: Vector
) -> PointStatus:
    """Return the status of a point."""
    stationary = residuals.stationarity <= tolerances.stationarity
    if residuals.feasibility <= tolerances.feasibility:
        if stationary:
            return PointStatus.KKT_POINT
        size = float(np.linalg.norm(multipliers))
        pull = float(np.linalg.norm(at.B.T @ multipliers))
        # Fritz John: J_hᵀλ/‖λ‖ ≈ 0 for huge λ, so that ∇f has no part in the limit.
        fritz_john = size > 1e6 and pull <= 1e-5 * size
        return PointStatus.FRITZ_JOHN_POINT if fritz_john else PointStatus.FEASIBLE_NOT_STATIONARY
    if _violation_is_stationary(at):
        return PointStatus.INFEASIBLE_STATIONARY
    return PointStatus.STATIONARY_NOT_FEASIBLE if stationary else PointStatus.NOT_CONVERGED


def _violation_is_stationary(at: Evaluation) -> bool:
    """Return True if ‖J_hᵀh‖ ≤ max(1e-6 ‖J_h‖, 1e-9)·‖h‖: no small step reduces ‖h‖."""
    steepest = largest(at.B.ravel(order="K"))
    if steepest == 0.0:
        return True
    # Scaled to entries of size one: squares of large numbers overflow.
    B, h = at.B / steepest, at.h / max(largest(at.h), 1e-300)
    # The absolute part: J_h may vanish with the slope, as for ‖x‖² + 1 at its least point.
    slope = max(1e-6 * float(np.linalg.norm(B)), 1e-9 / steepest)
    return bool(np.linalg.norm(B.T @ h) <= slope * np.linalg.norm(h))


def _settings(part: object, prefix: str = "") -> dict[str, str]:
    """Return the options of an iteration and of its pieces as text."""
    options: dict[str, str] = {}
    for item in fields(part) if is_dataclass(part) else ():
        value, name = getattr(part, item.name), prefix + item.name
        if is_dataclass(value):
            options |= {name: type(value).__name__, **_settings(value, f"{name}.")}
        elif item.name != "label":
            options[name] = _word(value)
    return options


def _word(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"an array of shape {value.shape}"
    return shorten(str(value), 80)
