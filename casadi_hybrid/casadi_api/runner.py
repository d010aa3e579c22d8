"""One solver's runs: numbers in, CasADi's outputs and statistics out."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError, MissingNumberError, OutOfTimeError, warn
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.basics.matrices import array_of
from casadi_hybrid.basics.status import StopReason
from casadi_hybrid.casadi_api.convention import INPUTS, OUTPUTS, columns_of
from casadi_hybrid.casadi_api.graphs.function import defaults_of
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.stats import Run
from casadi_hybrid.engine.blocks.serving import machine_code
from casadi_hybrid.engine.core import ELSE, MATRIX, Core, engine_of
from casadi_hybrid.engine.plan import prepared
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import WorkingSet
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.columns import as_column, in_shape
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.session.start import read_start, start_values

if TYPE_CHECKING:
    from casadi_hybrid.engine.in_graph import Pool
    from casadi_hybrid.result.result import Result
    from casadi_hybrid.session import solve as sessions
else:
    sessions = LateModule("casadi_hybrid.session.solve")

Outputs = dict[str, ca.DM]
_NUMBERS, _FLOAT = frozenset((float, int, np.float64)), np.dtype(np.float64)


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


class _Last(threading.local):
    """What a thread has done last."""

    core: Core | None = None
    """Of its solve, where it may be called again at once."""
    noted: tuple[int, Run | None] = 0, None
    """Its last run, and how many solves there had been in graphs until then."""


class Runner:
    """Solves one problem under one set of options; several threads may use it at once."""

    def __init__(self, name: str, problem: Problem, options: NlpOptions) -> None:
        self.name, self.problem, self.options = name, problem, options
        self.limits = options.limits
        problem.functions  # noqa: B018  made now, not at the first call
        if self.limits.max_time < np.inf:  # then no solve waits for what all need
            prepared(problem)
            sessions.result_of, problem.parameter_gradient  # noqa: B018
        self._defaults = defaults_of(problem)
        self._silent = options.iteration_callback is None and not options.log
        checks = options.warn_initial_bounds or problem.m_h or problem.shapes
        self._plain = self._silent and options.warm and not checks
        self.compiled = machine_code(problem, options.compile)
        """The functions as machine code, where they were asked for."""
        self._last = _Last()
        self._noted = self._last.noted  # the same of all threads
        self.pool: Pool | None = None
        """The memory of solves in graphs, where C makes them: of these only inputs are kept."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.problem, self.options)

    # --- solves -----------------------------------------------------------------------------------

    def quick(self, given: Sequence[Any], warm_start: Result | None) -> Outputs | None:
        """The outputs for arguments in CasADi's order, None for what was left out.

        None where these cannot be copied as they are to the core that was used last, or have bounds
        of other kinds.
        """
        core = self._last.core
        if core is None or core.busy:
            return None
        sides = None
        if warm_start is not None:
            x0, *others, lam_x0, lam_g0 = given
            x0, *multipliers = start_values(warm_start, self.problem, x0, lam_x0, lam_g0)
            given = x0, *others, *multipliers
            sides = warm_start.working_set if warm_start.success else None
        held, matrices, ordered, shapes = core.held, core.matrices, core.ordered, core.shapes
        for i, value in enumerate(given):
            last, kind = held[i], type(value)
            if value is last:
                continue
            if kind is core.matrix_type:
                matrices[i], held[i] = int(value.this), MATRIX
                continue
            if last is MATRIX:
                matrices[i] = None
            held[i] = ELSE
            if kind is np.ndarray and value.shape == shapes[i] and value.dtype == _FLOAT:
                ordered[i][:] = value
            elif value is None:
                ordered[i][:] = self._defaults[i]
            elif not _copied(ordered[i], value):
                return None
            if value is None or kind in _NUMBERS:
                held[i] = value
        if sides is not None or core.sided:
            core.begin_with(sides)
        found = self._solve(core)
        return None if found is None else self.returned(*found)

    def run(
        self, given: Mapping[str, Any], warm_start: Result | None, own: Limits | None = None
    ) -> tuple[Outputs, Run]:
        """Solve for what a user gave by name, under limits of its own where there are any.

        The run is not noted, and it keeps what was raised.
        """
        numbers, warm = self.checked(given, warm_start)
        if self.options.warn_initial_bounds:
            _warn_outside(self.problem, numbers)
        core = engine_of(self.problem).core(numbers.bounds, self.limits, repeated=own is not None)
        core.fill(numbers, warm)
        found = self._solve(core, own)
        assert found is not None
        self._last.core = core if self.in_threads else None
        return found

    def checked(
        self, named: Mapping[str, Any], warm_start: Result | None
    ) -> tuple[Numbers, WorkingSet | None]:
        """The checked numbers of a solve, and what it tries first."""
        problem = self.problem
        given = {name: _repeated(named.get(name)) for name in INPUTS}
        given["p"] = as_column(given["p"], problem.shapes.get("p"))
        if given["p"] is None:
            given["p"] = self._defaults[1]
        if not self.options.warm:
            given["lam_x0"] = given["lam_g0"] = None
        return read_start(problem, warm_start, **given)

    def evaluate(self, arguments: list[ca.DM]) -> list[ca.DM]:
        """Solve at the columns that a graph gives: all eight, bounds of all rows.

        Where one has no numbers there are none in the answer, with a warning and statistics of a
        solve that failed: a graph may have many solves side by side, and an exception would take
        the answers of all. With ``error_on_fail`` it is raised.
        """
        row = [array_of(one).ravel() for one in arguments]
        found = self._solve_row(row)
        if found is None or isinstance(found[1].undefined, MissingNumberError):
            self._lacks_numbers(row)  # warns, or raises what is wrong
        if found is None:
            raise InputError("the bounds of the equations must be zero")
        outputs, run = found
        self.note(run)
        self.complain(run)
        return [ca.vec(one) for one in outputs.values()]

    def _solve(self, core: Core, own: Limits | None = None) -> tuple[Outputs, Run] | None:
        """Solve for what a core has been given; None where that is not for it."""
        problem, limits, options = self.problem, own or self.limits, self.options
        callback = watch = None
        if not self._silent:
            from casadi_hybrid.casadi_api.callbacks import StepCallback  # noqa: PLC0415 - seldom
            from casadi_hybrid.result.record import Watch  # noqa: PLC0415 - a solve does without

            if options.iteration_callback is not None:
                p = core.parts["p"].copy()
                callback = StepCallback(options, problem.parameter_gradient, p)
            watch = Watch(callback, int(options.log))
        found = core.solve(limits, watch.see if watch else None, matrices=True)
        if found is None:
            return None
        run = Run.of(core, problem, limits)
        if watch is not None:
            watch.hold(run.said.steps)
        if callback is not None:
            run.called_back = callback.calls, callback.seconds
        by_callback = None if callback is None else callback.raised
        run.raised = run.raised if by_callback is None else by_callback
        late = isinstance(run.raised, OutOfTimeError)
        if late and own is None:
            run.result  # noqa: B018 - says it
            run.raised = None
        if isinstance(run.raised, KeyboardInterrupt):  # it comes out where nothing is known
            run.raised = sessions.halted(run.result, run.raised)
        elif core.python is not None and by_callback is None:
            late = late or run.result.stop is StopReason.TIME_LIMIT
            error = None if late or run.result.success else run.result.error
            if error is not None:
                run.raised = error.__cause__  # None where it gave NaN
                if run.raised is not None:
                    run.raised.add_note(f"{error}. The best point is in the solver's result.")
            if run.raised is None:  # else who asked is given no lam_p
                found["lam_p"] = ca.DM.nan(problem.n_p, 1)  # where a failure has no slope
                with suppress(*() if run.result.success else (RuntimeError,)):
                    if not late:
                        point = found["x"], found["lam_g"], run.array("p")
                        found["lam_p"] = -ca.densify(problem.parameter_gradient(*point))
        outputs = {
            "x": found["x"], "f": found["f"], "g": found["g"],
            "lam_x": found["lam_x"], "lam_g": found["lam_g"], "lam_p": found["lam_p"],
        }  # fmt: skip
        return (in_shape(outputs, problem.shapes) if problem.shapes else outputs), run

    def _solve_row(self, row: Sequence[Vector]) -> tuple[Outputs, Run] | None:
        """Solve for unchecked numbers, bounds of all rows; None for bad ones.

        Where one is missing, outputs are NaN, and the run's ``undefined`` says which.
        """
        core = engine_of(self.problem).core(Bounds(*row[2:6]), self.limits)
        core.write(row if self.options.warm else (*row[:6], 0.0, 0.0), None)
        found = self._solve(core)
        missing = _missing(row) if found is None else None
        if missing is None:
            return found
        run = Run.of(core, self.problem, self.limits)
        run.result, run.undefined = sessions.undefined_result(run, missing), missing
        return dict(zip(OUTPUTS, map(ca.DM.nan, columns_of(self.problem)[1]), strict=True)), run

    def returned(self, outputs: Outputs, run: Run) -> Outputs:
        """The outputs for who called the solver; raises what :meth:`complain` does."""
        # As by note(): a warm solve takes as long as twenty calls of functions.
        calls = 0 if self.pool is None else self.pool.data.calls
        self._noted = self._last.noted = calls, run
        if run.raised is not None or self.options.error_on_fail:
            self.complain(run)
        if self.options.print_time:
            print(
                "{}: {stop_reason} after {iter_count} iterations, {t_wall_total:.4f} s "
                "({t_proc_total:.4f} s of processor time), {n_call_nlp_jac_g} evaluations of f, g "
                "and their derivatives, {n_call_nlp_hess_l} Hessians".format(self.name, **run.stats)
            )
        return outputs

    @property
    def in_threads(self) -> bool:
        """Whether solves can run beside each other: no Python is called by them."""
        return self._plain and engine_of(self.problem).evaluate is not None

    def complain(self, run: Run) -> None:
        """Raise what a run has left to be raised: a user's own, or :class:`SolveError`."""
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
        """The memory of solves in graphs; None where these call Python."""
        from casadi_hybrid.engine.in_graph import Pool  # noqa: PLC0415 - of graphs alone

        python = not self._silent or self.options.error_on_fail
        if self.pool is None and not python and engine_of(self.problem).evaluate is not None:
            self.pool = Pool(
                self.problem, self.limits, columns_of(self.problem), warm_starts=self.options.warm,
                no_numbers=self._lacks_numbers,
            )  # fmt: skip
        return self.pool

    def _lacks_numbers(self, row: Sequence[Vector]) -> bool:
        """Whether an argument has no number, which a warning says.

        What is bad otherwise is refused, and with ``error_on_fail`` this too.
        """
        missing = None if self.options.error_on_fail else _missing(row)
        if missing is None:
            x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = row
            m_h = self.problem.m_h
            self.problem.numbers(x0, p, lbx, ubx, lbg[m_h:], ubg[m_h:], lam_x0, lam_g0)
            return False
        warn(f"{self.name} in a graph: {missing.fault()}, so its outputs are NaN")
        return True

    def note(self, run: Run) -> None:
        """Make a run the last one, of the asking thread and of all."""
        calls = 0 if self.pool is None else self.pool.data.calls
        self._noted = self._last.noted = calls, run

    def last(self) -> Run:
        """The last run of the asking thread, or of any where that has made none.

        What was solved in a graph is solved once more.
        """
        pool, (calls, own) = self.pool, self._last.noted
        run = own or self._noted[1]
        if pool is not None:
            mine = pool.last(calls, threading.get_ident())
            found = mine or (None if own else pool.last(self._noted[0]))
            again = found and self._solve_row(found[1])
            if found and again:
                run, self._noted = again[1], (found[0], again[1])
                if mine:
                    self._last.noted = self._noted
        if run is None:
            raise RuntimeError(
                f"No stats available: {self.name} has not been called yet, or Ctrl-C ended "
                "its last call before the first iterate; call it first"
            )
        return run


