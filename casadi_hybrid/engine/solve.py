"""One solve by the core: ``hybrid_solve`` on a workspace, and its observer."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable, Generator
from ctypes import c_int, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.engine.options import OptionsData, options_of
from casadi_hybrid.engine.plan import Plan
from casadi_hybrid.engine.structures import ObserverData
from casadi_hybrid.engine.workspace import Workspace
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.result.view import View

ROW = 11  # HYBRID_ROW
_ROWS = 256


class _ViewData(ct.Structure):
    """``hybrid_view``."""

    _fields_ = [
        *((name, c_void_p) for name in ("row", "x", "g", "lam_x", "lam_g")),
        ("restoring", c_int),
    ]


Look = Callable[[View], bool]
_Look = ct.CFUNCTYPE(c_int, c_void_p, ct.POINTER(_ViewData))
_Ask = ct.CFUNCTYPE(c_int, c_void_p)


def memory_of(library: Any, plan: Plan, options: OptionsData) -> tuple[int, int, int]:
    """Bytes of its own, numbers and whole numbers of memory that a solve needs."""
    sizes = [ct.c_longlong() for _ in range(3)]
    library.hybrid_solve_memory(
        ct.addressof(plan.data), ct.addressof(options), *map(ct.addressof, sizes)
    )
    own, doubles, ints = (one.value for one in sizes)
    return own, doubles, ints


class Core:
    """The whole method on one workspace.

    Args:
        library: the core.
        problem, limits: what is solved, and to which tolerances.
        space: its numbers, functions and answer.
        alone: whether by composite steps alone.

    Attributes:
        space, limits, alone: as given.
        look: what is called with each iterate of a solve, None for nothing.
        buffer, drained: rows of iterates, and those for which there was no more room.
        busy: whether a solve is under way.
        raised: what ended the last solve; None where nothing did.
    """

    def __init__(
        self,
        library: Any,
        problem: Problem,
        limits: Limits,
        space: Workspace,
        alone: bool = False,
    ) -> None:
        self.space, self.limits, self.alone, self.busy = space, limits, alone, False
        self.options = options_of(problem, limits, alone)
        size_bytes, doubles, ints = memory_of(library, space.plan, self.options)
        self._bytes = np.zeros(size_bytes // 8 + 2)
        self._doubles, self._ints = np.empty(max(1, doubles)), np.empty(max(1, ints), np.int32)
        self.buffer = np.empty((_ROWS, ROW))
        self.drained: list[NDArray[np.float64]] = []
        self.raised: BaseException | None = None
        self.look: Look | None = None
        self._sizes = space.plan.data.n_x, space.plan.data.n_g
        self._seen, self._full = _Look(self._see), _Ask(self._drain)
        self._asked = _asking(self._keep)
        self._at_see = ct.cast(self._seen, c_void_p)
        self.observer = ObserverData(
            interrupted=ct.cast(self._asked, c_void_p), full=ct.cast(self._full, c_void_p),
            rows=address(self.buffer), capacity=_ROWS,
        )  # fmt: skip
        space.observe(ct.addressof(self.observer))
        self.addresses = {
            **space.addresses,
            "options": ct.addressof(self.options),
            "bytes": address(self._bytes),
            "doubles": address(self._doubles),
            "ints": address(self._ints),
            "solve": ct.cast(library.hybrid_solve, c_void_p).value or 0,
        }
        at = self.addresses
        self._call = tuple(at[name] for name in (
            "plan", "functions", "numbers", "options", "bytes", "doubles", "ints", "answer",
        ))  # fmt: skip
        self._solve = library.hybrid_solve

    def unobserved(self, raised: Callable[[BaseException], object]) -> None:
        """Show iterates to nobody; ``raised`` takes what a signal raises. C begins by itself."""
        self._asked = _asking(raised)
        self.observer = ObserverData(interrupted=ct.cast(self._asked, c_void_p))
        self.space.observe(ct.addressof(self.observer))

    def begin(self, look: Look | None = None, until: float = np.inf) -> None:
        """Before a solve.

        Args:
            look: called with each iterate; True ends the solve.
            until: the moment of :func:`time.perf_counter` from which on no function that runs
                Python is evaluated.
        """
        python = self.space.python
        self.observer.count = 0
        if look is not self.look:
            self.look = look
            self.observer.look = None if look is None else self._at_see
        self.drained, self.raised, self.busy = [], None, True
        if python is not None:
            python.begin(until, self._end)

    def solve(self) -> int:
        """Solve for what the workspace's inputs hold; the status of ``hybrid.h``."""
        status: int = self._solve(*self._call)
        return status

    def end(self) -> None:
        """After it."""
        self.busy = False
        python = self.space.python
        if python is not None and python.raised is not None:
            self.raised = python.raised

    def rows(self) -> NDArray[np.float64]:
        """The numbers of the iterates since this was asked last, or since a solve began."""
        last = self.buffer[: self.observer.count]
        found = np.vstack([*self.drained, last]) if self.drained else last.copy()
        self.drained, self.observer.count = [], 0
        return found

    def _end(self) -> None:
        self.observer.ended = 1

    def _see(self, _self: Any, view: Any) -> int:
        try:
            return bool(self.look is not None and self.look(self._view(view.contents)))
        except BaseException as error:  # noqa: BLE001 - who called the solver gets it
            self.raised = error
            return 1

    def _view(self, of: Any) -> View:
        n, m = self._sizes
        row: list[float] = _copied(of.row, ROW).tolist()
        return View(
            row, _copied(of.x, n), _copied(of.g, m), _copied(of.lam_x, n), _copied(of.lam_g, m),
            bool(of.restoring),
        )  # fmt: skip

    def _keep(self, error: BaseException) -> None:
        self.raised = error

    def _drain(self, _self: Any) -> int:
        self.drained.append(self.buffer[: self.observer.count].copy())
        self.observer.count = 0
        return 0


def _copied(place: int | None, size: int) -> NDArray[np.float64]:
    if not size or place is None:
        return np.zeros(0)
    return np.ctypeslib.as_array((ct.c_double * size).from_address(place)).copy()


def _asking(keep: Callable[[BaseException], object]) -> Any:
    """A function of C, whose answer is 1 where the handler of a pending signal raises.

    Such a handler runs as soon as Python's code does, in a function before its first line, where
    nothing catches what is raised, and ctypes would drop it. A generator goes on within ``try``.

    Args:
        keep: takes what was raised.
    """

    def answers() -> Generator[int, Any, None]:
        answer = 0
        while True:
            try:
                yield answer
                answer = 0
            except GeneratorExit:
                return
            except BaseException as error:  # noqa: BLE001 - whoever called for the solve gets it
                keep(error)
                answer = 1

    generator = answers()
    next(generator)
    return _Ask(generator.send)
