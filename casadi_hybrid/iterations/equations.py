"""The methods for equations alone: one iteration, the loop, and a result; or the core's composite
steps, and none of its other runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np

from casadi_hybrid.basics.errors import Interrupted
from casadi_hybrid.iterations.base import Iteration, Start
from casadi_hybrid.iterations.log import IterationLog
from casadi_hybrid.iterations.loop import Outcome, iterate
from casadi_hybrid.iterations.residuals import judge
from casadi_hybrid.iterations.result import IterationRecorder, IterationResult
from casadi_hybrid.iterations.stopping import (
    CallbackTest,
    DivergenceTest,
    IterationProgress,
    IterationTest,
    KKTTest,
    LimitTest,
)
from casadi_hybrid.point.limits import METHOD_NAMES, Limits
from casadi_hybrid.point.linearization import Linearization
from casadi_hybrid.point.residuals import Tolerances
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.oracle import Oracle
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result.call import Call
from casadi_hybrid.result.result import Result
from casadi_hybrid.session.default import solve_call
from casadi_hybrid.session.run import Session
from casadi_hybrid.session.solve import context_of, unknown_at

_REMEDY = f"use method={METHOD_NAMES[0]!r}"
_LIMITS = Limits(Tolerances(), max_iter=1000, divergence=1e10)


class _ForEquations:
    """A method by its name, which refuses whatever is not an equation in free variables."""

    name = ""

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


@dataclass(frozen=True)
class LookAhead(_ForEquations):
    r"""Composite steps under a trust region, and nothing else, on min f(x, p) s.t. h(x, p) = 0.

    With B = J_h, H = ∇²ₓₓL at the multipliers of least squares, Z spanning ker B and the radius Δ,

        d_y = −(BᵀB + λ)⁺Bᵀh  with ‖d_y‖ ≤ 0.8Δ,
        d_z = −Z(ZᵀHZ + σI)⁻¹Zᵀ(∇f + H d_y)  with ‖d_y + d_z‖ ≤ Δ,

    λ, σ ≥ 0 being the multipliers of the radius (Nocedal and Wright, *Numerical Optimization*, 2nd
    ed., section 18.5). Where both are zero, and σ is not needed for ZᵀHZ + σI ≻ 0, this is the law
    of :mod:`casadi_hybrid.iterations.law` with matrix steps and the look-ahead drive
    (:class:`~casadi_hybrid.iterations.rules.MatrixRule`), which is the Newton–KKT step whatever M
    is. Steps are accepted by f + ν‖h‖₂. Where ‖h‖ stops falling it is reduced alone, until it is a
    tenth or proves stationary. The sources are ``engine/c/trust_region``; f is divided there by
    what makes |∇f(x_0)| at most 100, rows are as they are.

    The Jacobian may have any shape and rank. λ_0 is not needed.
    """

    label: str = "look-ahead"
    name = "look-ahead"
    # The scaled error is not asked for: the residuals decide, as for the others here.
    limits: ClassVar[Limits] = replace(_LIMITS, scaled_tol=1e20)

    def run(self, problem: Problem, call: Call) -> Result:
        """Solve, by second derivatives alone."""
        problem.functions.with_hessian("second")
        result = solve_call(Session(problem, call.limits), call, self.label, alone=True)
        values: dict[str, Any] = {each.name: getattr(result, each.name) for each in fields(result)}
        values |= dict.fromkeys(("mu", "effective_multipliers"), result.lam_g)
        return IterationResult(**values)


@dataclass(frozen=True)
class OnEquations(_ForEquations):
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
