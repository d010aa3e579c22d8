"""One solve by the core for all callers: values in, iterates shown, exceptions and Ctrl-C settled.

:func:`solve` runs the core for the values that it holds already. ``Solver`` and ``nlpsol`` are two
faces of it: they read arguments, and return a result or CasADi's outputs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from casadi_hybrid.core.binding.core import ELSE, MATRIX, Core
from casadi_hybrid.core.binding.plan import prepared
from casadi_hybrid.core.binding.solved import Solved
from casadi_hybrid.problem.arguments import Numbers
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.point.working_set import WorkingSet
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.errors import BrokenFunctionError, InputError, Interrupted, OutOfTimeError
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.late import LateModule
from casadi_hybrid.utils.status import PointStatus

if TYPE_CHECKING:
    from casadi_hybrid.solver import solve as results
    from casadi_hybrid.solver.record.record import Watch
    from casadi_hybrid.solver.result import Result
else:
    results = LateModule("casadi_hybrid.solver.solve")

# Arguments in CasADi's order, None for an omitted one.
Values = Sequence[Any]
_NUMBERS, _FLOAT = frozenset((float, int, np.float64)), np.dtype(np.float64)


class Run(Solved):
    """A finished solve with its result."""

    outputs: dict[str, ca.DM]  # CasADi's, if they were requested
    late: bool = False  # the time limit ended an evaluation of a function in Python
    called_back: tuple[int, float] = 0, 0.0  # calls of the iteration callback, and their seconds

    @cached_property
    def result(self) -> Result:
        """The result, made when it is first asked for."""
        return results.result_of(self)


def solve(
    core: Core,
    problem: Problem,
    limits: Limits,
    watch: Watch | None = None,
    *,
    matrices: bool = False,
) -> Run | None:
    """Solve for the values that a core holds; None if the core refuses them.

    The caller raises an exception left in ``raised``: one of a callback or a test, or Ctrl-C, which
    carries the result. Ctrl-C before the first iterate is raised here.
    """
    outputs = core.solve(limits, None if watch is None else watch.see, matrices=matrices)
    if outputs is None:
        return None
    run = Run.of(core, problem, limits)
    if matrices:
        # Written out: a comprehension is a further Python call in every solve.
        run.outputs = {
            "x": outputs["x"],
            "f": outputs["f"],
            "g": outputs["g"],
            "lam_x": outputs["lam_x"],
            "lam_g": outputs["lam_g"],
            "lam_p": outputs["lam_p"],
        }
    if watch is not None and run.raised is None:
        try:
            watch.hold(run.said.steps)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            run.raised = error
    if run.raised is not None:
        _settle(run, run.raised)
    return run


def _settle(run: Run, raised: BaseException) -> None:
    """Make the result, which says how the solve ended; leave in ``raised`` the caller's own."""
    result = run.result
    if isinstance(raised, OutOfTimeError):
        run.late = True
    # Exceptions of functions, and the end of the time, are in the result.
    if isinstance(raised, OutOfTimeError | BrokenFunctionError):
        run.raised = None
    elif isinstance(raised, KeyboardInterrupt):
        if result.point is PointStatus.UNDEFINED:
            raise raised
        if not isinstance(raised, Interrupted):
            run.raised = Interrupted()
            run.raised.__cause__ = raised
        run.raised.result = result  # type: ignore[union-attr]


class _Last(threading.local):
    """The core of a thread's last solve, if it may be called again at once."""

    core: Core | None = None


