"""A nonlinear program with names, which every solver of CasADi can be called with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.signals import Array, Signal, known, matrix

# Kinds of blocks, with CasADi's key of the column that they are parts of.
KINDS = {"variables": "x", "parameters": "p", "constraints": "g"}
BOUNDS = "lbx", "ubx", "lbg", "ubg"


@dataclass(frozen=True)
class Role:
    """The meaning of a block in an optimal control problem."""

    quantity: str = ""  # without the prefix of a part; empty for a block of several
    kind: str = "limit"  # also "violation", "initial", "dynamics": no limits of it
    place: str = ""  # in the intervals: "inside", "between", "at begin", "at end" or empty
    side: str = ""  # "lower" or "upper" of a soft limit
    entries: tuple[int, ...] | None = None  # of the quantity, one a row of the block; None for all


NONE = Role()


@dataclass(frozen=True)
class Block:
    """A named matrix of unknowns, parameters or rows.

    Attributes:
        where: places of the entries in the program's columns, column by column of the matrix.
        shape: of the matrix.
        scale: divisors of the entries in the program.
        stride: number of columns for one interval of a trajectory; 0 for other blocks.
        entries: names of the rows; empty if they have numbers.
        role: meaning of the block.
        part, name: prefix of the part of the block, and the name in the part.
    """

    where: np.ndarray
    shape: tuple[int, int]
    scale: Array
    stride: int = 1
    entries: tuple[str, ...] = ()
    role: Role = NONE
    part: str = ""
    name: str = ""

    @property
    def after(self) -> np.ndarray:
        """Places of the entries one interval later; the last interval stays."""
        if not self.stride or self.shape[1] <= self.stride:
            return self.where
        columns = self.where.reshape(self.shape, order="F")
        later = np.hstack((columns[:, self.stride :], columns[:, -self.stride :]))
        return np.asarray(later.ravel(order="F"))

    def label(self, name: str, row: int) -> str:
        """Return the name of a row of the block that has this name."""
        if self.entries:
            return f"{name} of {self.entries[row]}"
        return f"{name}[{row}]" if self.shape[0] > 1 else name

    def read(self, stacked: Any, *, dual: bool = False) -> Array:
        """Return the matrix in physical units; of multipliers (``dual``) per physical unit."""
        entries: Array = np.asarray(stacked, dtype=float).ravel()[self.where]
        values = entries.reshape(self.shape, order="F")
        # f and x = scale·x̂ give ∂f/∂x = (∂f/∂x̂)/scale; rows are g/scale, so λ is divided too.
        return values / self.scale if dual else values * self.scale


@dataclass(frozen=True)
class Program:
    """A nonlinear program with its start, bounds, parameter values and the names of all blocks.

    Unknowns and rows are ordered by the stages of the horizon: x₀, u₀, x₁, u₁, …; the rows of a
    stage begin with those that close the gap to the next.

    Attributes:
        name: of the problem.
        nlp: CasADi's dictionary with ``x``, ``p``, ``f``, ``g``.
        x0, lbx, ubx, lbg, ubg, p: values, in the program's own (scaled) unknowns.
        variables, parameters, constraints: blocks by name.
        stages: for ``x`` and ``g`` the stage of each entry; −1 for entries of no stage.
        after: for ``x`` and ``g`` the place of each entry one interval later.
        limits: changed limits, lower and upper in physical units, by the name of a state, a control
            or a constraint.
        ties: for each unknown the place of its bounds: its own, or the place of an equal unknown.
        following: limits that follow the parameters, see :func:`following`.
        together: of a part, by the name of a parameter: places of the entries that a solve sets by
            this name in all parts, a row each.
    """

    name: str
    nlp: Mapping[str, Any] = field(repr=False)
    x0: Array = field(repr=False)
    lbx: Array = field(repr=False)
    ubx: Array = field(repr=False)
    lbg: Array = field(repr=False)
    ubg: Array = field(repr=False)
    p: Array = field(repr=False)
    variables: Mapping[str, Block] = field(repr=False)
    parameters: Mapping[str, Block] = field(repr=False)
    constraints: Mapping[str, Block] = field(repr=False)
    stages: Mapping[str, np.ndarray] = field(repr=False)
    after: Mapping[str, np.ndarray] = field(repr=False)
    ties: np.ndarray = field(repr=False)
    limits: Mapping[str, tuple[Array, Array]] = field(repr=False, default_factory=dict)
    following: Any = field(repr=False, default=None)
    together: Mapping[str, Any] = field(repr=False, default_factory=dict)

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.n} unknowns, {self.lbg.size} rows, {self.p.size} parameters"]
        parts += [f"  {kind}: {', '.join(getattr(self, kind)) or 'none'}" for kind in KINDS]
        return "\n".join(parts)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return int(self.x0.size)

    @property
    def m(self) -> int:
        """Number of rows of g."""
        return int(self.lbg.size)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of a call of any solver made for :attr:`nlp`."""
        return {key: getattr(self, key) for key in ("x0", "p", *BOUNDS)}

    @property
    def constraint_names(self) -> list[str]:
        """A name for every row of g, as ``path[2]``, or ``dynamics of x[2,1]`` with the interval.

        The number after it counts the points of a collocation in the interval.
        """
        return _entries(self.constraints, self.m)

    @property
    def variable_names(self) -> list[str]:
        """A name for every unknown, such as ``state[0,3]``."""
        return _entries(self.variables, self.n)

    def names_at(self, times: Array, time_unit: str) -> tuple[list[str], list[str]]:
        """Return names of unknowns and of rows with times of their stages: ``speed at 1.4 s``."""
        words = np.array([f" at {time:.4g} {time_unit}".rstrip() for time in times])
        last = times.size - 1
        of_x, of_g = (words[np.minimum(self.stages[key], last)] for key in ("x", "g"))
        return _entries(self.variables, self.n, of_x), _entries(self.constraints, self.m, of_g)

    def sides(self, x: Array, g: Array) -> Iterator[tuple[str, Array, Array, Array, Any]]:
        """Yield ``x`` and ``g`` with values, lower and upper bounds and blocks."""
        yield "x", x, self.lbx, self.ubx, self.variables
        yield "g", g, self.lbg, self.ubg, self.constraints

    def at(self, x: Any) -> tuple[float, Array]:
        """Return f and g at a point, in the program's own unknowns."""
        nlp = self.nlp
        f, g = ca.Function("at", [nlp["x"], nlp["p"]], [nlp["f"], nlp["g"]])(x, self.p)
        return float(f), np.asarray(g.full(), dtype=float).ravel()

    def unpack(self, x: Any) -> dict[str, Array]:
        """Return every variable in physical units."""
        return {name: block.read(x) for name, block in self.variables.items()}

    def with_start(self, values: Mapping[str, Any]) -> Program:
        """Return the program with other starts, in physical units, of the named variables."""
        x0 = self.x0.copy()
        for name, value in values.items():
            block = known(name, self.variables, "start")
            start = matrix(value, block.shape[0], block.shape[1], f"start {name!r}")
            x0[block.where] = (start / block.scale).ravel(order="F")
        return replace(self, x0=x0)

    def part(self, prefix: str) -> Program:
        """Return the program as one of its parts sees it: its blocks by their own names."""
        if not prefix:
            return self
        fields: dict[str, Any] = {"limits": {}}
        for kind in KINDS:
            blocks = getattr(self, kind).values()
            fields[kind] = {block.name: block for block in blocks if block.part == prefix}
        for label, pair in self.limits.items():
            if label.startswith(prefix):
                fields["limits"][label.removeprefix(prefix)] = pair
        return replace(self, **fields)

    def stacked(self, signals: Mapping[str, Signal], column: int) -> Array:
        """Return a column of these parameters, or their only one; zeros for free parameters."""
        values = [np.zeros(0)]
        for name, signal in signals.items():
            block = self.parameters.get(name)
            if block is None:
                values.append(np.zeros(signal.size))
            else:
                values.append(block.read(self.p)[:, min(column, block.shape[1] - 1)])
        return np.concatenate(values)

    def with_x0(self, x0: Any) -> Program:
        """Return the program with another start, in its own unknowns."""
        return replace(self, x0=np.asarray(x0, dtype=float).ravel())

    def bounds_of(self, label: str) -> Iterator[tuple[str, np.ndarray, np.ndarray, Array]]:
        """Yield the bounds that are limits of a quantity or constraint, by its prefixed name.

        Each is a key (``lbx``, ``ubx``, ``lbg``, ``ubg``), places in it, entries of the limit at
        these places, and their scales. An undeclared side has no bound.
        """
        for kind, blocks in (("x", self.variables), ("g", self.constraints)):
            for block in blocks.values():
                role = block.role
                if role.kind != "limit" or block.part + role.quantity != label:
                    continue
                rows = range(block.shape[0]) if role.entries is None else role.entries
                entries, scale = np.tile(rows, block.shape[1]), block.scale.ravel(order="F")
                # A tied unknown has no bounds; its twin carries them.
                places = self.ties[block.where] if kind == "x" else block.where
                for side in (role.side,) if role.side else ("lower", "upper"):
                    key = f"{side[0]}b{kind}"
                    limited = np.isfinite(getattr(self, key)[places])
                    if self.following is not None:  # infinite now, and finite by other parameters
                        limited |= np.isin(places, self.following.rows[key].places)
                    yield key, places[limited], entries[limited], scale[limited]

    def with_limits(self, label: str, lower: Array, upper: Array) -> Program:
        """Return the program with other limits, in physical units; see :meth:`bounds_of`."""
        bounds: dict[str, Any] = {key: getattr(self, key).copy() for key in BOUNDS}
        for key, places, entries, scale in self.bounds_of(label):
            bounds[key][places] = (lower if key[0] == "l" else upper)[entries] / scale
        return replace(self, **bounds, limits={**self.limits, label: (lower, upper)})

    def shifted(self, x: Any, lam_x: Any, lam_g: Any, intervals: int = 1) -> dict[str, Array]:
        """Return ``x0, lam_x0, lam_g0`` of a later solve from a point in the program's unknowns.

        Every block moves left by whole intervals, and the last is repeated. The shift is exact on
        an even grid of a fixed duration.
        """
        start = {}
        for name, kind, stacked in (("x0", "x", x), ("lam_x0", "x", lam_x), ("lam_g0", "g", lam_g)):
            start[name] = np.asarray(stacked, dtype=float).ravel()
            for _ in range(intervals):
                start[name] = start[name][self.after[kind]]
        return start


def common(first: Mapping[str, Block], second: Mapping[str, Block]) -> np.ndarray:
    """Return the places of the blocks that both have by name, a row for each of the two."""
    pairs = [np.zeros((2, 0), dtype=int)]
    for name, block in first.items():
        twin = second.get(name, block)
        if name in second and (twin.shape, twin.role) == (block.shape, block.role):
            pairs.append(np.array((block.where, twin.where)))
    return np.hstack(pairs)


def _entries(blocks: Mapping[str, Block], total: int, times: Any = None) -> list[str]:
    """Return the names of all entries; those of several columns with the number, or the time."""
    names = [""] * total
    for name, block in blocks.items():
        rows, columns = block.shape
        for j, place in enumerate(block.where):
            names[place] = label = block.label(name, j % rows)
            if columns == 1:
                continue
            column = str(j // rows)
            if block.entries and block.stride > 1:
                # Interval and point of a collocation in it.
                column = "{},{}".format(*divmod(j // rows, block.stride))
            numbered = f"{label}[{column}]".replace("][", ",")
            names[place] = numbered if times is None else label + times[place]
    return names