def _repeated(value: Any) -> Any:
    """A list of one number as that number, which CasADi repeats."""
    row = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return value[0] if row and len(value) == 1 and np.ndim(value[0]) == 0 else value


def _copied(target: Vector, value: Any) -> bool:
    """Write a number or a list where the core reads it; False for what needs more than a copy."""
    kind = type(value)
    if kind is list or kind is tuple:
        if len(value) != target.size or not _NUMBERS.issuperset(map(type, value)):
            return False
    elif kind not in _NUMBERS:
        return False
    try:
        target[:] = value
    except OverflowError:  # a whole number beyond all others
        return False
    return True


def _missing(row: Sequence[Vector]) -> MissingNumberError | None:
    """The first entry of the arguments that is NaN, or infinite and no bound."""
    for name, values in zip(INPUTS, row, strict=True):
        bad = np.isnan(values) if name[:2] in ("lb", "ub") else ~np.isfinite(values)
        if bad.any():
            k = int(np.argmax(bad))
            return MissingNumberError(f"{name}[{k}]", "", float(values[k]))
    return None


def _warn_outside(problem: Problem, numbers: Numbers) -> None:
    from casadi_hybrid.result.explain.diagnosis import listed  # noqa: PLC0415 - where it is asked for

    x0, bounds = numbers.x0, numbers.bounds
    outside = np.flatnonzero((x0 < bounds.lbx) | (x0 > bounds.ubx))
    if outside.size:
        names = listed([problem.functions.variable_names[i] for i in outside])
        warn(f"x0 is outside its bounds at {names}")
