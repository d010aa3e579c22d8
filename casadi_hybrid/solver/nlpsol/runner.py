"""The solves of one solver by nlpsol: values in, CasADi's outputs and statistics out."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from casadi_hybrid.core.binding.core import Core, engine_of
from casadi_hybrid.core.binding.serving import machine_code
from casadi_hybrid.problem.arguments import Numbers
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.columns import as_column, in_shape
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.point.working_set import WorkingSet
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.solver.nlpsol.stats import stats_of
from casadi_hybrid.solver.options.convention import INPUTS, OUTPUTS, columns_of
from casadi_hybrid.solver.options.options import NlpOptions
from casadi_hybrid.solver.run import Run, Session, read_start, solve
from casadi_hybrid.utils.errors import InputError, MissingNumberError, warn
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.late import LateModule
from casadi_hybrid.utils.matrices import array_of
from casadi_hybrid.utils.status import StopReason

if TYPE_CHECKING:
    from casadi_hybrid.core.binding.in_graph import Pool
    from casadi_hybrid.solver import solve as results
    from casadi_hybrid.solver.result import Result
else:
    results = LateModule("casadi_hybrid.solver.solve")

Outputs = dict[str, ca.DM]


class SolveError(RuntimeError):
    """A solve failed with ``error_on_fail``, or its time was over before the first evaluation.

    Attributes:
        result: the :class:`~casadi_hybrid.Result`; None if no point was evaluated.
    """

    def __init__(self, message: str, result: Result | None) -> None:
        self.result = result
        super().__init__(message, result)

    def __str__(self) -> str:
        return str(self.args[0])


class _Noted(threading.local):
    """A thread's last run, and the number of solves in graphs until then."""

    last: tuple[int, Run | None] = 0, None


