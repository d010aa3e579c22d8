"""Small vectors, quickly: reductions without the layers that NumPy puts around them.

A warm solve of a small problem takes tens of microseconds: what costs around it is the number of
Python frames, not the arithmetic.
"""

from __future__ import annotations

import sys
from ctypes import addressof, c_char
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Whole = TypeVar("Whole", bound=np.integer[Any])
Made = TypeVar("Made")


def largest(v: Vector) -> float:
    """‖v‖_∞, 0 for an empty vector; NaN where any entry is."""
    if not v.size:
        return 0.0
    return float(np.abs(v).max())


def anywhere(mask: NDArray[np.bool_]) -> bool:
    """Whether any entry is true."""
    return b"\1" in mask.tobytes()


def all_finite(v: Vector) -> bool:
    """Whether no entry is NaN or infinite."""
    return b"\0" not in np.isfinite(v).tobytes()


def address(array: NDArray[Any]) -> int:
    """Address of the entries: ``array.ctypes.data`` in a quarter of the time."""
    entries: Any = array
    try:
        return addressof(c_char.from_buffer(entries))
    except (TypeError, ValueError):  # there are none, or they are read-only
        return int(array.__array_interface__["data"][0])


def memory_of(size: int, dtype: Any) -> NDArray[Any]:
    """Room for so many numbers, whose pages cost something when they are first written to.

    On Linux NumPy asks for large pages above 4 MB. Of room that is used in part they are more
    memory, and to clear them takes longer than they save in a solve.
    """
    length = size * np.dtype(dtype).itemsize
    if sys.platform != "linux" or length < 1 << 22:
        return np.empty(size, dtype)
    from mmap import ACCESS_COPY, mmap  # noqa: PLC0415 - of large problems alone

    return np.frombuffer(mmap(-1, length, access=ACCESS_COPY), dtype)  # a child has its own


def without_repetition(numbers: NDArray[Whole]) -> NDArray[Whole]:
    """The numbers without repetition, increasing.

    As of ``numpy.unique``, which imports :mod:`numpy.ma` at its first call.
    """
    increasing = np.sort(numbers)
    first = np.ones(numbers.size, dtype=bool)
    np.not_equal(increasing[1:], increasing[:-1], out=first[1:])
    return increasing[first]


def distinct(numbers: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The numbers without repetition, increasing, and which of them each is.

    As of ``numpy.unique``, which asks a dozen questions first.
    """
    order = numbers.argsort(kind="stable")
    increasing = numbers[order]
    first = np.ones(numbers.size, dtype=bool)
    np.not_equal(increasing[1:], increasing[:-1], out=first[1:])
    which = np.empty(numbers.size, dtype=np.intp)
    which[order] = first.cumsum() - 1
    return increasing[first], which


def changed(old: Made, **fields: Any) -> Made:
    """``dataclasses.replace`` without its checks, for what is made anew in every step.

    Only for dataclasses without slots and without fields computed at creation; cached properties
    are taken along.
    """
    new = object.__new__(type(old))
    new.__dict__.update(old.__dict__, **fields)
    return new
