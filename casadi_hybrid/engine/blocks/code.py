"""One part of a kind as C: straight lines in a loop over the parts that are equal to it."""

from __future__ import annotations

from collections.abc import Sequence

from casadi_hybrid.engine.blocks.library import Ints
from casadi_hybrid.engine.blocks.operations import FORMULAS

CHUNK = 200
"""Operations of one C function; the time a compiler takes grows faster than these."""
ENTRY = "void @("
"""How the function of a kind begins in its C, and nothing else."""
_ARGUMENTS = "const int *at, const int *shared, double *v, double *out, double *own"
_WORDS = "at", "shared", "v", "out", "own"


def part_code(shape: Ints, shared: Sequence[bool]) -> tuple[str, int]:
    """The C of a kind with ``@`` in place of its name, and how many numbers its ``own`` holds.

    Args:
        shape: four numbers for each operation, see ``blocks_kinds`` in ``c/blocks.h``.
        shared: of each slot, whether all parts of the kind read the same place.

    The places in ``at`` are those of the other slots, in order, then for each value that leaves the
    part the outputs it goes to and, where other parts read it, its place in ``v``.
    """
    return _Kind(shape.tolist(), shared).text()


class _Kind:
    def __init__(self, shape: list[list[int]], shared: Sequence[bool]) -> None:
        self._shape = shape
        count = {True: 0, False: 0}
        self._slots: list[str] = []
        for one in shared:
            self._slots.append(f"v[{'shared' if one else 'at'}[{count[bool(one)]}]]")
            count[bool(one)] += 1
        self._next = count[False]  # place in ``at`` of the next number that leaves
        self._size = len(shape)
        self._chunked = self._size > CHUNK
        self._kept = self._crossing() if self._chunked else {}

    def text(self) -> tuple[str, int]:
        functions = []
        chunks = range(0, self._size, CHUNK) if self._chunked else range(1)
        for c, begin in enumerate(chunks):
            end = min(begin + CHUNK, self._size) if self._chunked else self._size
            lines = self._lines(begin, end)
            if self._chunked:
                unread = _unread(lines)
                functions.append(f"static void @_{c}({_ARGUMENTS})\n{{\n{unread}{lines}}}\n")
            else:
                functions.append(lines)
        if self._chunked:
            calls = "".join(f"@_{c}(at, shared, v, out, own);\n" for c in range(len(chunks)))
            before, body = "".join(functions), calls
        else:
            before, body = "", functions[0]
        head = f"{ENTRY}long long count, {_ARGUMENTS})\n"
        unread = "" if self._chunked else _unread(f"at[] {body}")  # the loop itself reads at
        loop = f"{{\n{unread}for (; count > 0; count--, at += {self._next}) {{\n{body}}}\n}}\n"
        return before + head + loop, len(self._kept)

    def _crossing(self) -> dict[int, int]:
        """The place in ``own`` of each value that another chunk reads."""
        found: dict[int, int] = {}
        for i, (_, a, b, _) in enumerate(self._shape):
            for w in (a, b):
                if w >= 0 and w // CHUNK != i // CHUNK:
                    found.setdefault(w, len(found))
        return found

    def _lines(self, begin: int, end: int) -> str:
        lines: list[str] = []
        there: set[int] = set()

        def name(w: int) -> str:
            if w >= begin:
                return f"a{w}"
            word, source = (
                (f"a{w}", f"own[{self._kept[w]}]")
                if w >= 0
                else (f"s{-2 - w}", self._slots[-2 - w])
            )
            if w not in there:
                there.add(w)
                lines.append(f"const double {word} = {source};")
            return word

        for i in range(begin, end):
            operation, a, b, leaves = self._shape[i]
            operands = [name(w) for w in (a, b) if w != -1]
            lines.append(f"const double a{i} = {FORMULAS[operation].format(*operands)};")
            if i in self._kept:
                lines.append(f"own[{self._kept[i]}] = a{i};")
            if leaves:
                for _ in range((leaves - 1) // 2):
                    lines.append(f"out[at[{self._next}]] = a{i};")
                    self._next += 1
                if (leaves - 1) % 2:
                    lines.append(f"v[at[{self._next}]] = a{i};")
                    self._next += 1
        return "\n".join(lines) + "\n"


def _unread(lines: str) -> str:
    """Says of each argument that is not read that this is meant: no reason for a warning."""
    return "".join(f"(void){word};\n" for word in _WORDS if f"{word}[" not in lines)
