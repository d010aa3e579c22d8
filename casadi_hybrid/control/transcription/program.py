"""A nonlinear program with names, which every solver of CasADi can be called with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.signals import Array, Signal, known, matrix

BOUNDS = "lbx", "ubx", "lbg", "ubg"
_COLUMNS = {"x0": "x", "lam_x0": "x", "lam_g0": "g"}


@dataclass(frozen=True)
class Role:
    """The meaning of a block in an optimal control problem.

    Attributes:
        quantity: name of the quantity or constraint, without the prefix of a part; empty for a
            block of several.
        kind: ``"limit"`` if the bounds of the block are limits of the quantity; ``"violation"`` of
            a soft limit; ``"initial"`` state; ``"dynamics"``.
        place: in the intervals: ``"inside"``, ``"between"``, ``"at begin"``, ``"at end"`` or empty.
        side: ``"lower"`` or ``"upper"`` of a soft limit, else empty.
        entries: of the quantity, a row of the block each; None for all.
    """

    quantity: str = ""
    kind: str = "limit"
    place: str = ""
    side: str = ""
    entries: tuple[int, ...] | None = None


NONE = Role()


@dataclass(frozen=True)
class Block:
    """A named matrix of unknowns, parameters or rows.

    Attributes:
        where: places of its entries in the program's columns, column by column of the matrix.
        shape: of the matrix.
        scale: divisors of its entries in the program.
        stride: number of its columns that belong to one interval of a trajectory; 0 for a block
            that is no trajectory.
        entries: names of its rows; none if they have numbers.
        role: its meaning.
        part, name: prefix of the part that it belongs to, and its name there.
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
        return values / self.scale if dual else values * self.scale


