"""Many solves on the core, over threads: C has the shares, Python hands them out."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.threads import share_out
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import OTHER_PATTERN, AnswerData, BatchData, SlopeData
from casadi_hybrid.engine.warm import Engine
from casadi_hybrid.engine.workspace import buffer_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import Sides
from casadi_hybrid.problem.bounds import Bounds

_PIECES = 8
"""So many times a thread comes for more: some solves take longer than others."""


class Rows:
    """The numbers of many solves, and their answers: a row of each.

    Args:
        numbers: one row a solve, see :data:`~casadi_hybrid.engine.workspace.INPUTS`.
        sides: of each the working set to try first, n + m sides; ``with_sides``: which have one.
        outputs: how many numbers an answer has.

    Attributes:
        outputs: one row a solve, see :data:`~casadi_hybrid.engine.workspace.OUTPUTS`.
    """

    def __init__(self, numbers: Vector, sides: Sides, with_sides: Sides, outputs: int) -> None:
        self.numbers, self._sides, self._with_sides = numbers, sides, with_sides
        self.outputs = np.zeros((len(numbers), outputs))
        self._answers = (AnswerData * max(1, len(numbers)))()
        self._seen: dict[int, Vector] = {}
        self.data = BatchData(
            numbers=address(numbers), outputs=address(self.outputs),
            numbers_each=numbers.shape[1], outputs_each=outputs,
            sides=address(sides), with_sides=address(with_sides),
            answers=ct.addressof(self._answers),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.numbers)

    def success(self) -> NDArray[np.bool_]:
        """Which of them are solved."""
        return np.asarray(self._field(AnswerData.point) == 0)

    def refused(self) -> NDArray[np.bool_]:
        """Which of them have bounds of other kinds than the first."""
        return np.asarray(self._field(AnswerData.status) == OTHER_PATTERN)

    def keep(self, begin: int, seen: Vector) -> None:
        """The numbers of the iterates of the solves from ``begin`` on, of one share."""
        self._seen[begin] = seen

    def seen(self, k: int) -> Vector:
        """The numbers of the iterates of solve k."""
        begin = max(one for one in self._seen if one <= k)
        counts = self._field(AnswerData.rows)[begin : k + 1]
        end = int(counts.sum())
        return self._seen[begin][end - counts[-1] : end]

    def _field(self, field: Any) -> NDArray[np.int32]:
        each = ct.sizeof(AnswerData)
        found = np.frombuffer(memoryview(self._answers).cast("B"), np.uint8).reshape(-1, each)
        part = found[: len(self), field.offset : field.offset + field.size].copy()
        return np.asarray(part.view(np.int32).ravel())

    def solved(self, k: int, places: Mapping[str, slice]) -> Solved:
        """What solve k found."""
        return Solved(self.outputs[k], places, self._answers[k])


class _Worker:
    """What one thread works with."""

    def __init__(
        self, engine: Engine, bounds: Bounds, limits: Limits, gradient: ca.Function
    ) -> None:
        core = self.core = engine.another(bounds, limits)
        self._buffer, self._kept = buffer_of(gradient, engine.evaluate or 0)
        evaluates = ct.cast(engine.library.hybrid_buffered_slope, ct.c_void_p)
        self._slope = SlopeData(evaluates, ct.addressof(self._buffer))
        at = core.addresses
        self._call = (
            at["plan"], at["functions"], ct.addressof(self._slope),
            *(at[name] for name in ("numbers", "options", "bytes", "doubles", "ints")),
        )  # fmt: skip
        self._run = engine.library.hybrid_solve_batch

    def solve(self, rows: Rows, begin: int, end: int) -> None:
        self._run(*self._call, ct.addressof(rows.data), begin, end)
        rows.keep(begin, self.core.rows())
        if self.core.raised is not None:  # Ctrl-C
            raise self.core.raised


class Workers:
    """Workers for one plan; several threads may ask at once."""

    def __init__(
        self, engine: Engine, bounds: Bounds, limits: Limits, gradient: ca.Function
    ) -> None:
        self._make = engine, bounds, limits, gradient
        self.plan = plan_of(engine.library, engine.problem, bounds)
        self._limits = limits
        self._idle: list[_Worker] = []

    def solve(self, rows: Rows, threads: int) -> tuple[str, str]:
        """Solve all rows by so many threads, of which the asking one is the first.

        A row is solved as if it were alone: its numbers and its bits do not hang on the others.

        Returns:
            Which functions were called, see :attr:`Workspace.called`.
        """
        piece = max(1, len(rows) // (threads * _PIECES))
        begins = range(0, len(rows), piece)
        workers = [self._worker() for _ in range(min(threads, len(begins)))]

        def solving(worker: _Worker) -> Callable[[int], None]:
            return lambda begin: worker.solve(rows, begin, min(begin + piece, len(rows)))

        try:
            share_out(begins, [solving(worker) for worker in workers])
        finally:
            for worker in workers:
                worker.core.end()
        called = workers[0].core.space.called
        self._idle += workers  # which others may have taken as soon as they are there
        return called

    @property
    def places(self) -> tuple[Mapping[str, slice], Mapping[str, slice], int]:
        """Where the numbers of a row and those of its answer lie, and how many these are."""
        worker = self._worker()
        worker.core.end()
        self._idle.append(worker)
        space = worker.core.space
        return space.places_in, space.places_out, space.numbers_out.size

    def _worker(self) -> _Worker:
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker(*self._make)
        worker.core.space.limit(self._limits)
        worker.core.begin()
        return worker
