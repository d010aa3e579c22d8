"""The memory of one solve at a time: numbers in, functions behind buffers, the answer out."""

from __future__ import annotations

import ctypes as ct
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.inputs import Vector
from casadi_hybrid.engine.plan import Plan
from casadi_hybrid.engine.structures import (
    AnswerData,
    BufferData,
    BuffersData,
    FunctionsData,
    NumbersData,
)
from casadi_hybrid.point.residuals import Tolerances
from casadi_hybrid.point.working_set import WarmStart
from casadi_hybrid.problem.functions import Functions
from casadi_hybrid.problem.numbers import Numbers

_pointer_of_capsule = ct.pythonapi.PyCapsule_GetPointer
_pointer_of_capsule.restype, _pointer_of_capsule.argtypes = ct.c_void_p, [ct.py_object, ct.c_char_p]


def trigger() -> int | None:
    """The address of CasADi's function that evaluates a buffer; None where it is not exported.

    It is C++ with the name that all compilers but Microsoft's give it.
    """
    try:
        found = ct.CDLL(ca._casadi.__file__)._ZN6casadi21_function_buffer_evalEPv
    except (AttributeError, OSError):
        return None
    return ct.cast(found, ct.c_void_p).value


class Workspace:
    """For one plan and one thread.

    Attributes:
        answer: the structure that C fills.
    """

    def __init__(self, library: Any, plan: Plan, functions: Functions, evaluate: int) -> None:
        data = plan.data
        self._kept: list[Any] = [plan]
        self._inputs = {
            "x0": data.n_x, "p": data.n_p, "lbx": data.n_x, "ubx": data.n_x, "lbg": data.n_g,
            "ubg": data.n_g, "lam_x0": data.n_x, "lam_g0": data.n_g,
        }  # fmt: skip
        inputs = {name: np.zeros(size) for name, size in self._inputs.items()}
        self._x0, self._p, self._lbx, self._ubx = (inputs[k] for k in ("x0", "p", "lbx", "ubx"))
        self._lbg, self._ubg = inputs["lbg"], inputs["ubg"]
        self._lam_x0, self._lam_g0 = inputs["lam_x0"], inputs["lam_g0"]
        self._numbers = NumbersData(**{k: v.ctypes.data for k, v in inputs.items()})
        self._buffers = BuffersData(
            self._buffer(functions.first, evaluate), self._buffer(functions.curvature, evaluate)
        )
        self._functions = FunctionsData(
            ct.cast(library.hybrid_buffered_first, ct.c_void_p),
            ct.cast(library.hybrid_buffered_second, ct.c_void_p),
            ct.addressof(self._buffers),
            ct.cast(library.hybrid_now, ct.c_void_p),
        )
        self._out = {
            name: np.empty(size)
            for name, size in (
                ("x", data.n_x), ("g", data.n_g), ("lam_x", data.n_x), ("lam_g", data.n_g),
                ("gradient", data.n_x), ("J", data.nnz_J), ("gradient0", data.n_x),
                ("J0", data.nnz_J),
            )
        }  # fmt: skip
        self.answer = AnswerData(**{name: v.ctypes.data for name, v in self._out.items()})
        self._doubles = np.empty(max(1, plan.doubles))
        self._ints = np.empty(max(1, plan.ints), dtype=np.int32)
        self._call = (
            ct.byref(plan.data), ct.byref(self._functions), ct.byref(self._numbers),
            self._doubles.ctypes.data, self._ints.ctypes.data, ct.byref(self.answer),
        )  # fmt: skip
        self._warm = library.hybrid_warm

    def warm(
        self, numbers: Numbers, start: WarmStart, tolerances: Tolerances, tol: float, max_iter: int
    ) -> int:
        """Run the warm mode; the status of ``hybrid.h``."""
        bounds, data = numbers.bounds, self._numbers
        self._x0[:] = numbers.x0
        self._p[:] = numbers.p
        self._lbx[:], self._ubx[:] = bounds.lbx, bounds.ubx
        self._lbg[:], self._ubg[:] = bounds.lbg, bounds.ubg
        self._lam_x0[:], self._lam_g0[:] = start.lam_x, start.lam_g
        sides = start.working_set
        data.side_x = None if sides is None else sides.x.ctypes.data
        data.side_g = None if sides is None else sides.g.ctypes.data
        data.tol, data.max_iter = tol, max_iter
        data.feasibility = tolerances.feasibility
        data.stationarity = tolerances.stationarity
        data.complementarity = tolerances.complementarity
        return int(self._warm(*self._call))

    def taken(self, name: str) -> Vector:
        """A copy of one of the answer's arrays."""
        return self._out[name].copy()

    def _buffer(self, function: ca.Function, evaluate: int) -> BufferData:
        """A buffer for the function: fixed places for its inputs and for all its outputs."""
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
        self._kept += [buffer, inputs, out]
        data = BufferData(
            evaluate=evaluate, raw=_pointer_of_capsule(buffer._self(), None),
            out=out.ctypes.data, size=out.size,
        )  # fmt: skip
        for i, array in enumerate(inputs):
            data.inputs[i], data.sizes[i] = array.ctypes.data, array.size
        return data
