"""One solver's runs: numbers in, CasADi's outputs and statistics out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
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
from casadi_hybrid.casadi_api.graphs.function import columns_of, defaults_of
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.engine.blocks.serving import machine_code
from casadi_hybrid.engine.external import OTHER_SHAPE, OUTPUTS_OF_CASADI, External
from casadi_hybrid.engine.solve import Core
from casadi_hybrid.engine.solved import NOTHING, Solved
from casadi_hybrid.engine.structures import BAD_NUMBERS, OTHER_PATTERN
from casadi_hybrid.engine.warm import Engine, any_engine_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import WorkingSet
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.columns import as_column, in_shape
from casadi_hybrid.problem.evaluator import evaluating_until, evaluating_until_when
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.session.start import read_start

if TYPE_CHECKING:
    from casadi_hybrid.casadi_api.callbacks import StepCallback
    from casadi_hybrid.engine.batch import Crew
    from casadi_hybrid.engine.in_graph import Pool
    from casadi_hybrid.result import record as records
    from casadi_hybrid.result.record import Watch
    from casadi_hybrid.result.result import Result
    from casadi_hybrid.session import solve as sessions
else:
    sessions = LateModule("casadi_hybrid.session.solve")
    records = LateModule("casadi_hybrid.result.record")

_REFUSED = OTHER_SHAPE, BAD_NUMBERS, OTHER_PATTERN
_SOLVING = 0.9
"""Part of the time of a call in which steps may begin; the rest is for the answer."""
_in_order = itemgetter(*OUTPUTS_OF_CASADI)
"""The outputs as CasADi lists them; its dictionaries are sorted by the names."""
_REAL = frozenset((float, int, np.float64))
_CALLED = ("interpreted", "")
_NONE = np.zeros((0, 11))  # rows of iterates
Given = tuple[Any, Any, Any, Any, Any, Any, Any, Any]
"""Arguments in CasADi's order, None for what was left out."""


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


class Run:
    """What stays of one call; its result and statistics are made where they are asked for.

    Args:
        problem, limits: what was solved.
        inputs, places: the numbers in one array, and which part of it has which name.
        found: what the core says; rows: the numbers of its iterates.
        functions: which functions were called, and a note.
        raised: what a user's function raised on the way, or Ctrl-C.
        callback: what was called with each iterate.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        inputs: Vector,
        places: Mapping[str, slice],
        found: Solved,
        *,
        rows: Vector,
        functions: tuple[str, str],
        raised: BaseException | None = None,
        callback: StepCallback | None = None,
    ) -> None:
        self._problem, self._limits = problem, limits
        inputs.setflags(write=False)
        self._inputs, self._places, self._found = inputs, places, found
        self._rows, self._functions = rows, functions
        self.raised, self.callback = raised, callback

    @property
    def p(self) -> Vector:
        """Parameter values."""
        return self._inputs[self._places["p"]]

    @property
    def outputs(self) -> Vector:
        """All outputs side by side."""
        return self._found.numbers

    @cached_property
    def result(self) -> Result:
        """The result."""
        of = {name: self._inputs[place] for name, place in self._places.items()}
        bounds = Bounds(of["lbx"], of["ubx"], of["lbg"], of["ubg"])
        numbers = Numbers(of["x0"], of["p"], bounds, of["lam_x0"], of["lam_g0"])
        made = sessions.result_of(self._problem, numbers, self._limits, self._found)
        return sessions.finished(made, self._watch.course(), self.raised)

    @cached_property
    def _watch(self) -> Watch:
        made = records.Watch()
        made.take(self._rows.tolist())
        made.hold(self._found.steps)
        return made

    @cached_property
    def stats(self) -> dict[str, Any]:
        """The statistics under CasADi's keys."""
        from casadi_hybrid.casadi_api.stats import casadi_stats  # noqa: PLC0415 - where asked for

        lists = self._watch.lists
        return casadi_stats(self.result, lists, self.callback, self._functions)


