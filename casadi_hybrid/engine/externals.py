"""What CasADi calls of C, the functions of the adapter, and what C calls of CasADi, buffers."""

from __future__ import annotations

import ctypes as ct
from ctypes import c_void_p
from functools import cache
from typing import Any

import casadi as ca

from casadi_hybrid.basics.arrays import address
from casadi_hybrid.basics.lock import Lock
from casadi_hybrid.basics.matrices import Buffered
from casadi_hybrid.engine.header import C
from casadi_hybrid.engine.library import load, of_casadi

_pointer_of_capsule = ct.pythonapi.PyCapsule_GetPointer
_pointer_of_capsule.restype, _pointer_of_capsule.argtypes = c_void_p, [ct.py_object, ct.c_char_p]
_describing = Lock()


@cache
def adapter() -> ct.CDLL:
    """The adapter, loaded for Python.

    Raises:
        BuildError: where it cannot be loaded.
    """
    return C.declare(load("hybrid_adapter"))


@cache
def _for_casadi() -> ca.Importer:
    """The same for CasADi, which takes longer to load it by its path for every Function."""
    return ca.Importer(adapter()._name, "dll")


def function_of(name: str, shapes: Any, options: dict[str, Any] | None = None) -> ca.Function:
    """A function of the adapter as a ``ca.Function`` of these shapes."""
    library, importer = adapter(), _for_casadi()
    with _describing.held:
        library.hybrid_describe(ct.byref(shapes))
        made = ca.external(name, importer, options or {})
        library.hybrid_describe(None)
    return made


@cache
def _gate() -> ca.Function:
    x = ca.MX.sym("x")
    # CasADi writes no C for its Newton iteration, and says so; this branch is never taken.
    root = ca.rootfinder("casadi_hybrid_solver", "newton", {"x": x, "g": x})
    branches = ca.Function("number", [x], [x]), ca.Function("other", [x], [root(x0=x)["x"]])
    return ca.Function.if_else("gate", *branches, {"is_diff_in": [False, False]})


def without_c(number: float) -> ca.MX:
    """Return a number as part of a graph that CasADi refuses to compile.

    A solver is in one process: generated C would call a function that is nowhere else.
    """
    return _gate().call([ca.MX(1), ca.MX(number)])[0]


@cache
def trigger() -> int | None:
    """The address of CasADi's function that evaluates a buffer; None where it is not exported.

    It is C++, under the name that all compilers but Microsoft's give it.
    """
    try:
        found = of_casadi()._ZN6casadi21_function_buffer_evalEPv
    except (AttributeError, OSError):
        return None
    return ct.cast(found, c_void_p).value


def shapes_of(sizes_in: Any, sizes_out: Any) -> Any:
    """``hybrid_shapes`` of full columns with so many rows."""
    return C.hybrid_shapes(*(tuple((n, 1, 1) for n in sizes) for sizes in (sizes_in, sizes_out)))


def address_of(buffer: Any) -> int:
    """What CasADi's evaluation of a buffer is called with."""
    return int(_pointer_of_capsule(buffer._self(), None))


def buffer_of(function: ca.Function, evaluate: int) -> tuple[Any, Any]:
    """A ``hybrid_buffer`` of a function: fixed places for its inputs and for all its outputs.

    And what has to be kept for as long as it is used.
    """
    behind = Buffered(function)
    data = C.hybrid_buffer(
        evaluate=evaluate, raw=address_of(behind.buffer), out=address(behind.out),
        size=behind.out.size, inputs=tuple(map(address, behind.inputs)),
        sizes=tuple(array.size for array in behind.inputs),
    )  # fmt: skip
    return data, behind
