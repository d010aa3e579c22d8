"""The C of this folder, and the graph of a function as arrays."""

from __future__ import annotations

import ctypes as ct
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.core.evaluation.operations import CONSTANT, INPUT, OUTPUT, name_of, translated
from casadi_hybrid.core.header import Headers
from casadi_hybrid.core.library import load
from casadi_hybrid.utils.arrays import address
from casadi_hybrid.utils.casadi_internals import instruction_methods
from casadi_hybrid.utils.lock import Lock

Ints = NDArray[np.int32]
Flags = NDArray[np.uint8]

# Declarations of the C of this folder.
BLOCKS = Headers.of("evaluation/c/blocks.h")
LEAF_INPUT: int = BLOCKS.HYBRID_LEAF_INPUT
LEAF_CONSTANT: int = BLOCKS.HYBRID_LEAF_CONSTANT
_SPECIAL = BLOCKS.blocks_special(CONSTANT, INPUT, OUTPUT)
_SPECIAL_IN_CASADI = BLOCKS.blocks_special(ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT)
_loading = Lock()


class UntranslatedError(ValueError):
    """A function cannot become machine code here; the message says why."""


@cache
def _loaded() -> ct.CDLL:
    return BLOCKS.declare(load("hybrid_blocks"))


def tools() -> ct.CDLL:
    """Load the library once a process; raises BuildError."""
    with _loading.held:
        return _loaded()


def call(name: str, *arguments: Any) -> int:
    """Call ``blocks_NAME`` of ``c/blocks.h``, arrays by their address."""
    # Arrays must be contiguous and of C's type: nothing checks what an address points to.
    function = getattr(tools(), f"blocks_{name}")
    return int(function(*(address(v) if isinstance(v, np.ndarray) else v for v in arguments)) or 0)


class Graph(NamedTuple):
    """Function as values, numbered in the order of their computation; see ``c/blocks.h``."""

    op: Ints  # < 0 for a leaf
    a: Ints  # operand; of a leaf its index among the inputs or constants
    b: Ints  # −1 for none
    uses: Ints  # how often each value is read
    constants: NDArray[np.float64]
    result: Ints  # value of each nonzero of the outputs; −1 for a zero
    sizes: tuple[int, ...]  # nonzeros of each input


def graph_of(function: ca.Function) -> Graph:
    """Read a function in scalar operations; raises UntranslatedError or BuildError."""
    if not function.is_a("SXFunction"):
        raise UntranslatedError(f"the function {function.name()!r} has no scalar form")
    in_casadi, *operands = _read(function)
    operation = translated(in_casadi)
    if (operation < 0).any():
        name = name_of(int(in_casadi[operation < 0][0]))
        raise UntranslatedError(f"the operation {name} is left to CasADi")
    n = max(1, operation.size)
    sizes = [function.nnz_in(i) for i in range(function.n_in())]
    outputs = [function.nnz_out(i) for i in range(function.n_out())]
    op, a, b, uses = (np.zeros(n, np.int32) for _ in range(4))
    result = np.full(sum(outputs), -1, np.int32)
    registers = np.zeros(max(1, function.sz_w()), np.int32)
    pool, constants = np.zeros(n), ct.c_int()
    # A hash table that is at most half full.
    table_size = power_of_two(2 * n)
    table = np.empty(2 * table_size, np.int32)
    instructions = operation.size, operation, *operands, ct.byref(_SPECIAL)
    room = starts(sizes), starts(outputs), registers, table_size, table
    count = call("values", *instructions, *room, op, a, b, pool, ct.byref(constants), result)
    call("uses", count, op, a, b, result.size, result, uses)
    # Copies of the used part free the larger arrays.
    op, a, b, uses = (array[:count].copy() for array in (op, a, b, uses))
    return Graph(op, a, b, uses, pool[: constants.value].copy(), result, tuple(sizes))


def power_of_two(least: int) -> int:
    """Smallest power of two ≥ ``least``, 16 at least."""
    return 1 << max(4, (least - 1).bit_length())


def starts(sizes: Any) -> Ints:
    """Offsets of consecutive arrays with these sizes, and the end."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int32)]).astype(np.int32)


class Kinds(NamedTuple):
    """Equal parts, see ``blocks_kinds`` in ``c/blocks.h``."""

    kind: Ints  # of each part
    first: Ints  # first part of each kind
    shape: Ints  # four numbers for each value of the parts
    # Values that enter part k are slots[slot_begin[k]:slot_begin[k + 1]].
    slots: Ints
    slot_begin: Ints


def kinds_of(
    op: Ints,
    a: Ints,
    b: Ints,
    begin: Ints,
    order: Ints,
    part_of: Ints,
    outputs: NDArray[Any],  # how many outputs each value goes to
    elsewhere: NDArray[np.bool_],  # values that another part reads
) -> Kinds:
    """Find equal parts; the values of part k are order[begin[k]:begin[k + 1]]."""
    n, parts = op.size, begin.size - 1
    shape, slots = np.empty((order.size, 4), np.int32), np.empty(2 * order.size, np.int32)
    slot_begin, kind = np.zeros(parts + 1, np.int32), np.zeros(parts, np.int32)
    first, table_size = np.zeros(max(1, parts), np.int32), power_of_two(2 * parts)
    place, stamp, table = (np.zeros(size, np.int32) for size in (n, n, table_size))
    values = n, op, a, b, parts, begin, order, part_of, outputs.astype(np.int32), elsewhere
    results = shape, slots, slot_begin, table_size, table, kind, first
    kinds = call("kinds", *values, place, stamp, *results)
    return Kinds(kind, first[:kinds], shape, slots, slot_begin)


def _read(function: ca.Function) -> tuple[NDArray[Any], ...]:
    """Operations, the two operands and the two results of each instruction, constants."""
    methods = _methods()
    return _by_python(function) if methods is None else _by_c(function, methods)


@cache
def _methods() -> Any:
    """CasADi's methods for C, ten times as fast as Python; None unless both read a probe alike."""
    addresses = instruction_methods()
    if addresses is None:
        return None
    # C++ symbols carry no types of results: both ways must read a probe alike.
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y")
    probe = ca.Function("probe", [x, y], [ca.sin(x) + 2.5 * y, ca.fmin(x[0], y), 7.0 / x[1]])
    methods = BLOCKS.blocks_casadi(*addresses)
    same = all(map(np.array_equal, _by_c(probe, methods), _by_python(probe)))
    return methods if same else None


def _by_c(function: ca.Function, methods: Any) -> tuple[NDArray[Any], ...]:
    n = function.n_instructions()
    arrays = [np.empty(n, np.int32) for _ in range(5)]
    constant = np.empty(n)
    casadi = ct.byref(methods), int(function.this), n, ct.byref(_SPECIAL_IN_CASADI)
    call("read", *casadi, *arrays, constant)
    return (*arrays, constant)


def _by_python(function: ca.Function) -> tuple[NDArray[Any], ...]:
    n = function.n_instructions()
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
