"""Many solves on the core by several threads: Python hands out shares, C solves them."""

from __future__ import annotations

import ctypes as ct
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.binding.core import Core, Engine
from casadi_hybrid.core.binding.externals import adapter
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.point.working_set import Sides
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.inputs import Vector
from casadi_hybrid.utils.threads import share_out

# Shares of a thread: solves differ in time.
_PIECES = 8


class Rows:
    """Numbers of many solves, a row of each, laid out as :attr:`Core.numbers`.

    ``sides`` has n + m sides of each solve, to try first if ``with_sides`` is 1.
    """

    def __init__(
        self, numbers: Vector, sides: Sides, with_sides: Sides, places: Mapping[str, slice]
    ) -> None:
        # called: form of the functions, see Core.called. C reads the arrays, so they are kept.
        self.called, self._arrays = ("", ""), (numbers, sides, with_sides)
        self._answers = np.zeros(len(numbers), C.hybrid_answer)
        # Numbers of the iterates of a share, by its first solve.
        self.seen: dict[int, Vector] = {}
        arrays = address(sides), address(with_sides), address(self._answers)
        # The inputs come first; the outputs begin with x.
        widths = places["x"].start, numbers.shape[1]
        self.data = C.hybrid_rows(address(numbers), *widths, *arrays)

    def __len__(self) -> int:
        return len(self._arrays[0])

    def verdicts(self) -> tuple[NDArray[np.bool_], list[int]]:
        """Mask of the solved rows, and the indices of rows with bounds of other kinds."""
        refused = self._answers["status"] == C.HYBRID_OTHER_PATTERN
        return self._answers["point"] == C.HYBRID_KKT_POINT, np.flatnonzero(refused).tolist()

    def answer(self, k: int) -> tuple[Any, Vector]:
        """``hybrid_answer`` of solve k, and the numbers of its iterates."""
        # A share has the iterates of its solves one after the other, `rows` is their number.
        begin = max(first for first in self.seen if first <= k)
        counts = self._answers["rows"][begin : k + 1]
        end = int(counts.sum())
        answer = C.hybrid_answer.from_buffer_copy(self._answers[k])
        return answer, self.seen[begin][end - counts[-1] : end]


def solve_rows(engine: Engine, bounds: Bounds, limits: Limits, rows: Rows, threads: int) -> None:
    """Solve all rows with bounds of these kinds by several threads, the calling one among them."""
    # The bits of a row do not depend on its share: each solve begins anew.
    piece = max(1, len(rows) // (threads * _PIECES))
    begins, cores, ended = range(0, len(rows), piece), list[Core](), threading.Event()

    def solve(core: Core, begin: int) -> None:
        end = min(begin + piece, len(rows))
        core.observer.count, core.raised = 0, None
        adapter().hybrid_solve_rows(ct.addressof(core.data), ct.addressof(rows.data), begin, end)
        # A copy: the core writes its next share over its rows.
        rows.seen[begin] = core.rows[: core.observer.count].copy()
        if core.raised is not None:  # Ctrl-C
            raise core.raised

    try:
        for _ in range(min(threads, len(begins))):
            # A busy core is not handed out again, so each thread gets its own.
            core = engine.core(bounds, limits, repeated=True)
            core.differentiate()
            core.limit(limits)
            # Threads poll `ended`, since Python raises Ctrl-C in the main thread alone.
            core.busy, core.halted = True, ended.is_set
            cores.append(core)
        share_out(begins, [partial(solve, core) for core in cores], ended)
    finally:
        for core in cores:
            core.busy, core.halted = False, bool
    rows.called = cores[0].called