class Latest:
    """The last run of each thread and of all.

    Attributes:
        pool: the memory of solves in graphs, where C makes them: of these only the inputs are kept.
    """

    def __init__(self) -> None:
        self.pool: Pool | None = None
        self._run: Run | None = None
        self._calls = 0  # solves in graphs at the time of the latest run
        self._of_thread = threading.local()

    def note(self, run: Run | None) -> None:
        """Make a run the last one, of the asking thread and of all."""
        self._run = self._of_thread.run = run
        self._calls = self._of_thread.calls = 0 if self.pool is None else self.pool.calls()

    def find(self, again: Callable[[list[Vector]], Run | None]) -> Run | None:
        """The last run of the asking thread, or of any where that has made none.

        Args:
            again: solves once more what was solved in a graph; None where it was not begun.
        """
        of_thread, pool = self._of_thread, self.pool
        own: Run | None = getattr(of_thread, "run", None)
        if pool is None:
            return own or self._run
        mine = pool.last(getattr(of_thread, "calls", 0), threading.get_ident())
        found = mine or (None if own else pool.last(self._calls))
        run = None if found is None else again(found[1])
        if found is None or run is None:
            return own or self._run
        self._run, self._calls = run, found[0]
        if mine:
            of_thread.run, of_thread.calls = run, found[0]
        return run


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
        self.crew: Crew | None = None
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
        return self._returned(self._door().solve_checked(given, warm_start, None))

    def plain(self, given: Given, warm_start: Result | None) -> dict[str, ca.DM] | None:
        """The same where all arguments can be copied as they are; None for the others."""
        try:
            door: _Door = self._of_thread.door
        except AttributeError:
            door = self._door()
        if not door.plain:
            return None
        try:
            found = door.quick(given) if warm_start is None else None
        except SystemError as error:
            raise _interrupt_in(error) from None
        if found is None:
            found = door.solve_plain(given, warm_start, None)
        return None if found is None else self._returned(found)

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
        door = self._door()
        found = door.solve_plain(given, warm_start, own) if door.plain else None
        return door.solve_checked(given, warm_start, own) if found is None else found

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
        return silent and self._door().plain

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

    def _door(self) -> _Door:
        of_thread = self._of_thread
        try:
            known: _Door = of_thread.door
        except AttributeError:
            known = of_thread.door = _Door(self.problem, self.options)
        return known

    def evaluate(self, arguments: list[ca.DM]) -> list[ca.DM]:
        """Solve at the columns that a graph gives: all eight, bounds of all rows.

        Where one has no numbers there are none in the answer, with a warning and statistics of a
        solve that failed: a graph may have many solves side by side, and an exception would take
        the answers of all. With ``error_on_fail`` it is raised.
        """
        row = [array_of(one).ravel() for one in arguments]
        found = self._door().solve_row(row)
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
        found, missing = self._door().solve_row(row), _missing(row)
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
        kept["crew"] = kept["compiled"] = None
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._latest, self._of_thread = Latest(), threading.local()
        self.compiled = machine_code(self.problem, self.options.machine_code)


