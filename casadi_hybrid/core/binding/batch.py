"""Many solves on the core, over threads: C has the shares, Python hands them out."""

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

_PIECES = 8
"""So many times a thread comes for more: some solves take longer than others."""


class Rows:
    """The numbers of many solves, a row of each, as of :attr:`Core.numbers`.

    Args:
        numbers: of each the inputs; outputs are written beside them.
        sides: of each the working set to try first, n + m sides; ``with_sides``: which have one.
        places: which part of a row has which name.

    Attributes:
        called: which functions were called, see :attr:`Core.called`.
        seen: the numbers of the iterates of a share of the solves, by the first of them.
    """

    def __init__(
        self, numbers: Vector, sides: Sides, with_sides: Sides, places: Mapping[str, slice]
    ) -> None:
        self.called, self._kept = ("", ""), (numbers, sides, with_sides)
        self._answers = np.zeros(len(numbers), C.hybrid_answer)
        self.seen: dict[int, Vector] = {}
        self.data = C.hybrid_rows(
            numbers=address(numbers), inputs=places["x"].start, each=numbers.shape[1],
            sides=address(sides), with_sides=address(with_sides),
            answers=address(self._answers),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._kept[0])

    def verdicts(self) -> tuple[NDArray[np.bool_], list[int]]:
        """Which of them are solved, and the numbers of those with bounds of other kinds."""
        refused = self._answers["status"] == C.HYBRID_OTHER_PATTERN
        return self._answers["point"] == C.HYBRID_KKT_POINT, np.flatnonzero(refused).tolist()

    def answer(self, k: int) -> tuple[Any, Vector]:
        """What C says of solve k, and the numbers of its iterates."""
        begin = max(one for one in self.seen if one <= k)
        counts = self._answers["rows"][begin : k + 1]
        end = int(counts.sum())
        said = C.hybrid_answer.from_buffer_copy(self._answers[k])
        return said, self.seen[begin][end - counts[-1] : end]


def solve_rows(engine: Engine, bounds: Bounds, limits: Limits, rows: Rows, threads: int) -> None:
    """Solve all rows by so many threads, a core each, of which the asking one is the first.

    A row is solved as if it were alone: its numbers and its bits do not hang on the others.

    Args:
        engine: for rows, see :func:`~casadi_hybrid.core.binding.core.engine_of`.
        bounds: of the first; the others are solved where theirs are of the same kinds.
    """
    piece = max(1, len(rows) // (threads * _PIECES))
    begins, cores, ended = range(0, len(rows), piece), list[Core](), threading.Event()

    def solve(core: Core, begin: int) -> None:
        end = min(begin + piece, len(rows))
        core.observer.count, core.raised = 0, None
        adapter().hybrid_solve_rows(ct.addressof(core.data), ct.addressof(rows.data), begin, end)
        rows.seen[begin] = core.rows[: core.observer.count].copy()
        if core.raised is not None:  # Ctrl-C
            raise core.raised

    try:
        for _ in range(min(threads, len(begins))):
            core = engine.core(bounds, limits, repeated=True)
            core.differentiate()
            core.limit(limits)
            core.busy, core.halted = True, ended.is_set
            cores.append(core)
        share_out(begins, [partial(solve, core) for core in cores], ended)
    finally:
        for core in cores:
            core.busy, core.halted = False, bool
    rows.called = cores[0].called
