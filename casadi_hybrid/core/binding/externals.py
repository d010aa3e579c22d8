"""Functions of the adapter, which CasADi calls, and buffers of CasADi, which C calls."""

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


def shapes_of(sizes_in: Any, sizes_out: Any) -> Any:
    """``hybrid_shapes`` of full columns with so many rows."""
    return C.hybrid_shapes(*(tuple((n, 1, 1) for n in sizes) for sizes in (sizes_in, sizes_out)))


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
