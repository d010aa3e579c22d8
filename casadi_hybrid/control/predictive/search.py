"""One solve of a predictive controller: from the last plan, in time, and what became of it."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from casadi_hybrid.basics.status import PointStatus, StopReason
from casadi_hybrid.casadi_api.runner import SolveError
from casadi_hybrid.casadi_api.stats import return_status
from casadi_hybrid.control.predictive.check import Check
from casadi_hybrid.control.predictive.limits import Limits
from casadi_hybrid.control.predictive.plan import Plan, transferred
from casadi_hybrid.control.predictive.problem import Problem
from casadi_hybrid.control.program import Program
from casadi_hybrid.control.signals import Array
from casadi_hybrid.result.result import Result

_LIMITS = (StopReason.TIME_LIMIT, StopReason.ITERATION_LIMIT)
_WORDS = {
    StopReason.TIME_LIMIT: "the deadline came before the solution",
    StopReason.ITERATION_LIMIT: "the iterations were used up before the solution",
}


@dataclass(frozen=True)
class Found:
    """What a solve has come to.

    Attributes:
        plan: the point; None where there is none.
        usable: whether it holds all rows and bounds within the tolerance.
        solved: whether it is a solution too.
        infeasible: whether the solver says that there is no feasible point.
        lasting: whether the next solve should begin there.
        reason: what is wrong with it, in words.
        told: fields of the record.
        stats: of the solution.
    """

    plan: Plan | None = None
    usable: bool = False
    solved: bool = False
    infeasible: bool = False
    lasting: bool = False
    reason: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """The largest residual of the KKT conditions at the point."""
        residuals = ("feasibility", "stationarity", "complementarity")
        return max(float(self.told[name]) for name in residuals)


class Search:
    """Solves of one problem.

    Args:
        problem: its program and solver are made here.
        tolerance: the largest violation of a point that is used, in scaled units.
        limits: those that are not as declared.
    """

    def __init__(self, problem: Problem, tolerance: float, limits: Limits) -> None:
        self.problem, self.tolerance, self._limits = problem, tolerance, limits
        self._solver = problem.solver
        self._check = Check(problem.program)

    def numbers(self, x0: Any, time: float, parameters: Mapping[str, Any]) -> Program:
        """Return the program with the numbers of a step, its start aside.

        Raises:
            InputError: for wrong shapes and unknown names.
        """
        return self._limits.put_into(self.problem.with_numbers(x0, time, parameters))

    def used_once(self, until: float) -> Found:
        """Solve from the declared start, and from what that comes to; return the former.

        Args:
            until: as in :meth:`run`.
        """
        program = self.problem.numbers()
        found = self.run(program, None, 0.0, {}, None, until=until)
        if found.plan is not None:
            later = float(found.plan.times[1])
            self.run(program, found.plan.state(later), later, {}, found.plan, until=until)
        return found

    def run(
        self,
        program: Program,
        x0: Array | None,
        time: float,
        parameters: Mapping[str, Any],
        before: Plan | None,
        *,
        until: float = np.inf,
        reserve: float = 0.0,
        iterations: int | None = None,
    ) -> Found:
        """Solve, from an earlier plan where there is one that lasts until now.

        Args:
            program: of :meth:`numbers`.
            x0, time, parameters: the same numbers; without x0, which takes no earlier plan, the
                declared ones.
            before: the plan to begin at.
            until: moment of ``time.perf_counter`` after which no evaluation begins.
            reserve: seconds of it that the solver leaves.
            iterations: limit of a solve that begins at a plan.
        """
        warm = before is not None and before.covers(time)
        told: dict[str, Any] = {"warm": warm, "iterations": 0}
        try:
            start = self._start(x0, time, parameters, before if warm else None)
            left = until - reserve - clock.perf_counter()
            if left <= 0.0:
                return Found(reason=_late(parameters), told=told)
            arguments = {**program.arguments, **start}
            result = self._solver.within(left, iterations if warm else None, **arguments)
        except SolveError:
            return Found(reason="the deadline came before there was a point", told=told)
        except Exception as error:  # noqa: BLE001, a controller goes on, and says so
            return Found(reason=_failure(error), told=told)
        return self._judged(program, time, result, told, until - reserve / 2)

    def _start(
        self, x0: Array | None, time: float, parameters: Mapping[str, Any], before: Plan | None
    ) -> dict[str, Array]:
        if before is None or x0 is None:
            return {"x0": self.problem.numbers(x0, time=time, **parameters).x0}
        plan = transferred(before, self.problem)
        start = plan.moved(time)
        return {**start, "x0": plan.begun(start["x0"], x0)}

    def _judged(
        self, program: Program, time: float, result: Result, told: dict[str, Any], until: float
    ) -> Found:
        told |= {
            "iterations": result.iterations,
            "engine": result.engine,
            "kernel": result.kernel,
            "objective": float(result.f),
            "feasibility": result.residuals.feasibility,
            "stationarity": result.residuals.stationarity,
            "complementarity": result.residuals.complementarity,
        }
        x = np.array(result.x)
        infeasible = result.point is PointStatus.INFEASIBLE_STATIONARY
        infeasible |= result.stop is StopReason.LOCALLY_INFEASIBLE
        reason = "" if result.success else _why(result)
        if not all(np.isfinite(v).all() for v in (x, result.lam_x, result.lam_g)):
            return Found(infeasible=infeasible, reason=f"{reason}; its point is not finite",
                         told=told)  # fmt: skip
        multipliers = np.array(result.lam_x), np.array(result.lam_g)
        plan = Plan(self.problem, program, x, *multipliers, time, float(result.f))
        usable = False
        if clock.perf_counter() < until:  # which leaves time for what comes after it
            try:
                g = self._check.rows(program, x)
            except Exception as error:  # noqa: BLE001
                return Found(infeasible=infeasible, reason=_failure(error), told=told)
            violation = self._check.largest(program, x, g)
            usable = violation <= self.tolerance
            count, names = self._check.active(program, x, g, self.tolerance)
            told |= {"violation": violation, "active": count, "active_names": tuple(names)}
            if result.stop is StopReason.ITERATION_LIMIT and np.array_equal(x, result.x0):
                usable, reason = False, f"{reason}; no step was found"  # of another measurement
            elif not usable:
                said = f"its point violates the problem by {violation:.1e}"
                reason = f"{reason}; {said}" if reason else said
        else:
            late = "no time was left to check its point"
            reason = f"{reason}; {late}" if reason else late
        return Found(
            plan,
            usable,
            usable and result.success,
            infeasible,
            usable or result.stop in _LIMITS,
            reason,
            told,
            {
                "success": result.success,
                "iter_count": result.iterations,
                "return_status": return_status(result),
                "stop_reason": result.stop.name,
                "point_status": result.point.name,
                "engine": result.engine,
                "kernel": result.kernel,
            },
        )


def _late(parameters: Mapping[str, Any]) -> str:
    asked = [name for name, value in parameters.items() if callable(value)]
    what = f"; a step asks {', '.join(asked)} at every grid point" if asked else ""
    return f"no time was left for the solver{what}"


def _why(result: Result) -> str:
    error = result.error
    if result.stop in _WORDS:
        return _WORDS[result.stop]
    if error is not None and error.__cause__ is not None:
        return _failure(error)
    return f"the solver failed: {result.stop.value}" + (
        f" ({result.detail})" if result.detail else ""
    )


def _failure(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__} in a solve: {text[-1] if text else 'no message'}"
