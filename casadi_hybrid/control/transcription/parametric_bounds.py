"""Limits that are expressions of parameters, wherever a program has numbers.

This is the one place that knows them: the numbers of a solve, their slopes and the C of an export
are from here. Where unknowns of several parts are equal, the tightest of their limits holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import Array, NumberError, Signal, changeable, sides
from casadi_hybrid.control.transcription.program import BOUNDS, Program


@dataclass(frozen=True)
class Rows:
    """Bounds that are limits: their places, which number each is, and what that is divided by."""

    at: np.ndarray
    of: np.ndarray
    scale: Array


@dataclass(frozen=True)
class Following:
    """The limits of a program that are expressions of its parameters.

    Attributes:
        function: (p) → lower and upper of each in turn, in physical units, as one column.
        signals: what has them, by its name in the program.
        begins: where the lower of each begins in the column; the upper follows it.
        rows: which bounds they are, of ``lbx``, ``ubx``, ``lbg`` and ``ubg``.
    """

    function: ca.Function
    signals: Mapping[str, Signal]
    begins: Mapping[str, int]
    rows: Mapping[str, Rows]

    @cached_property
    def slope(self) -> ca.Function:
        """(p) → the Jacobian of the column."""
        p = ca.SX.sym("p", self.function.numel_in(0))
        return ca.Function("slope", [p], [ca.jacobian(self.function(p), p)])

    def values(self, p: Array) -> Array:
        """Return the column."""
        return np.asarray(self.function(p).full()).ravel()

    def bounds(self, key: str, values: Array) -> Array:
        """Return the bounds of ``rows`` for a column."""
        rows = self.rows[key]
        return np.asarray(values[rows.of] / rows.scale)


def following(program: Program, models: Mapping[str, Model]) -> Program:
    """Return a program, just laid out, that knows which limits follow its parameters.

    ``models`` are those of its parts, by the prefix of their names.
    """
    p, columns, begins = ca.SX.sym("p", program.p.size), [ca.SX(0, 1)], dict[str, int]()
    signals: dict[str, Signal] = {}
    found: dict[str, list[tuple[Any, ...]]] = {key: [] for key in BOUNDS}
    for prefix, model in models.items():
        moving, function = model.limiting
        own = own_parameters(model, program, p, prefix)
        given = [ca.densify(side) for side in function.call([own])]
        for k, (name, signal) in enumerate(moving.items()):
            begin = begins[prefix + name] = sum(column.numel() for column in columns)
            columns += given[2 * k : 2 * k + 2]
            signals[prefix + name] = signal
            for key, at, entries, scale in program.bounds_of(name, signal, prefix):
                first = begin + (signal.size if key[0] == "u" else 0)
                found[key].append((at, first + entries, scale))
    if not signals:
        return program
    none = (np.zeros(0, int), np.zeros(0, int), np.zeros(0))
    rows = {key: Rows(*map(np.concatenate, zip(none, *parts, strict=True)))
            for key, parts in found.items()}  # fmt: skip
    function = ca.Function("limits", [p], [ca.vertcat(*columns)])
    return replace(program, following=Following(function, signals, begins, rows))


def own_parameters(model: Model, program: Program, p: Any, prefix: str = "") -> Any:
    """Return the parameters of a model in the column p of its program's; free ones as declared."""
    blocks = {name: program.parameters.get(prefix + name) for name in model.signals["parameter"]}
    return ca.vertcat(type(p)(0, 1), *(
        ca.DM(model.values[name]) if block is None
        else p[block.where[: model.signals["parameter"][name].size].tolist()]
        for name, block in blocks.items()
    ))  # fmt: skip


def followed(program: Program) -> Program:
    """Return the program with the limits that its parameters give.

    Raises:
        NumberError: where a lower one is above its upper, also of another part's equal unknown.
    """
    own: Following | None = program.following
    if own is None:
        return program
    values, limits = own.values(program.p), dict(program.limits)
    for name, signal in own.signals.items():
        begin, size = own.begins[name], signal.size
        pair = np.split(values[begin : begin + 2 * size], 2)
        limits[name] = sides(name, size, *pair)
        changeable(name, limits[name], signal)
    changed: dict[str, Any] = {}
    for key, rows in own.rows.items():
        if not rows.at.size:
            continue
        bound = changed[key] = getattr(program, key).copy()
        lower = key[0] == "l"
        bound[rows.at] = -np.inf if lower else np.inf
        (np.maximum if lower else np.minimum).at(bound, rows.at, own.bounds(key, values))
    program = replace(program, **changed, limits=limits)
    crossed = np.flatnonzero(program.lbx > program.ubx)
    if crossed.size:
        raise NumberError(_crossing(program, values, int(crossed[0])))
    return program


def slopes(program: Program) -> tuple[Array, Array] | None:
    """Return d(lower)/dp and d(upper)/dp of the bounds of (g; x); None where none follow p.

    A bound that is not what the expression says has been set by hand, and has the slope zero.
    """
    own: Following | None = program.following
    if own is None:
        return None
    values, slope = own.values(program.p), own.slope(program.p).full()
    found = np.zeros((2, program.m + program.n, program.p.size))
    for key, rows in own.rows.items():
        held = own.bounds(key, values) == getattr(program, key)[rows.at]
        at = rows.at[held] + (program.m if key[-1] == "x" else 0)
        found[int(key[0] == "u"), at] = slope[rows.of[held]] / rows.scale[held, None]
    return found[0], found[1]


def _crossing(program: Program, values: Array, place: int) -> str:
    """Name two limits that leave nothing for an unknown that several parts have in common."""
    own, said = program.following, list[str]()
    for key in ("lbx", "ubx"):
        rows, bound = own.rows[key], getattr(program, key)[place]
        of = rows.of[(rows.at == place) & (own.bounds(key, values) == bound)][0]
        name = [name for name, begin in own.begins.items() if begin <= of][-1]
        said.append(f"of {name!r}, {values[of]:g}")
    return (
        f"the lower limit {said[0]}, is above the upper one {said[1]}; "
        f"{program.variable_names[place]} is the same in both, and no number is within both"
    )
