"""The memory of one solve at a time: numbers in, functions behind buffers, the answer out."""

from __future__ import annotations

import ctypes as ct
from itertools import accumulate, pairwise
from math import isnan
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.blocks.compiled import (
    ARRIVED,
    COMPILED,
    INTERPRETED,
    STAGED,
    Compiled,
)
from casadi_hybrid.engine.functions import PythonFunctions
from casadi_hybrid.engine.installed import of_casadi
from casadi_hybrid.engine.plan import Plan
from casadi_hybrid.engine.solved import Solved
from casadi_hybrid.engine.structures import (
    AnswerData,
    BufferData,
    BuffersData,
    FunctionsData,
    NumbersData,
    SecantsData,
    pointer_of_capsule,
)
from casadi_hybrid.point.limits import Limits
from casadi_hybrid.point.working_set import WarmStart, WorkingSet
from casadi_hybrid.problem.functions import Functions
from casadi_hybrid.problem.numbers import Numbers

if TYPE_CHECKING:
    from casadi_hybrid.engine.blocks.forms import Code, Lists

INPUTS = ("x0", "p", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0")
OUTPUTS = ("x", "f", "g", "lam_x", "lam_g", "lam_p", "gradient", "J", "gradient0", "J0")

_MOST = 2**31 - 1  # of C's int


def trigger() -> int | None:
    """The address of CasADi's function that evaluates a buffer; None where it is not exported.

    It is C++, under the name that all compilers but Microsoft's give it.
    """
    try:
        found = of_casadi()._ZN6casadi21_function_buffer_evalEPv
    except (AttributeError, OSError):
        return None
    return ct.cast(found, ct.c_void_p).value


class Workspace:
    """For one plan and one thread.

    Args:
        library: the engine.
        plan: of the problem, for bounds of certain kinds.
        functions: of the problem.
        evaluate: :func:`trigger`; None where functions may raise, and Python calls them.
        lists: the same functions as lists; None for CasADi's interpreter.
        compiled: the same functions as machine code, which serve once they are there.

    Attributes:
        plan: as given.
        inputs: views by the names of :data:`INPUTS` into ``numbers_in``, one array.
        outputs: views by the names of :data:`OUTPUTS` into ``numbers_out``, one array. ``lam_p`` is
            for who computes it.
        answer: what C says beside them.
        called: which functions runs call, and why not compiled ones where they were asked for.
        awaited: the machine code that will serve as soon as it is there.
        limits, sided: those of the last solve, and whether it had a working set.
        python: the functions that run Python, where there are such.
        step, x_undefined: what C says of the last step, and of a point outside the domain.
        addresses: of what C is handed.
    """

    def __init__(
        self,
        library: Any,
        plan: Plan,
        functions: Functions,
        evaluate: int | None,
        lists: Lists | None = None,
        compiled: Compiled | None = None,
    ) -> None:
        data = plan.data
        n, m, J = data.n_x, data.n_g, data.nnz_J
        self.plan = plan
        self._kept: list[Any] = []
        sizes = n, data.n_p, n, n, m, m, n, m
        self.numbers_in, self.places_in, self.inputs = parts_of(INPUTS, sizes)
        sizes_out = n, 1, m, n, m, data.n_p, n, J, n, J
        self.numbers_out, self.places_out, self.outputs = parts_of(OUTPUTS, sizes_out)
        self._place_of_f = n
        self.ordered = [self.inputs[name] for name in INPUTS]
        self._numbers = NumbersData(**{k: address(v) for k, v in self.inputs.items()})
        self.step, self.x_undefined = np.zeros(n), np.zeros(n)
        self.answer = AnswerData(
            **{k: address(v) for k, v in self.outputs.items() if k not in ("f", "lam_p")},
            step=address(self.step), x_undefined=address(self.x_undefined),
        )  # fmt: skip
        self.python: PythonFunctions | None = None
        self._functions = FunctionsData(now=ct.cast(library.hybrid_now, ct.c_void_p))
        if evaluate is None:
            self.python = PythonFunctions(functions, (n, m, data.n_p))
            self._functions.first = ct.cast(self.python.first, ct.c_void_p)
            self._functions.second = ct.cast(self.python.second, ct.c_void_p)
        else:
            self._buffers = BuffersData(self._buffer(functions.first, evaluate))
            if functions.curvature is not None:
                self._buffers.second = self._buffer(functions.curvature, evaluate)
            self._functions.first = ct.cast(library.hybrid_buffered_first, ct.c_void_p)
            self._functions.second = ct.cast(library.hybrid_buffered_second, ct.c_void_p)
            self._functions.self = ct.addressof(self._buffers)
        if functions.curvature is None:
            room = np.empty(library.hybrid_secants_doubles(ct.addressof(data)))
            self._secants = SecantsData(address(room))
            self._kept.append(room)
            self._functions.secants = ct.addressof(self._secants)
        self.awaited, self.called = compiled, (INTERPRETED, "")
        self.limits: Limits | None = None
        self.sided = False
        if lists is not None:
            self._serve(lists, STAGED)
        self.addresses = {
            "plan": ct.addressof(plan.data),
            "functions": ct.addressof(self._functions),
            "numbers": ct.addressof(self._numbers),
            "answer": ct.addressof(self.answer),
        }

    def fill(self, numbers: Numbers, start: WarmStart | None) -> None:
        """Set the numbers of the next run, the multipliers of ``start`` too where it has one."""
        inputs, bounds = self.inputs, numbers.bounds
        inputs["x0"][:], inputs["p"][:] = numbers.x0, numbers.p
        inputs["lbx"][:], inputs["ubx"][:] = bounds.lbx, bounds.ubx
        inputs["lbg"][:], inputs["ubg"][:] = bounds.lbg, bounds.ubg
        if start is not None:
            inputs["lam_x0"][:], inputs["lam_g0"][:] = start.lam_x, start.lam_g

    def limit(self, limits: Limits) -> None:
        """Set the tolerances of the runs to come; called before each, so it is no part of one."""
        if self.awaited is not None:
            self._serve_awaited()
        if limits is self.limits:
            return  # as nearly always
        self.limits = limits
        data, tolerances = self._numbers, limits.tolerances
        data.tol, data.max_iter = limits.scaled_tol, min(limits.max_iter, _MOST)
        data.max_time = limits.max_time if limits.max_time < np.inf else 0.0
        data.feasibility = tolerances.feasibility
        data.stationarity = tolerances.stationarity
        data.complementarity = tolerances.complementarity

    def observe(self, observer: int) -> None:
        """Have the core show iterates to this ``hybrid_observer``."""
        self._functions.observer = observer

    def _serve_awaited(self) -> None:
        awaited = self.awaited
        assert awaited is not None
        if awaited.code is not None:
            self._serve(awaited.code, COMPILED)
            self.awaited = None
        else:
            self.called = self.called[0], awaited.note or ARRIVED

    def _serve(self, code: Code | Lists, called: str) -> None:
        """Have the functions called in this form from now on."""
        data, kept = code.functions()
        self._kept.append((data, kept))
        functions = self._functions
        functions.first, functions.second = code.entries
        functions.self = ct.addressof(data)
        self.called = called, ""

    def begin_with(self, sides: WorkingSet | None) -> None:
        """Set the working set of the next run, which has to be kept until then."""
        if sides is None and not self.sided:
            return
        self.sided = sides is not None
        data = self._numbers
        data.side_x = None if sides is None else address(sides.x)
        data.side_g = None if sides is None else address(sides.g)

    def solved(self) -> Solved:
        """What the last run found, copied."""
        self.numbers_out[self._place_of_f] = self.answer.end.f
        said = AnswerData.from_buffer_copy(self.answer)
        step = self.step.copy() if said.stepped else None
        none = not self.x_undefined.size or isnan(self.x_undefined[0])
        x_undefined = None if none else self.x_undefined.copy()
        asked = self.python
        undefined = None if asked is None else asked.undefined
        return Solved(
            self.numbers_out.copy(), self.places_out, said, step, x_undefined,
            asked is not None, undefined,
        )  # fmt: skip

    def _buffer(self, function: ca.Function, evaluate: int) -> BufferData:
        data, kept = buffer_of(function, evaluate)
        self._kept.append(kept)
        return data


def buffer_of(function: ca.Function, evaluate: int) -> tuple[BufferData, Any]:
    """A buffer for the function: fixed places for its inputs and for all its outputs.

    And what has to be kept for as long as it is used.
    """
    buffer, _ = function.buffer()
    inputs = [np.zeros(function.nnz_in(i)) for i in range(function.n_in())]
    out: NDArray[np.float64] = np.zeros(function.nnz_out())
    begin = 0
    for i, array in enumerate(inputs):
        buffer.set_arg(i, array.data)
    for i in range(function.n_out()):
        end = begin + function.nnz_out(i)
        buffer.set_res(i, out[begin:end].data)
        begin = end
    data = BufferData(
        evaluate=evaluate, raw=pointer_of_capsule(buffer._self(), None),
        out=address(out), size=out.size,
    )  # fmt: skip
    for i, array in enumerate(inputs):
        data.inputs[i], data.sizes[i] = address(array), array.size
    return data, (buffer, inputs, out)


def parts_of(
    names: tuple[str, ...], sizes: tuple[int, ...]
) -> tuple[Vector, dict[str, slice], dict[str, Vector]]:
    """An array, which part of it has which name, and these parts."""
    array = np.zeros(sum(sizes))
    ends = pairwise([0, *accumulate(sizes)])
    places = {name: slice(a, b) for name, (a, b) in zip(names, ends, strict=True)}
    return array, places, {name: array[place] for name, place in places.items()}
