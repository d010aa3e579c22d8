"""What is measured of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.loop.table import Places
from casadi_hybrid.control.model import Model
from casadi_hybrid.control.signals import Array, column, places_of


class Sensors:
    """The measured quantities of a model, one below the other.

    Attributes:
        names, places: of what is measured: states (all by default), algebraic states or outputs.
        function: (x, z, u, p, t) → the column.
    """

    def __init__(self, model: Model, outputs: Sequence[str] | None = None) -> None:
        if isinstance(outputs, str):
            raise InputError(f"outputs must be a list of names, got the text {outputs!r}")
        self.model = model
        self.names = tuple(model.signals["state"] if outputs is None else outputs)
        if not self.names:
            raise InputError("outputs is empty; name at least one quantity that is measured")
        values: dict[str, Any] = {}
        for name in self.names:
            if name in values:
                raise InputError(f"outputs names {name!r} twice")
            values[name] = ca.vec(ca.SX(model.symbol(name)))
        self.places: Places = places_of({name: value.numel() for name, value in values.items()})
        column = ca.vertcat(*values.values())
        self.size = int(column.numel())
        self.function = ca.Function("sensors", model.arguments, [column])

    def column(self, y: Any, what: str = "y") -> Array:
        """Return a measurement (a column, by name, or None) as a column; NaN for what was lost."""
        values = np.full(self.size, np.nan)
        if y is None:
            return values
        if isinstance(y, dict):
            strange = [name for name in y if name not in self.places]
            if strange:
                raise InputError(f"{what} has {strange[0]!r}; measured are {', '.join(self.names)}")
            for name, value in y.items():
                where = self.places[name]
                if value is not None:
                    values[where] = _numbers(value, where.stop - where.start, f"{what}[{name!r}]")
            return values
        return _numbers(y, self.size, what)


def _numbers(value: Any, size: int, what: str) -> Array:
    """One column in which NaN is allowed."""
    try:
        numbers = np.asarray(value, dtype=float).ravel()
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, got {value!r}") from None
    if numbers.size != size or np.isinf(numbers).any():
        raise InputError(f"{what} must have {size} finite entries, or NaN for what was lost")
    lost = np.isnan(numbers)
    return np.where(lost, np.nan, column(np.where(lost, 0.0, numbers), size, what))
