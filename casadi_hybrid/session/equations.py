"""The methods for equations alone: one iteration, the loop, and a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np

from casadi_hybrid.basics.errors import Interrupted
from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.iterations import Iteration, Start
from casadi_hybrid.iterations.log import IterationLog
from casadi_hybrid.iterations.loop import Outcome, iterate
from casadi_hybrid.iterations.stopping import (
    CallbackTest,
    DivergenceTest,
    KKTTest,
    LimitTest,
    Progress,
    StoppingTest,
)
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.linearization import Linearization
from casadi_hybrid.point.residuals import Residuals, Tolerances, judge
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result.call import Call
from casadi_hybrid.result.history import Recorder
from casadi_hybrid.result.result import Result

_REMEDY = "use method='auto'"


@dataclass(frozen=True)
class OnEquations:
    """One iteration of the family, or a baseline, on min f(x, p) s.t. h(x, p) = 0.

    A row is an equation where lbg = ubg; h is the row minus that number.
    """

    iteration: Iteration
    name: str = ""

    limits: ClassVar[Limits] = Limits(Tolerances(1e-8, 1e-8, 1e-8), max_iter=1000, divergence=1e10)

    @property
    def label(self) -> str:
        """That of the iteration."""
        return self.iteration.label

    def refusal(self, problem: Problem, bounds: Bounds) -> str:
        """Whatever is not an equation in free variables."""
        who = f"method {self.name or self.label!r}"
        names, m_h = problem.functions, problem.m_h
        if not problem.m:
            return f"h is empty; {who} corrects constraints: give at least one, or {_REMEDY}"
        rows = np.flatnonzero(bounds.lbg < bounds.ubg)
        if rows.size:
            i = int(rows[0])
            return (
                f"{who} takes equations only, but {names.constraint_names[i]!r} is an inequality "
                f"(lbg[{i - m_h}] = {bounds.lbg[i]:g} < ubg[{i - m_h}] = {bounds.ubg[i]:g}); "
                f"{_REMEDY}"
            )
        for side, values in (("lbx", bounds.lbx), ("ubx", bounds.ubx)):
            bounded = np.flatnonzero(np.isfinite(values))
            if bounded.size:
                i = int(bounded[0])
                return (
                    f"{who} takes equations only, but the variable {names.variable_names[i]!r} has "
                    f"a bound ({side}[{i}] = {values[i]:g}); {_REMEDY}"
                )
        return ""

    def run(self, problem: Problem, call: Call) -> Result:
        """Run the loop and judge its best point."""
        numbers, limits, tolerances = call.numbers, call.limits, call.limits.tolerances
        tests: list[StoppingTest] = [] if call.callback is None else [CallbackTest(call.callback)]
        tests += [
            KKTTest(tolerances),
            DivergenceTest(limits.divergence),
            *call.stopping,
            LimitTest(limits.max_iter, limits.max_time),
        ]
        recorder = Recorder()
        observers: list[Callable[[Progress], None]] = [recorder] if call.history else []
        if call.log:
            observers.append(IterationLog(every=call.log))
        oracle = Oracle(problem.functions, numbers.p, numbers.bounds.lbg)
        start = Start(numbers.x0, numbers.lam_g0, call.x_prev)
        try:
            outcome = iterate(oracle, self.iteration, start, tests, tolerances, observers)
        except Interrupted as halt:
            halt.result = self._result(problem, call, halt.result, oracle, recorder)
            raise
        return self._result(problem, call, outcome, oracle, recorder)

    def _result(
        self, problem: Problem, call: Call, outcome: Outcome, oracle: Oracle, recorder: Recorder
    ) -> Result:
        best, numbers = outcome.best, call.numbers
        functions = problem.functions
        if best is None:
            x = numbers.x0
            multipliers = mu = effective = numbers.lam_g0
            f, h, end = np.nan, np.full(problem.m, np.nan), None
            residuals = Residuals(np.inf, np.inf)
            point = PointStatus.UNDEFINED
        else:
            state, at = best.state, best.at
            x, multipliers, mu, effective = state.x, state.multipliers, state.mu, state.effective
            f, h, residuals = at.f, at.h, best.residuals
            end = Linearization(x, at.gradient, at.B)
            point = judge(at, residuals, call.limits.tolerances, multipliers)
        return Result(
            x=x,
            lam_x=np.zeros(problem.n),
            lam_g=multipliers,
            mu=mu,
            effective_multipliers=effective,
            f=f,
            g=h + numbers.bounds.lbg,
            bounds=numbers.bounds,
            end=end,
            residuals=residuals,
            stop=outcome.reason,
            point=point,
            detail=_detail(problem, outcome),
            error=outcome.error,
            remarks=self._remarks(outcome, oracle),
            iterations=outcome.iterations,
            evaluations=dict(oracle.counts),
            elapsed=outcome.elapsed,
            tolerances=call.limits.tolerances,
            method=self.label,
            hessian=oracle.hessian,
            problem=problem.name,
            constraint_names=functions.constraint_names,
            variable_names=functions.variable_names,
            x0=numbers.x0,
            p=numbers.p,
            history=recorder.history() if recorder.rows else None,
            limits=call.limits,
            options=_told(self.iteration),
            patterns=functions.patterns,
        )

    def _remarks(self, outcome: Outcome, oracle: Oracle) -> tuple[str, ...]:
        last = outcome.last
        if last is None or last.state.t < outcome.iterations:
            return ()
        return self.iteration.remarks(oracle, last.state, last.at)


def _told(part: object, prefix: str = "") -> dict[str, str]:
    """The options of an iteration and of the pieces that it is made of, as text."""
    if not is_dataclass(part):
        return {}
    told = {}
    for item in fields(part):
        value = getattr(part, item.name)
        if is_dataclass(value):
            told[prefix + item.name] = type(value).__name__
            told |= _told(value, f"{prefix}{item.name}.")
        elif item.name != "label":
            told[prefix + item.name] = _word(value)
    return told


def _word(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"an array of shape {value.shape}"
    return shorten(str(value), 80)


def _detail(problem: Problem, outcome: Outcome) -> str:
    if outcome.reason is not StopReason.LOCALLY_INFEASIBLE or outcome.last is None:
        return outcome.detail
    h = outcome.last.at.h
    names = problem.functions.constraint_names
    worst = [i for i in np.argsort(-np.abs(h))[:3] if h[i] != 0.0]
    largest = ", ".join(f"{names[i]} = {h[i]:.3g}" for i in worst)
    return f"{outcome.detail}; largest: {largest}"
