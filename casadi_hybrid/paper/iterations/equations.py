"""The methods for equations alone: one iteration, the loop, and a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np

from casadi_hybrid.paper.iterations.base import Iteration, Start
from casadi_hybrid.paper.iterations.log import IterationLog
from casadi_hybrid.paper.iterations.loop import Outcome, iterate
from casadi_hybrid.paper.iterations.residuals import judge
from casadi_hybrid.paper.iterations.result import IterationRecorder, IterationResult
from casadi_hybrid.paper.iterations.stopping import (
    CallbackTest,
    DivergenceTest,
    IterationProgress,
    IterationTest,
    KKTTest,
    LimitTest,
)
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.point.limits import METHOD_NAMES, Limits
from casadi_hybrid.problem.point.linearization import Linearization
from casadi_hybrid.problem.point.residuals import Tolerances
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.methods import Call
from casadi_hybrid.solver.solve import context_of, unknown_at
from casadi_hybrid.utils.errors import Interrupted

_REMEDY = f"use method={METHOD_NAMES[0]!r}"
_LIMITS = Limits(Tolerances(), max_iter=1000, divergence=1e10)


@dataclass(frozen=True)
class OnEquations:
    """One iteration of the family, or a baseline, on min f(x, p) s.t. h(x, p) = 0.

    A row is an equation where lbg = ubg; h is the row minus that number.
    """

    iteration: Iteration
    name: str

    limits: ClassVar[Limits] = _LIMITS

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
        for i in np.flatnonzero(bounds.lbg < bounds.ubg).tolist():
            return (
                f"{who} takes equations only, but {names.constraint_names[i]!r} is an inequality "
                f"(lbg[{i - m_h}] = {bounds.lbg[i]:g} < ubg[{i - m_h}] = {bounds.ubg[i]:g}); "
                f"{_REMEDY}"
            )
        for side, values in (("lbx", bounds.lbx), ("ubx", bounds.ubx)):
            for i in np.flatnonzero(np.isfinite(values)).tolist():
                return (
                    f"{who} takes equations only, but the variable {names.variable_names[i]!r} has "
                    f"a bound ({side}[{i}] = {values[i]:g}); {_REMEDY}"
                )
        return ""

    def run(self, problem: Problem, call: Call) -> IterationResult:
        """Run the loop and judge its best point."""
        numbers, limits, tolerances = call.numbers, call.limits, call.limits.tolerances
        tests: list[IterationTest] = [] if call.callback is None else [CallbackTest(call.callback)]
        tests += [
            KKTTest(tolerances),
            DivergenceTest(limits.divergence),
            *call.stopping,
            LimitTest(limits.max_iter, limits.max_time),
        ]
        recorder = IterationRecorder()
        observers: list[Callable[[IterationProgress], None]] = (
            [recorder.see] if call.history else []
        )
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
        self,
        problem: Problem,
        call: Call,
        outcome: Outcome,
        oracle: Oracle,
        recorder: IterationRecorder,
    ) -> IterationResult:
        best, numbers = outcome.best, call.numbers
        found = unknown_at(numbers.x0, problem)
        found |= dict.fromkeys(("lam_g", "mu", "effective_multipliers"), numbers.lam_g0)
        if best is not None:
            state, at = best.state, best.at
            found |= {
                "x": state.x, "lam_g": state.multipliers, "mu": state.mu,
                "effective_multipliers": state.effective, "f": at.f,
                "g": at.h + numbers.bounds.lbg, "end": Linearization(state.x, at.gradient, at.B),
                "residuals": best.residuals,
                "point": judge(at, best.residuals, call.limits.tolerances, state.multipliers),
            }  # fmt: skip
        return IterationResult(
            **found,
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


def _settings(part: object, prefix: str = "") -> dict[str, str]:
    """The options of an iteration and of the pieces that it is made of, as text."""
    found: dict[str, str] = {}
    for item in fields(part) if is_dataclass(part) else ():
        value, name = getattr(part, item.name), prefix + item.name
        if is_dataclass(value):
            found |= {name: type(value).__name__, **_settings(value, f"{name}.")}
        elif item.name != "label":
            found[name] = _word(value)
    return found


def _word(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"an array of shape {value.shape}"
    return shorten(str(value), 80)
