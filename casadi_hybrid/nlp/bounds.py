"""Checks of the numbers of one solve: vectors and pairs of bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from casadi_hybrid.errors import InputError
from casadi_hybrid.inputs import Vector, as_vector


def checked(value: Any, size: int, name: str, *, infinite: bool = False) -> Vector:
    """Return ``size`` numbers; a single one is repeated, and fits a vector without entries too.

    Args:
        value: numbers, a list, an array or ``DM``.
        size: how many are needed.
        name: for messages.
        infinite: whether ±inf is a value; NaN never is.

    Raises:
        InputError: for symbols, text, a wrong length or a value that is not allowed.
    """
    numbers = value.full() if hasattr(value, "full") else value
    kind = np.asarray(numbers).dtype.kind if not hasattr(value, "is_symbolic") else "O"
    if kind in "biuf":
        array = np.asarray(numbers, dtype=np.float64)
        if size == 0 and array.size <= 1:
            return np.zeros(0)
        if infinite:
            # The common check refuses infinities: let it see the rest.
            plain = np.where(np.isinf(array), 0.0, array)
            vector = as_vector(plain, size, name)
            flat = array.ravel()
            return np.where(np.isinf(flat), flat, vector)
    return as_vector(value, size, name)


def check_bounds(
    lower: Any, upper: Any, size: int, of: str, names: Sequence[str]
) -> tuple[Vector, Vector]:
    """Return lower and upper bounds, lower ≤ upper, each with a point between them.

    Raises:
        InputError: naming the argument (``lbx``, …) and the entry.
    """
    low = checked(lower, size, f"lb{of}", infinite=True)
    high = checked(upper, size, f"ub{of}", infinite=True)
    for label, values, wrong in ((f"lb{of}", low, np.inf), (f"ub{of}", high, -np.inf)):
        bad = np.flatnonzero(values == wrong)
        if bad.size:
            i = int(bad[0])
            raise InputError(f"{label}[{i}] is {wrong}; no value of {names[i]} can meet it")
    crossed = np.flatnonzero(low > high)
    if crossed.size:
        i = int(crossed[0])
        raise InputError(
            f"lb{of}[{i}] = {low[i]:g} exceeds ub{of}[{i}] = {high[i]:g}; "
            f"no value of {names[i]} lies between them"
        )
    return low, high
