"""One solver's runs: numbers in, CasADi's outputs and statistics out."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.answer import altered
from casadi_hybrid.attempts.at_once import CutShort
from casadi_hybrid.attempts.in_graph import pool_of
from casadi_hybrid.attempts.verdict import undefined_result
from casadi_hybrid.attempts.warm import read_start
from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.errors import (
    InputError,
    Interrupted,
    MissingNumberError,
    OutOfTimeError,
    warn,
)
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import load_for_solves
from casadi_hybrid.basics.matrices import array_of
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.call import Call
from casadi_hybrid.casadi_api.callbacks import StepCallback
from casadi_hybrid.casadi_api.convention import INPUTS
from casadi_hybrid.casadi_api.graphs.function import columns_of
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.quick import Quick, QuickRun, quick_of
from casadi_hybrid.casadi_api.runs import Latest, Run, SolveError
from casadi_hybrid.casadi_api.stats import casadi_stats
from casadi_hybrid.course.record import Watch
from casadi_hybrid.engine.batch import Crew
from casadi_hybrid.engine.blocks.serving import functions_of, machine_code
from casadi_hybrid.engine.in_graph import Pool
from casadi_hybrid.explain.diagnosis import listed
from casadi_hybrid.point.working_set import WorkingSet
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.evaluator import evaluating_until
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result import Result
from casadi_hybrid.solver import Solver
from casadi_hybrid.stopping import Limits

_SOLVING = 0.9
"""Part of the time of a call in which steps may begin; the rest is for the answer."""


class Runner:
    """Solves one problem under one set of options; several threads may use it at once.

    Args:
        name: of the solver, for messages.
        problem, options: of the solver.
    """

    def __init__(self, name: str, problem: Problem, options: NlpOptions) -> None:
        load_for_solves()
        self.name, self.problem, self.options = name, problem, options
        self._solver, self._limits = Solver(problem), options.limits
        problem.functions  # noqa: B018  made now, not at the first call
        self._latest = Latest()
        self._of_thread = threading.local()
        self.crew: Crew | None = None
        """Those who did the last of many solves at once."""
        self.compiled = machine_code(problem, options.machine_code)
        """The functions as machine code, where they were asked for."""

    def solve(
        self, x0: Any, lam_x0: Any, lam_g0: Any, warm_start: Result | None, **others: Any
    ) -> tuple[Result, Vector]:
        """Solve with what a user gave, None for what was left out; the result, and p.

        Raises:
            InputError: for a bad argument, before any evaluation.
            SolveError: where the solve fails and ``error_on_fail`` is set.
            Exception: what a user's callback or model function raised. The best point until then
                is kept.
        """
        run = self.attempt(x0, lam_x0, lam_g0, warm_start, **others)
        self.complain(run)
        return run.result, run.p

    def attempt(
        self,
        x0: Any,
        lam_x0: Any,
        lam_g0: Any,
        warm_start: Result | None,
        limits: Limits | None = None,
        **others: Any,
    ) -> Run:
        """The same, with nothing raised but for bad arguments and Ctrl-C.

        Args:
            limits: of this solve, those of the options by default.
        """
        problem, options = self.problem, self.options
        if not options.warm:
            lam_x0 = lam_g0 = None
        numbers, warm = read_start(problem, warm_start, x0, lam_x0, lam_g0, **others)
        x0, p, bounds = numbers.x0, numbers.p, numbers.bounds
        if options.warn_initial_bounds and ((x0 < bounds.lbx) | (x0 > bounds.ubx)).any():
            outside = np.flatnonzero((x0 < bounds.lbx) | (x0 > bounds.ubx))
            names = listed([problem.functions.variable_names[i] for i in outside])
            warn(f"x0 is outside its bounds at {names}")
        callback = None
        if options.iteration_callback is not None:
            callback = StepCallback(
                options.iteration_callback,
                options.iteration_callback_step,
                options.iteration_callback_ignore_errors,
                problem.parameter_gradient,
                p,
            )
        watch = Watch(bounds, callback, int(options.log), options.divergence)
        began = time.process_time()
        raised: BaseException | None = None
        compiled = self.compiled
        ready = compiled is not None and compiled.code is not None
        try:
            result = self._solver.run(Call(numbers, limits or self._limits, warm, watch=watch))
        except KeyboardInterrupt as error:
            if not isinstance(error, Interrupted) or error.result is None:
                self._latest.forget()
                raise
            result, raised = error.result, error
        watch.hold(result.iterations)
        said = functions_of(problem, result, bool(options.machine_code), compiled, ready)
        stats = casadi_stats(result, watch.lists, callback, time.process_time() - began, said)
        if raised is None and callback is not None:
            raised = callback.raised
        if raised is None and not result.success and result.error is not None:
            raised = result.error.__cause__  # of a function that raised; None where it gave NaN
        run = Run(result, stats, p, raised)
        self.note(run)
        if isinstance(raised, KeyboardInterrupt):
            raise raised
        if options.print_time and raised is None:
            print(_timing(self.name, stats))
        return run

    def within(self, seconds: float, iterations: int | None, given: tuple[Any, ...]) -> Result:
        """Solve under limits of this call; see :meth:`NlpSolver.within`."""
        began = time.perf_counter()
        known = self._limits
        own = changed(
            known,
            max_time=min(known.max_time, seconds * _SOLVING),
            max_iter=known.max_iter if iterations is None else min(iterations, known.max_iter),
        )
        quick = self._quick()
        limited = own if seconds < np.inf or iterations is not None else None
        found = None if quick is None else self._ask(quick, given, None, limited)
        if found is not None:
            self.note(found[1])
            return found[1].result
        x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = given
        left = changed(own, max_time=max(1e-9, own.max_time - (time.perf_counter() - began)))
        try:
            with evaluating_until(began + seconds):
                run = self.attempt(
                    x0, lam_x0, lam_g0, None, left, p=p, lbx=lbx, ubx=ubx, lbg=lbg, ubg=ubg
                )
        except OutOfTimeError as late:
            if late.result is None:
                raise SolveError(
                    f"{self.name} evaluated no function of the problem within {seconds:g} s, so "
                    "there is no point. Give it more time; a first solve without a limit makes "
                    "what all need",
                    None,
                ) from None
            best: Result = late.result
            return altered(best, stop=StopReason.TIME_LIMIT, detail="")
        return run.result

    def complain(self, run: Run | QuickRun) -> None:
        """Raise what a run has left to be raised.

        Raises:
            SolveError: where it failed and ``error_on_fail`` is set.
            Exception: what a user's callback or model function raised.
        """
        if isinstance(run, QuickRun):
            return  # which solves
        if run.raised is not None:
            raise run.raised
        if self.options.error_on_fail and not run.result.success:
            raise SolveError(
                f"{self.name} failed. {run.result.explain()} (The nlpsol process failed; without "
                "error_on_fail the best point is returned.)",
                run.result,
            )

    def note(self, run: Run | QuickRun) -> None:
        """Make a run the last one, of the asking thread and of all."""
        self._latest.note(run)

    def pool_for_graphs(self) -> Pool | None:
        """The memory with which the engine solves in graphs; None where Python has to."""
        if self._latest.pool is None and self.options.silent:
            self._latest.pool = pool_of(self.problem, self._limits, warm_starts=self.options.warm)
        return self._latest.pool

    def has_quick(self) -> bool:
        """Whether warm solves are the engine's in this thread."""
        return self._quick() is not None

    def quick(self, given: tuple[Any, ...], warm_start: Result | None) -> dict[str, ca.DM] | None:
        """The outputs of a solve by the engine in C, None where it is not for that.

        Args:
            given: the arguments in CasADi's order, None for what was left out.
            warm_start: the result of a solve nearby.
        """
        found = self.quick_run(given, warm_start)
        if found is None:
            return None
        self.note(found[1])
        return found[0]

    def quick_run(
        self, given: tuple[Any, ...], warm_start: Result | None
    ) -> tuple[dict[str, ca.DM], QuickRun] | None:
        """The same with the run, which is not noted."""
        known = self._quick()
        if known is None:
            return None
        sides = None
        if warm_start is not None:
            if not isinstance(warm_start, Result) or not warm_start.success:
                return None
            if (warm_start.x.size, warm_start.g.size) != (self.problem.n, self.problem.m):
                return None  # C would read its working set beyond the end
            x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = given
            given = (
                warm_start.x if x0 is None else x0, p, lbx, ubx, lbg, ubg,
                warm_start.lam_x if lam_x0 is None else lam_x0,
                warm_start.lam_g if lam_g0 is None else lam_g0,
            )  # fmt: skip
            sides = warm_start.working_set
        return self._ask(known, given, sides)

    def _ask(
        self,
        quick: Quick,
        given: tuple[Any, ...],
        sides: WorkingSet | None,
        own: Limits | None = None,
    ) -> tuple[dict[str, ca.DM], QuickRun] | None:
        """A solve the shortest way; where Ctrl-C ends it the run is kept."""
        try:
            return quick.solve(given, sides, own)
        except CutShort as cut:
            stats = casadi_stats(
                cut.result, cut.watch.lists, None, cut.result.elapsed, cut.functions
            )
            self.note(Run(cut.result, stats, cut.p, cut))
            raise
        except KeyboardInterrupt:
            self._latest.forget()
            raise

    def _quick(self) -> Quick | None:
        of_thread = self._of_thread
        try:
            known: Quick | None = of_thread.quick
        except AttributeError:
            known = of_thread.quick = quick_of(self.problem, self.options)
        return known

    def outputs(self, result: Result, p: Vector) -> tuple[ca.DM, ...]:
        """x, f, g, lam_x, lam_g, lam_p, in columns."""
        # A conversion to DM costs several times what the function needs to take it apart.
        problem = self.problem
        columns: list[Any] = [result.x, (result.f,), result.g, result.lam_x, result.lam_g]
        if p.size:
            slope = problem.parameter_gradient(result.x, result.lam_g, p)
            columns.append(-array_of(slope).ravel())
        parts = _parting(problem.n, problem.m, problem.n_p)
        found: tuple[ca.DM, ...] = parts(ca.DM(np.concatenate(columns)))
        return found

    def evaluate(self, arguments: list[ca.DM]) -> list[ca.DM]:
        """Solve at the columns that a graph gives: all eight, bounds of all rows.

        Where one has no numbers there are none in the answer, with a warning and statistics of a
        solve that failed: a graph may have many solves side by side, and an exception would take
        the answers of all. With ``error_on_fail`` it is raised.
        """
        row = [array_of(one).ravel() for one in arguments]
        try:
            return list(self.outputs(*self._solve_row(row)))
        except InputError:
            missing = None if self.options.error_on_fail else _missing(row)
            if missing is None:
                raise
            self._note_missing(row, missing)
            said = f"{self.name} in a graph: {missing.fault()}, so its outputs are NaN"
            warn(said)
        return [ca.DM.nan(rows) for rows in columns_of(self.problem)[1]]

    def _note_missing(self, row: Sequence[Vector], missing: MissingNumberError) -> None:
        x0, p, lbx, ubx, lbg, ubg, _, _ = row
        bounds, tolerances, why = Bounds(lbx, ubx, lbg, ubg), self._limits.tolerances, "no numbers"
        result = undefined_result(self.problem, bounds, p, x0, tolerances, missing, why)
        stats = casadi_stats(result, Watch(bounds).lists, None, 0.0, ("interpreted", ""))
        self.note(Run(result, stats, p))

    def _solve_row(self, row: Sequence[Vector]) -> tuple[Result, Vector]:
        x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = row
        m_h = self.problem.m_h
        return self.solve(
            x0, lam_x0, lam_g0, None, p=p, lbx=lbx, ubx=ubx, lbg=lbg[m_h:], ubg=ubg[m_h:]
        )

    def last(self) -> Run | QuickRun:
        """The last run of the asking thread, or of any where that has made none.

        Raises:
            RuntimeError: before the first.
        """
        run = self._latest.find(self._solve_row)
        if run is None:
            raise RuntimeError(
                f"No stats available: {self.name} has not been called yet, or Ctrl-C ended "
                "its last call before the first iterate; call it first"
            )
        return run

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        del kept["_of_thread"], kept["_latest"]
        kept["crew"] = kept["compiled"] = None
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._latest, self._of_thread = Latest(), threading.local()
        self.compiled = machine_code(self.problem, self.options.machine_code)


