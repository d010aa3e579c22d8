"""One solve by the core: ``hybrid_solve_nlp`` on a workspace, and what it says."""

from __future__ import annotations

import ctypes as ct
from ctypes import c_int
from typing import Any

import numpy as np

from casadi_hybrid.attempts.data import attempts_of
from casadi_hybrid.basics.arrays import address
from casadi_hybrid.engine.cold import AttemptData
from casadi_hybrid.engine.structures import ObserverData
from casadi_hybrid.engine.workspace import Workspace
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.point.limits import Limits

_ROW = 11
_ROWS = 256


class OptionsData(ct.Structure):
    """``hybrid_options``."""

    _fields_ = [
        ("first", AttemptData),
        ("near", AttemptData),
        ("composite", AttemptData),
        ("linear", c_int),
    ]


class Core:
    """The whole method on one workspace.

    Args:
        library: the core.
        problem, limits: what is solved, and to which tolerances.
        space: its numbers, functions and answer.
    """

    def __init__(self, library: Any, problem: Problem, limits: Limits, space: Workspace) -> None:
        self.space = space
        first, near, composite = attempts_of(problem, limits)
        for one in (first, near, composite):
            if one is not None:
                one.pause = one.max_time = np.inf
        self.options = OptionsData(first, near, composite or AttemptData(), problem.linear)
        sizes = [ct.c_longlong() for _ in range(3)]
        plan = space.plan
        library.hybrid_solve_nlp_memory(
            ct.addressof(plan.data), ct.addressof(self.options), *map(ct.addressof, sizes)
        )
        size_bytes, doubles, ints = (one.value for one in sizes)
        self._bytes = np.zeros(size_bytes // 8 + 2)
        self._doubles, self._ints = np.empty(max(1, doubles)), np.empty(max(1, ints), np.int32)
        self.rows = np.empty((_ROWS, _ROW))
        self.observer = ObserverData(rows=address(self.rows), capacity=_ROWS)
        known = space.addresses
        self._solve = library.hybrid_solve_nlp
        self._call = (
            known["plan"], known["functions"], known["numbers"], ct.addressof(self.options),
            address(self._bytes), address(self._doubles), address(self._ints), known["answer"],
        )  # fmt: skip

    def solve(self) -> int:
        """Solve for what the workspace's inputs hold; the status of ``hybrid.h``."""
        self.observer.count = self.observer.ended = 0
        self.observer.last = -1
        functions = self.space.functions_data
        functions.observer = ct.addressof(self.observer)
        status: int = self._solve(*self._call)
        functions.observer = None
        return status
