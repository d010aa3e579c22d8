"""The C of this room, and the graph of a Function as arrays."""

from __future__ import annotations

import ctypes as ct
from ctypes import c_int, c_longlong, c_void_p
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.operations import CONSTANT, INPUT, OUTPUT, name_of, translated
from casadi_hybrid.core.library import load
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.casadi_internals import instruction_methods
from casadi_hybrid.utils.lock import Lock

_CHECKED = 40  # instructions that are read both ways
_trusted: list[bool] = []  # not empty once a function was read both ways with the same result
Ints = NDArray[np.int32]
Flags = NDArray[np.uint8]


class UntranslatedError(ValueError):
    """A function cannot become machine code here; the message says why."""


class _CasadiData(ct.Structure):
    """``blocks_casadi``."""

    _fields_ = [(name, c_void_p) for name in ("id", "input", "output", "constant", "release")]


class _SpecialData(ct.Structure):
    """``blocks_special``."""

    _fields_ = [(name, c_int) for name in ("constant", "input", "output")]


_SPECIAL = _SpecialData(CONSTANT, INPUT, OUTPUT)
_AS_READ = _SpecialData(ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT)


_loading = Lock()


@cache
def _loaded() -> Any:
    found = load("hybrid_blocks")
    for name in ("values", "kinds", "lines", "terms", "elements", "closed"):
        getattr(found, f"blocks_{name}").restype = c_longlong
    return found


def tools() -> Any:
    """The loaded library. Raises BuildError where it cannot be had."""
    with _loading.held:
        return _loaded()


def call(function: Any, *arguments: Any) -> int:
    """Call C with arrays by their address, numbers as ``long long`` where they are Python's."""
    given = (
        c_void_p(address(one)) if isinstance(one, np.ndarray)
        else c_longlong(one) if isinstance(one, int)
        else one
        for one in arguments
    )  # fmt: skip
    return int(function(*given) or 0)


class Graph(NamedTuple):
    """A function as values, numbered in the order they are computed; see ``c/blocks.h``.

    Attributes:
        op, a, b: of each value; a leaf has op < 0, and in ``a`` its place among its like.
        uses: how often it is read.
        constants: the different ones.
        result: the value of each nonzero of the outputs; -1 where that is zero.
        sizes: nonzeros of each input.
    """

    op: Ints
    a: Ints
    b: Ints
    uses: Ints
    constants: NDArray[np.float64]
    result: Ints
    sizes: tuple[int, ...]


def graph_of(function: ca.Function) -> Graph:
    """Read a function in scalar operations.

    Raises:
        UntranslatedError: where it has none, or one without C.
        BuildError: where the C of this room cannot be had.
    """
    if not function.is_a("SXFunction"):
        raise UntranslatedError(f"the function {function.name()!r} has no scalar form")
    as_read, *places = _read(function)
    operation = translated(as_read)
    if (operation < 0).any():
        name = name_of(int(as_read[operation < 0][0]))
        raise UntranslatedError(f"the operation {name} is left to CasADi")
    n = max(1, operation.size)
    sizes = [function.nnz_in(i) for i in range(function.n_in())]
    outputs = [function.nnz_out(i) for i in range(function.n_out())]
    op, a, b, uses = (np.zeros(n, np.int32) for _ in range(4))
    result = np.full(sum(outputs), -1, np.int32)
    pool, count = np.zeros(n), c_int()
    table = power_of_two(2 * n)
    values = call(
        tools().blocks_values, int(operation.size), operation, *places, ct.byref(_SPECIAL),
        starts(sizes), starts(outputs), np.zeros(max(1, function.sz_w()), np.int32), table,
        np.empty(2 * table, np.int32), op, a, b, pool, ct.byref(count), result,
    )  # fmt: skip
    call(tools().blocks_uses, values, op, a, b, int(result.size), result, uses)
    op, a, b, uses = (array[:values].copy() for array in (op, a, b, uses))
    return Graph(op, a, b, uses, pool[: count.value].copy(), result, tuple(sizes))


def power_of_two(least: int) -> int:
    """The least power of two that is not below."""
    return 1 << max(4, (least - 1).bit_length())


def starts(sizes: Any) -> Ints:
    """Begin of each of several arrays that lie one after the other, and the end."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int32)]).astype(np.int32)


def kinds_of(
    op: Ints, a: Ints, b: Ints, begin: Ints, order: Ints, part_of: Ints, outputs: Any,
    elsewhere: NDArray[np.bool_],
) -> tuple[Ints, Ints, Ints, Ints, Ints]:  # fmt: skip
    """Which parts are equal: ``kind``, ``first``, ``shape``, ``slots`` and ``slot_begin``.

    See ``blocks_kinds`` in ``c/blocks.h``; ``first`` is the first part of each kind.
    """
    n, parts = op.size, begin.size - 1
    shape, slots = np.empty((order.size, 4), np.int32), np.empty(2 * order.size, np.int32)
    slot_begin, kind = np.zeros(parts + 1, np.int32), np.zeros(parts, np.int32)
    first, table = np.zeros(max(1, parts), np.int32), power_of_two(2 * parts)
    kinds = call(
        tools().blocks_kinds, n, op, a, b, parts, begin, order, part_of, outputs.astype(np.int32),
        elsewhere, np.zeros(n, np.int32), np.zeros(n, np.int32), shape, slots, slot_begin, table,
        np.empty(table, np.int32), kind, first,
    )  # fmt: skip
    return kind, first[:kinds], shape, slots, slot_begin


def _read(function: ca.Function) -> tuple[NDArray[Any], ...]:
    """Operations, what each reads (two numbers) and writes (two), constants."""
    n = int(function.n_instructions())
    addresses = instruction_methods()
    if addresses is None:
        return _by_python(function, n)
    data = _CasadiData(*addresses)
    # Ten times the time of the rest goes into reading through Python.
    if not _trusted:
        checked = min(n, _CHECKED)
        if not all(
            map(np.array_equal, _by_c(function, data, checked), _by_python(function, checked))
        ):
            return _by_python(function, n)
        if checked == _CHECKED:
            _trusted.append(True)
    return _by_c(function, data, n)


def _by_c(function: ca.Function, data: _CasadiData, n: int) -> tuple[NDArray[Any], ...]:
    arrays = [np.empty(n, np.int32) for _ in range(5)]
    constant = np.empty(n)
    call(
        tools().blocks_read, ct.byref(data), c_void_p(int(function.this)), n,
        ct.byref(_AS_READ), *arrays, constant,
    )  # fmt: skip
    return (*arrays, constant)


def _by_python(function: ca.Function, n: int) -> tuple[NDArray[Any], ...]:
    constant = np.zeros(n)
    rows = np.full((n, 5), -1, np.int32)
    for k in range(n):
        operation = function.instruction_id(k)
        rows[k, 0], rows[k, 3:] = operation, [*function.instruction_output(k), -1, -1][:2]
        if operation == ca.OP_CONST:
            constant[k] = function.instruction_constant(k)
        else:
            rows[k, 1:3] = [*function.instruction_input(k), -1, -1][:2]
    return (*(np.ascontiguousarray(rows[:, i]) for i in range(5)), constant)
