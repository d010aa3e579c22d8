"""Many warm solves on the engine, over threads: C has the shares, Python hands them out."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.basics.threads import share_out
from casadi_hybrid.engine.blocks.compiled import Compiled
from casadi_hybrid.engine.plan import Plan
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import SOLVED, AnswerData, BatchData, SlopeData
from casadi_hybrid.engine.warm import Engine
from casadi_hybrid.engine.workspace import Workspace, buffer_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import Sides
from casadi_hybrid.problem.functions import Functions

if TYPE_CHECKING:
    from casadi_hybrid.engine.blocks.forms import Lists

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
        self.data = BatchData(
            numbers=address(numbers), outputs=address(self.outputs),
            numbers_each=numbers.shape[1], outputs_each=outputs,
            sides=address(sides), with_sides=address(with_sides),
            answers=ct.addressof(self._answers),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.numbers)

    def in_c(self) -> NDArray[np.bool_]:
        """Which of them the warm mode has solved."""
        field: Any = AnswerData.status
        each = ct.sizeof(AnswerData)
        found = np.frombuffer(memoryview(self._answers).cast("B"), np.uint8).reshape(-1, each)
        status = found[: len(self), field.offset : field.offset + field.size].copy()
        return np.asarray(status.view(np.int32).ravel() == SOLVED)

    def solved(self, k: int, places: Mapping[str, slice]) -> Solved | None:
        """What solve k found, None where the warm mode did not solve it."""
        said = self._answers[k]
        return Solved(self.outputs[k], places, said) if said.status == SOLVED else None


class _Worker:
    """What one thread works with."""

    def __init__(
        self,
        library: Any,
        plan: Plan,
        functions: Functions,
        gradient: ca.Function,
        evaluate: int,
        forms: tuple[Lists | None, Compiled | None],
    ) -> None:
        self.space = Workspace(library, plan, functions, evaluate, *forms)
        self._buffer, self._kept = buffer_of(gradient, evaluate)
        evaluates = ct.cast(library.hybrid_buffered_slope, ct.c_void_p)
        self._slope = SlopeData(evaluates, ct.addressof(self._buffer))
        at = self.space.addresses
        self._call = (
            *(at[name] for name in ("plan", "functions")),
            ct.addressof(self._slope),
            *(at[name] for name in ("numbers", "doubles", "ints")),
        )
        self._run = library.hybrid_warm_batch

    def solve(self, rows: Rows, begin: int, end: int) -> None:
        self._run(*self._call, ct.addressof(rows.data), begin, end)


class Crew:
    """Workers for one plan; several threads may ask at once."""

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        functions: Functions,
        gradient: ca.Function,
        forms: tuple[Lists | None, Compiled | None],
    ) -> None:
        self.plan = plan
        self._make = (engine.library, plan, functions, gradient, engine.evaluate, forms)
        self._idle: list[_Worker] = []

    def solve(self, rows: Rows, limits: Limits, threads: int) -> tuple[str, str]:
        """Solve all rows by so many threads, of which the asking one is the first.

        A row is solved as if it were alone: its numbers and its bits do not hang on the others.

        Returns:
            Which functions were called, see :attr:`Workspace.called`.
        """
        piece = max(1, len(rows) // (threads * _PIECES))
        begins = range(0, len(rows), piece)
        workers = [self._worker(limits) for _ in range(min(threads, len(begins)))]

        def solving(worker: _Worker) -> Callable[[int], None]:
            return lambda begin: worker.solve(rows, begin, min(begin + piece, len(rows)))

        share_out(begins, [solving(worker) for worker in workers])
        called = workers[0].space.called
        self._idle += workers  # which others may have taken as soon as they are there
        return called

    def _worker(self, limits: Limits) -> _Worker:
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker(*self._make)
        worker.space.limit(limits)
        return worker