class _Door:
    """The way of one thread's numbers to the core, and back.

    Args:
        problem, options: of the solver.
    """

    def __init__(self, problem: Problem, options: NlpOptions) -> None:
        self._problem, self._options, self._limits = problem, options, options.limits
        self._engine: Engine = any_engine_of(problem)
        self._externals: dict[Core, External] = {}
        self._defaults: list[Vector] = []
        self._last: tuple[Core, External] | None = None
        self._lost = self._engine.evaluate is None
        simple = not (problem.m_h or problem.shapes or self._lost)
        self.plain = simple and options.warm and not options.warn_initial_bounds

    def quick(self, given: Given) -> tuple[dict[str, ca.DM], Run] | None:
        """The shortest way, by the core that was used last; None where it is not for that."""
        last = self._last
        if last is None or last[0].busy:
            return None
        core, external = last
        space, limits, matrices = core.space, self._limits, external.matrices
        for i, value in enumerate(given):
            kind = type(value)
            if kind is ca.DM:
                matrices[i] = int(value.this)
                continue
            if value is None:
                space.ordered[i][:] = self._defaults[i]
            elif kind is float or kind is int:
                space.ordered[i].fill(value)
            elif not _copied(space.ordered[i], value):
                return None
            matrices[i] = None
        if space.limits is not limits or space.awaited is not None:
            space.limit(limits)
        if space.sided:
            space.begin_with(None)
        if core.look is not None:
            core.begin()
        core.drained, core.raised, core.busy = [], None, True
        try:
            outputs: dict[str, ca.DM] = external.ready.call(external.solver)
        finally:
            core.busy = False
        if external.data.status in _REFUSED:
            return None
        run = Run(self._problem, limits, space.numbers_in.copy(), space.places_in, space.solved(),
                  rows=core.rows(), functions=space.called, raised=core.raised)  # fmt: skip
        if core.raised is not None:
            self._settle(run)
        return outputs, run

    def solve_plain(
        self, given: Given, warm_start: Result | None, own: Limits | None
    ) -> tuple[dict[str, ca.DM], Run] | None:
        """Solve, None where an argument needs more than a copy, or bounds are of other kinds."""
        sides = None
        if warm_start is not None:
            x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = given
            if not _is_known(warm_start, self._problem):
                return None
            given = (
                warm_start.x if x0 is None else x0, p, lbx, ubx, lbg, ubg,
                warm_start.lam_x if lam_x0 is None else lam_x0,
                warm_start.lam_g if lam_g0 is None else lam_g0,
            )  # fmt: skip
            sides = warm_start.working_set
        self._defaults = self._defaults or defaults_of(self._problem)
        for core in self._engine.cores(self._limits):
            external = self._external(core)
            if external is None or not self._fill(core, external, given):
                return None
            found = self._solve(core, external, given, sides, own)
            if found is not None:
                self._engine.use(core)
                silent = self._options.iteration_callback is None and not self._options.log
                self._last = (core, external) if silent and external.fetches else None
                return found
        return None

    def solve_checked(
        self, given: Given, warm_start: Result | None, own: Limits | None
    ) -> tuple[dict[str, ca.DM], Run]:
        """Solve after all arguments have been looked at.

        Raises:
            InputError: for a bad argument, before any evaluation.
        """
        problem, options = self._problem, self._options
        x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = given
        if not options.warm:
            lam_x0 = lam_g0 = None
        if p is None and problem.p0 is None:
            p = 0.0
        p = as_column(p, problem.shapes.get("p"))
        numbers, warm = read_start(
            problem, warm_start, x0, lam_x0, lam_g0, p=p, lbx=lbx, ubx=ubx, lbg=lbg, ubg=ubg
        )
        if options.warn_initial_bounds:
            _warn_outside(problem, numbers)
        core = self._engine.core(numbers.bounds, self._limits)
        core.space.fill(numbers, warm)
        external = self._external(core)
        if external is not None:
            external.matrices[:] = [None] * len(INPUTS)
        sides = None if warm is None else warm.working_set
        found = self._solve(core, external, None, sides, own)
        assert found is not None
        return found

    def solve_row(self, row: Sequence[Vector]) -> tuple[dict[str, ca.DM], Run] | None:
        """Solve for numbers that nobody has looked at, bounds of all rows; None for bad ones."""
        named = dict(zip(INPUTS, row, strict=True))
        bounds = Bounds(*(named[name] for name in ("lbx", "ubx", "lbg", "ubg")))
        core = self._engine.core(bounds, self._limits)
        for name, value in named.items():
            used = self._options.warm or name not in ("lam_x0", "lam_g0")
            core.space.inputs[name][:] = value if used else 0.0
        return self._solve(core, None, None, None, None)

    def _solve(
        self,
        core: Core,
        external: External | None,
        given: Given | None,
        sides: WorkingSet | None,
        own: Limits | None,
    ) -> tuple[dict[str, ca.DM], Run] | None:
        """Solve for what the core has been given; None where that is not for it."""
        space, limits, problem = core.space, own or self._limits, self._problem
        watch = self._watch(space.inputs["p"])
        look = None if watch is None else watch.look
        space.limit(limits)
        space.begin_with(sides)
        core.begin(look, evaluating_until_when())
        try:
            outputs, status = _called(core, external, given)
        except SystemError as error:
            raise _interrupt_in(error) from None
        finally:
            core.end()
        if outputs is None or status in _REFUSED:
            return None
        found = space.solved()
        if watch is not None:
            watch.hold(found.steps)
        callback: Any = None if watch is None else watch.callback
        run = Run(
            problem, limits, space.numbers_in.copy(), space.places_in, found, rows=core.rows(),
            functions=space.called, raised=core.raised,
            callback=callback,
        )  # fmt: skip
        self._settle(run)
        if external is None:
            outputs = self._outputs(run, found)
        if problem.shapes:
            outputs = in_shape(outputs, problem.shapes)
        return outputs, run

    def _watch(self, p: Vector) -> Watch | None:
        """What is shown each iterate; None where nobody looks before the solve has ended."""
        options = self._options
        if options.iteration_callback is None and not options.log:
            return None
        from casadi_hybrid.casadi_api.callbacks import StepCallback  # noqa: PLC0415

        callback = options.iteration_callback and StepCallback(
            options.iteration_callback,
            options.iteration_callback_step,
            options.iteration_callback_ignore_errors,
            self._problem.parameter_gradient,
            p.copy(),
        )
        return records.Watch(callback, int(options.log))

    def _settle(self, run: Run) -> None:
        """Say in the run what of all that was raised comes out.

        Raises:
            KeyboardInterrupt: before the first iterate.
        """
        if run.callback is not None and run.callback.raised is not None:
            run.raised = run.callback.raised
        if isinstance(run.raised, KeyboardInterrupt):
            run.raised = sessions.halted(run.result, run.raised)
        elif self._lost and not run.result.success and run.result.error is not None:
            run.raised = run.result.error.__cause__  # None where it gave NaN

    def _fill(self, core: Core, external: External, given: Given) -> bool:
        """Hand the arguments over; False for one that needs more than a copy."""
        matrices, inputs = external.matrices, core.space.inputs
        for i, value in enumerate(given):
            if type(value) is ca.DM:
                matrices[i] = int(value.this)
            elif _copied(inputs[INPUTS[i]], self._defaults[i] if value is None else value):
                matrices[i] = None
            else:
                return False
        return True

    def _external(self, core: Core) -> External | None:
        """The solver as a Function, made at its first use; None where functions run Python."""
        found = self._externals.get(core)
        if found is None and not self._lost:
            kept = self._engine.cores(self._limits)
            self._externals = {key: one for key, one in self._externals.items() if key in kept}
            gradient = self._problem.parameter_gradient if self._problem.n_p else None
            found = External(core, gradient, self._engine.evaluate or 0)
            self._externals[core] = found
        return found

    def _outputs(self, run: Run, found: Solved) -> dict[str, ca.DM]:
        """x, f, g, lam_x, lam_g, lam_p where CasADi has not written them."""
        outputs = {name: ca.DM(found.array(name)) for name in OUTPUTS_OF_CASADI[:5]}
        slope = self._problem.parameter_gradient(outputs["x"], outputs["lam_g"], run.p)
        return {**outputs, "lam_p": -ca.densify(slope)}


