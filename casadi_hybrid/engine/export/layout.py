"""What the files of an export say of sizes, statuses and kinds of bounds."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Mapping
from typing import Any

from casadi_hybrid.engine.export.core import statuses
from casadi_hybrid.engine.export.functions import LOOPS, PARTS, QUIETED, Generated
from casadi_hybrid.engine.export.search import Space, words_of
from casadi_hybrid.engine.export.tables import listing
from casadi_hybrid.engine.plan import ABSENT, EQUAL, OPEN, Plan
from casadi_hybrid.engine.structures import PlanData

CLOSE = 1e-9
"""How near the example has to come to Python's answer, for another C library's sin and exp."""
_POINTER = ct.sizeof(ct.c_void_p)


class Layout:
    """The structures of an export as C lays them out on this machine.

    Args:
        plan: of the problem.
        generated: its functions.
        space: what the search from any start needs; None where it is left out.

    Attributes:
        memory, input, output: bytes of ``NAME_memory``, ``NAME_in``, ``NAME_out``.
    """

    def __init__(self, plan: Plan, generated: Generated, space: Space | None) -> None:
        self._data, self._generated, self._space = plan.data, generated, space
        # The modes work one after the other in the same numbers.
        self._numbers = max(1, plan.doubles, space.doubles if space else 0)
        self._integers = max(1, plan.ints, space.ints if space else 0)
        self.memory = ct.sizeof(self._memory())
        n, m, p = plan.data.n_x, max(1, plan.data.n_g), max(1, plan.data.n_p)
        clock = 8 + _POINTER if space else 0
        # Numbers of eight bytes, and whole numbers, rounded up to eight.
        self.input = 8 * (4 * n + p + 3 * m + 4) + 8 + clock
        self.output = 8 * (2 * n + 2 * m + 4) + 16

    def _memory(self) -> Any:
        n, J = self._data.n_x, max(1, self._data.nnz_J)
        generated, space = self._generated, self._space

        class Memory(ct.Structure):
            _fields_ = (
                ("numbers", ct.c_double * self._numbers),
                ("integers", ct.c_int * self._integers),
                *(space.fields(n, self._data.n_g) if space else ()),
                *((word, ct.c_double * n) for word in ("gradient", "gradient0")),
                *((word, ct.c_double * J) for word in ("J", "J0")),
                ("w", ct.c_double * generated.w),
                ("iw", ct.c_int * generated.iw),
                ("arg", ct.c_void_p * generated.arg),
                ("res", ct.c_void_p * generated.res),
            )

        return Memory

    def words(self, name: str, tables: int, core: Mapping[str, str]) -> dict[str, Any]:
        """What the templates ask for.

        Args:
            name: of the export.
            tables: bytes of the constant tables.
            core: its files.
        """
        data, generated, space, upper = self._data, self._generated, self._space, name.upper()
        said = words_of(space is not None)
        known = {word: said[number] for word, number in statuses(core).items() if number in said}
        numbers = statuses(core)
        rows = [f"    {upper}_{word} = {numbers[word]}" for word in known]
        cases = [f'    case {numbers[word]}: return "{text}";' for word, text in known.items()]
        table = [(f"`{upper}_{word}` {numbers[word]}", text) for word, text in known.items()]
        g_at = 1 + data.nnz_gradient
        return {
            "NAME": name, "UPPER": upper, "n_x": data.n_x, "n_g": data.n_g, "n_p": data.n_p,
            "places_g": max(1, data.n_g), "places_p": max(1, data.n_p),
            "numbers": self._numbers, "integers": self._integers,
            "cold": space is not None, "warm": space is None,
            "target": "hybrid_core" if space else "hybrid_core_warm",
            "modes": "warm and cold" if space else "the warm mode alone",
            "of_state": space.of_state if space else 0, "guess": space.guess if space else 0,
            "entries_J": max(1, data.nnz_J),
            "size_arg": generated.arg, "size_res": generated.res, "size_iw": generated.iw,
            "size_w": generated.w, "statuses": ",\n".join(rows), "words": "\n".join(cases),
            "status_table": listing(table), "g_at": g_at, "J_at": g_at + data.nnz_g,
            "core_list": "\n".join(f"    core/{file}" for file in core if file.endswith(".c")),
            "closeness": CLOSE, "kinds": _kinds(data), "memory": self.memory,
            "input": self.input, "output": self.output, "pointer": _POINTER, "tables": tables,
            "shape": "; mapped stages are loops" if generated.form == LOOPS else "",
            "parts": generated.form == PARTS, "casadi": generated.form != PARTS,
            "pragmas": ", ".join(f"`-W{word}`" for word in QUIETED),
        }  # fmt: skip


def _kinds(data: PlanData) -> str:
    """The kinds of the bounds in words."""
    fixed = _bytes(data.kind_x, data.n_x).count(EQUAL)
    rows = _bytes(data.kind_g, data.n_g)
    return (
        f"{data.n_x - fixed} free variables and {fixed} fixed ones, {rows.count(EQUAL)} equations, "
        f"{rows.count(OPEN)} inequalities and {rows.count(ABSENT)} rows without a bound"
    )


def _bytes(address: int, count: int) -> bytes:
    return ct.string_at(address, count) if count else b""
