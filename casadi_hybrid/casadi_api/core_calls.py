"""The way of one thread's numbers to the core, and back as CasADi's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import warn
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.late import LateModule
from casadi_hybrid.casadi_api.convention import INPUTS
from casadi_hybrid.casadi_api.graphs.function import defaults_of
from casadi_hybrid.casadi_api.options import NlpOptions
from casadi_hybrid.casadi_api.run import Run
from casadi_hybrid.engine.external import OTHER_SHAPE, OUTPUTS_OF_CASADI, External
from casadi_hybrid.engine.solve import Core
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import BAD_NUMBERS, OTHER_PATTERN
from casadi_hybrid.engine.warm import Engine, any_engine_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import WorkingSet
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.columns import as_column, in_shape
from casadi_hybrid.problem.evaluator import evaluating_until_when
from casadi_hybrid.problem.numbers import Numbers
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.session.start import read_start

if TYPE_CHECKING:
    from casadi_hybrid.result import record as records
    from casadi_hybrid.result.record import Watch
    from casadi_hybrid.result.result import Result
    from casadi_hybrid.session import solve as sessions
else:
    sessions = LateModule("casadi_hybrid.session.solve")
    records = LateModule("casadi_hybrid.result.record")

_REFUSED = OTHER_SHAPE, BAD_NUMBERS, OTHER_PATTERN
_REAL = frozenset((float, int, np.float64))
Given = tuple[Any, Any, Any, Any, Any, Any, Any, Any]
"""Arguments in CasADi's order, None for what was left out."""


class CoreCalls:
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
        core.observer.count = 0
        try:
            outputs: dict[str, ca.DM] = external.ready.call(external.solver)
        finally:
            core.busy = False
        if external.data.status in _REFUSED:
            return None
        run = Run(self._problem, limits, space.numbers_in.copy(), space.places_in, space.solved(),
                  rows=core.rows() if core.drained else core.buffer[: core.observer.count].copy(),
                  functions=space.called, raised=core.raised)  # fmt: skip
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
        """Solve after all arguments have been checked.

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
        """Solve for unchecked numbers, bounds of all rows; None for bad ones."""
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
            raise interrupt_in(error) from None
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
        """What is shown each iterate; None where that is only the result."""
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


def interrupt_in(error: SystemError) -> BaseException:
    """The Ctrl-C that arrived while SWIG made CasADi's matrices, which lets a SystemError out."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return error if cause is None else cause


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
