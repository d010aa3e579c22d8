"""Checks of numeric input, shared by all entry points of the package."""

from __future__ import annotations

import sys
from math import isfinite, nan
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.matrices import array_of

_LISTS = list, tuple, np.ndarray
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def as_vector(value: Any, size: int, name: str) -> Vector:
    """Return ``value`` as a fresh finite float vector; raises InputError that has the name."""
    return _finite(sized(value, size, name), name)


def sized(value: Any, size: int, name: str) -> Vector:
    """Like :func:`as_vector`, but NaN and Inf are accepted."""
    array = real_array(value, name)
    # One number is repeated. A list of one is refused for several entries, although CasADi repeats
    # it: the others were probably forgotten.
    if array.size == 1 and size > 1 and not (array.ndim == 1 and isinstance(value, _LISTS)):
        array = np.full(size, array.item())
    if array.size != size or (size > 1 and max(array.shape) != size):
        raise InputError(
            f"{name} has shape {np.shape(array)} but {size} number(s) are needed; "
            "give one number per entry, or a single number for all"
        )
    # A copy: the caller may change its array.
    return np.array(array, dtype=np.float64).reshape(size)


def as_matrix(value: Any, shape: tuple[int, int], name: str) -> Matrix:
    """Return ``value`` as a finite float matrix; a single number c stands for c·I."""
    array = real_array(value, name)
    if array.ndim == 0:
        if shape[0] != shape[1]:
            raise InputError(f"{name} is one number but a {shape[0]}×{shape[1]} matrix is needed")
        array = float(array) * np.eye(shape[0])
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape} but {shape[0]}×{shape[1]} is needed")
    return _finite(np.array(array, dtype=np.float64), name)


def positive(value: Any, name: str, *, allow_zero: bool = False) -> float:
    """Return ``value`` as a finite positive float, or zero if allowed."""
    try:
        # float() takes text, and True as 1.
        number = nan if isinstance(value, str | bytes | bool | np.bool_) else float(value)
    except (TypeError, ValueError, RuntimeError):
        number = nan
    if not isfinite(number) or number < 0 or (number == 0 and not allow_zero):
        kind = "zero or a positive number" if allow_zero else "a positive number"
        raise InputError(f"{name} must be {kind}, got {value!r}")
    return number


def share(value: Any, name: str) -> float:
    """Return ``value`` as a float in [0, 1]."""
    number = positive(value, name, allow_zero=True)
    if number > 1:
        raise InputError(f"{name} must lie in [0, 1], got {value!r}")
    return number


def one_of(value: Any, name: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not among ``allowed``."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def has_method(value: Any, name: str, method: str) -> None:
    """Refuse an object without the method."""
    if not callable(getattr(value, method, None)):
        raise InputError(
            f"{name} must be an object with the method {method!r}, got {type(value).__name__}"
        )


def is_callable(value: Any, name: str, form: str = "a function") -> None:
    """Refuse a value that cannot be called; ``form`` describes the one needed."""
    if not callable(value):
        raise InputError(f"{name} must be {form}, got {type(value).__name__}")


def count(value: Any, name: str, *, at_least: int = 0) -> int:
    """Return ``value`` as an integer not below ``at_least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise InputError(f"{name} must be a whole number, at least {at_least}, got {value!r}")
    return int(value)


def real_array(value: Any, name: str) -> NDArray[np.float64]:
    """Convert numbers of any type known to CasADi or NumPy to a float array of their shape.

    Raises InputError for symbols, text, complex numbers, or a masked or missing entry.
    """
    if isinstance(value, ca.SX | ca.MX) or hasattr(value, "__SX__") or hasattr(value, "__MX__"):
        raise InputError(f"{name} is a CasADi symbol; numbers are needed here")
    if hasattr(value, "__DM__"):
        # Structures of casadi.tools have it.
        value = value.__DM__()
    # No masked array exists before numpy.ma is imported; importing it here would take time.
    masks = "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)
    if masks and np.ma.is_masked(value):
        first = ", ".join(map(str, np.argwhere(np.ma.getmaskarray(value))[0]))
        raise InputError(f"{name}[{first}] is masked; fill it, as by {name}.filled(0)")
    try:
        array = array_of(value) if isinstance(value, ca.DM) else np.asarray(value)
        if array.dtype.kind == "O":
            return _of_objects(array, name)
        if array.dtype.kind not in "biuf":  # text that spells a number is not a number
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} must be real numbers, got {type(value).__name__}") from None


def _of_objects(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Convert an array of Python objects, such as a column of mixed types, to floats."""
    numbers = np.empty(array.shape)
    for index, entry in np.ndenumerate(array):
        label = f"{name}[{', '.join(map(str, index))}]" if index else name
        if isinstance(entry, ca.SX | ca.MX) and not entry.is_constant():
            raise InputError(
                f"{label} is the CasADi symbol {entry}; join symbols by ca.vertcat where they "
                "may be given, numbers are needed here"
            )
        try:
            if isinstance(entry, str | bytes):
                raise TypeError
            numbers[index] = float(entry)
        except (TypeError, ValueError, RuntimeError):
            kind = "missing" if entry is None else f"{entry!r}, a {type(entry).__name__}"
            raise InputError(f"{label} is {kind}; {name} must be real numbers") from None
    return numbers


def _finite(array: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        where = ", ".join(map(str, bad[0]))
        raise InputError(f"{name}[{where}] is {array[tuple(bad[0])]}; finite numbers are needed")
    return array
