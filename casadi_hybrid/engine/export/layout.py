"""What the files of an export say of sizes and kinds of bounds."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Mapping
from typing import Any

from casadi_hybrid.engine.export.functions import LOOPS, PARTS, QUIETED, Generated
from casadi_hybrid.engine.export.tables import fields
from casadi_hybrid.engine.export.words import words_of
from casadi_hybrid.engine.plan import ABSENT, EQUAL, OPEN, Plan, sizes_by

CLOSE = 1e-9
"""How near the example has to come to Python's answer, for another C library's sin and exp."""
_POINTER = ct.sizeof(ct.c_void_p)


class Layout:
    """The structures of an export as C lays them out on this machine.

    Args:
        library: the core.
        plan: of the problem.
        generated: its functions.
        options: of the method; None for the warm mode alone.

    Attributes:
        memory, input, output: bytes of ``NAME_memory``, ``NAME_in``, ``NAME_out``.
    """

    def __init__(self, library: Any, plan: Plan, generated: Generated, options: Any) -> None:
        self._data, self._generated, self._options = plan.data, generated, options
        own, doubles, ints = 0, plan.doubles, plan.ints
        if options is not None:
            own, doubles, ints = sizes_by(library.hybrid_solve_memory, 3, plan.data, options)
        self._own = -(-own // ct.sizeof(ct.c_double))
        self._doubles, self._ints = max(1, doubles), max(1, ints)
        self.memory = ct.sizeof(self._memory())
        n, m, p = plan.data.n_x, max(1, plan.data.n_g), max(1, plan.data.n_p)
        clock, verdict = (0, 0) if options is None else (8 + _POINTER, 16)
        # Numbers of eight bytes, and whole numbers, rounded up to eight.
        self.input = 8 * (4 * n + p + 3 * m + 4) + 8 + clock
        self.output = 8 * (2 * n + 2 * m + 4) + 16 + verdict

    def _memory(self) -> Any:
        n, J = self._data.n_x, max(1, self._data.nnz_J)
        generated = self._generated

        class Memory(ct.Structure):
            _fields_ = (
                ("own", ct.c_double * self._own),
                ("numbers", ct.c_double * self._doubles),
                ("integers", ct.c_int * self._ints),
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
        data, generated, upper = self._data, self._generated, name.upper()
        options, cold = self._options, self._options is not None
        g_at = 1 + data.nnz_gradient
        return {
            "NAME": name, "UPPER": upper, "n_x": data.n_x, "n_g": data.n_g, "n_p": data.n_p,
            "places_g": max(1, data.n_g), "places_p": max(1, data.n_p),
            "numbers": self._doubles, "integers": self._ints, "own": self._own,
            "cold": cold, "warm": not cold,
            "options": "" if options is None else fields(options, "    "),
            "composite": "composite steps where there are equations alone, "
            if options is not None and options.composite.composite and not data.n_slack
            else "",
            "target": "hybrid_core" if cold else "hybrid_core_warm",
            "modes": "warm and cold" if cold else "the warm mode alone",
            "entries_J": max(1, data.nnz_J),
            "size_arg": generated.arg, "size_res": generated.res, "size_iw": generated.iw,
            "size_w": generated.w, "g_at": g_at, "J_at": g_at + data.nnz_g,
            "core_list": "\n".join(f"    core/{file}" for file in core if file.endswith(".c")),
            "closeness": CLOSE, "kinds": _kinds(data), "memory": self.memory,
            "input": self.input, "output": self.output, "pointer": _POINTER, "tables": tables,
            "shape": "; mapped stages are loops" if generated.form == LOOPS else "",
            "parts": generated.form == PARTS, "casadi": generated.form != PARTS,
            "pragmas": ", ".join(f"`-W{word}`" for word in QUIETED),
            **words_of(core, f"{upper}_", cold=cold),
        }  # fmt: skip


def _kinds(data: Any) -> str:
    """The kinds of the bounds in words."""
    fixed = _bytes(data.kind_x, data.n_x).count(EQUAL)
    rows = _bytes(data.kind_g, data.n_g)
    return (
        f"{data.n_x - fixed} free variables and {fixed} fixed ones, {rows.count(EQUAL)} equations, "
        f"{rows.count(OPEN)} inequalities and {rows.count(ABSENT)} rows without a bound"
    )


def _bytes(address: int, count: int) -> bytes:
    return ct.string_at(address, count) if count else b""
