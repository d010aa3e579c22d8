"""Many solves on the core, over threads: C has the shares, Python hands them out."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.threads import share_out
from casadi_hybrid.engine.core import Engine
from casadi_hybrid.engine.externals import buffer_of
from casadi_hybrid.engine.header import C
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import Sides
from casadi_hybrid.problem.bounds import Bounds

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
    """

    def __init__(
        self, numbers: Vector, sides: Sides, with_sides: Sides, places: Mapping[str, slice]
    ) -> None:
        self.called, self._kept = ("", ""), (numbers, sides, with_sides)
        self._answers = (C.hybrid_answer * max(1, len(numbers)))()
        self._seen: dict[int, Vector] = {}
        self.data = C.hybrid_batch(
            numbers=address(numbers),
            outputs=address(numbers) + places["x"].start * numbers.itemsize,
            numbers_each=numbers.shape[1], outputs_each=numbers.shape[1],
            sides=address(sides), with_sides=address(with_sides),
            answers=ct.addressof(self._answers),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._kept[0])

    def success(self) -> NDArray[np.bool_]:
        """Which of them are solved."""
        return np.asarray(self._field("point") == C.HYBRID_KKT_POINT)

    def refused(self) -> NDArray[np.bool_]:
        """Which of them have bounds of other kinds than the first."""
        return np.asarray(self._field("status") == C.HYBRID_OTHER_PATTERN)

    def keep(self, begin: int, seen: Vector) -> None:
        """The numbers of the iterates of the solves from ``begin`` on, of one share."""
        self._seen[begin] = seen

    def answer(self, k: int) -> tuple[bytes, Vector]:
        """What C says of solve k, and the numbers of its iterates."""
        begin = max(one for one in self._seen if one <= k)
        counts = self._field("rows")[begin : k + 1]
        end = int(counts.sum())
        return bytes(self._answers[k]), self._seen[begin][end - counts[-1] : end]

    def _field(self, name: str) -> NDArray[np.int32]:
        whole = memoryview(self._answers).cast("B")
        return np.frombuffer(whole, np.dtype(C.hybrid_answer))[name][: len(self)]


class Workers:
    """Those who solve rows under one plan, a core each; several threads may ask at once."""

    def __init__(self, engine: Engine, bounds: Bounds, limits: Limits) -> None:
        self._engine, self._bounds, self._limits = engine, bounds, limits
        self.plan = plan_of(engine.library, engine.problem, bounds)
        self._idle: list[Any] = []

    def solve(self, rows: Rows, threads: int) -> None:
        """Solve all rows by so many threads, of which the asking one is the first.

        A row is solved as if it were alone: its numbers and its bits do not hang on the others.
        """
        piece = max(1, len(rows) // (threads * _PIECES))
        begins = range(0, len(rows), piece)
        workers = [self._worker() for _ in range(min(threads, len(begins)))]
        try:
            share_out(begins, [partial(self._share, rows, piece, *one) for one in workers])
        finally:
            for core, *_ in workers:
                core.end()
        rows.called = workers[0][0].called
        self._idle += workers  # which others may have taken as soon as they are there

    def _share(self, rows: Rows, piece: int, core: Any, slope: Any, _kept: Any, begin: int) -> None:
        at = core.data
        self._engine.library.hybrid_solve_batch(
            at.plan, at.functions, ct.addressof(slope), at.numbers, at.options, at.bytes,
            at.doubles, at.ints, ct.addressof(rows.data), begin, min(begin + piece, len(rows)),
        )  # fmt: skip
        rows.keep(begin, core.rows())
        if core.raised is not None:  # Ctrl-C
            raise core.raised

    def _worker(self) -> tuple[Any, Any, Any]:
        """A core, what gives it the slope by the parameters, and what that needs."""
        worker: tuple[Any, Any, Any]
        try:
            worker = self._idle.pop()
        except IndexError:
            engine = self._engine
            gradient = engine.problem.parameter_gradient
            buffer, kept = buffer_of(gradient, engine.evaluate or 0)
            evaluates = ct.cast(engine.library.hybrid_buffered_slope, ct.c_void_p)
            slope = C.hybrid_slope(evaluates, ct.addressof(buffer))
            worker = engine.another(self._bounds, self._limits), slope, (buffer, kept)
        worker[0].limit(self._limits)
        worker[0].begin()
        return worker
