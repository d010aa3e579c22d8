"""Structures of one run of the core, and a run that is looked at after its end."""

import ctypes as ct
from collections.abc import Iterator
from typing import Any

import numpy as np
from engine_cases import POINTER, core_in_pieces

from casadi_hybrid import Problem
from casadi_hybrid.basics.casadi_internals import trigger
from casadi_hybrid.engine.core import Core
from casadi_hybrid.engine.header import C
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.numbers import Numbers

SOLVED, LIMIT = C.HYBRID_SOLVED, C.HYBRID_LIMIT
INFEASIBLE, STALLED = C.HYBRID_INFEASIBLE, C.HYBRID_STALLED


class EndedRun:
    """A run by composite steps, or by the interior-point method, on a workspace that has ended."""

    def __init__(self, library: Any, core: Core, *, composite: bool) -> None:
        self._core = core  # whose memory the run looks at
        plan = POINTER(ct.addressof(core.plan.data))
        sizes = [ct.c_longlong() for _ in range(3)]
        library.hybrid_composite_memory(plan, 1, *map(ct.byref, sizes))
        self._bytes = np.zeros(sizes[0].value // 8 + 1)
        self._doubles = np.empty(max(1, sizes[1].value))
        self._ints = np.empty(max(1, sizes[2].value), dtype=np.int32)
        library.hybrid_state_doubles.restype = ct.c_longlong
        self._of_state = np.empty(library.hybrid_state_doubles(plan))
        self.state = C.hybrid_state()
        library.hybrid_state_attach(plan, POINTER(self._of_state.ctypes.data), ct.byref(self.state))
        memory = (one.ctypes.data for one in (self._bytes, self._doubles, self._ints))
        space, options = core.data, core.options
        run = library.hybrid_composite_steps if composite else library.hybrid_interior_point
        self.status = run(
            *(POINTER(getattr(space, name)) for name in ("plan", "functions", "numbers")),
            ct.byref(options.composite if composite else options.first),
            *map(POINTER, memory), ct.byref(self.state), POINTER(space.answer),
        )  # fmt: skip
        self.bytes = POINTER(self._bytes.ctypes.data)


def ended_at(problem: Problem, numbers: Numbers, *, alone: bool = True) -> EndedRun:
    """A run by composite steps that has ended at its start.

    Args:
        problem: equations.
        numbers: its numbers; the start is no solution.
        alone: whether rows are as they are, as where there are composite steps alone.
    """
    library, limits = core_in_pieces(), Limits(max_iter=0)
    plan = plan_of(library, problem, numbers.bounds)
    core = Core(library, problem, plan, limits, trigger(), alone)
    core.fill(numbers, None)
    core.limit(limits)
    run = EndedRun(library, core, composite=True)
    assert run.status == LIMIT
    return run


def reduction_of(problem: Problem, x0: Any) -> Iterator[tuple[Any, Any]]:
    """(x_1, h_1), (x_2, h_2), … of the steps on ½‖h‖² alone, as long as C takes any."""
    run = ended_at(problem, problem.numbers(x0=x0))
    x, h = np.empty(problem.n), np.empty(problem.m)
    while True:
        at = (POINTER(one.ctypes.data) for one in (x, h))
        status = core_in_pieces().pieces_reduce(run.bytes, *at)
        assert status in (SOLVED, INFEASIBLE, STALLED)
        if status != SOLVED:
            return
        yield x.copy(), h.copy()
