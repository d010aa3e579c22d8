"""What is wrong between the grid points: arrays on request, one line when printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from casadi_hybrid.control.excess import Excess
from casadi_hybrid.control.formatting import entry_name, in_unit
from casadi_hybrid.control.signals import Array, ByName, known

NOTED = 1e-4
"""Excess between grid points, in units of the scale, that a solution speaks of."""

SHOWN = 3


@dataclass(frozen=True, repr=False)
class Errors(ByName):
    """Distance of a trajectory from an independent integration of the model.

    ``print(errors)`` says the largest, where and when. ``errors["speed"]`` is the largest distance
    in each interval, in the state's unit. Infinite where the integration broke down.

    Attributes:
        ends: distance at the end of each interval, states × intervals, divided by the scale.
        between: the largest distance inside of each interval, likewise.
        rows: the larger of both by name, in physical units.
        times: of the grid points.
        units: of the states by name, and of ``time``.
    """

    ends: Array
    between: Array
    rows: Mapping[str, Array]
    times: Array
    units: Mapping[str, str]

    def __repr__(self) -> str:
        """The largest error, of which state, and in which interval."""
        of_entry = np.maximum(self.ends, self.between)
        entry, k = np.unravel_index(int(np.argmax(of_entry)), of_entry.shape)
        labels = [(name, i) for name, rows in self.rows.items() for i in range(rows.shape[0])]
        name, i = labels[entry]
        amount = in_unit(self.rows[name][i, k], self.units[name])
        return (
            f"largest error {self.largest:.2g} of the scale: {entry_name(name, i, self.rows[name])}"
            f" by {amount}, from {in_unit(self.times[k], self.units['time'])} to "
            f"{in_unit(self.times[k + 1], self.units['time'])}"
        )

    @property
    def by_interval(self) -> Array:
        """The largest distance in each interval over all states, divided by their scale."""
        return np.asarray(np.maximum(self.ends, self.between).max(axis=0))

    @property
    def largest(self) -> float:
        """The largest distance of all, divided by the scale."""
        return float(self.by_interval.max())


@dataclass(frozen=True, repr=False)
class Violations(ByName):
    """By how much hard limits are exceeded between the grid points.

    ``print(violations)`` says the largest, of what and when. ``violations["speed"]`` is the largest
    in each interval, divided by the scale.

    Attributes:
        rows: by the name of the quantity or of the path constraint.
        worst: the largest excess of each that is exceeded, the worst first.
    """

    rows: Mapping[str, Array]
    worst: tuple[Excess, ...]

    def __getitem__(self, name: str) -> Array:
        return np.asarray(known(name, self.rows, "limit"))

    @property
    def by_interval(self) -> Array:
        """The largest excess in each interval over all limits, divided by their scale."""
        return np.asarray(np.max([*self.rows.values()], axis=0)) if self.rows else np.zeros(0)

    @property
    def largest(self) -> float:
        """The largest excess of all, divided by the scale."""
        return self.worst[0].scaled if self.worst else 0.0

    @property
    def noted(self) -> tuple[Excess, ...]:
        """What is worth a warning: above :data:`NOTED` of the scale."""
        return tuple(excess for excess in self.worst if excess.scaled > NOTED)

    def __repr__(self) -> str:
        """The largest excess, of what and when."""
        if not self.worst:
            return "no limit is exceeded between the grid points"
        return f"largest violation {self.largest:.2g} of the scale: {self.worst[0]}"


def warning(found: Sequence[Excess], method: object) -> str:
    """Return what is exceeded between grid points and what to do, in sentences; else nothing."""
    if not found:
        return ""
    inner = 2 * getattr(method, "inner", 0) or 4
    finer = re.sub(r"(step=RungeKutta\(steps=1\), )?inner=\d+", f"inner={inner}", repr(method))
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    said = f"But between the grid points {', '.join(map(str, found[:SHOWN]))}{more}."
    if hasattr(getattr(method, "step", None), "root"):  # the window of an estimator has no other
        return said
    return (
        f"{said} Ask for a finer mesh, refine(ocp, tolerance=…), which keeps to this trajectory, "
        f"or for inner points, {finer}, in a solve that begins here, guess=found, and may end on "
        "another; past an obstacle begin with a guess that goes around it."
    )