def _missing(row: Sequence[Vector]) -> MissingNumberError | None:
    """The first entry of the arguments that is NaN, or infinite and no bound."""
    for name, values in zip(INPUTS, row, strict=True):
        bad = np.isnan(values) if name[:2] in ("lb", "ub") else ~np.isfinite(values)
        if bad.any():
            k = int(np.argmax(bad))
            return MissingNumberError(f"{name}[{k}]", "", float(values[k]))
    return None


@lru_cache(maxsize=64)
def _parting(n: int, m: int, n_p: int) -> ca.Function:
    """x, f, g, lam_x, lam_g and lam_p, which stand in one column, each by itself."""
    column = ca.MX.sym("column", 2 * (n + m) + 1 + n_p)
    ends = [0, *accumulate((n, 1, m, n, m, n_p))]
    return ca.Function("parts", [column], ca.vertsplit(column, ends))


def _timing(name: str, stats: Mapping[str, Any]) -> str:
    wall, proc = stats["t_wall_total"], stats["t_proc_total"]
    return (
        f"{name}: {stats['stop_reason']} after {stats['iter_count']} iterations, "
        f"{wall:.4f} s ({proc:.4f} s of processor time), {stats['n_call_nlp_f']} evaluations of "
        f"f, g and their derivatives, {stats['n_call_nlp_hess_l']} Hessians"
    )
