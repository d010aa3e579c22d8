"""The engine in CasADi's graphs: a Function that any thread may call, without Python's lock."""

from __future__ import annotations

import ctypes as ct
from _thread import interrupt_main
from collections.abc import Sequence
from ctypes import c_int, c_longlong, c_ulonglong, c_void_p
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.blocks.compiled import forms_of
from casadi_hybrid.engine.cold import AttemptData, Cold
from casadi_hybrid.engine.external import function_of
from casadi_hybrid.engine.plan import plan_of
from casadi_hybrid.engine.warm import Engine
from casadi_hybrid.engine.workspace import Workspace, buffer_of
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.problem import Problem

DERIVATIVES = 2.0
"""The branch where the answer is a solution, and only its derivatives are asked for."""
SLOTS = 256
"""So many threads may be within one solver at once; more go through Python."""
_RECORDS = 32  # so many threads have a last solve that is known
_ROWS = 256  # iterates that one attempt may take; a longer one is Python's from its start
_KINDS = 4  # of bounds between which a slot may change without anything to be made


class SlotData(ct.Structure):
    """``hybrid_slot`` of ``adapter/graph.h``."""

    _fields_ = [
        ("busy", c_int),
        *((name, c_void_p) for name in (
            "plan", "functions", "numbers", "doubles", "ints", "answer", "in_", "out", "lam_p",
            "slope",
        )),
        *((name, c_void_p) for name in ("cold_bytes", "cold_doubles", "cold_ints", "state")),
        ("arrived", c_void_p),
    ]  # fmt: skip


class RecordData(ct.Structure):
    """``hybrid_record``."""

    _fields_ = [
        ("busy", c_int),
        ("stamp", c_longlong),
        ("thread", c_ulonglong),
        ("row", c_void_p),
    ]


class PoolData(ct.Structure):
    """``hybrid_pool`` of ``adapter/graph.h``."""

    _fields_ = [
        ("references", c_int),
        ("slots", c_int),
        ("slot", c_void_p),
        ("records", c_int),
        ("record", c_void_p),
        ("calls", c_longlong),
        *((name, c_void_p) for name in ("in_", "out", "starts")),
        *((name, c_int) for name in ("n_x", "warm_starts", "linear")),
        ("first", AttemptData),
        ("near", AttemptData),
        ("composite", AttemptData),
        *((name, c_void_p) for name in (
            "warm", "begin", "run", "begin_composite", "run_composite", "slope", "prepare",
        )),
    ]  # fmt: skip


_Prepare = ct.CFUNCTYPE(c_int, c_int, c_void_p)


