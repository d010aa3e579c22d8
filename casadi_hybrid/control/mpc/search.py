"""Solves of a predictive controller: from the last plan, within the deadline, and judged."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.mpc import step as words
from casadi_hybrid.control.mpc.plan import Ended, Plan, transferred
from casadi_hybrid.control.mpc.problem import Problem, in_words, soft_names, softened, violated
from casadi_hybrid.control.transcription.limits import Limits
from casadi_hybrid.control.transcription.program import Program
from casadi_hybrid.control.transcription.terms import Soft
from casadi_hybrid.solver.nlpsol.runner import SolveError
from casadi_hybrid.solver.result import Result
from casadi_hybrid.utils.arrays import all_finite, changed
from casadi_hybrid.utils.matrices import Buffered
from casadi_hybrid.utils.status import StopReason

_RESIDUALS = ("feasibility", "stationarity", "complementarity")
_WORDS = {
    StopReason.TIME_LIMIT: "the deadline came before the solution",
    StopReason.ITERATION_LIMIT: "the iterations were used up before the solution",
}


@dataclass(frozen=True)
class Request:
    """Arguments of a solve."""

    program: Program
    state: Any = None  # None: the declared state, and no earlier plan
    at: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    far: Mapping[str, float] = field(default_factory=dict)  # excess over hard limits
    before: Plan | None = None  # start of the solve, if it lasts until now
    until: float = np.inf  # of time.perf_counter; no evaluation begins later
    reserve: float = 0.0  # seconds before `until` that are left for the work after the solver
    iterations: int | None = None  # limit of a solve that begins at a plan


@dataclass(frozen=True)
class Outcome:
    """Outcome of a solve, or of the step that it answers."""

    plan: Plan | None = None  # the returned point
    usable: bool = False  # all rows and bounds within the tolerance
    solved: bool = False  # usable, and a solution
    infeasible: bool = False  # the solver found the problem infeasible
    lasting: bool = False  # the next solve should begin there
    unfinished: bool = False  # time or iterations ran out; the problem may be feasible
    reason: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)  # fields of the record
    # Of the step that it answers, see Step; else empty.
    status: str = ""
    violated: Mapping[str, float] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """The largest KKT residual at the returned point."""
        return max(float(self.report[name]) for name in _RESIDUALS)


class Search:
    """Solves of one problem; a point may violate it by the tolerance, in scaled units."""

    def __init__(self, problem: Problem, tolerance: float, limits: Limits) -> None:
        self.problem, self.tolerance, self._limits = problem, tolerance, limits
        self._solver = problem.solver
        program, nlp = problem.program, problem.program.nlp
        self._rows = Buffered(ca.Function("rows", [nlp["x"], nlp["p"]], [ca.densify(nlp["g"])]))
        self._block_of: dict[str, Any] = {}  # index of the block of each entry
        for key, lower, *_, blocks in program.sides(program.lbx, program.lbg):
            self._block_of[key] = np.zeros(lower.size, dtype=int)
            for k, block in enumerate(blocks.values()):
                self._block_of[key][block.where] = k

    @property
    def zeros(self) -> dict[str, float]:
        """Zeros for the references that each step has to give."""
        return dict.fromkeys(self.problem.nominal.lacking(self.problem.stated), 0.0)

    def program(self, state: Array, time: float, parameters: Mapping[str, Any]) -> Program:
        """Return the program with the values of a step, its start aside."""
        return self._limits.put_into(self.problem.with_numbers(state, time, parameters))

    def first_solves(self, until: float) -> Outcome:
        """Solve from the declared start, then from the answer; return the first outcome."""
        request = Request(self.problem.numbers(**self.zeros), parameters=self.zeros, until=until)
        outcome = self.run(request)
        plan = outcome.plan
        if plan is not None:
            later = float(plan.times[1])
            self.run(replace(request, state=plan.state(later), at=later, before=plan))
        return outcome

    def run(self, request: Request) -> Outcome:
        """Solve, from an earlier plan if it lasts until now."""
        warm = request.before is not None and request.before.covers(request.at)
        report: dict[str, Any] = {"warm": warm, "iterations": 0}
        try:
            start = self._start(request, warm)
            # The solver gets what is left after the start values have been computed.
            left = request.until - request.reserve - clock.perf_counter()
            if left <= 0.0:
                slow = ", ".join(name for name, v in request.parameters.items() if callable(v))
                cause = f"; a step asks {slow} at every grid point" if slow else ""
                reason = f"no time was left for the solver{cause}"
                return Outcome(unfinished=True, reason=reason, report=report)
            arguments = {**request.program.arguments, **start}
            result = self._solver.within(left, request.iterations if warm else None, **arguments)
        except SolveError:
            reason = "the deadline came before there was a point"
            return Outcome(unfinished=True, reason=reason, report=report)
        except Exception as error:  # noqa: BLE001, a controller goes on, and says so
            return Outcome(reason=_failure(error), report=report)
        return self._judged(request, result, report)

    def _start(self, request: Request, warm: bool) -> dict[str, Array]:
        if not warm or request.before is None or request.state is None:
            program = self.problem.numbers(request.state, time=request.at, **request.parameters)
            return {"x0": program.x0}
        plan = transferred(request.before, self.problem)
        start = plan.moved(request.at)
        # With the measured state in place of the predicted one the start meets its rows.
        return {**start, "x0": plan.begun(start["x0"], request.state)}

    def _judged(self, request: Request, result: Result, report: dict[str, Any]) -> Outcome:
        residuals, x, success = result.residuals, np.array(result.x), result.success
        report |= {
            "iterations": result.iterations,
            "engine": result.engine,
            "kernel": result.kernel,
            "feasibility": residuals.feasibility,
            "stationarity": residuals.stationarity,
            "complementarity": residuals.complementarity,
            "objective": float(result.f),
        }
        reasons = [] if success else [_reason(result)]
        if not all(map(all_finite, (x, result.lam_x, result.lam_g))):
            reason = "; ".join([*reasons, "its point is not finite"])
            return Outcome(infeasible=result.infeasible, reason=reason, report=report)
        multipliers = np.array(result.lam_x), np.array(result.lam_g)
        stop, point, f = result.stop, result.point, report["objective"]
        ended = Ended(success, stop, point, result.iterations, result.engine, result.kernel)
        plan = Plan(self.problem, request.program, x, *multipliers, request.at, f, ended)
        usable = False
        if clock.perf_counter() < request.until - request.reserve / 2:  # half is for later work
            try:
                g = self._rows(x, request.program.p)
            except Exception as error:  # noqa: BLE001
                return Outcome(infeasible=result.infeasible, reason=_failure(error), report=report)
            report |= self._checked(request.program, x, g)
            usable = report["violation"] <= self.tolerance
            # An untouched start is feasible for the predicted state, not for the measured one.
            if stop is StopReason.ITERATION_LIMIT and np.array_equal(x, result.x0):
                usable = False  # the plan of another measurement
                reasons.append("no step was found")
            elif not usable:
                reasons.append(f"its point violates the problem by {report['violation']:.1e}")
        else:
            reasons.append("no time was left to check its point")
        unfinished = stop in (StopReason.TIME_LIMIT, StopReason.ITERATION_LIMIT)
        if unfinished and not usable:
            # The next solve goes on at the last iterate, not at the best one.
            x, lam_x, lam_g = map(np.array, result.last.values())
            plan = replace(plan, x=x, lam_x=lam_x, lam_g=lam_g)
        return Outcome(
            plan,
            usable,
            solved=usable and success,
            infeasible=result.infeasible,
            lasting=usable or success or unfinished,
            unfinished=unfinished,
            reason="; ".join(reasons),
            report=report,
        )

    def _checked(self, program: Program, x: Array, g: Array) -> dict[str, Any]:
        """Return the largest violation in scaled units (NaN for NaN), and the active limits."""
        worst, count, tolerance = 0.0, 0, self.tolerance
        names: list[str] = []
        for key, values, lower, upper, blocks in (
            ("x", x, program.lbx, program.ubx, program.variables),
            ("g", g, program.lbg, program.ubg, program.constraints),
        ):
            worst = max(worst, np.maximum(lower - values, values - upper).max(initial=0.0))
            at_limit = (values <= lower + tolerance) | (values >= upper - tolerance)
            # Equations are always active; only inequalities count.
            indices = self._block_of[key][at_limit & (lower < upper)]
            active = np.zeros(len(blocks), dtype=bool)
            active[indices] = True
            count, names = count + indices.size, [*names, *compress(blocks, active.tolist())]
        worst = float(worst) if all_finite(g) else np.nan
        return {"violation": worst, "active": count, "active_names": tuple(names)}


class Answers:
    """Solves a problem, and the softened one if limits cannot be kept."""

    def __init__(self, ocp: Problem, soft: Soft | None, tolerance: float) -> None:
        self.limits = Limits(ocp.nominal, ocp.prefixed)
        self.search = Search(ocp, tolerance, self.limits)
        self._soft = soft
        self.reset()

    def reset(self) -> None:
        """Forget the outcomes of the steps before."""
        # True: limits could not be kept a step before, so the softened problem comes first.
        # Another proof of infeasibility may take all the time.
        self._strained = False

    @cached_property
    def aid(self) -> Search | None:
        """Search of the softened problem, made at its first use; None without one."""
        if self._soft is None:
            return None
        other = softened(self.search.problem, self._soft)
        return Search(other, self.search.tolerance, self.limits)

    def turn(self) -> None:
        """Solve the other problem first in the next step, as this one makes no progress."""
        self._strained = not self._strained

    def answer(self, request: Request) -> list[Outcome]:
        """Return the outcomes of the solves of a step; the last one is the answer."""
        relaxed = None
        if self._soft is not None and (request.far or self._strained):
            reason = "a step before no plan was found that keeps all limits"
            if request.far:
                far = in_words(request.far, self.search.problem.nominal)
                reason = f"the state is outside its limits ({far})"
            relaxed = self._solve_softened(request, reason)
            hard = relaxed.violated.keys() - soft_names(self.search.problem)
            # A softened plan that keeps all hard limits is only the start of the hard solve.
            if hard or request.far:
                if relaxed.status:
                    self._strained = not hard <= request.far.keys()
                return [relaxed]
        return self._solve_hard(request, relaxed)

    def _solve_hard(self, request: Request, relaxed: Outcome | None) -> list[Outcome]:
        """Solve with all limits; return the softened answer if that fails."""
        solves = [] if relaxed is None else [relaxed]
        if relaxed is not None and relaxed.status:
            request = replace(request, before=relaxed.plan)
        outcome = self.search.run(request)
        # Without a feasible point any point within the tolerance would do, however bad.
        infeasible = outcome.infeasible and self._soft is not None
        if outcome.usable and not infeasible:
            self._strained = False
            status = words.SOLVED if outcome.solved else words.FEASIBLE
            return [*solves, changed(outcome, status=status)]
        # If neither problem has a plan yet they take turns.
        if relaxed is None:
            # A solve that was cut short proves nothing and goes on in the next step.
            self._strained = not outcome.unfinished
            if infeasible:
                relaxed = self._solve_softened(request, outcome.reason)
                solves = [relaxed]
        else:
            self._strained = bool(relaxed.status) or relaxed.unfinished
        if relaxed is not None and relaxed.status:
            return [outcome, relaxed]
        status = words.FEASIBLE if outcome.usable else ""
        reason = outcome.reason if relaxed is None else relaxed.reason
        return [*solves, replace(outcome, status=status, reason=reason)]

    def _solve_softened(self, request: Request, reason: str) -> Outcome:
        """Solve with limits that may be exceeded at a penalty."""
        aid = self.aid
        assert aid is not None
        program = aid.program(request.state, request.at, request.parameters)
        outcome = aid.run(replace(request, program=program))
        reason += f"; the softened problem: {outcome.reason}" if outcome.reason else ""
        if not outcome.usable or outcome.plan is None:
            return replace(outcome, reason=reason)
        excess = violated(aid.problem, program, outcome.plan.x, aid.tolerance)
        reason += f"; limits exceeded: {in_words(excess, aid.problem.nominal)}" if excess else ""
        return replace(outcome, status=words.SOFTENED, reason=reason, violated=excess)


def _reason(result: Result) -> str:
    error = result.error
    if result.stop in _WORDS:
        return _WORDS[result.stop]
    if error is not None and error.__cause__ is not None:
        return _failure(error)
    detail = f" ({result.detail})" if result.detail else ""
    return f"the solver failed: {result.stop.value}{detail}"


def _failure(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__} in a solve: {text[-1] if text else 'no message'}"
