"""A kind of part as a list that C reads, many parts side by side: without a compiler's help."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Sequence
from ctypes import c_int

import numpy as np

from casadi_hybrid.engine.blocks.library import Ints, call, tools

LANES = 32
"""``BLOCKS_LANES``: parts side by side at most."""
_LOAD, _SHARED = -1, -2  # as in ``c/blocks.h``


def program_of(shape: Ints, shared: Sequence[bool]) -> tuple[Ints, int]:
    """The lines of a kind, and how many registers they need; see ``blocks_lines``.

    Args:
        shape: four numbers for each operation, see ``blocks_kinds`` in ``c/blocks.h``.
        shared: of each slot, whether all parts of the kind read the same place.

    The places in ``at`` are those that :func:`~casadi_hybrid.engine.blocks.code.part_code` says.
    """
    flags = np.array(shared, dtype=bool)
    slots = np.zeros(1 + 2 * flags.size, np.int32)
    slots[0] = flags.size
    slots[1::2] = np.where(flags, _SHARED, _LOAD)
    slots[2::2] = np.where(flags, np.cumsum(flags), np.cumsum(~flags)) - 1
    shape = np.ascontiguousarray(shape, dtype=np.int32)
    leaves = shape[:, 3]
    most = len(shape) + flags.size + int(((leaves + 1) // 2).sum())
    lines = np.empty((max(1, most), 4), np.int32)
    room = [np.empty(len(shape) + flags.size, np.int32) for _ in range(3)]
    registers = c_int()
    count = call(
        tools().blocks_lines, len(shape), shape, slots, c_int(int((~flags).sum())), *room, lines,
        ct.byref(registers),
    )  # fmt: skip
    return lines[:count].copy(), registers.value
