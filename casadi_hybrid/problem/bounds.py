"""Bounds of one solve, and the checks of its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.utils.arrays import all_finite, anywhere
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import Vector, as_vector, real_array, sized
from casadi_hybrid.utils.matrices import array_of


@dataclass(frozen=True)
class Bounds:
    """Checked bounds of one solve: n, n, m and m numbers."""

    lbx: Vector
    ubx: Vector
    lbg: Vector
    ubg: Vector

    @property
    def inequalities(self) -> bool:
        """True if any variable has a bound, or any row is no equation."""
        finite = np.isfinite((self.lbx, self.ubx))
        return bool(finite.any() or (self.lbg < self.ubg).any())


def checked(value: Any, size: int, name: str, *, infinite: bool = False) -> Vector:
    """Return ``size`` fresh numbers, finite unless ``infinite``; a single number is repeated."""
    if type(value) is float and (isfinite(value) or (infinite and not isnan(value))):
        array = np.empty(size)
        array.fill(value)
        return array
    vector = _plain_vector(value, size)
    if vector is not None and (all_finite(vector) or (infinite and not anywhere(np.isnan(vector)))):
        return vector
    if isinstance(value, ca.SX | ca.MX):
        raise InputError(
            f"{name} is a CasADi symbol; numbers are needed here. A solver of casadi_hybrid.nlpsol "
            "accepts MX symbols"
        )
    array = real_array(value, name)
    # A single number is repeated zero times: lbg=0 is no error without constraints.
    if size == 0 and array.size <= 1:
        return np.zeros(0)
    if not infinite:
        return as_vector(array, size, name)
    nan = np.flatnonzero(np.isnan(array))
    if nan.size:
        raise InputError(
            f"{name}[{nan[0]}] is nan. Ill-posed problem: a bound is a number, or infinite"
        )
    return sized(array, size, name)


def _plain_vector(value: Any, size: int) -> Vector | None:
    """Fresh copy of a plain vector of numbers; None for anything else."""
    # The checks that name a faulty entry cost more than an iteration: most solves do without.
    kind = type(value)
    if kind is ca.DM:
        return array_of(value).ravel() if value.shape == (size, 1) else None
    if kind not in (np.ndarray, list, tuple):
        return None
    try:
        array = np.array(value)
    except (TypeError, ValueError):
        return None
    # Booleans, complex numbers and texts are left to the checks with messages.
    if array.shape != (size,) or array.dtype.kind not in "iuf":
        return None
    return array.astype(np.float64, copy=False)


def check_pair(
    lower: Any, upper: Any, size: int, of: str, names: Sequence[str]
) -> tuple[Vector, Vector]:
    """Checked lower and upper bounds, ``size`` numbers each, with a point between them."""
    low = checked(lower, size, f"lb{of}", infinite=True)
    high = checked(upper, size, f"ub{of}", infinite=True)
    # No number lies above a lower bound +inf, or below an upper bound −inf.
    for label, values, wrong in ((f"lb{of}", low, np.inf), (f"ub{of}", high, -np.inf)):
        bad = values == wrong
        if anywhere(bad):
            i = int(bad.argmax())
            raise InputError(
                f"{label}[{i}] is {wrong}. Ill-posed problem: no value of {names[i]} can meet it"
            )
    crossed = low > high
    if anywhere(crossed):
        i = int(crossed.argmax())
        a, b = f"{low[i]:g}", f"{high[i]:g}"
        if a == b:  # the bounds cross by rounding: show all digits
            a, b = repr(float(low[i])), repr(float(high[i]))
        raise InputError(
            f"lb{of}[{i}] = {a} exceeds ub{of}[{i}] = {b}. "
            f"Ill-posed problem: no value of {names[i]} lies between them"
        )
    return low, high
