"""The solver: a problem, a method and stopping tests, ready for any start and parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.basics.inputs import as_vector, count, is_callable, positive
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.course.history import Recorder
from casadi_hybrid.course.log import IterationLog
from casadi_hybrid.iterations import Iteration, Start
from casadi_hybrid.loop import Outcome, iterate
from casadi_hybrid.methods import make_method
from casadi_hybrid.point.residuals import Residuals, Tolerances, judge
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import EqualityResult
from casadi_hybrid.stopping import (
    CallbackTest,
    DivergenceTest,
    KKTTest,
    LimitTest,
    Progress,
    StoppingTest,
)


@dataclass(frozen=True)
class Limits:
    """When to give up.

    Args:
        max_iter: steps.
        max_time: wall-clock seconds.
        divergence: largest ‖x‖_∞ and ‖μ‖_∞ that still count as an iterate.
    """

    max_iter: int = 1000
    max_time: float = np.inf
    divergence: float = 1e10

    def __post_init__(self) -> None:
        count(self.max_iter, "max_iter")
        if self.max_time != np.inf:
            positive(self.max_time, "max_time")
        positive(self.divergence, "divergence")


class Solver:
    """Solves min f(x, p) s.t. h(x, p) = 0 from any start, by one of the named methods.

    Args:
        problem: the problem.
        method: a name (see :data:`casadi_hybrid.methods.METHODS`) or an iteration object.
            ``"auto"`` needs no tuning and works for any shape and rank; ``result.remarks`` says
            what kind of step was right for the problem, and why.
        tol: tolerance on both residuals, ‖h‖_∞ and ‖∇f + J_hᵀλ‖_∞.
        tol_feasibility, tol_stationarity: each on its own; ``tol`` by default.
        max_iter, max_time, divergence: see :class:`Limits`.
        stopping: further stopping tests, asked after the built-in ones.
        **options: options of the method.

    Raises:
        InputError: for an unknown method or option, or a value out of range.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x", 2)
        >>> problem = Problem(x=x, f=x[0] * x[1], h=ca.vertcat(x[0] - 1, x[1] - 2, x[0] + x[1] - 3))
        >>> result = Solver(problem, "closed-form").solve(x0=[0.9, 2.2])
        >>> result.success, result.x.round(6).tolist()
        (True, [1.0, 2.0])
    """

    def __init__(
        self,
        problem: Problem,
        method: str | Iteration = "auto",
        *,
        tol: float = 1e-8,
        tol_feasibility: float | None = None,
        tol_stationarity: float | None = None,
        max_iter: int = 1000,
        max_time: float = np.inf,
        divergence: float = 1e10,
        stopping: Sequence[StoppingTest] = (),
        **options: Any,
    ) -> None:
        if not isinstance(problem, Problem):
            raise InputError(f"problem must be a Problem, got {type(problem).__name__}")
        positive(tol, "tol")
        self.problem = problem
        self.iteration = make_method(method, options)
        word = method if isinstance(method, str) else self.iteration.label
        refuse_other_than_equations(problem, word)
        self.tolerances = Tolerances(
            tol if tol_feasibility is None else tol_feasibility,
            tol if tol_stationarity is None else tol_stationarity,
        )
        self.limits = Limits(max_iter, max_time, divergence)
        self.stopping = tuple(stopping)
        for i, test in enumerate(self.stopping):
            is_callable(test, f"stopping[{i}]")

    def solve(
        self,
        x0: Any,
        p: Any = None,
        lam_g0: Any = 0.0,
        *,
        x_prev: Any = None,
        callback: Callable[[Progress], bool | None] | None = None,
        history: bool = False,
        log: bool | int = False,
    ) -> EqualityResult:
        """Solve from a start.

        Args:
            x0: start, n numbers (one number is repeated).
            p: parameter values; needed when the problem has parameters.
            lam_g0: start of the multipliers, m numbers.
            x_prev: x_{−1}, for methods with memory; x0 by default.
            callback: called with the :class:`~casadi_hybrid.stopping.Progress` of every
                iterate; return True to stop.
            history: record every iterate and decision (the m×m corrections too: for long runs of
                large problems collect what you need in a callback instead).
            log: print an iteration log; a number prints every so many iterations.

        Returns:
            An :class:`~casadi_hybrid.EqualityResult`, also when the solve does not converge.

        Raises:
            InputError: for a wrong shape or non-finite input, before any evaluation.
        """
        problem = self.problem
        start = Start(
            as_vector(x0, problem.n, "x0"),
            as_vector(lam_g0, problem.m, "lam_g0"),
            None if x_prev is None else as_vector(x_prev, problem.n, "x_prev"),
        )
        if p is None and problem.n_p:
            raise InputError(f"p is missing; the problem has {problem.n_p} parameter(s)")
        values = as_vector([] if p is None else p, problem.n_p, "p")
        if callback is not None:
            is_callable(callback, "callback")
        every = int(log) if isinstance(log, bool) else count(log, "log")
        limits = self.limits
        tests: list[StoppingTest] = [] if callback is None else [CallbackTest(callback)]
        tests += [
            KKTTest(self.tolerances),
            DivergenceTest(limits.divergence),
            *self.stopping,
            LimitTest(limits.max_iter, limits.max_time),
        ]
        recorder = Recorder()
        observers: list[Callable[[Progress], None]] = [recorder] if history else []
        if every:
            observers.append(IterationLog(every=every))
        oracle = Oracle(problem.functions, values)
        outcome = iterate(oracle, self.iteration, start, tests, self.tolerances, observers)
        return self._result(start, outcome, oracle, recorder if history else None)

    def _result(
        self, start: Start, outcome: Outcome, oracle: Oracle, recorder: Recorder | None
    ) -> EqualityResult:
        best = outcome.best
        functions = self.problem.functions
        if best is None:
            x = start.x0
            multipliers = mu = effective = start.multipliers
            f, h = np.nan, np.full(self.problem.m, np.nan)
            residuals = Residuals(np.inf, np.inf)
            point = PointStatus.UNDEFINED
        else:
            state, at = best.state, best.at
            x, multipliers, mu, effective = state.x, state.multipliers, state.mu, state.effective
            f, h, residuals = at.f, at.h, best.residuals
            point = judge(at, residuals, self.tolerances, multipliers)
        return EqualityResult(
            x=x,
            lam_g=multipliers,
            mu=mu,
            effective_multipliers=effective,
            f=f,
            g=h,
            residuals=residuals,
            stop=outcome.reason,
            point=point,
            detail=self._detail(outcome),
            error=outcome.error,
            remarks=self._remarks(outcome, oracle),
            iterations=outcome.iterations,
            evaluations=dict(oracle.counts),
            elapsed=outcome.elapsed,
            tolerances=self.tolerances,
            method=self.iteration.label,
            problem=self.problem.name,
            constraint_names=functions.constraint_names,
            variable_names=functions.variable_names,
            x0=start.x0,
            p=oracle.p,
            history=None if recorder is None or not recorder.rows else recorder.history(),
        )

    def _detail(self, outcome: Outcome) -> str:
        if outcome.reason is not StopReason.LOCALLY_INFEASIBLE or outcome.last is None:
            return outcome.detail
        h = outcome.last.at.h
        names = self.problem.functions.constraint_names
        worst = [i for i in np.argsort(-np.abs(h))[:3] if h[i] != 0.0]
        largest = ", ".join(f"{names[i]} = {h[i]:.3g}" for i in worst)
        return f"{outcome.detail}; largest: {largest}"

    def _remarks(self, outcome: Outcome, oracle: Oracle) -> tuple[str, ...]:
        last = outcome.last
        if last is None or last.state.t < outcome.iterations:
            return ()
        return self.iteration.remarks(oracle, last.state, last.at)


def refuse_other_than_equations(problem: Problem, method: str) -> None:
    """Refuse a problem whose default bounds make other constraints than c = 0.

    Raises:
        InputError: naming the method and the constraint or variable.
    """
    if not problem.m:
        raise InputError(
            f"h is empty; method {method!r} corrects constraints, so give at least one "
            "(an unconstrained problem is for nlpsol)"
        )
    bounds = problem.bounds
    only = f"method {method!r} takes equations only"
    for i, name in enumerate(problem.constraint_names or ()):
        low, high, row = bounds.lbg[i], bounds.ubg[i], i - problem.m_h
        if low < high:
            raise InputError(
                f"{only}, but {name!r} is an inequality (lbg[{row}] = {low:g} < ubg[{row}] = "
                f"{high:g}); nlpsol takes both"
            )
        if low != 0.0:
            raise InputError(f"{only}, h = 0, but {name!r} has to be {low:g}; write it as h")
    for i, name in enumerate(problem.variable_names or ()):
        for label, values in (("lbx", bounds.lbx), ("ubx", bounds.ubx)):
            if np.isfinite(values[i]):
                raise InputError(
                    f"{only}, but the variable {name!r} has a bound ({label}[{i}] = "
                    f"{values[i]:g}); nlpsol takes both"
                )