class Runner(Session):
    """Solves one problem under one set of options; several threads may use it at once."""

    def __init__(self, name: str, problem: Problem, options: NlpOptions) -> None:
        problem.functions  # noqa: B018  made now, not at the first call
        super().__init__(problem, options.limits)
        self.name, self.options = name, options
        if self.limits.max_time < np.inf:
            problem.parameter_gradient  # noqa: B018  made now, not within a deadline
        self._silent = options.iteration_callback is None and not options.log
        checks = options.warn_initial_bounds or problem.m_h or problem.shapes
        self._plain = self._silent and options.warm and not checks
        # The functions as machine code, if requested.
        self.compiled = machine_code(problem, options.compile)
        self._of_thread = _Noted()
        self._of_any = self._of_thread.last
        # The memory of solves in graphs by C, of which only inputs are kept.
        self.pool: Pool | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.problem, self.options)

    # --- solves -----------------------------------------------------------------------------------

    def run(
        self, given: Mapping[str, Any], warm_start: Result | None, limits: Limits | None = None
    ) -> Run:
        """Solve for the arguments by name; the run is not noted, its exception not raised."""
        numbers, warm = self.checked(given, warm_start)
        if self.options.warn_initial_bounds:
            _warn_outside(self.problem, numbers)
        engine = engine_of(self.problem)
        core = engine.core(numbers.bounds, self.limits, repeated=limits is not None)
        core.fill(numbers, warm)
        run = self._solve(core, limits)
        assert run is not None
        self.keep(core if self.in_threads else None)
        return run

    def checked(
        self, named: Mapping[str, Any], warm_start: Result | None
    ) -> tuple[Numbers, WorkingSet | None]:
        """Return the checked values of a solve, and the working set that it tries first."""
        problem = self.problem
        given = {name: _repeated(named.get(name)) for name in INPUTS}
        given["p"] = as_column(given["p"], problem.shapes.get("p"))
        if given["p"] is None:
            given["p"] = self._defaults[1]
        if not self.options.warm:
            given["lam_x0"] = given["lam_g0"] = None
        return read_start(problem, warm_start, **given)

    def evaluate(self, arguments: list[ca.DM]) -> list[ca.DM]:
        """Solve at the columns of a graph: all eight, bounds of all rows."""
        row = [array_of(argument).ravel() for argument in arguments]
        run = self._solve_row(row)
        # NaN gives NaN and a warning, except with error_on_fail. A graph may have many solves
        # side by side, and an exception would take the answers of all.
        if run is None or isinstance(run.undefined, MissingNumberError):
            self._lacks_numbers(row)
        if run is None:
            raise InputError("the bounds of the equations must be zero")
        self.note(run)
        self.complain(run)
        return [ca.vec(output) for output in run.outputs.values()]

    def _solve(self, core: Core, limits: Limits | None = None) -> Run | None:
        """Solve for the values that a core holds; None if it refuses them."""
        problem, options = self.problem, self.options
        callback = watch = None
        if not self._silent:
            from casadi_hybrid.solver.options.callbacks import StepCallback  # noqa: PLC0415 - seldom
            from casadi_hybrid.solver.record.record import Watch  # noqa: PLC0415 - a solve does without

            if options.iteration_callback is not None:
                p = core.parts["p"].copy()
                callback = StepCallback(options, problem.parameter_gradient, p)
            watch = Watch(callback, int(options.log))
        run = solve(core, problem, limits or self.limits, watch, matrices=True)
        if run is None:
            return None
        if callback is not None:
            run.called_back = callback.calls, callback.seconds
        if core.python is not None and run.raised is None:
            self._after_python(run)
        if problem.shapes:
            run.outputs = in_shape(run.outputs, problem.shapes)
        return run

    def _after_python(self, run: Run) -> None:
        """Keep the exception of a function in Python for the caller; else compute lam_p."""
        result, outputs = run.result, run.outputs
        late = run.late or result.stop is StopReason.TIME_LIMIT
        error = None if late or result.success else result.error
        if error is not None and error.__cause__ is not None:
            run.raised = error.__cause__
            # The call raises, so the note says where its best point is.
            run.raised.add_note(f"{error}. The best point is in the solver's result.")
            return
        outputs["lam_p"] = ca.DM.nan(self.problem.n_p, 1)  # stays if a failed solve has no slope
        if late:
            return
        with suppress(*() if result.success else (RuntimeError,)):
            # CasADi's sign: lam_p = −∂L/∂p.
            point = outputs["x"], outputs["lam_g"], run.arrays["p"]
            outputs["lam_p"] = -ca.densify(self.problem.parameter_gradient(*point))

    def _solve_row(self, row: Sequence[Vector]) -> Run | None:
        """Solve for unchecked values, bounds of all rows; None for bad ones."""
        core = engine_of(self.problem).core(Bounds(*row[2:6]), self.limits)
        core.write(row if self.options.warm else (*row[:6], 0.0, 0.0), None)
        run = self._solve(core)
        missing = _missing(row) if run is None else None
        if missing is None:
            return run
        # NaN in, NaN out: nothing was solved.
        run = Run.of(core, self.problem, self.limits)
        run.result, run.undefined = results.undefined_result(run, missing), missing
        sizes = columns_of(self.problem)[1]
        run.outputs = dict(zip(OUTPUTS, map(ca.DM.nan, sizes), strict=True))
        return run

    def returned(self, run: Run) -> Outputs:
        """Note a run and return its outputs; raises as :meth:`complain`."""
        # Inlined note(): a warm solve takes as long as twenty Python calls.
        calls = 0 if self.pool is None else self.pool.data.calls
        self._of_any = self._of_thread.last = calls, run
        if run.raised is not None or self.options.error_on_fail:
            self.complain(run)
        if self.options.print_time:
            print(
                "{}: {stop_reason} after {iter_count} iterations, {t_wall_total:.4f} s "
                "({t_proc_total:.4f} s of processor time), {n_call_nlp_jac_g} evaluations of f, g "
                "and their derivatives, {n_call_nlp_hess_l} Hessians".format(
                    self.name, **stats_of(run)
                )
            )
        return run.outputs

    @property
    def in_threads(self) -> bool:
        """True if solves call no Python, so that they can run side by side."""
        return self._plain and engine_of(self.problem).evaluate is not None

    def complain(self, run: Run) -> None:
        """Raise the exception of a user's function in a run, or :class:`SolveError`."""
        if run.raised is not None:
            raise run.raised
        if self.options.error_on_fail and not run.result.success:
            raise SolveError(
                f"{self.name} failed. {run.result.explain()} (The nlpsol process failed; without "
                "error_on_fail the best point is returned.)",
                run.result,
            )

    # --- solves in graphs, and the last one -------------------------------------------------------

    def pool_for_graphs(self) -> Pool | None:
        """The memory of solves in graphs; None if these call Python."""
        from casadi_hybrid.core.binding.in_graph import Pool  # noqa: PLC0415 - of graphs alone

        python = not self._silent or self.options.error_on_fail
        if self.pool is None and not python and engine_of(self.problem).evaluate is not None:
            sizes, warm = columns_of(self.problem), self.options.warm
            self.pool = Pool(
                self.problem, self.limits, sizes, warm_starts=warm, no_numbers=self._lacks_numbers
            )
        return self.pool

    def _lacks_numbers(self, row: Sequence[Vector]) -> bool:
        """Warn of an argument with NaN; return False without one, if none is bad."""
        missing = None if self.options.error_on_fail else _missing(row)
        if missing is None:
            x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = row
            m_h = self.problem.m_h
            self.problem.numbers(x0, p, lbx, ubx, lbg[m_h:], ubg[m_h:], lam_x0, lam_g0)
            return False
        warn(f"{self.name} in a graph: {missing.fault()}, so its outputs are NaN")
        return True

    def note(self, run: Run) -> None:
        """Make a run the last one, of this thread and of all."""
        calls = 0 if self.pool is None else self.pool.data.calls
        self._of_any = self._of_thread.last = calls, run

    def last(self) -> Run:
        """The last run of this thread, or of any thread if this one has made none."""
        pool, (calls, of_thread) = self.pool, self._of_thread.last
        run = of_thread or self._of_any[1]
        if pool is not None:
            mine = pool.last(calls, threading.get_ident())
            inputs = mine or (None if of_thread else pool.last(self._of_any[0]))
            # Only inputs of a solve in a graph are kept: it is repeated, to the same bits.
            again = inputs and self._solve_row(inputs[1])
            if inputs and again:
                run, self._of_any = again, (inputs[0], again)
                if mine:
                    self._of_thread.last = self._of_any
        if run is None:
            raise RuntimeError(
                f"No stats available: {self.name} has not been called yet, or Ctrl-C ended "
                "its last call before the first iterate; call it first"
            )
        return run


def _repeated(value: Any) -> Any:
    """Replace a list of one number by the number, which CasADi repeats."""
    row = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return value[0] if row and len(value) == 1 and np.ndim(value[0]) == 0 else value


def _missing(row: Sequence[Vector]) -> MissingNumberError | None:
    """Return the first entry of the arguments that is NaN, or infinite and no bound."""
    for name, values in zip(INPUTS, row, strict=True):
        bad = np.isnan(values) if name[:2] in ("lb", "ub") else ~np.isfinite(values)
        if bad.any():
            k = int(np.argmax(bad))
            return MissingNumberError(f"{name}[{k}]", "", float(values[k]))
    return None


def _warn_outside(problem: Problem, numbers: Numbers) -> None:
    from casadi_hybrid.solver.explain.diagnosis import listed  # noqa: PLC0415 - seldom

    x0, bounds = numbers.x0, numbers.bounds
    outside = np.flatnonzero((x0 < bounds.lbx) | (x0 > bounds.ubx))
    if outside.size:
        names = listed([problem.functions.variable_names[i] for i in outside])
        warn(f"x0 is outside its bounds at {names}")
