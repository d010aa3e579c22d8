"""One kind of part: as C, a loop over straight code, or as a program that C interprets."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from casadi_hybrid.core.evaluation.library import BLOCKS, Ints, call
from casadi_hybrid.core.evaluation.operations import FORMULAS

# Operations of one C function: the time of a compiler grows faster than their number.
CHUNK = 200
# Head of the function of a kind in its C, found nowhere else in the text.
ENTRY = "void @("
_ARGUMENTS = "const int *at, const int *shared, double *v, double *out, double *own"
_NAMES = "at", "shared", "v", "out", "own"


class Lines:
    """A kind of part.

    A row of ``at`` has the indices of one part: in ``v`` of its slots that are not shared, in
    order; then for each value that leaves the part the outputs it goes to and, if other parts read
    it, its index in ``v``. ``shape`` has four numbers for each operation, see ``c/blocks.h``.
    """

    def __init__(self, shape: Ints, shared: Sequence[bool]) -> None:
        self._shape, self._shared = shape, shared  # shared: all parts read one entry of v

    @cached_property
    def code(self) -> tuple[str, int]:
        """C with ``@`` in place of its name, and the size of its ``own``."""
        return _code(self._shape, self._shared)

    @cached_property
    def program(self) -> tuple[Ints, int]:
        """Lines of the program, and the number of its registers; see ``blocks_lines``."""
        shared = np.array(self._shared, dtype=bool)
        # For each slot the kind of its load, and its index among those of that kind.
        slots = np.zeros(1 + 2 * shared.size, np.int32)
        slots[0] = shared.size
        slots[1::2] = np.where(shared, BLOCKS.HYBRID_LINE_SHARED, BLOCKS.HYBRID_LINE_LOAD)
        slots[2::2] = np.where(shared, np.cumsum(shared), np.cumsum(~shared)) - 1
        shape = np.ascontiguousarray(self._shape, dtype=np.int32)
        size, leaving = len(shape), int((~shared).sum())
        # At most a line for each operation, slot and value stored: shape[:, 3] as in blocks_kinds.
        most = size + shared.size + int(((shape[:, 3] + 1) // 2).sum())
        lines, registers = np.empty((max(1, most), 4), np.int32), ct.c_int()
        last, where, unused = (np.empty(size + shared.size, np.int32) for _ in range(3))
        work = last, where, unused
        count = call("lines", size, shape, slots, leaving, *work, lines, ct.byref(registers))
        return lines[:count].copy(), registers.value


def _code(shape: Ints, shared: Sequence[bool]) -> tuple[str, int]:
    """Write a kind as C, in several functions if it has more operations than :data:`CHUNK`."""
    rows: list[list[int]] = shape.tolist()
    slots, at_next, shared_next = [], 0, 0
    for is_shared in shared:
        slots.append(f"v[shared[{shared_next}]]" if is_shared else f"v[at[{at_next}]]")
        at_next, shared_next = at_next + (not is_shared), shared_next + bool(is_shared)
    # The array own holds the values that one chunk passes on to another.
    crossing = _crossing(rows)
    chunks = []
    for begin in range(0, max(1, len(rows)), CHUNK):
        lines: list[str] = []
        names: dict[int, str] = {}
        for i, (operation, a, b, leaves) in enumerate(rows[begin : begin + CHUNK], begin):
            # A negative operand is a slot, −2 − slot, or absent, −1.
            operands = [w for w in (a, b) if w != -1]
            for w in operands:
                if w not in names:
                    names[w] = f"a{w}" if w >= 0 else f"s{-2 - w}"
                    source = f"own[{crossing[w]}]" if w >= 0 else slots[-2 - w]
                    lines.append(f"const double {names[w]} = {source};")
            names[i] = f"a{i}"
            formula = FORMULAS[operation].format(*(names[w] for w in operands))
            lines.append(f"const double a{i} = {formula};")
            if i in crossing:
                lines.append(f"own[{crossing[i]}] = a{i};")
            # leaves = 1 + 2·outputs + (1 if another part reads it), or 0 if the value stays.
            outputs, handed = divmod(leaves - 1, 2) if leaves else (0, 0)
            for array in ["out"] * outputs + ["v"] * handed:
                lines.append(f"{array}[at[{at_next}]] = a{i};")
                at_next += 1
        chunks.append("\n".join(lines) + "\n")
    functions, unread, body = "", "", chunks[0]
    if len(chunks) == 1:
        unread = _unread(f"at[] {body}")  # the loop reads at
    else:
        for c, chunk in enumerate(chunks):
            functions += f"static void @_{c}({_ARGUMENTS})\n{{\n{_unread(chunk)}{chunk}}}\n"
        body = "".join(f"@_{c}(at, shared, v, out, own);\n" for c in range(len(chunks)))
    head = f"{ENTRY}long long count, {_ARGUMENTS})\n"
    loop = f"{{\n{unread}for (; count > 0; count--, at += {at_next}) {{\n{body}}}\n}}\n"
    return functions + head + loop, len(crossing)


def _crossing(rows: list[list[int]]) -> dict[int, int]:
    """Index in ``own`` of each value that another chunk reads."""
    crossing: dict[int, int] = {}
    for i, (_, *operands, _) in enumerate(rows):
        for w in operands:
            if w >= 0 and w // CHUNK != i // CHUNK:
                crossing.setdefault(w, len(crossing))
    return crossing


def _unread(lines: str) -> str:
    """Casts to void of the arguments that are not read, against the compiler's warning."""
    return "".join(f"(void){name};\n" for name in _NAMES if f"{name}[" not in lines)