class Session:
    """Solves of one problem under one set of limits; several threads may use it at once."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem, self.limits, self._last = problem, limits, _Last()
        if limits.max_time < np.inf:  # no solve with a deadline waits for the preparation
            prepared(problem)
            results.result_of  # noqa: B018
        start = problem.numbers(p=0.0 if problem.p0 is None else None)
        b = start.bounds
        bounds = b.lbx, b.ubx, b.lbg, b.ubg
        self._defaults = start.x0, start.p, *bounds, start.lam_x0, start.lam_g0
        self._equations = problem.m_h > 0

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.limits)

    def quick(
        self,
        values: Values,
        warm_start: Result | None = None,
        limits: Limits | None = None,
        *,
        matrices: bool = True,
    ) -> Run | None:
        """Solve by the core that was used last; None if values cannot be copied or are bad."""
        core = self._last.core
        if core is None or core.busy:
            return None
        if self._equations and (values[4] is not None or values[5] is not None):
            return None  # bounds of g alone are not those of all rows
        sides = None
        if warm_start is not None:
            x0, *others, lam_x0, lam_g0 = values
            x0, *multipliers = start_values(warm_start, self.problem, x0, lam_x0, lam_g0)
            values = x0, *others, *multipliers
            sides = warm_start.working_set if warm_start.success else None
        held, pointers, ordered, shapes = core.held, core.matrices, core.ordered, core.shapes
        # The loop of every warm call: values that the core holds already are not written again.
        for i, value in enumerate(values):
            last, kind = held[i], type(value)
            if value is last:
                continue
            # The core reads the numbers of a DM where they are; it stays referenced by the caller.
            if matrices and kind is core.matrix_type:
                pointers[i], held[i] = int(value.this), MATRIX
                continue
            if last is MATRIX:
                pointers[i] = None
            held[i] = ELSE
            if kind is np.ndarray and value.shape == shapes[i] and value.dtype == _FLOAT:
                ordered[i][:] = value
            elif value is None:
                ordered[i][:] = self._defaults[i]
            elif not _copied(ordered[i], value):
                return None
            # Immutable, so the same object next time is the same value. An array may have changed.
            if value is None or kind in _NUMBERS:
                held[i] = value
        if sides is not None or core.sided:
            core.begin_with(sides)
        return solve(core, self.problem, limits or self.limits, matrices=matrices)

    def keep(self, core: Core | None) -> None:
        """Have :meth:`quick` use this core in this thread; None if functions run Python."""
        self._last.core = core


def _copied(target: Vector, value: Any) -> bool:
    """Write a number or a list where the core reads it; False if a copy does not suffice."""
    kind = type(value)
    if kind is list or kind is tuple:
        if len(value) != target.size or not _NUMBERS.issuperset(map(type, value)):
            return False
    elif kind not in _NUMBERS:
        return False
    try:
        target[:] = value
    except OverflowError:  # an integer beyond the largest float
        return False
    return True


def start_values(
    warm: Result, problem: Problem, x0: Any, lam_x0: Any, lam_g0: Any
) -> tuple[Any, ...]:
    """(x0, lam_x0, lam_g0) as the caller gave them, else those of the warm start."""
    from casadi_hybrid.solver.result import Result  # noqa: PLC0415 - not for a first solve

    if not isinstance(warm, Result):
        raise InputError(
            "warm_start must be the result of a solve (solver.result), got "
            f"{type(warm).__name__}; numbers go to x0, lam_x0 and lam_g0"
        )
    if (warm.x.size, warm.g.size) != (problem.n, problem.m):
        raise InputError(
            f"warm_start has {warm.x.size} variables and {warm.g.size} constraints, the "
            f"problem has {problem.n} and {problem.m}; give x0, lam_x0 and lam_g0 of the right "
            "sizes"
        )
    x, lam_x, lam_g = warm.last.values() if warm.last else (warm.x, warm.lam_x, warm.lam_g)
    return (
        x if x0 is None else x0,
        lam_x if lam_x0 is None else lam_x0,
        lam_g if lam_g0 is None else lam_g0,
    )


def read_start(
    problem: Problem, warm: Result | None, x0: Any, lam_x0: Any, lam_g0: Any, **others: Any
) -> tuple[Numbers, WorkingSet | None]:
    """Return the checked values of one solve, and the working set that it tries first."""
    if warm is not None:
        x0, lam_x0, lam_g0 = start_values(warm, problem, x0, lam_x0, lam_g0)
    numbers = problem.numbers(x0=x0, lam_x0=lam_x0, lam_g0=lam_g0, **others)
    # The active set of a point that is no solution would mislead the first steps.
    return numbers, warm.working_set if warm is not None and warm.success else None
