"""Solves of a predictive controller: from the last plan, in time, and what a step comes to."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.mpc import step as words
from casadi_hybrid.control.mpc.plan import Plan, transferred
from casadi_hybrid.control.mpc.problem import Problem, prices, said, softened, violated
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
    """Arguments of a solve.

    Attributes:
        program: the problem with the numbers of the step, its start aside.
        state, at, parameters: the same numbers, as measured and given; without a state, which takes
            no earlier plan, the declared ones.
        far: by how much the state exceeds its hard limits, by name.
        before: the plan that the solve begins at, where it lasts until now.
        until: moment of ``time.perf_counter`` after which no evaluation begins.
        reserve: seconds of it that the solver leaves for what comes after it.
        iterations: the most of a solve that begins at a plan, None for no limit.
    """

    program: Program
    state: Any = None
    at: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    far: Mapping[str, float] = field(default_factory=dict)
    before: Plan | None = None
    until: float = np.inf
    reserve: float = 0.0
    iterations: int | None = None


@dataclass(frozen=True)
class Outcome:
    """Outcome of a solve, or of the step that it answers.

    Attributes:
        plan: the point; None where there is none.
        usable: whether it holds all rows and bounds within the tolerance.
        solved: whether it is a solution too.
        infeasible: whether the solver says that there is no feasible point.
        lasting: whether the next solve should begin there.
        unfinished: whether time or iterations ran out, which says nothing of the problem.
        reason: what is wrong with it, in words.
        report: fields of the record.
        status, violated: of the step that it is the answer to, see :class:`Step`; else empty.
    """

    plan: Plan | None = None
    usable: bool = False
    solved: bool = False
    infeasible: bool = False
    lasting: bool = False
    unfinished: bool = False
    reason: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)
    status: str = ""
    violated: Mapping[str, float] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """The largest residual of the KKT conditions at the point."""
        return max(float(self.report[name]) for name in _RESIDUALS)


class Search:
    """Solves of one problem; a point is used up to a violation (tolerance) in scaled units."""

    def __init__(self, problem: Problem, tolerance: float, limits: Limits) -> None:
        self.problem, self.tolerance, self._limits = problem, tolerance, limits
        self._solver = problem.solver
        program, nlp = problem.program, problem.program.nlp
        self._rows = Buffered(ca.Function("rows", [nlp["x"], nlp["p"]], [ca.densify(nlp["g"])]))
        self._block_of: dict[str, Any] = {}  # the number of the block of each entry
        for key, lower, *_, blocks in program.sides(program.lbx, program.lbg):
            self._block_of[key] = np.zeros(lower.size, dtype=int)
            for number, block in enumerate(blocks.values()):
                self._block_of[key][block.where] = number

    @property
    def zeros(self) -> dict[str, float]:
        """Numbers for the references that each step has to give."""
        return dict.fromkeys(self.problem.nominal.lacking(self.problem.stated), 0.0)

    def numbers(self, state: Array, time: float, parameters: Mapping[str, Any]) -> Program:
        """Return the program with the values of a step, its start aside."""
        return self._limits.put_into(self.problem.with_numbers(state, time, parameters))

    def used_once(self, until: float) -> Outcome:
        """Solve from the declared start, and from what that comes to; return the former."""
        given = self.zeros
        request = Request(self.problem.numbers(**given), parameters=given, until=until)
        outcome = self.run(request)
        if outcome.plan is not None:
            later = float(outcome.plan.times[1])
            self.run(
                replace(request, state=outcome.plan.state(later), at=later, before=outcome.plan)
            )
        return outcome

    def run(self, request: Request) -> Outcome:
        """Solve, from an earlier plan where there is one that lasts until now."""
        warm = request.before is not None and request.before.covers(request.at)
        report: dict[str, Any] = {"warm": warm, "iterations": 0}
        try:
            start = self._start(request, warm)
            left = request.until - request.reserve - clock.perf_counter()
            if left <= 0.0:
                slow = ", ".join(name for name, v in request.parameters.items() if callable(v))
                what = f"; a step asks {slow} at every grid point" if slow else ""
                reason = f"no time was left for the solver{what}"
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
            numbers = self.problem.numbers(request.state, time=request.at, **request.parameters)
            return {"x0": numbers.x0}
        plan = transferred(request.before, self.problem)
        start = plan.moved(request.at)
        return {**start, "x0": plan.begun(start["x0"], request.state)}

    def _judged(self, request: Request, result: Result, report: dict[str, Any]) -> Outcome:
        residuals, x, success = result.residuals, np.array(result.x), result.success
        report |= {
            "iterations": result.iterations, "engine": result.engine, "kernel": result.kernel,
            "feasibility": residuals.feasibility, "stationarity": residuals.stationarity,
            "complementarity": residuals.complementarity, "objective": float(result.f),
        }  # fmt: skip
        reasons = [] if success else [_why(result)]
        if not all(map(all_finite, (x, result.lam_x, result.lam_g))):
            reason = "; ".join([*reasons, "its point is not finite"])
            return Outcome(infeasible=result.infeasible, reason=reason, report=report)
        multipliers = np.array(result.lam_x), np.array(result.lam_g)
        ended = SimpleNamespace(
            success=success, iterations=result.iterations, stop=result.stop, point=result.point,
            engine=result.engine, kernel=result.kernel,
        )  # fmt: skip
        at, f = request.at, float(result.f)
        plan = Plan(self.problem, request.program, x, *multipliers, at, f, ended)
        usable = False
        if clock.perf_counter() < request.until - request.reserve / 2:  # for what comes after it
            try:
                g = self._rows(x, request.program.p)
            except Exception as error:  # noqa: BLE001
                return Outcome(infeasible=result.infeasible, reason=_failure(error), report=report)
            report |= self._checked(request.program, x, g)
            usable = report["violation"] <= self.tolerance
            if result.stop is StopReason.ITERATION_LIMIT and np.array_equal(x, result.x0):
                usable = False  # of another measurement
                reasons.append("no step was found")
            elif not usable:
                reasons.append(f"its point violates the problem by {report['violation']:.1e}")
        else:
            reasons.append("no time was left to check its point")
        unfinished = result.stop in (StopReason.TIME_LIMIT, StopReason.ITERATION_LIMIT)
        if unfinished and not usable:
            x, lam_x, lam_g = map(np.array, result.last.values())
            plan = replace(plan, x=x, lam_x=lam_x, lam_g=lam_g)
        lasting = usable or success or unfinished
        return Outcome(plan, usable, usable and success, result.infeasible, lasting,
                     unfinished, "; ".join(reasons), report)  # fmt: skip

    def _checked(self, program: Program, x: Array, g: Array) -> dict[str, Any]:
        """The largest violation in scaled units (NaN for NaN), and the active limits."""
        worst, count, near = 0.0, 0, self.tolerance
        names: list[str] = []
        for key, values, lower, upper, blocks in (
            ("x", x, program.lbx, program.ubx, program.variables),
            ("g", g, program.lbg, program.ubg, program.constraints),
        ):
            worst = max(worst, np.maximum(lower - values, values - upper).max(initial=0.0))
            at_limit = (values <= lower + near) | (values >= upper - near)
            numbers = self._block_of[key][at_limit & (lower < upper)]
            touched = np.zeros(len(blocks), dtype=bool)
            touched[numbers] = True
            count, names = count + numbers.size, [*names, *compress(blocks, touched.tolist())]
        worst = float(worst) if all_finite(g) else np.nan
        return {"violation": worst, "active": count, "active_names": tuple(names)}


class Answers:
    """Solves a problem, and the softened one where limits cannot be kept.

    The softened one is first where the state is outside its limits, or where limits could not be
    kept a step before, for to find that out again may take all the time there is. That a solve was
    cut says nothing of the limits: it goes on in the next step. What exceeds no limit in the
    softened problem is where the solve of the problem itself begins.
    """

    def __init__(self, ocp: Problem, soft: Soft | None, tolerance: float) -> None:
        self.limits = Limits(ocp.nominal, ocp.prefixed)
        self.search = Search(ocp, tolerance, self.limits)
        self._soft = soft
        self.reset()

    def reset(self) -> None:
        """Forget what the steps before have come to."""
        self._strained = False

    @cached_property
    def aid(self) -> Search | None:
        """Search of the softened problem, made when it is first needed; None without one."""
        if self._soft is None:
            return None
        other = softened(self.search.problem, self._soft)
        return Search(other, self.search.tolerance, self.limits)

    def turn(self) -> None:
        """Have the other problem be first in the next step: solves of this one come no nearer."""
        self._strained = not self._strained

    def answer(self, request: Request) -> list[Outcome]:
        """Return the outcomes of the solves of a step; the last one is the answer."""
        relaxed: list[Outcome] = []
        if self._soft is not None and (request.far or self._strained):
            why = "a step before no plan was found that keeps all limits"
            if request.far:
                far = said(request.far, self.search.problem.nominal)
                why = f"the state is outside its limits ({far})"
            relaxed = [self._solve_softened(request, why)]
            over = relaxed[0].violated.keys() - prices(self.search.problem)
            if over or request.far:
                if relaxed[0].status:
                    self._strained = not over <= request.far.keys()
                return relaxed
        return self._solve_hard(request, relaxed)

    def _solve_hard(self, request: Request, relaxed: list[Outcome]) -> list[Outcome]:
        """Solve with all limits; else return the softened answer, which may be there."""
        softly = bool(relaxed) and bool(relaxed[0].status)
        if softly:
            request = replace(request, before=relaxed[0].plan)
        outcome = self.search.run(request)
        # Where there is no feasible point one within the tolerance is any, the best of none.
        given_up = outcome.infeasible and self._soft is not None
        if outcome.usable and not given_up:
            self._strained = False
            status = words.SOLVED if outcome.solved else words.FEASIBLE
            return [*relaxed, changed(outcome, status=status)]
        # Where neither problem has come to a plan they take turns.
        going = softly or any(one.unfinished for one in relaxed)
        self._strained = going or not (relaxed or outcome.unfinished)
        if given_up and not relaxed:
            relaxed = [self._solve_softened(request, outcome.reason)]
        if any(one.status for one in relaxed):
            return [outcome, *relaxed]
        status = words.FEASIBLE if outcome.usable else ""
        reason = relaxed[0].reason if relaxed else outcome.reason
        return [*relaxed, replace(outcome, status=status, reason=reason)]

    def _solve_softened(self, request: Request, why: str) -> Outcome:
        """Solve with limits that may be exceeded at a price."""
        aid = self.aid
        assert aid is not None
        program = aid.numbers(request.state, request.at, request.parameters)
        outcome = aid.run(replace(request, program=program))
        why += f"; the softened problem: {outcome.reason}" if outcome.reason else ""
        if not outcome.usable or outcome.plan is None:
            return replace(outcome, reason=why)
        over = violated(aid.problem, program, outcome.plan.x, aid.tolerance)
        why += f"; limits exceeded: {said(over, aid.problem.nominal)}" if over else ""
        return replace(outcome, status=words.SOFTENED, reason=why, violated=over)


def _why(result: Result) -> str:
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