class Pool:
    """The memory of one solver's solves in graphs: a slot for each that runs at a time.

    Args:
        engine: of the problem; ``problem``: its.
        limits: tolerances, and the most steps.
        first, near: how an attempt starts from nothing, and how from multipliers nearby.
        warm_starts: whether multipliers count.
        composite: how an attempt by composite steps starts; None where there is none.

    Attributes:
        sizes: of the eight inputs.
    """

    def __init__(
        self,
        engine: Engine,
        problem: Problem,
        limits: Limits,
        first: AttemptData,
        near: AttemptData,
        *,
        warm_starts: bool,
        composite: AttemptData | None,
    ) -> None:
        n, m, n_p = problem.n, problem.m, problem.n_p
        self.sizes = n, n_p, n, n, m, m, n, m
        self._problem, self._limits = problem, limits
        self._library, self._evaluate = engine.library, engine.evaluate
        self._slots = (SlotData * SLOTS)()
        self._rows = np.zeros((_RECORDS, sum(self.sizes)))
        self._records = (RecordData * _RECORDS)()
        for record, row in zip(self._records, self._rows, strict=True):
            record.row = address(row)
        self._spaces: list[list[_Space]] = [[] for _ in range(SLOTS)]
        self._shapes = [
            np.array([size, 1, 1], dtype=np.int64)
            for size in (sum(self.sizes), 2 * (n + m) + 1 + n_p, 2 * n + m)
        ]
        self._prepare = _Prepare(self._prepared)
        library = engine.library
        self._data = PoolData(
            slots=SLOTS, slot=ct.addressof(self._slots),
            records=_RECORDS, record=ct.addressof(self._records),
            in_=address(self._shapes[0]), out=address(self._shapes[1]),
            starts=address(self._shapes[2]),
            n_x=n, warm_starts=warm_starts, linear=problem.linear,
            first=first, near=near, composite=composite or AttemptData(),
            warm=_address(library.hybrid_warm), begin=_address(library.hybrid_cold_begin),
            run=_address(library.hybrid_cold_run),
            begin_composite=_address(library.hybrid_composite_begin),
            run_composite=_address(library.hybrid_composite_run),
            slope=_address(library.hybrid_buffered_slope), prepare=_address(self._prepare),
        )  # fmt: skip

    def function(self) -> ca.Function:
        """A Function of these slots: a row in; answer, branch, zero and starts out.

        The row is that of :data:`~casadi_hybrid.engine.workspace.INPUTS`. The answer is x, f, g,
        lam_x, lam_g and lam_p in one column; the branch is 0 where it is a solution, 1 where
        none was found, and :data:`DERIVATIVES`; zero is a number; starts are x0, lam_x0 and
        lam_g0. It has derivatives, which are zero.

        Raises:
            BuildError: where the adapter cannot be built or loaded.
        """
        name = "hybrid_in_graph"
        slopes = _no_slopes(f"jac_{name}", [int(shape[0]) for shape in self._shapes])
        options = {
            "is_diff_in": [False], "is_diff_out": [False] * 4, "cache": {slopes.name(): slopes},
        }  # fmt: skip
        found = function_of(name, "hybrid_attach_pool", ct.addressof(self._data), options)
        _keep(self)
        return found

    def in_use(self) -> bool:
        """Whether a Function still calls for slots."""
        return bool(self._data.references)

    def let_go(self) -> None:
        """Free the memory of all slots; it is made again where it is called for."""
        for slot, spaces in zip(self._slots, self._spaces, strict=True):
            slot.plan = None
            spaces.clear()

    def calls(self) -> int:
        """Solves so far: the number of the last one."""
        return int(self._data.calls)

    def last(self, after: int, thread: int | None = None) -> tuple[int, list[Vector]] | None:
        """The number and the inputs of the last solve after number ``after`` that is still known.

        Args:
            after: a number of :meth:`calls`.
            thread: the thread that called for it, by :func:`threading.get_ident`; None for any.
        """
        latest = None
        for record, row in zip(self._records, self._rows, strict=True):
            stamp = record.stamp
            if stamp > after and thread in (None, record.thread):
                numbers = row.copy()
                if record.stamp == stamp:  # else another solve is being written there
                    after, latest = stamp, numbers
        if latest is None:
            return None
        return after, np.split(latest, np.cumsum(self.sizes)[:-1])

    def _prepared(self, k: int, row: int) -> int:
        """What C calls; nothing may be raised through it."""
        try:
            self._fill(k, np.ctypeslib.as_array((ct.c_double * sum(self.sizes)).from_address(row)))
        except KeyboardInterrupt:
            interrupt_main()  # again, where it may be raised
            return 1
        except BaseException:  # noqa: BLE001, the branch of Python raises it where it matters
            return 1
        return 0

    def _fill(self, k: int, row: Vector) -> None:
        sides = np.split(row.copy(), np.cumsum(self.sizes)[:-1])[2:6]
        lbx, ubx, lbg, ubg = sides
        if not ((lbx <= ubx).all() and (lbg <= ubg).all()):
            raise ValueError("bounds cross")
        plan = plan_of(self._library, self._problem, Bounds(lbx, ubx, lbg, ubg))
        spaces, slot = self._spaces[k], self._slots[k]
        found = next((one for one in spaces if one.space.plan is plan), None)
        if found is None:
            problem, evaluate = self._problem, self._evaluate
            forms = forms_of(problem)
            space = Workspace(self._library, plan, problem.functions, evaluate, *forms)
            slope, composite = problem.parameter_gradient, bool(self._data.composite.composite)
            found = _Space(self._library, space, slope, evaluate, composite=composite)
        spaces[:] = [found, *(one for one in spaces if one is not found)][:_KINDS]
        found.space.limit(self._limits)
        found.put(slot)


class _Space:
    """A workspace with all that a slot points to."""

    def __init__(
        self,
        library: Any,
        space: Workspace,
        gradient: ca.Function,
        evaluate: int,
        *,
        composite: bool,
    ) -> None:
        self.space = space
        self._slope, self._kept = buffer_of(gradient, evaluate)
        self._cold = Cold(library, space.plan, space.addresses, _ROWS, composite=composite)

    def put(self, slot: SlotData) -> None:
        """Let a slot point here."""
        space = self.space
        for name in ("plan", "functions", "numbers", "doubles", "ints", "answer"):
            setattr(slot, name, space.addresses[name])
        slot.in_, slot.out = address(space.numbers_in), address(space.numbers_out)
        slot.lam_p = address(space.outputs["lam_p"])
        slot.slope = ct.addressof(self._slope)
        for name, place in self._cold.addresses.items():
            setattr(slot, name, place)
        awaited = space.awaited
        slot.arrived = None if awaited is None else ct.addressof(awaited.arrived)


_pools: list[Pool] = []
_more, _less = ct.pythonapi.Py_IncRef, ct.pythonapi.Py_DecRef
_more.argtypes = _less.argtypes = [ct.py_object]


def _keep(pool: Pool) -> None:
    """Keep a pool for as long as its Functions live, and let go those whose are gone.

    CasADi does not tell Python of the end of a Function, and some end after Python's modules.
    """
    for other in [other for other in _pools if not other.in_use()]:
        try:
            _pools.remove(other)
        except ValueError:  # another thread was first
            continue
        other.let_go()
        _less(other)
    if pool not in _pools:
        _pools.append(pool)
        _more(pool)


def _address(function: Any) -> int:
    return ct.cast(function, c_void_p).value or 0


def _no_slopes(name: str, sizes: Sequence[int]) -> ca.Function:
    """The Jacobian of what has no slope."""
    given, answer, starts = sizes
    rows = answer, 1, 1, starts
    return ca.Function(
        name,
        [ca.MX.sym("in", given), *(ca.MX.sym("out", size) for size in rows)],
        [ca.MX(size, given) for size in rows],
    )
