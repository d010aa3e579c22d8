"""Undocumented memory layouts and symbols of CasADi's C++, each with a check and a fallback.

- The memory of a ``ca.DM``. Copies make a warm ``nlpsol`` call with matrices two to three times as
  long. Fallback: copies.
- The function that evaluates a buffer, called by the core without Python. Without it a step of an
  MPC takes half as long again. Fallback: Python calls the functions.
- The methods that read the graph of a function. Without them building a controller and its first
  solve take half as long again. Fallback: Python reads the graph.

Symbols are mangled as by all compilers except Microsoft's.
"""

from __future__ import annotations

import ctypes as ct
import os
import sys
from ctypes import c_void_p
from functools import cache
from typing import Any

import casadi as ca

_NUMBER = ct.sizeof(ct.c_double)
# casadi::_function_buffer_eval(void*), and methods of casadi::Function for a long long.
_EVALUATION = "_ZN6casadi21_function_buffer_evalEPv"
_METHODS = (
    "_ZNK6casadi8Function14instruction_idEx",
    "_ZNK6casadi8Function17instruction_inputEx",
    "_ZNK6casadi8Function18instruction_outputEx",
    "_ZNK6casadi8Function20instruction_constantEx",
)
_RELEASE = "_ZdlPv"  # operator delete
_pointer_of_capsule = ct.pythonapi.PyCapsule_GetPointer
# ctypes takes int for an undeclared result, and cuts addresses to 32 bits.
_pointer_of_capsule.restype, _pointer_of_capsule.argtypes = c_void_p, [ct.py_object, ct.c_char_p]


class MatrixData(ct.Structure):
    """CasADi's ``Matrix<double>``, ``hybrid_matrix`` of ``adapter/adapter.h``."""

    _fields_ = [(name, c_void_p) for name in ("head", "pattern", "begin", "end", "room")]

    @classmethod
    def of(cls, matrix: ca.DM) -> MatrixData:
        """Data of a matrix, valid while the matrix exists and is not changed."""
        return cls.from_address(int(matrix.this))


@cache
def is_known() -> bool:
    """True if test matrices have the layout of :class:`MatrixData`."""
    column, other = ca.DM([1.5, -2.0, 3.25]), ca.DM([[4.0], [0.5], [6.0]])
    sparse = ca.DM(ca.Sparsity.triplet(4, 1, [0, 1, 3], [0, 0, 0]), [7.0, 8.0, 9.5])
    matrices = [column, other, column.T, sparse, ca.DM([1.0, 2.0]), ca.DM(0.25)]
    try:
        patterns = [MatrixData.of(matrix).pattern for matrix in matrices]
        # C compares shapes by the pattern: equal ones must be one object, different ones not.
        alike = [pattern == patterns[0] for pattern in patterns]
        return alike == [True, True, *[False] * 4] and all(map(_is_read, matrices))
    except (AttributeError, TypeError, ValueError):
        return False


def _is_read(matrix: ca.DM) -> bool:
    """True if a matrix has its numbers at the expected place; other memory is not read."""
    data, count = MatrixData.of(matrix), matrix.nnz()
    # Pointers are checked before memory is read: another layout must not crash here.
    if data.begin is None or data.end != data.begin + count * _NUMBER or data.room < data.end:
        return False
    numbers = (ct.c_double * count).from_address(data.begin)
    return bool(list(numbers) == matrix.nonzeros())


def address_of(buffer: Any) -> int:
    """Argument with which :func:`trigger` evaluates a buffer of CasADi."""
    return int(_pointer_of_capsule(buffer._self(), None))


@cache
def trigger() -> int | None:
    """Address of CasADi's function that evaluates a buffer; None if it is not exported."""
    try:
        return _address(_casadi(), _EVALUATION)
    except (AttributeError, OSError):
        return None


@cache
def instruction_methods() -> list[int] | None:
    """Addresses of the methods that read a graph and of operator delete; None if one is missing."""
    try:
        library = _casadi()
        if sys.platform == "win32":
            releasing = _casadi("libstdc++-6")
        else:  # as the loader resolves the symbol: an allocator of the whole process comes first
            releasing = ct.CDLL(None)
            if not hasattr(releasing, _RELEASE):
                releasing = library
        methods = [_address(library, name) for name in _METHODS]
        return [*methods, _address(releasing, _RELEASE)]
    except (AttributeError, OSError):
        return None


def _address(library: ct.CDLL, symbol: str) -> int:
    return ct.cast(getattr(library, symbol), c_void_p).value or 0


def _casadi(name: str = "libcasadi") -> ct.CDLL:
    """CasADi's C++: the loaded Python module, or, on Windows, a library beside it."""
    path = ca._casadi.__file__
    if sys.platform == "win32":
        path = os.path.join(os.path.dirname(path), f"{name}.dll")
    return ct.CDLL(path)
