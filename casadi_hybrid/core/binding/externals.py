"""Functions of the adapter that CasADi calls, and buffers of CasADi that C calls."""

from __future__ import annotations

import ctypes as ct
from functools import cache
from typing import Any

import casadi as ca

from casadi_hybrid.core.header import C
from casadi_hybrid.core.library import load
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.casadi_internals import address_of
from casadi_hybrid.utils.lock import Lock
from casadi_hybrid.utils.matrices import Buffered

_describing = Lock()


@cache
def adapter() -> ct.CDLL:
    """Load the adapter for Python; raises BuildError."""
    return C.declare(load("hybrid_adapter"))


@cache
def _for_casadi() -> ca.Importer:
    """The adapter for CasADi, loaded once: by its path each Function takes longer."""
    return ca.Importer(adapter()._name, "dll")


def function_of(name: str, shapes: Any, options: dict[str, Any] | None = None) -> ca.Function:
    """A function of the adapter as a ``ca.Function`` of these shapes."""
    library, importer = adapter(), _for_casadi()
    # While CasADi makes the Function it asks for shapes, and a global of the adapter answers.
    with _describing.held:
        library.hybrid_describe(ct.byref(shapes))
        function = ca.external(name, importer, options or {})
        library.hybrid_describe(None)
    return function


@cache
def _gate() -> ca.Function:
    x = ca.MX.sym("x")
    # CasADi refuses to write C for its Newton iteration. This branch is never taken.
    root = ca.rootfinder("casadi_hybrid_solver", "newton", {"x": x, "g": x})
    # The condition is 1: the first branch.
    branches = ca.Function("number", [x], [x]), ca.Function("other", [x], [root(x0=x)["x"]])
    return ca.Function.if_else("gate", *branches, {"is_diff_in": [False, False]})


def without_c(number: float) -> ca.MX:
    """Return a number as part of a graph that CasADi refuses to compile."""
    # Generated C would call a solver that exists in this process alone.
    return _gate().call([ca.MX(1), ca.MX(number)])[0]


def shapes_of(sizes_in: Any, sizes_out: Any) -> Any:
    """``hybrid_shapes`` of full columns with these numbers of rows."""
    return C.hybrid_shapes(*(tuple((n, 1, 1) for n in sizes) for sizes in (sizes_in, sizes_out)))


def buffer_of(function: ca.Function, evaluate: int) -> tuple[Any, Any]:
    """``hybrid_buffer`` of a function: fixed arrays of its inputs and outputs; and their owner."""
    owner = Buffered(function)
    data = C.hybrid_buffer(evaluate=evaluate, raw=address_of(owner.buffer))
    data.out, data.size = address(owner.out), owner.out.size
    data.inputs = tuple(map(address, owner.inputs))
    data.sizes = tuple(array.size for array in owner.inputs)
    return data, owner
