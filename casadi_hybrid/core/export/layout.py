"""Sizes and kinds of bounds of an export, for its templates."""

from __future__ import annotations

import ctypes as ct
from typing import Any

from casadi_hybrid.core.binding.plan import ABSENT, EQUAL, OPEN, Plan, sizes_by
from casadi_hybrid.core.export.core import words_of
from casadi_hybrid.core.export.functions import LOOPS, PARTS, QUIETED, Generated
from casadi_hybrid.core.export.tables import fields

# Largest difference of the example from Python's answer: C libraries differ in sin and exp.
CLOSE = 1e-9
_POINTER = ct.sizeof(ct.c_void_p)


def layout(
    library: Any, plan: Plan, generated: Generated, options: Any, name: str
) -> dict[str, Any]:
    """Return the values of the words in the templates; ``options`` None for the warm mode alone."""
    data, upper, cold = plan.data, name.upper(), options is not None
    n, m, p, J = data.n_x, max(1, data.n_g), max(1, data.n_p), max(1, data.nnz_J)
    # memory, input and output: bytes of NAME_memory, NAME_in, NAME_out on this machine.
    own, doubles, ints = 0, *sizes_by(library.hybrid_sqp_memory, 2, data)
    if options is not None:
        own, doubles, ints = sizes_by(library.hybrid_solve_memory, 3, data, options)
    # C has no arrays of length zero.
    own, doubles, ints = -(-own // ct.sizeof(ct.c_double)), max(1, doubles), max(1, ints)

    # The structure of NAME.h once more: ctypes pads and aligns as the compiler does.
    class Memory(ct.Structure):
        _fields_ = (
            ("own", ct.c_double * own),
            ("numbers", ct.c_double * doubles),
            ("integers", ct.c_int * ints),
            *((word, ct.c_double * n) for word in ("gradient", "gradient0")),
            *((word, ct.c_double * J) for word in ("J", "J0")),
            ("w", ct.c_double * generated.w),
            ("iw", ct.c_int * generated.iw),
            ("arg", ct.c_void_p * generated.arg),
            ("res", ct.c_void_p * generated.res),
        )

    clock, verdict = (8 + _POINTER, 16) if cold else (0, 0)
    g_at = 1 + data.nnz_gradient
    words = {"NAME": name, "UPPER": upper, "n_x": n, "n_g": data.n_g, "n_p": data.n_p}
    words |= {"places_g": m, "places_p": p, "entries_J": J, "g_at": g_at, "J_at": g_at + data.nnz_g}
    words |= {"numbers": doubles, "integers": ints, "own": own, "cold": cold, "warm": not cold}
    words |= {"size_arg": generated.arg, "size_res": generated.res}
    words |= {"size_iw": generated.iw, "size_w": generated.w}
    words |= {"parts": generated.form == PARTS, "casadi": generated.form != PARTS}
    words["options"] = "" if options is None else fields(options, "    ")
    words["shape"] = "; mapped stages are loops" if generated.form == LOOPS else ""
    words["pragmas"] = ", ".join(f"`-W{word}`" for word in QUIETED)
    words |= {"closeness": CLOSE, "kinds": _kinds(data), "pointer": _POINTER}
    # Numbers of eight bytes, and whole numbers, rounded up to eight.
    words["input"] = 8 * (4 * n + p + 3 * m + 4) + 8 + clock
    words["output"] = 8 * (2 * n + 2 * m + 4) + 16 + verdict
    words["memory"] = ct.sizeof(Memory)
    return words | words_of(f"{upper}_", cold=cold)


def _kinds(data: Any) -> str:
    """Numbers of bounds of each kind, as a sentence."""
    fixed = _bytes(data.kind_x, data.n_x).count(EQUAL)
    rows = _bytes(data.kind_g, data.n_g)
    return (
        f"{data.n_x - fixed} free variables and {fixed} fixed ones, {rows.count(EQUAL)} equations, "
        f"{rows.count(OPEN)} inequalities and {rows.count(ABSENT)} rows without a bound"
    )


def _bytes(address: int, count: int) -> bytes:
    return ct.string_at(address, count) if count else b""
