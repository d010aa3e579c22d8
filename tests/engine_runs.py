"""Structures of one run of the core, and a run by composite steps that is called by its pieces."""

from __future__ import annotations

import ctypes as ct
from typing import Any

import numpy as np
from engine_cases import NUMBER, POINTER, WHOLE
from engine_form import view

from casadi_hybrid.engine.solve import Core
from casadi_hybrid.engine.structures import ResidualsData


class MarkData(ct.Structure):
    """``hybrid_mark``."""

    _fields_ = [
        *((name, NUMBER) for name in ("nu", "theta", "f", "error")),
        *((name, WHOLE) for name in ("t", "made", "rounds")),
    ]


class IterateData(ct.Structure):
    """``hybrid_iterate``."""

    _fields_ = [
        *((name, POINTER) for name in ("w", "y", "z_lower", "z_upper", "filter")),
        *((name, NUMBER) for name in (
            "nu", "floor", "shift", "theta_start", "theta_cut", "alpha", "alpha_z",
        )),
        ("mark", MarkData),
        *((name, WHOLE) for name in (
            "entries", "flat", "dependent", "bent", "tiny", "cut", "fresh", "guessed", "stepped",
            "crossed", "watching", "t",
        )),
    ]  # fmt: skip


class RayData(ct.Structure):
    """``hybrid_ray``."""

    _fields_ = [("reach", NUMBER), ("least", NUMBER)]


class RootData(ct.Structure):
    """``hybrid_root``."""

    _fields_ = [
        *((name, POINTER) for name in ("z_lower", "z_upper", "units")),
        *((name, NUMBER) for name in ("nu", "damping", "mark")),
        *((name, WHOLE) for name in ("cautious", "curved", "steps", "begun")),
    ]


class GuardsData(ct.Structure):
    """``hybrid_guards``."""

    _fields_ = [
        *((name, NUMBER) for name in (
            "radius", "penalty", "mark", "promised", "error", "goal", "reach",
        )),
        *((name, WHOLE) for name in ("patience", "raised", "escapes", "saddles")),
    ]  # fmt: skip


class StateData(ct.Structure):
    """``hybrid_state``."""

    _fields_ = [
        *((name, IterateData) for name in ("now", "watched", "best", "feasible", "beside")),
        ("root", RootData),
        ("guards", GuardsData),
        *((name, POINTER) for name in ("guess", "x_before", "last_step", "x_undefined")),
        ("merit_before", NUMBER),
        ("ray", RayData),
        *((name, ResidualsData) for name in ("of_best", "of_beside")),
        ("least_f", NUMBER),
        ("looked", WHOLE),
        ("rows", POINTER),
        *((name, WHOLE) for name in (
            "capacity", "count", "stepped", "rows_dependent", "undefined", "cause", "proved",
        )),
        ("infeasibility", POINTER),
    ]  # fmt: skip


class CompositeRun:
    """A run by composite steps from the x0 of a workspace, before its first step."""

    def __init__(self, library: Any, core: Core) -> None:
        plan = ct.addressof(core.space.plan.data)
        sizes = [ct.c_longlong() for _ in range(3)]
        library.hybrid_composite_memory(POINTER(plan), 1, *map(ct.byref, sizes))
        self._bytes = np.zeros(sizes[0].value // 8 + 1)
        self._doubles = np.empty(max(1, sizes[1].value))
        self._ints = np.empty(max(1, sizes[2].value), dtype=np.int32)
        library.hybrid_state_doubles.restype = ct.c_longlong
        self._of_state = np.empty(library.hybrid_state_doubles(POINTER(plan)))
        self._guess = np.empty(max(1, core.space.plan.data.n), dtype=np.int32)
        self._rows = np.empty((2, 11))
        self.library, self.core, self.state = library, core, StateData()
        at = self._of_state.ctypes.data, self._guess.ctypes.data
        library.hybrid_state_attach(POINTER(plan), *map(POINTER, at), ct.byref(self.state))
        self.state.rows, self.state.capacity = self._rows.ctypes.data, 2
        memory = (one.ctypes.data for one in (self._bytes, self._doubles, self._ints))
        space = core.space.addresses
        self.status = library.hybrid_composite_begin(
            *(POINTER(space[name]) for name in ("plan", "functions", "numbers")),
            ct.byref(core.options.composite), *map(POINTER, memory), ct.byref(self.state),
            POINTER(space["answer"]),
        )  # fmt: skip

    def call(self, name: str) -> int:
        """A function of the run's memory."""
        return int(getattr(self.library, name)(POINTER(self._bytes.ctypes.data)))

    def now(self, name: str, size: int) -> np.ndarray:
        return view(getattr(self.state.now, name), size)
