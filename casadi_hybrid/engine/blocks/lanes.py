"""A kind of part as a list that C reads, many parts side by side: without a compiler's help."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from casadi_hybrid.engine.blocks.library import Ints

LANES = 32
"""``BLOCKS_LANES``: parts side by side at most."""
_LOAD, _SHARED, _OUTPUT, _HAND_ON = -1, -2, -3, -4  # as in ``c/lanes.c``


def program_of(shape: Ints, shared: Sequence[bool]) -> tuple[Ints, int]:
    """The lines of a kind, and how many registers they need.

    A register is free again after the last line that reads it, so that what is at hand stays small.

    Args:
        shape: four numbers for each operation, see ``blocks_kinds`` in ``c/blocks.h``.
        shared: of each slot, whether all parts of the kind read the same place.

    The places in ``at`` are those that :func:`~casadi_hybrid.engine.blocks.code.part_code` says.
    """
    return _Lines(shape.tolist(), shared).made()


class _Lines:
    def __init__(self, shape: list[list[int]], shared: Sequence[bool]) -> None:
        self._shape = shape
        count = {True: 0, False: 0}
        self._slots: list[tuple[int, int]] = []
        for one in shared:
            self._slots.append((_SHARED if one else _LOAD, count[bool(one)]))
            count[bool(one)] += 1
        self._next = count[False]  # place in ``at`` of the next number that leaves
        self._lines: list[tuple[int, int, int, int]] = []
        self._register: dict[int, int] = {}
        self._free: list[int] = []
        self._registers = 0

    def made(self) -> tuple[Ints, int]:
        last: dict[int, int] = {}
        for i, (_, a, b, _) in enumerate(self._shape):
            last[a] = last[b] = i
        for i, (operation, a, b, leaves) in enumerate(self._shape):
            x = self._at_hand(a)
            y = self._at_hand(b) if b != -1 else x
            # Not one of those it reads: C counts on that.
            z = self._register[i] = self._taken()
            self._lines.append((operation, z, x, y))
            if leaves:
                for _ in range((leaves - 1) // 2):
                    self._leave(_OUTPUT, z)
                if (leaves - 1) % 2:
                    self._leave(_HAND_ON, z)
            for w in {a, b} - {-1}:
                if last[w] == i:
                    self._free.append(self._register.pop(w))
            if i not in last:
                self._free.append(self._register.pop(i))
        return np.array(self._lines, np.int32).reshape(-1, 4), self._registers

    def _at_hand(self, w: int) -> int:
        """The register of an operand; what comes in through a slot is loaded where first read."""
        if w not in self._register:
            kind, place = self._slots[-2 - w]
            self._register[w] = self._taken()
            self._lines.append((kind, self._register[w], place, 0))
        return self._register[w]

    def _leave(self, how: int, register: int) -> None:
        self._lines.append((how, register, self._next, 0))
        self._next += 1

    def _taken(self) -> int:
        if self._free:
            return self._free.pop()
        self._registers += 1
        return self._registers - 1
