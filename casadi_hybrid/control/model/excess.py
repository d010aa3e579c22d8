"""Excess of a trajectory over its limits, and numbers in words and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from casadi_hybrid.control.model.signals import Array

FEASIBLE = 1e-6
"""Violation of a row or a bound, in units of the scale, that counts as none."""


@dataclass(frozen=True)
class Excess:
    """The largest excess over a limit, between the grid points or where it should hold.

    Attributes:
        name: of the quantity or constraint, with the number of its entry.
        amount: in its unit.
        scaled: divided by the scale.
        limit: that is exceeded.
        side: ``"lower"``, ``"upper"``, or of an equation ``"equal"``.
        time: when.
        unit: of amount and limit.
        time_unit: of the time.
        of: the quantity or constraint, without the number of its entry.
    """

    name: str
    amount: float
    scaled: float
    limit: float
    side: str
    time: float
    unit: str
    time_unit: str
    of: str = ""

    @property
    def beyond(self) -> str:
        """Distance from the limit in words."""
        if self.side == "equal" and not self.limit:
            return f"off by {in_unit(self.amount, self.unit)}"
        there = {"lower": "below its limit", "upper": "above its limit"}.get(self.side, "away from")
        return f"{in_unit(self.amount, self.unit)} {there} {in_unit(self.limit, self.unit)}"

    def __str__(self) -> str:
        return f"{self.name} is {self.beyond} at {in_unit(self.time, self.time_unit)}"


class Limits(NamedTuple):
    """Limits of a quantity with its scale, one an entry or one an entry and time, and its unit."""

    lower: Array
    upper: Array
    scale: Array
    unit: str


def worst_excess(
    name: str, rows: Array, limited: Any, times: Array, time_unit: str
) -> tuple[Array, Excess]:
    """Return by how much rows, a column a time, are beyond limits in their scale, and the worst.

    ``limited`` has the attributes of :class:`Limits`, as signals and constraints have; columns
    after the last time are left out.
    """
    lower, upper, scale = (
        np.broadcast_to(part.reshape(rows.shape[0], -1)[:, : rows.shape[1]], rows.shape)
        for part in (limited.lower, limited.upper, limited.scale)
    )
    below, above = (lower - rows) / scale, (rows - upper) / scale
    beyond = np.maximum(below, above)
    at = np.unravel_index(int(np.argmax(np.where(np.isnan(beyond), -np.inf, beyond))), rows.shape)
    low, scaled = below[at] > above[at], float(beyond[at])
    side = "equal" if lower[at] == upper[at] else "lower" if low else "upper"
    return beyond, Excess(
        entry_name(name, int(at[0]), rows), scaled * float(scale[at]), scaled,
        float((lower if low else upper)[at]), side, float(times[at[1]]), limited.unit, time_unit,
    )  # fmt: skip


def in_unit(value: float, unit: str) -> str:
    """Return a number with its unit."""
    return f"{value:.3g} {unit}".rstrip()


def quotient(unit: str, per: str) -> str:
    """Return the unit of a slope."""
    below = f"({per})" if set(per) & set("/ *") else per
    return f"{unit or 1}/{below}" if per else unit or "1"


def entry_name(name: str, i: int, rows: Array) -> str:
    """Return the name of an entry of a quantity."""
    return f"{name}[{i}]" if rows.shape[0] > 1 else name