def _called(
    core: Core, external: External | None, given: Given | None
) -> tuple[dict[str, ca.DM] | None, int]:
    """The outputs that CasADi has written, and the status; None for what has to be checked."""
    if external is None:
        return {}, core.solve()
    outputs: dict[str, ca.DM]
    if given is None or external.fetches:
        outputs = external.ready.call(external.solver)
        status = external.status
        if status != OTHER_SHAPE:
            return outputs, status
        external.fetches = False  # who gives one of another shape will do so again
    assert given is not None
    pairs = zip(INPUTS, given, strict=True)
    handed = {name: value for name, value in pairs if type(value) is ca.DM}
    external.there[:] = [name not in handed for name in INPUTS]
    try:
        outputs = external.function.call({**handed, **external.solver})
    except RuntimeError:  # of another shape
        return None, OTHER_SHAPE
    # Of several columns CasADi has made several solves.
    return (outputs if outputs["f"].numel() == 1 else None), external.status


def _interrupt_in(error: SystemError) -> BaseException:
    """The Ctrl-C that arrived while SWIG made CasADi's matrices, which lets a SystemError out."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return error if cause is None else cause


def without_numbers(
    problem: Problem, limits: Limits, row: Sequence[Vector], missing: MissingNumberError
) -> Run:
    """The run of a solve in a graph, one of whose arguments has no number."""
    x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0 = row
    numbers = Numbers(x0, p, Bounds(lbx, ubx, lbg, ubg), lam_x0, lam_g0)
    made = Run(
        problem, limits, p.copy(), {"p": slice(None)}, NOTHING, rows=_NONE, functions=_CALLED
    )
    made.__dict__["result"] = sessions.undefined_result(problem, numbers, limits, missing)
    return made


def _is_known(warm_start: Any, problem: Problem) -> bool:
    """Whether it is the result of a solve of this size that has a working set."""
    from casadi_hybrid.result.result import Result  # noqa: PLC0415 - not for a first solve

    if not isinstance(warm_start, Result) or not warm_start.success:
        return False
    return (warm_start.x.size, warm_start.g.size) == (problem.n, problem.m)


def _warn_outside(problem: Problem, numbers: Numbers) -> None:
    from casadi_hybrid.result.explain.diagnosis import listed  # noqa: PLC0415 - where it is asked for

    x0, bounds = numbers.x0, numbers.bounds
    outside = np.flatnonzero((x0 < bounds.lbx) | (x0 > bounds.ubx))
    if outside.size:
        names = listed([problem.functions.variable_names[i] for i in outside])
        warn(f"x0 is outside its bounds at {names}")


def _copied(target: Vector, value: Any) -> bool:
    """Write an argument where the core reads it; False for what needs more than a copy."""
    kind = type(value)
    if kind is np.ndarray:
        if value.shape != target.shape or value.dtype != np.float64:
            return False
        target[:] = value
        return True
    if kind is list or kind is tuple:
        if len(value) != target.size or not _REAL.issuperset(map(type, value)):
            return False
        try:
            target[:] = value
        except OverflowError:  # a whole number beyond all others
            return False
        return True
    if kind is float or kind is int:
        target.fill(value)
        return True
    return False


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
