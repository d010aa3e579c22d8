"""Small vectors, quickly: reductions without the layers that NumPy puts around them.

An iteration on a problem of ten variables makes some hundred NumPy calls of a microsecond each;
what costs there is the number of Python frames, not the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import addressof, c_char
from math import sqrt
from typing import Any, Generic, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.basics.late import LateModule

blas = LateModule("scipy.linalg.blas")  # the engine in C has its own
Vector = NDArray[np.float64]
_FEW = 7  # NumPy adds so many one after the other
T = TypeVar("T")
Whole = TypeVar("Whole", bound=np.integer[Any])
Made = TypeVar("Made")


def largest(v: Vector) -> float:
    """‖v‖_∞, 0 for an empty vector; NaN where any entry is."""
    if not v.size:
        return 0.0
    return float(np.abs(v).max())


def rough_sum(v: Vector) -> float:
    """‖v‖₁ as BLAS adds it, where the last digits do not matter: the quickest of all norms."""
    return float(blas.dasum(v)) if v.size else 0.0


def norm(v: NDArray[np.float64]) -> float:
    """The 2-norm of all entries, as :func:`numpy.linalg.norm` computes it."""
    flat = v.ravel(order="K")
    return sqrt(flat.dot(flat))


def total(v: Vector) -> float:
    """The sum of the entries, with NumPy's order of summation (:func:`numpy.add.reduce`)."""
    if v.size > _FEW:
        return float(np.add.reduce(v))
    added = 0.0
    for number in v.tolist():  # not sum(), which rounds otherwise from Python 3.12 on
        added += number
    return added


def anywhere(mask: NDArray[np.bool_]) -> bool:
    """Whether any entry is true."""
    return b"\1" in mask.tobytes()


def all_finite(v: Vector) -> bool:
    """Whether no entry is NaN or infinite."""
    return b"\0" not in np.isfinite(v).tobytes()


def address(array: NDArray[Any]) -> int:
    """Where the entries lie: ``array.ctypes.data`` in a quarter of the time, once or so a table."""
    try:
        return addressof(c_char.from_buffer(cast(Any, array)))
    except (TypeError, ValueError):  # there are none, or they are not to be written to
        return int(array.ctypes.data)


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
    order = numbers.argsort()
    increasing = numbers[order]
    first = np.ones(numbers.size, dtype=bool)
    np.not_equal(increasing[1:], increasing[:-1], out=first[1:])
    which = np.empty(numbers.size, dtype=np.intp)
    which[order] = first.cumsum() - 1
    return increasing[first], which


def changed(old: Made, **fields: Any) -> Made:
    """``dataclasses.replace`` without its checks, for what is made anew in every step.

    Only for dataclasses without slots, without fields computed at creation, and without
    :class:`Lazy` attributes, which would be taken along.
    """
    new = object.__new__(type(old))
    new.__dict__.update(old.__dict__, **fields)
    return new


class Lazy(Generic[Made, T]):
    """``functools.cached_property`` without its lock: an object belongs to one thread here."""

    def __init__(self, compute: Callable[[Made], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Lazy[Made, T]: ...

    @overload
    def __get__(self, instance: Made, owner: type) -> T: ...

    def __get__(self, instance: Made | None, owner: type) -> T | Lazy[Made, T]:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
