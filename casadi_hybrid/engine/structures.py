"""The structures of ``c/hybrid.h``, field by field, for ctypes."""

from __future__ import annotations

import ctypes as ct
from ctypes import c_double, c_int, c_longlong, c_void_p
from typing import Any

from casadi_hybrid.engine.ldl import Analysis, FixedAnalysis
from casadi_hybrid.engine.ldl import declare as declare_ldl

pointer_of_capsule = ct.pythonapi.PyCapsule_GetPointer
"""The address that CasADi wraps for Python."""
pointer_of_capsule.restype, pointer_of_capsule.argtypes = c_void_p, [ct.py_object, ct.c_char_p]

# How a run ends, as in ``c/hybrid.h``, where it is said what each means.
SOLVED, OTHER_PATTERN, UNDEFINED, BAD_NUMBERS = 0, 1, 2, 9
CAUSES = {
    1: "the steps have become tiny",
    2: "no shift of the Hessian gives the KKT matrix the inertia of a minimum",
    3: "nothing improves any more",
    4: "no step decreases the barrier function any more",
    5: "the constraint violation fell by less than 1 % over 30 steps",
    6: "the violation is at the level of rounding",
    7: "the constraint violation is stationary but not zero: the constraints are inconsistent, "
    "or this is a local minimum of their violation",
    8: "the sum of the violations is stationary but not zero: the constraints are inconsistent, "
    "or this is a local minimum of their violation",
    9: "no step decreases the penalty function any more",
}
"""Why no step led on: ``hybrid_answer.cause``."""

INTERFACE = 14
"""That of ``c/hybrid.h``; a library with another is not used."""


class PlanData(ct.Structure):
    """``hybrid_plan``."""

    _fields_ = [
        *((name, c_int) for name in (
            "n_x", "n_g", "n_p", "nnz_gradient", "nnz_g", "nnz_J", "nnz_H",
        )),
        *((name, c_void_p) for name in (
            "gradient_at", "g_at", "J_rows", "J_cols", "kind_x", "kind_g",
        )),
        *((name, c_int) for name in ("n_free", "n", "m", "n_slack")),
        *((name, c_void_p) for name in ("free_at", "row_at", "slack_row")),
        *((name, c_int) for name in ("kept_A", "nnz_A")),
        *((name, c_void_p) for name in ("A_of_J", "A_rows", "A_cols", "A_starts")),
        ("nnz_W", c_int),
        *((name, c_void_p) for name in (
            "W_of_H", "W_rows", "W_cols", "W_starts", "W_by_row", "row_starts",
        )),
        *((name, c_int) for name in ("nnz_K", "lower_W")),
        *((name, c_void_p) for name in ("lower_of_W", "K_of_W", "K_of_A", "K_diagonal")),
        *((name, c_int) for name in ("limited_memory", "differenced", "n_blocks")),
        *((name, c_void_p) for name in ("block_starts", "members", "H_starts")),
        ("ldl", Analysis),
        ("fixed", FixedAnalysis),
    ]  # fmt: skip


class SecantsData(ct.Structure):
    """``hybrid_secants``."""

    _fields_ = [("doubles", c_void_p), ("count", c_int), ("last", c_int)]


class FunctionsData(ct.Structure):
    """``hybrid_functions``."""

    _fields_ = [
        (name, c_void_p) for name in ("first", "second", "self", "now", "observer", "secants")
    ]


class NumbersData(ct.Structure):
    """``hybrid_numbers``."""

    _fields_ = [
        *((name, c_void_p) for name in (
            "x0", "p", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0", "side_x", "side_g",
        )),
        *((name, c_double) for name in (
            "tol", "feasibility", "stationarity", "complementarity",
        )),
        ("max_iter", c_int),
        ("max_time", c_double),
        ("perturbed", c_int),
    ]  # fmt: skip


class ResidualsData(ct.Structure):
    """``hybrid_residuals``."""

    _fields_ = [
        (name, c_double) for name in ("f", "feasibility", "stationarity", "complementarity")
    ]


class AnswerData(ct.Structure):
    """``hybrid_answer``."""

    _fields_ = [
        *((name, c_void_p) for name in (
            "x", "g", "lam_x", "lam_g", "gradient", "J", "gradient0", "J0", "step", "x_undefined",
        )),
        ("start", ResidualsData),
        ("end", ResidualsData),
        *((name, c_int) for name in (
            "status", "steps", "firsts", "seconds", "factors", "chosen", "doubts",
        )),
        *((name, c_double) for name in (
            "in_firsts", "in_seconds", "elapsed", "moved", "reach", "largest_lam",
        )),
        *((name, c_int) for name in (
            "huge", "stop", "point", "method", "runs", "cause", "stepped",
        )),
        ("certificate", c_double),
        *((name, c_int) for name in ("undefined", "placed", "ended", "rows")),
    ]  # fmt: skip


class ObserverData(ct.Structure):
    """``hybrid_observer``."""

    _fields_ = [
        *((name, c_void_p) for name in ("look", "interrupted", "full", "self", "rows")),
        *((name, c_int) for name in ("capacity", "count", "before", "last", "shown", "ended")),
        *((name, c_double) for name in ("seconds", "asked")),
    ]


class BufferData(ct.Structure):
    """``hybrid_buffer``."""

    _fields_ = [
        ("evaluate", c_void_p),
        ("raw", c_void_p),
        ("inputs", c_void_p * 3),
        ("sizes", c_int * 3),
        ("out", c_void_p),
        ("size", c_int),
    ]


class BuffersData(ct.Structure):
    """``hybrid_buffers``."""

    _fields_ = [("first", BufferData), ("second", BufferData)]


class SlopeData(ct.Structure):
    """``hybrid_slope``."""

    _fields_ = [("evaluate", c_void_p), ("self", c_void_p)]


class BatchData(ct.Structure):
    """``hybrid_batch``."""

    _fields_ = [
        *((name, c_void_p) for name in ("numbers", "outputs")),
        *((name, c_longlong) for name in ("numbers_each", "outputs_each")),
        *((name, c_void_p) for name in ("sides", "with_sides", "answers")),
    ]


def declare(library: Any) -> None:
    """State the types of the library's functions."""
    declare_ldl(library)
    pointer = c_void_p
    library.hybrid_interface_version.restype = c_int
    library.hybrid_interface_version.argtypes = []
    library.hybrid_now.restype = c_double
    library.hybrid_now.argtypes = []
    library.hybrid_secants_doubles.restype = c_longlong
    library.hybrid_secants_doubles.argtypes = [pointer]
    library.hybrid_sqp_memory.restype = None
    library.hybrid_sqp_memory.argtypes = [pointer, pointer, pointer]
    library.hybrid_sqp.restype = c_int
    library.hybrid_sqp.argtypes = [pointer] * 6
    library.hybrid_solve_batch.restype = None
    library.hybrid_solve_batch.argtypes = [*[pointer] * 9, c_longlong, c_longlong]
    library.hybrid_solve_memory.restype = None
    library.hybrid_solve_memory.argtypes = [pointer] * 5
    library.hybrid_solve.restype = c_int
    library.hybrid_solve.argtypes = [pointer] * 8
