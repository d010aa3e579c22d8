"""A nonlinear program with names, which every solver of CasADi can be called with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Block:
    """A named block of unknowns, parameters or rows, stored column by column in ``where``.

    ``stride`` is the number of columns that belong to one interval of a trajectory.
    """

    where: slice
    shape: tuple[int, int]
    unit: np.ndarray
    stride: int = 1

    def read(self, stacked: np.ndarray) -> np.ndarray:
        """Return the block in physical units; a single column as a vector."""
        values = np.asarray(stacked, dtype=float)[self.where].reshape(self.shape, order="F")
        values = values * self.unit
        return values[:, 0] if self.shape[1] == 1 else values


@dataclass(frozen=True)
class Program:
    """A nonlinear program with its start, bounds, parameter values and the names of all blocks.

    Attributes:
        nlp: CasADi's dictionary with ``x``, ``p``, ``f``, ``g``.
        x0, lbx, ubx, lbg, ubg, p: numbers, in the program's own (scaled) unknowns.
        variables, parameters, constraints: blocks by name.
    """

    name: str
    nlp: Mapping[str, Any]
    x0: np.ndarray
    lbx: np.ndarray
    ubx: np.ndarray
    lbg: np.ndarray
    ubg: np.ndarray
    p: np.ndarray
    variables: Mapping[str, Block] = field(repr=False)
    parameters: Mapping[str, Block] = field(repr=False)
    constraints: Mapping[str, Block] = field(repr=False)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return int(self.x0.size)

    @property
    def m(self) -> int:
        """Number of rows of g."""
        return int(self.lbg.size)

    @property
    def arguments(self) -> dict[str, np.ndarray]:
        """The arguments of a call of any solver made for :attr:`nlp`."""
        return {key: getattr(self, key) for key in ("x0", "p", "lbx", "ubx", "lbg", "ubg")}

    @property
    def constraint_names(self) -> list[str]:
        """A name for every row of g, such as ``dynamics[2,17]``."""
        return _entries(self.constraints)

    @property
    def variable_names(self) -> list[str]:
        """A name for every unknown, such as ``state[0,3]``."""
        return _entries(self.variables)

    def unpack(self, x: Any) -> dict[str, np.ndarray]:
        """Return every variable in physical units: an array, or a vector of a single column."""
        x = np.asarray(x, dtype=float).ravel()
        return {name: block.read(x) for name, block in self.variables.items()}

    def with_start(self, **values: Any) -> Program:
        """Return the program with other starts, in physical units, of the named variables."""
        return replace(self, x0=_written(self.x0, self.variables, values))

    def with_parameters(self, **values: Any) -> Program:
        """Return the program with other values of the named parameters."""
        return replace(self, p=_written(self.p, self.parameters, values))

    def shifted(self, x: np.ndarray, lam_x: np.ndarray, lam_g: np.ndarray) -> dict[str, np.ndarray]:
        """Return ``x0, lam_x0, lam_g0`` one interval later: columns move left, the last is kept."""
        return {
            "x0": _shifted(x, self.variables),
            "lam_x0": _shifted(lam_x, self.variables),
            "lam_g0": _shifted(lam_g, self.constraints),
        }


def spread(value: Any, shape: tuple[int, int]) -> np.ndarray:
    """Spread a number, a vector with one entry a row, or a matrix over the shape."""
    values = np.asarray(value, dtype=float)
    if values.ndim == 1:
        values = values[:, None]
    return np.broadcast_to(values, shape).astype(float)


def _entries(blocks: Mapping[str, Block]) -> list[str]:
    return [
        f"{name}[{i},{k}]" if block.shape[1] > 1 else f"{name}[{i}]"
        for name, block in blocks.items()
        for k in range(block.shape[1])
        for i in range(block.shape[0])
    ]


def _written(
    stacked: np.ndarray, blocks: Mapping[str, Block], values: Mapping[str, Any]
) -> np.ndarray:
    written = stacked.copy()
    for name, value in values.items():
        block = blocks[name]
        written[block.where] = (spread(value, block.shape) / block.unit).ravel(order="F")
    return written


def _shifted(stacked: np.ndarray, blocks: Mapping[str, Block]) -> np.ndarray:
    moved = stacked.copy()
    for block in blocks.values():
        columns = stacked[block.where].reshape(block.shape, order="F")
        if block.shape[1] > 1:
            columns = np.hstack((columns[:, block.stride :], columns[:, -block.stride :]))
        moved[block.where] = columns.ravel(order="F")
    return moved
