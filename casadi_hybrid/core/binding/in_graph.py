"""Solvers in CasADi's graphs: a Function that any thread may call without Python's lock."""

from __future__ import annotations

import ctypes as ct
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from ctypes import c_int, c_void_p
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.core.binding.core import INPUTS, STARTS, Engine
from casadi_hybrid.core.binding.externals import adapter, function_of, shapes_of
from casadi_hybrid.core.binding.functions import copied
from casadi_hybrid.core.header import C
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.inputs import Vector

# Threads that may be in one solver at once; more wait.
SLOTS = 256
_RECORDS = 32  # threads whose last solve is known
_Prepare = ct.CFUNCTYPE(c_int, c_int, ct.POINTER(c_void_p))


class Pool:
    """Memory of one solver's solves in graphs: a slot for each that runs at a time."""

    # Name of the function that all solvers share.
    name = "hybrid_in_graph"
    # Numbers of directions with derivatives; CasADi combines them for other numbers.
    widths = (1, 2, 4, 8, 16, 32, 64)

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        columns: tuple[Sequence[int], Sequence[int]],
        *,
        warm_starts: bool,
        no_numbers: Callable[[list[Vector]], bool],
    ) -> None:
        self._limits = limits
        # columns: sizes of the inputs and of the outputs.
        self._sizes, self._shapes = columns[0], shapes_of(*columns)
        # no_numbers: True for arguments with NaN; raises for other bad arguments.
        self._warm_starts, self._no_numbers = warm_starts, no_numbers
        self._slots = (C.hybrid_slot * SLOTS)()
        self._engines = defaultdict[int, Engine](lambda: Engine(problem))  # by slots
        self._rows = np.empty((_RECORDS, sum(self._sizes)))
        self._records = (C.hybrid_record * _RECORDS)(
            *(C.hybrid_record(row=address(row)) for row in self._rows)
        )
        self._prepare = _Prepare(self._prepared)
        # Graphs name the pool by this number, whose 48 bits a double holds exactly. The pool lives
        # until the process ends, since CasADi does not report the end of a graph.
        self.handle = float(int.from_bytes(os.urandom(6), "little"))
        self.data = C.hybrid_pool(
            handle=self.handle,
            shapes=ct.addressof(self._shapes),
            slots=SLOTS,
            slot=ct.addressof(self._slots),
            prepare=ct.cast(self._prepare, c_void_p),
            interrupt=ct.cast(ct.pythonapi.PyErr_SetInterrupt, c_void_p),
            records=_RECORDS,
            record=ct.addressof(self._records),
        )
        if hasattr(os, "register_at_fork"):
            # Another thread may hold the lock of the records during a fork.
            os.register_at_fork(after_in_child=partial(setattr, self.data, "locked", 0))

    def function(self, derivatives: Iterable[ca.Function]) -> ca.Function:
        """Return the Function of all solvers in graphs, with this one's shapes and derivatives."""
        options = {
            # The handle has no derivative, and a solution does not depend on its start.
            "is_diff_in": [False, *(name not in STARTS for name in INPUTS)],
            # CasADi looks for derivatives of its own names, fwd1_… and adj1_…, of all widths.
            "cache": {derivative.name(): derivative for derivative in derivatives},
        }
        adapter().hybrid_attach_pool(ct.byref(self.data))
        _kept.append((self, options))
        return function_of(self.name, self._shapes, options)

    def last(self, after: int, thread: int = 0) -> tuple[int, list[Vector]] | None:
        """Number and inputs of the last solve after ``after`` in a thread (0: any), or None."""
        row, pool = np.empty(sum(self._sizes)), ct.addressof(self.data)
        # C copies the row under its lock: a solve of another thread may take its place.
        number = adapter().hybrid_last_in_graph(pool, after, thread, address(row))
        return (number, np.split(row, np.cumsum(self._sizes)[:-1])) if number else None

    def _prepared(self, k: int, arguments: Any) -> int:
        """Prepare a slot; called by C, through which no exception can pass."""
        try:
            row = [copied(arguments[i], size) for i, size in enumerate(self._sizes)]
            if self._no_numbers(row):
                return int(C.HYBRID_NO_NUMBERS)
            self._fill(k, Bounds(*row[2:6]))
        except KeyboardInterrupt:  # C raises it again
            return int(C.HYBRID_INTERRUPTED)
        except BaseException as error:  # noqa: BLE001 - C cannot pass it on
            _report(error)
            return int(C.HYBRID_FAILED)
        return int(C.HYBRID_READY)

    def _fill(self, k: int, bounds: Bounds) -> None:
        """Let a slot point to a core for bounds of these kinds."""
        core = self._engines[k].core(bounds, self._limits, repeated=True)
        # Python's lock is not held during these solves: no iterate goes to Python.
        core.unobserved(_report)
        core.differentiate()
        core.limit(self._limits)
        if not self._warm_starts:
            core.data.given = len(INPUTS) - 2  # multipliers are zero
        slot, awaited = self._slots[k], core.awaited
        slot.adapter = ct.addressof(core.data)
        slot.arrived = None if awaited is None else ct.addressof(awaited.arrived)


def _report(error: BaseException) -> None:
    """Print an exception that C does not raise again."""
    if not isinstance(error, KeyboardInterrupt):
        print(f"casadi_hybrid: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


_kept: list[Any] = []