@dataclass(frozen=True)
class Program:
    """A nonlinear program with its start, bounds, parameter values and the names of all blocks.

    Unknowns and rows are ordered by the stages of the horizon: x₀, u₀, x₁, u₁, …; the rows of a
    stage begin with those that close the gap to the next.

    Attributes:
        name: of the problem.
        nlp: CasADi's dictionary with ``x``, ``p``, ``f``, ``g``.
        x0, lbx, ubx, lbg, ubg, p: numbers, in the program's own (scaled) unknowns.
        variables, parameters, constraints: blocks by name.
        stages: for ``x`` and ``g`` the stage of each entry; −1 for entries of no stage.
        after: for ``x`` and ``g`` the place of each entry one interval later.
        limits: those that are not as declared, lower and upper in physical units, by the name of a
            state, a control or a constraint.
        ties: for each unknown the place of its bounds: its own, or that of the one that it equals.
        following: limits that follow the parameters, see :func:`following`.
        together: of a part, by the name of a parameter the places of what a solve sets by it in
            all parts, a row each.
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
        for kind in ("variables", "parameters", "constraints"):
            parts.append(f"  {kind}: {', '.join(getattr(self, kind)) or 'none'}")
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
        return {"x0": self.x0, "p": self.p, "lbx": self.lbx, "ubx": self.ubx,
                "lbg": self.lbg, "ubg": self.ubg}  # fmt: skip

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
        """Names of unknowns and of rows with the times of their stages: ``speed at 1.4 s``."""
        said = np.array([f" at {time:.4g} {time_unit}".rstrip() for time in times])
        when = {key: said[np.minimum(at, times.size - 1)] for key, at in self.stages.items()}
        names = _entries(self.variables, self.n, when["x"])
        return names, _entries(self.constraints, self.m, when["g"])

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
        own: dict[str, Any] = {
            kind: {block.name: block for block in getattr(self, kind).values()
                   if block.part == prefix}
            for kind in ("variables", "parameters", "constraints")
        }  # fmt: skip
        limits = {limited.removeprefix(prefix): pair for limited, pair in self.limits.items()
                  if limited.startswith(prefix)}  # fmt: skip
        return replace(self, **own, limits=limits)

    def stacked(self, signals: Mapping[str, Signal], column: int) -> Array:
        """Return a column of these parameters, or their only one, and zeros for what is free."""
        return np.concatenate([np.zeros(0), *(
            self.parameters[name].read(self.p)[:, min(column, self.parameters[name].shape[1] - 1)]
            if name in self.parameters else np.zeros(signal.size)
            for name, signal in signals.items()
        )])  # fmt: skip

    def with_x0(self, x0: Any) -> Program:
        """Return the program with another start, in its own unknowns."""
        return replace(self, x0=np.asarray(x0, dtype=float).ravel())

    def bounds_of(
        self, name: str, declared: Any, prefix: str = ""
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray, Array]]:
        """Yield which bounds are the limits of a state, a control or a constraint.

        Block by block ``lbx``, ``ubx``, ``lbg`` or ``ubg``, the places in it, which entries of the
        limit stand there, and their scales. A side that was not declared has none, nor has a bound
        that another one makes superfluous.

        Args:
            name: of it.
            declared: what the program was laid out with, a signal or a constraint.
            prefix: of the part of the program that it is in.
        """
        part = self.part(prefix)
        for kind, blocks in (("x", part.variables), ("g", part.constraints)):
            for block in blocks.values():
                role = block.role
                if (role.quantity, role.kind) != (name, "limit"):
                    continue
                own = range(declared.lower.size) if role.entries is None else role.entries
                for side in ("lower", "upper") if not role.side else (role.side,):
                    key = f"{side[0]}b{kind}"
                    at = self.ties[block.where] if kind == "x" else block.where
                    there = np.isfinite(getattr(self, key)[at])
                    if self.following is not None:  # infinite now, and finite by other parameters
                        there |= np.isin(at, self.following.rows[key].at)
                    entries, scale = np.tile(own, block.shape[1]), block.scale.ravel(order="F")
                    yield key, at[there], entries[there], scale[there]

    def with_limits(
        self, name: str, declared: Any, lower: Array, upper: Array, prefix: str = ""
    ) -> Program:
        """Return the program with other limits, in physical units; see :meth:`bounds_of`."""
        changed: dict[str, Any] = {key: getattr(self, key).copy() for key in BOUNDS}
        for key, at, of, scale in self.bounds_of(name, declared, prefix):
            changed[key][at] = (lower if key[0] == "l" else upper)[of] / scale
        limits = {**self.limits, f"{prefix}{name}": (lower, upper)}
        return replace(self, **changed, limits=limits)

    def shifted(self, x: Any, lam_x: Any, lam_g: Any, intervals: int = 1) -> dict[str, Array]:
        """Return ``x0, lam_x0, lam_g0`` so many intervals later, to begin the next solve at.

        Columns of every block move left by the intervals, and the last is kept. That is right on an
        even grid of a fixed duration.

        Args:
            x, lam_x, lam_g: of a solution, in the program's own unknowns.
            intervals: how many have gone by.
        """
        start = {"x0": x, "lam_x0": lam_x, "lam_g0": lam_g}
        for key, stacked in start.items():
            moved, after = np.asarray(stacked, dtype=float).ravel(), self.after[_COLUMNS[key]]
            for _ in range(intervals):
                moved = moved[after]
            start[key] = moved
        return start


def common(one: Mapping[str, Block], other: Mapping[str, Block]) -> np.ndarray:
    """Return the places of what both have by name, a row for each of them."""
    same = [(block.where, other[name].where) for name, block in one.items()
            if name in other
            and (other[name].shape, other[name].role) == (block.shape, block.role)]  # fmt: skip
    return np.hstack([np.zeros((2, 0), dtype=int), *(np.array(pair) for pair in same)])


def _entries(blocks: Mapping[str, Block], total: int, when: Any = None) -> list[str]:
    """Names of all entries, of several columns with the number of each, or when it is."""
    names = [""] * total
    for name, block in blocks.items():
        rows, columns = block.shape
        for j, place in enumerate(block.where):
            label, at = block.label(name, j % rows), str(j // rows)
            if block.entries and block.stride > 1:
                at = "{},{}".format(*divmod(j // rows, block.stride))
            of = f"{label}[{at}]".replace("][", ",") if when is None else label + when[place]
            names[place] = of if columns > 1 else label
    return names
