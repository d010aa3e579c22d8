"""What equal parts do: as C, a loop of straight lines, or as a list that C reads."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Sequence
from ctypes import c_int
from functools import cached_property

import numpy as np

from casadi_hybrid.core.evaluation.library import Ints, call, tools
from casadi_hybrid.core.evaluation.operations import FORMULAS

CHUNK = 200
"""Operations of one C function; the time a compiler takes grows faster than these."""
ENTRY = "void @("
"""How the function of a kind begins in its C, and nothing else."""
LANES = 32
"""``BLOCKS_LANES``: parts side by side at most that a list does."""
_LOAD, _SHARED = -1, -2  # as in ``c/blocks.h``
_ARGUMENTS = "const int *at, const int *shared, double *v, double *out, double *own"
_WORDS = "at", "shared", "v", "out", "own"


class Lines:
    """A kind of part.

    The places in ``at`` are those of the slots that are not shared, in order, then for each value
    that leaves the part the outputs it goes to and, where other parts read it, its place in ``v``.

    Args:
        shape: four numbers for each operation, see ``blocks_kinds`` in ``c/blocks.h``.
        shared: of each slot, whether all parts of the kind read the same place.
    """

    def __init__(self, shape: Ints, shared: Sequence[bool]) -> None:
        self._shape, self._shared = shape, shared

    @cached_property
    def code(self) -> tuple[str, int]:
        """The C with ``@`` in place of its name, and how many numbers its ``own`` holds."""
        return _code(self._shape, self._shared)

    @cached_property
    def program(self) -> tuple[Ints, int]:
        """The lines of the list, and how many registers they need; see ``blocks_lines``."""
        flags = np.array(self._shared, dtype=bool)
        slots = np.zeros(1 + 2 * flags.size, np.int32)
        slots[0] = flags.size
        slots[1::2] = np.where(flags, _SHARED, _LOAD)
        slots[2::2] = np.where(flags, np.cumsum(flags), np.cumsum(~flags)) - 1
        shape = np.ascontiguousarray(self._shape, dtype=np.int32)
        most = len(shape) + flags.size + int(((shape[:, 3] + 1) // 2).sum())
        lines, registers = np.empty((max(1, most), 4), np.int32), c_int()
        room = [np.empty(len(shape) + flags.size, np.int32) for _ in range(3)]
        count = call(
            tools().blocks_lines, len(shape), shape, slots, c_int(int((~flags).sum())), *room,
            lines, ct.byref(registers),
        )  # fmt: skip
        return lines[:count].copy(), registers.value


def _code(shape: Ints, shared: Sequence[bool]) -> tuple[str, int]:
    rows: list[list[int]] = shape.tolist()
    slots, row, common = [], 0, 0
    for one in shared:
        slots.append(f"v[shared[{common}]]" if one else f"v[at[{row}]]")
        row, common = row + (not one), common + bool(one)
    # The place in ``own`` of each value that another chunk reads.
    read = ((w, i) for i, (_, a, b, _) in enumerate(rows) for w in (a, b) if w >= 0)
    crossing = dict.fromkeys(w for w, i in read if w // CHUNK != i // CHUNK)
    kept = {w: place for place, w in enumerate(crossing)}
    chunks = []
    for begin in range(0, max(1, len(rows)), CHUNK):
        lines: list[str] = []
        words: dict[int, str] = {}
        for i, (operation, a, b, leaves) in enumerate(rows[begin : begin + CHUNK], begin):
            operands = [w for w in (a, b) if w != -1]
            for w in operands:
                if w not in words:
                    words[w] = f"a{w}" if w >= 0 else f"s{-2 - w}"
                    source = f"own[{kept[w]}]" if w >= 0 else slots[-2 - w]
                    lines.append(f"const double {words[w]} = {source};")
            words[i] = f"a{i}"
            formula = FORMULAS[operation].format(*(words[w] for w in operands))
            lines.append(f"const double a{i} = {formula};")
            if i in kept:
                lines.append(f"own[{kept[i]}] = a{i};")
            outputs, handed = divmod(leaves - 1, 2) if leaves else (0, 0)
            for where in ["out"] * outputs + ["v"] * handed:
                lines.append(f"{where}[at[{row}]] = a{i};")
                row += 1
        chunks.append("\n".join(lines) + "\n")
    before, unread, body = "", "", chunks[0]
    if len(chunks) == 1:
        unread = _unread(f"at[] {body}")  # the loop itself reads at
    else:
        for c, chunk in enumerate(chunks):
            before += f"static void @_{c}({_ARGUMENTS})\n{{\n{_unread(chunk)}{chunk}}}\n"
        body = "".join(f"@_{c}(at, shared, v, out, own);\n" for c in range(len(chunks)))
    head = f"{ENTRY}long long count, {_ARGUMENTS})\n"
    loop = f"{{\n{unread}for (; count > 0; count--, at += {row}) {{\n{body}}}\n}}\n"
    return before + head + loop, len(kept)


def _unread(lines: str) -> str:
    """Says of each argument that is not read that this is meant: no reason for a warning."""
    return "".join(f"(void){word};\n" for word in _WORDS if f"{word}[" not in lines)
