"""The cold mode on the engine: an attempt by the barrier method in C, and what it hands over."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Mapping
from ctypes import c_double, c_int, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.barrier.filter import Filter
from casadi_hybrid.barrier.iterate import Iterate
from casadi_hybrid.barrier.pace import Mark
from casadi_hybrid.barrier.restoration import Restoration
from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.plan import Plan
from casadi_hybrid.engine.structures import FunctionsData, ResidualsData, SecantsData
from casadi_hybrid.iterations.safeguards import Safeguards
from casadi_hybrid.problem.hessian.quasi_newton import MEMORY
from casadi_hybrid.rules.spectra import Jacobian
from casadi_hybrid.standard_form.form import DENSE_LIMIT, Point, StandardForm

WORDS = {
    1: "the bounds are of other kinds than those it was prepared for",
    2: "a function of the problem is not defined where the engine went",
    4: "the steps became tiny, or nothing improved any more",
    5: "the factorization of the engine was in doubt",
    6: "rounding may excuse a residual",
    7: "a limit was reached",
    8: "x or the multipliers are so large that they are looked at",
    9: "a number is not finite, or bounds cross",
    12: "no feasible point found, or, where the feasibility is within tolerance, no better one",
    13: "the iterates run away",
    14: "the filter was full",
    15: "the step that was due is Python's",
}
_ROW = 11  # HYBRID_ROW
_POINTS = MEMORY + 1  # of a Hessian without second derivatives
_ROWS = 64  # iterates from one look at the clock of the caller to the next
_PAUSE = 0.1  # seconds after which Ctrl-C is looked for


class MarkData(ct.Structure):
    """``hybrid_mark``."""

    _fields_ = [
        *((name, c_double) for name in ("nu", "theta", "f", "error")),
        *((name, c_int) for name in ("t", "made", "rounds")),
    ]


class IterateData(ct.Structure):
    """``hybrid_iterate``."""

    _fields_ = [
        *((name, c_void_p) for name in ("w", "y", "z_lower", "z_upper", "filter")),
        *((name, c_double) for name in (
            "nu", "floor", "shift", "theta_start", "theta_cut", "alpha", "alpha_z",
        )),
        ("mark", MarkData),
        *((name, c_int) for name in (
            "entries", "flat", "dependent", "bent", "tiny", "cut", "fresh", "guessed", "stepped",
            "crossed", "watching", "t",
        )),
    ]  # fmt: skip


class AttemptData(ct.Structure):
    """``hybrid_attempt``."""

    _fields_ = [
        *((name, c_double) for name in (
            "nu", "floor", "push", "divergence", "relaxation", "max_time", "pause",
        )),
        *((name, c_int) for name in (
            "t0", "patience", "near", "dense", "feasibility", "unscaled", "root", "cautious",
            "rescale", "alone", "composite",
        )),
    ]  # fmt: skip


class RootData(ct.Structure):
    """``hybrid_root``."""

    _fields_ = [
        *((name, c_void_p) for name in ("z_lower", "z_upper", "units")),
        *((name, c_double) for name in ("nu", "damping", "mark")),
        *((name, c_int) for name in ("cautious", "curved", "steps", "begun")),
    ]


class GuardsData(ct.Structure):
    """``hybrid_guards``."""

    _fields_ = [
        *(
            (name, c_double)
            for name in (
                "radius",
                "penalty",
                "mark",
                "promised",
                "error",
                "goal",
                "reach",
            )
        ),
        *((name, c_int) for name in ("patience", "raised", "saddles")),
    ]


class StateData(ct.Structure):
    """``hybrid_state``."""

    _fields_ = [
        *((name, IterateData) for name in ("now", "watched", "best", "feasible", "beside")),
        ("root", RootData),
        ("guards", GuardsData),
        *((name, c_void_p) for name in ("guess", "x_before", "last_step", "x_undefined")),
        *((name, c_double) for name in ("merit_before", "reach_before")),
        *((name, ResidualsData) for name in ("of_best", "of_beside")),
        *((name, c_double) for name in ("least_f", "seen")),
        ("looked", c_int),
        ("rows", c_void_p),
        *((name, c_int) for name in (
            "capacity", "count", "stepped", "rows_dependent", "undefined",
        )),
    ]  # fmt: skip


class Cold:
    """The memory of the cold mode beside a workspace.

    Args:
        library: the core.
        plan: of the workspace.
        known: addresses of what the workspace has.
        rows: iterates from one look at the clock of the caller to the next.
        composite: whether some of its attempts may be by composite steps.

    Attributes:
        composite: as given.
        addresses: of the memory, by the names of ``adapter/graph.h``.
        attempt: how the next attempt starts and ends.
        state: where an attempt is that has ended.
    """

    def __init__(
        self,
        library: Any,
        plan: Plan,
        known: Mapping[str, int],
        rows: int = _ROWS,
        *,
        composite: bool = False,
    ) -> None:
        data = plan.data
        self._n, self._m, self._n_x, self._nnz_J = data.n, data.m, data.n_x, data.nnz_J
        self._dense = data.n_x + data.n_g <= DENSE_LIMIT
        numbers = [ct.c_longlong() for _ in range(3)]
        at = ct.addressof(data)
        memory = library.hybrid_composite_memory if composite else library.hybrid_cold_memory
        memory(at, self._dense, *map(ct.byref, numbers))
        size, doubles, ints = (number.value for number in numbers)
        self._bytes = np.empty(size // 8 + 1)
        self._doubles = np.empty(max(1, doubles))
        self._ints = np.empty(max(1, ints), dtype=np.int32)
        self._of_state = np.empty(max(1, library.hybrid_state_doubles(at)))
        self._guess = np.empty(max(1, self._n), dtype=np.int32)
        self._rows = np.empty((rows, _ROW))
        self.attempt, self.state = AttemptData(), StateData()
        library.hybrid_state_attach(
            at, address(self._of_state), address(self._guess), ct.byref(self.state)
        )
        self.state.rows, self.state.capacity = address(self._rows), rows
        self.attempt.pause, self.attempt.dense = _PAUSE, self._dense
        self._entries = (
            (library.hybrid_cold_begin, library.hybrid_cold_run),
            (library.hybrid_composite_begin, library.hybrid_composite_run),
        )
        self._run = library.hybrid_cold_run
        self.composite = composite
        self._at_bytes = address(self._bytes)
        self.addresses = {
            "cold_bytes": self._at_bytes,
            "cold_doubles": address(self._doubles),
            "cold_ints": address(self._ints),
            "state": ct.addressof(self.state),
        }
        self._call = (
            known["plan"], known["functions"], known["numbers"], ct.addressof(self.attempt),
            *self.addresses.values(), known["answer"],
        )  # fmt: skip

    def set(self, data: AttemptData, t0: int) -> None:
        """Set how the next attempt starts and ends; when it pauses and its kernel stay.

        Args:
            data: of an attempt.
            t0: the steps before it.
        """
        attempt = self.attempt
        pause, dense = attempt.pause, attempt.dense
        ct.pointer(attempt)[0] = data
        attempt.pause, attempt.dense, attempt.t0 = pause, dense, t0

    def begin(self) -> int:
        """Begin the attempt that is set; PAUSED, or another status of ``hybrid.h``."""
        self.state.count = 0
        begin, self._run = self._entries[self.attempt.composite]
        status: int = begin(*self._call)
        return status

    def go_on(self) -> tuple[int, list[list[float]]]:
        """The status after some more steps, and the rows of the iterates on the way."""
        status: int = self._run(self._at_bytes)
        rows = self.due()
        self.state.count = 0
        return status, rows

    def due(self) -> list[list[float]]:
        """The rows of steps that were taken and not returned, as where Ctrl-C came between."""
        rows: list[list[float]] = self._rows[: self.state.count].tolist()
        return rows

    def iterate(self, form: StandardForm, of: IterateData, watched: Iterate | None) -> Iterate:
        """An iterate of the state in the form that Python goes on with.

        Raises:
            EvaluationError: where a function is not defined there.
        """
        n, m = self._n, self._m
        at = form.point(form.within_given(_array(of.w, n)))  # C evaluates nowhere else
        pairs = _array(of.filter, 2 * of.entries).reshape(-1, 2).tolist()
        mark = of.mark
        known = (
            Mark(mark.nu, mark.theta, mark.f, mark.error, mark.t, mark.rounds)
            if mark.made
            else None
        )
        return Iterate(
            at, _array(of.y, m), _array(of.z_lower, n), _array(of.z_upper, n), of.nu,
            Filter(of.theta_start, tuple((a, b) for a, b in pairs)),
            floor=of.floor, shift=of.shift, flat=of.flat, dependent=of.dependent,
            bent=of.bent, tiny=of.tiny, short=of.cut,
            theta_short=of.theta_cut, watched=watched, fresh=bool(of.fresh),
            guess=self._sides() if of.guessed else b"", mark=known,
            taken=(at, of.alpha, of.alpha_z) if of.stepped else None,
            crossed=at if of.crossed else None,
        )  # fmt: skip

    def root(self, at: Point) -> Restoration | None:
        """The search for a root that goes on at a point, None where there is none."""
        root, n = self.state.root, self._n
        if not root.begun:
            return None
        return Restoration(
            at.w, at.theta, 0.0, root.nu, _array(root.z_lower, n), _array(root.z_upper, n),
            _array(root.units, n), bool(root.cautious), root.damping, bool(root.curved),
            root.steps, root.mark,
        )  # fmt: skip

    def guards(self, jacobian: Jacobian) -> Safeguards:
        """What composite steps carry at the point where A has this decomposition."""
        of = self.state.guards
        return Safeguards(
            of.radius, of.penalty, jacobian, patience=of.patience, mark=of.mark,
            promised=of.promised, error=of.error, raised=bool(of.raised), saddles=of.saddles,
            goal=of.goal if of.goal >= 0.0 else None, reach=of.reach if of.reach >= 0.0 else None,
        )  # fmt: skip

    def points(self) -> list[tuple[Vector, Vector, Vector]]:
        """What a Hessian without second derivatives is made from: x, ∇f and J's entries, in order.

        None where there are second derivatives.
        """
        found = FunctionsData.from_address(self._call[1]).secants
        if not found:
            return []
        secants, n, all_of_J = SecantsData.from_address(found), self._n_x, self._nnz_J
        size = 2 * n + all_of_J
        memory = _array(secants.doubles, _POINTS * size).reshape(_POINTS, size)
        order = (secants.last + 1 - secants.count + np.arange(secants.count)) % _POINTS
        return [(one[:n], one[n : 2 * n], one[2 * n :]) for one in memory[order]]

    def x_before(self) -> Vector | None:
        """x of the iterate before, None at the first."""
        return _array(self.state.x_before, self._n_x) if self.state.looked else None

    def last_step(self) -> Vector | None:
        """The last step of x that was not zero."""
        return _array(self.state.last_step, self._n_x) if self.state.stepped else None

    def x_undefined(self) -> Vector | None:
        """The last trial point where a function was not defined."""
        state = self.state
        return _array(state.x_undefined, self._n_x) if state.undefined else None

    def _sides(self) -> bytes:
        guess = self._guess[: self._n]
        lower, upper = guess == 1, guess == 2
        return bytes(lower.tobytes() + upper.tobytes())


def _array(address: int | None, size: int) -> NDArray[np.float64]:
    """A copy of numbers that C has written."""
    if not size or address is None:
        return np.zeros(0)
    return np.ctypeslib.as_array((c_double * size).from_address(address)).copy()
