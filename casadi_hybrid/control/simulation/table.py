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
    """A matrix whose rows have names and whose columns have times.

    ``table["speed"]`` is a trajectory, a vector where the name has one entry and else a matrix;
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
        full = [np.pad(part, ((0, 0), (0, times.size - part.shape[1])), constant_values=np.nan)
                for part in rows.values()]  # fmt: skip
        places = places_of({name: part.shape[0] for name, part in rows.items()})
        return cls(places, np.vstack([np.zeros((0, times.size)), *full]), times)

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
        """Return the trajectory of a name as a matrix, also where it has one entry."""
        return np.asarray(self.values[known(name, self.places, "trajectory")])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    @property
    def labels(self) -> list[str]:
        """A name for every row, such as ``level[2]``."""
        sizes = [(name, self.rows(name)) for name in self]
        return [entry_name(name, i, rows) for name, rows in sizes for i in range(rows.shape[0])]


@dataclass(frozen=True, repr=False)
class EstimationError(Table):
    """The estimate minus the true state, a column a step; printed, the largest by its scale.

    Attributes:
        worst: of which state that is, by how much and when.
    """

    worst: Excess

    def __repr__(self) -> str:
        """The largest error, of which state, and when."""
        at, unit = self.worst, self.worst.unit
        return (f"largest error {at.scaled:.2g} of the scale: {at.name} by "
                f"{in_unit(at.amount, unit)} at {in_unit(at.time, at.time_unit)}")  # fmt: skip
