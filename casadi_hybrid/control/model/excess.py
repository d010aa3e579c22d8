"""Excess of a trajectory over its limits, and numbers in words and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.control.model.signals import Array

# Violation of a row or a bound, in units of the scale, that counts as none.
FEASIBLE = 1e-6


@dataclass(frozen=True)
class Excess:
    """The largest excess over a limit, between the grid points or where it should hold."""

    name: str
    amount: float  # in `unit`
    scaled: float  # amount divided by the scale
    limit: float  # the exceeded one
    side: str  # "lower", "upper", or "equal" of an equation
    time: float
    unit: str
    time_unit: str
    of: str = ""  # the name without the number of the entry

    @property
    def beyond(self) -> str:
        """Distance from the limit in words."""
        if self.side == "equal" and not self.limit:
            return f"off by {in_unit(self.amount, self.unit)}"
        words = {"lower": "below its limit", "upper": "above its limit"}
        relation = words.get(self.side, "away from")
        return f"{in_unit(self.amount, self.unit)} {relation} {in_unit(self.limit, self.unit)}"

    def __str__(self) -> str:
        return f"{self.name} is {self.beyond} at {in_unit(self.time, self.time_unit)}"


class Limits(NamedTuple):
    """Limits of a quantity with its scale, one an entry or one an entry and time, and its unit."""

    lower: Any
    upper: Any
    scale: Any
    unit: str = ""

    @classmethod
    def equality(cls, scale: Any) -> Limits:
        """Return zero on both sides: the limits of an equation."""
        return cls(0.0, 0.0, scale)


def worst_excess(
    name: str, rows: Array, limited: Any, times: Array, time_unit: str
) -> tuple[Array, Excess]:
    """Return the excess of rows, a column a time, over limits in their scale, and the largest."""
    # `limited` is a Limits, a signal or a constraint. Columns after the last time are left out.
    lower, upper, scale = (
        np.broadcast_to(part.reshape(rows.shape[0], -1)[:, : rows.shape[1]], rows.shape)
        for part in (limited.lower, limited.upper, limited.scale)
    )
    below, above = (lower - rows) / scale, (rows - upper) / scale
    beyond = np.maximum(below, above)
    # argmax of an array with NaN is the NaN's place.
    largest = int(np.argmax(np.where(np.isnan(beyond), -np.inf, beyond)))
    at = entry, column = np.unravel_index(largest, rows.shape)
    side, limit = ("lower", lower) if below[at] > above[at] else ("upper", upper)
    if lower[at] == upper[at]:
        side = "equal"
    label, scaled = entry_name(name, int(entry), rows), float(beyond[at])
    amount, value, time = scaled * float(scale[at]), float(limit[at]), float(times[column])
    return beyond, Excess(label, amount, scaled, value, side, time, limited.unit, time_unit)


def in_unit(value: float, unit: str) -> str:
    """Return a number with its unit."""
    return f"{value:.3g} {unit}".rstrip()


def quotient(unit: str, per: str) -> str:
    """Return the unit of a slope."""
    # m/s/kg/m would be ambiguous.
    divisor = f"({per})" if set(per) & set("/ *") else per
    return f"{unit or 1}/{divisor}" if per else unit or "1"


def entry_name(name: str, i: int, rows: Array) -> str:
    """Return the name of an entry of a quantity."""
    return f"{name}[{i}]" if rows.shape[0] > 1 else name
