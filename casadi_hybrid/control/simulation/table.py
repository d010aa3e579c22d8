"""Trajectories by name: the rows of a matrix with a column for each time."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from casadi_hybrid.control.model.excess import Excess, entry_name, in_unit
from casadi_hybrid.control.model.signals import Array, Places, known, places_of, plain


@dataclass(frozen=True, repr=False)
class Table:
    """Matrix whose rows have names and whose columns have times.

    ``table["speed"]`` is a trajectory: a vector if the name has one entry, else a matrix.
    ``table[0]``, ``table[:, -1]`` and ``np.asarray(table)`` read the matrix itself.

    Attributes:
        places: the rows of each name.
        values: the matrix.
        times: of its columns.
    """

    places: Places
    values: Array
    times: Array

    @classmethod
    def of(cls, rows: Mapping[str, Array], times: Array) -> Table:
        """Return the table of matrices by name, NaN at times after their last column."""
        places = places_of({name: part.shape[0] for name, part in rows.items()})
        # Controls have no value at the last time: NaN.
        values = np.full((sum(part.shape[0] for part in rows.values()), times.size), np.nan)
        for name, part in rows.items():
            values[places[name], : part.shape[1]] = part
        return cls(places, values, times)

    def __repr__(self) -> str:
        return f"{', '.join(self.labels) or 'nothing'} at {self.times.size} times"

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, str):
            return plain(self.rows(key))
        return np.asarray(self.values[key])

    def keys(self) -> KeysView[str]:
        """The names."""
        return self.places.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)

    def rows(self, name: str) -> Array:
        """Return the trajectory of a name as a matrix, with one row too."""
        return np.asarray(self.values[known(name, self.places, "trajectory")])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    @property
    def labels(self) -> list[str]:
        """A name for every row, such as ``level[2]``."""
        return [
            entry_name(name, i, self.rows(name))
            for name, rows in self.places.items()
            for i in range(rows.stop - rows.start)
        ]


@dataclass(frozen=True, repr=False)
class EstimationError(Table):
    """Estimate minus true state, a column a step; printed, the largest by its scale.

    Attributes:
        worst: the largest error, with its state and time.
    """

    worst: Excess

    def __repr__(self) -> str:
        """The largest error with its state and time."""
        worst = self.worst
        amount, time = in_unit(worst.amount, worst.unit), in_unit(worst.time, worst.time_unit)
        return f"largest error {worst.scaled:.2g} of the scale: {worst.name} by {amount} at {time}"
