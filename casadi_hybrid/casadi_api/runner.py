"""One solver's runs: numbers in, CasADi's outputs and statistics out."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.arrays import changed
from casadi_hybrid.basics.errors import InputError, MissingNumberError, OutOfTimeError, warn
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.basics.matrices import array_of
from casadi_hybrid.casadi_api.convention import INPUTS
from casadi_hybrid.casadi_api.core_calls import CoreCalls, Given, interrupt_in
from casadi_hybrid.casadi_api.graphs.function import columns_of
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.run import Latest, Run, without_numbers
from casadi_hybrid.engine.blocks.serving import machine_code
from casadi_hybrid.engine.external import OUTPUTS_OF_CASADI
from casadi_hybrid.engine.warm import any_engine_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.evaluator import evaluating_until
from casadi_hybrid.problem.problem import Problem

if TYPE_CHECKING:
    from casadi_hybrid.engine.batch import Workers
    from casadi_hybrid.engine.in_graph import Pool
    from casadi_hybrid.result import record as records
    from casadi_hybrid.result.result import Result
    from casadi_hybrid.session import solve as sessions
else:
    sessions = LateModule("casadi_hybrid.session.solve")
    records = LateModule("casadi_hybrid.result.record")

_SOLVING = 0.9
"""Part of the time of a call in which steps may begin; the rest is for the answer."""
_in_order = itemgetter(*OUTPUTS_OF_CASADI)
"""The outputs as CasADi lists them; its dictionaries are sorted by the names."""


class SolveError(RuntimeError):
    """A solve did not succeed and ``error_on_fail`` was set, or its time was over at once.

    Attributes:
        result: the :class:`~casadi_hybrid.Result`; None where no point was looked at.
    """

    def __init__(self, message: str, result: Result | None) -> None:
        self.result = result
        super().__init__(message, result)

    def __str__(self) -> str:
        return str(self.args[0])


class Runner:
    """Solves one problem under one set of options; several threads may use it at once.

    Args:
        name: of the solver, for messages.
        problem, options: of the solver.
    """

    def __init__(self, name: str, problem: Problem, options: NlpOptions) -> None:
        self.name, self.problem, self.options = name, problem, options
        self._limits = options.limits
        if self._limits.max_time < np.inf:  # then no solve waits for what its result is made by
            sessions.result_of, records.Watch  # noqa: B018
            import casadi_hybrid.casadi_api.stats  # noqa: F401, PLC0415
        self._speaks = options.error_on_fail or options.print_time
        problem.functions  # noqa: B018  made now, not at the first call
        self._latest = Latest()
        self._of_thread = threading.local()
        self.workers: Workers | None = None
        """Those who did the last of many solves at once."""
        self.compiled = machine_code(problem, options.machine_code)
        """The functions as machine code, where they were asked for."""

    def solve(self, given: Given, warm_start: Result | None) -> dict[str, ca.DM]:
        """The outputs of a solve with what a user gave.

        Raises:
            InputError: for a bad argument, before any evaluation.
            SolveError: where the solve fails and ``error_on_fail`` is set.
            Exception: what a user's callback or model function raised. The best point until then
                is kept.
        """
        return self._returned(self._calls().solve_checked(given, warm_start, None))

    def plain(self, given: Given, warm_start: Result | None) -> dict[str, ca.DM] | None:
        """The same where all arguments can be copied as they are; None for the others."""
        try:
            calls: CoreCalls = self._of_thread.calls
        except AttributeError:
            calls = self._calls()
        if not calls.plain:
            return None
        try:
            found = calls.quick(given) if warm_start is None else None
        except SystemError as error:
            raise interrupt_in(error) from None
        if found is None:
            found = calls.solve_plain(given, warm_start, None)
        if found is None or found[1].raised is not None or self._speaks:
            return None if found is None else self._returned(found)
        self._latest.note(found[1])
        return dict(zip(OUTPUTS_OF_CASADI, _in_order(found[0]), strict=True))

    def _returned(self, found: tuple[dict[str, ca.DM], Run]) -> dict[str, ca.DM]:
        outputs, run = found
        self._latest.note(run)
        if run.raised is not None or self._speaks:
            self.complain(run)
            if self.options.print_time:
                print(_timing(self.name, run.stats))
        return dict(zip(OUTPUTS_OF_CASADI, _in_order(outputs), strict=True))

    def run(
        self, given: Given, warm_start: Result | None, own: Limits | None = None
    ) -> tuple[dict[str, ca.DM], Run]:
        """The same with the run, which is not noted, and nothing raised but for bad arguments.

        Args:
            own: limits of this solve, those of the options by default.
        """
        calls = self._calls()
        found = calls.solve_plain(given, warm_start, own) if calls.plain else None
        return calls.solve_checked(given, warm_start, own) if found is None else found

    def within(self, seconds: float, iterations: int | None, given: Given) -> Result:
        """Solve under limits of this call; see :meth:`NlpSolver.within`."""
        began, known = time.perf_counter(), self._limits
        own = changed(
            known,
            max_time=min(known.max_time, seconds * _SOLVING),
            max_iter=known.max_iter if iterations is None else min(iterations, known.max_iter),
        )
        with evaluating_until(began + seconds):
            _, run = self.run(given, None, own)
        self.note(run)
        late = isinstance(run.raised, OutOfTimeError)
        if isinstance(run.raised, KeyboardInterrupt) and not late:
            raise run.raised
        if late and not run.result.evaluations["first"]:
            raise SolveError(
                f"{self.name} evaluated no function of the problem within {seconds:g} s, so "
                "there is no point. Give it more time; a first solve without a limit makes "
                "what all need",
                None,
            )
        return run.result

    @property
    def in_threads(self) -> bool:
        """Whether solves can run beside each other: no Python is called by them."""
        silent = self.options.iteration_callback is None and not self.options.log
        return silent and self._calls().plain

    def complain(self, run: Run) -> None:
        """Raise what a run has left to be raised.

        Raises:
            SolveError: where it failed and ``error_on_fail`` is set.
            Exception: what a user's callback or model function raised.
        """
        if run.raised is not None:
            raise run.raised
        if self.options.error_on_fail and not run.result.success:
            raise SolveError(
                f"{self.name} failed. {run.result.explain()} (The nlpsol process failed; without "
                "error_on_fail the best point is returned.)",
                run.result,
            )

    def note(self, run: Run) -> None:
        """Make a run the last one, of the asking thread and of all."""
        self._latest.note(run)

    def _calls(self) -> CoreCalls:
        of_thread = self._of_thread
        try:
            known: CoreCalls = of_thread.calls
        except AttributeError:
            known = of_thread.calls = CoreCalls(self.problem, self.options)
        return known

    def evaluate(self, arguments: list[ca.DM]) -> list[ca.DM]:
        """Solve at the columns that a graph gives: all eight, bounds of all rows.

        Where one has no numbers there are none in the answer, with a warning and statistics of a
        solve that failed: a graph may have many solves side by side, and an exception would take
        the answers of all. With ``error_on_fail`` it is raised.
        """
        row = [array_of(one).ravel() for one in arguments]
        found = self._calls().solve_row(row)
        if found is not None:
            outputs, run = found
            self.note(run)
            self.complain(run)
            return [ca.vec(one) for one in outputs.values()]
        if not self._lacks_numbers(row):
            raise InputError("the bounds of the equations must be zero")
        self._latest.note(self._again(row))
        return [ca.DM.nan(rows) for rows in columns_of(self.problem)[1]]

    def _lacks_numbers(self, row: Sequence[Vector]) -> bool:
        """Whether an argument has no number, which a warning says.

        Raises:
            InputError: for arguments that are bad otherwise, or at all with ``error_on_fail``.
        """
        missing = None if self.options.error_on_fail else _missing(row)
        if missing is None:
            x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = row
            m_h = self.problem.m_h
            self.problem.numbers(x0, p, lbx, ubx, lbg[m_h:], ubg[m_h:], lam_x0, lam_g0)
            return False
        said = f"{self.name} in a graph: {missing.fault()}, so its outputs are NaN"
        warn(said)
        return True

    def _again(self, row: Sequence[Vector]) -> Run | None:
        """The run for what a graph has given; None where that could not be begun."""
        found, missing = self._calls().solve_row(row), _missing(row)
        if found is None and missing is not None:
            return without_numbers(self.problem, self._limits, row, missing)
        return found and found[1]

    def pool_for_graphs(self) -> Pool | None:
        """The memory of solves in graphs; None where these call Python."""
        from casadi_hybrid.engine.in_graph import Pool  # noqa: PLC0415 - of graphs alone

        options, engine = self.options, any_engine_of(self.problem)
        python = options.iteration_callback or options.log or options.error_on_fail
        if self._latest.pool is None and not python and engine.evaluate is not None:
            self._latest.pool = Pool(
                engine, self.problem, self._limits, columns_of(self.problem),
                warm_starts=options.warm, no_numbers=self._lacks_numbers,
            )  # fmt: skip
        return self._latest.pool

    def last(self) -> Run:
        """The last run of the asking thread, or of any where that has made none.

        Raises:
            RuntimeError: before the first.
        """
        run = self._latest.find(self._again)
        if run is None:
            raise RuntimeError(
                f"No stats available: {self.name} has not been called yet, or Ctrl-C ended "
                "its last call before the first iterate; call it first"
            )
        return run

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        del kept["_of_thread"], kept["_latest"]
        kept["workers"] = kept["compiled"] = None
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


def _timing(name: str, stats: Mapping[str, Any]) -> str:
    wall, proc = stats["t_wall_total"], stats["t_proc_total"]
    return (
        f"{name}: {stats['stop_reason']} after {stats['iter_count']} iterations, "
        f"{wall:.4f} s ({proc:.4f} s of processor time), {stats['n_call_nlp_f']} evaluations of "
        f"f, g and their derivatives, {stats['n_call_nlp_hess_l']} Hessians"
    )
