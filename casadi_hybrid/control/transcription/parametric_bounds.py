"""Limits that are expressions of parameters: bounds of a solve, their slopes, and export to C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import Array, NumberError, Signal, changeable, sides
from casadi_hybrid.control.transcription.program import BOUNDS, Program


class Rows(NamedTuple):
    """Bounds that are limits: their places, the entries of the limits' column, their divisors."""

    places: np.ndarray
    entries: np.ndarray
    scale: Array


@dataclass(frozen=True)
class Following:
    """The limits of a program that are expressions of its parameters."""

    function: ca.Function  # (p) → lower and upper of each limit in turn, in physical units
    signals: Mapping[str, Signal]  # limited quantities by name in the program
    begins: Mapping[str, int]  # place of each lower limit in the column; the upper follows
    rows: Mapping[str, Rows]  # bounds in question, by lbx, ubx, lbg, ubg

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
        return np.asarray(values[rows.entries] / rows.scale)


def following(program: Program, models: Mapping[str, Model]) -> Program:
    """Return the program with limits that follow its parameters; ``models`` by prefix of a part."""
    p, columns, begins = ca.SX.sym("p", program.p.size), [ca.SX(0, 1)], dict[str, int]()
    signals: dict[str, Signal] = {}
    none = Rows(np.zeros(0, int), np.zeros(0, int), np.zeros(0))
    parts: dict[str, list[Rows]] = {key: [none] for key in BOUNDS}
    for prefix, model in models.items():
        moving, function = model.limiting
        limits = [
            ca.densify(side) for side in function.call([own_parameters(model, program, p, prefix)])
        ]
        for k, (name, signal) in enumerate(moving.items()):
            label = prefix + name
            signals[label] = signal
            begins[label] = sum(column.numel() for column in columns)
            columns += limits[2 * k : 2 * k + 2]
            for key, places, entries, scale in program.bounds_of(label):
                first = begins[label] + (signal.size if key[0] == "u" else 0)
                parts[key].append(Rows(places, first + entries, scale))
    if not signals:
        return program
    rows = {key: Rows(*map(np.concatenate, zip(*of, strict=True))) for key, of in parts.items()}
    function = ca.Function("limits", [p], [ca.vertcat(*columns)])
    return replace(program, following=Following(function, signals, begins, rows))


def own_parameters(model: Model, program: Program, p: Any, prefix: str = "") -> Any:
    """Return the parameters of a model in the column p of its program's; free ones as declared."""
    rows = [type(p)(0, 1)]
    for name, signal in model.signals["parameter"].items():
        block = program.parameters.get(prefix + name)
        places = [] if block is None else block.where[: signal.size].tolist()
        rows.append(ca.DM(model.values[name]) if block is None else p[places])
    return ca.vertcat(*rows)


def followed(program: Program) -> Program:
    """Return the program with the bounds at its parameters.

    Raises:
        NumberError: for a lower limit above the upper one, of an equal unknown too.
    """
    limited: Following | None = program.following
    if limited is None:
        return program
    values, limits = limited.values(program.p), dict(program.limits)
    for name, signal in limited.signals.items():
        begin, size = limited.begins[name], signal.size
        pair = np.split(values[begin : begin + 2 * size], 2)
        limits[name] = sides(name, size, *pair)
        changeable(name, limits[name], signal)
    bounds: dict[str, Any] = {}
    for key, rows in limited.rows.items():
        if rows.places.size:
            # ufunc.at: a place may occur several times, for unknowns that parts have in common.
            bounds[key] = getattr(program, key).copy()
            infinite, tighter = (-np.inf, np.maximum) if key[0] == "l" else (np.inf, np.minimum)
            # Reset first: the tightest limit holds for an unknown that parts have in common.
            bounds[key][rows.places] = infinite
            tighter.at(bounds[key], rows.places, limited.bounds(key, values))
    program = replace(program, **bounds, limits=limits)
    crossed = np.flatnonzero(program.lbx > program.ubx)
    if crossed.size:
        raise NumberError(_crossing(program, values, int(crossed[0])))
    return program


def slopes(program: Program) -> tuple[Array, Array] | None:
    """Return d(lower)/dp and d(upper)/dp of the bounds of (g; x); None if no bound follows p."""
    limited: Following | None = program.following
    if limited is None:
        return None
    values, slope = limited.values(program.p), limited.slope(program.p).full()
    # Rows in the order (g; x), as the sensitivity of a solution expects.
    by_side = {side: np.zeros((program.m + program.n, program.p.size)) for side in "lu"}
    for key, rows in limited.rows.items():
        # A bound that differs from its expression was set by hand: its slope is zero.
        same = limited.bounds(key, values) == getattr(program, key)[rows.places]
        places = rows.places[same] + (program.m if key[-1] == "x" else 0)
        by_side[key[0]][places] = slope[rows.entries[same]] / rows.scale[same, None]
    return by_side["l"], by_side["u"]


def _crossing(program: Program, values: Array, place: int) -> str:
    """Name two limits of an unknown, common to several parts, that exclude each other."""
    limited, words = program.following, list[str]()
    for key in ("lbx", "ubx"):
        rows, bound = limited.rows[key], getattr(program, key)[place]
        active = (rows.places == place) & (limited.bounds(key, values) == bound)
        entry = rows.entries[active][0]
        name = [name for name, begin in limited.begins.items() if begin <= entry][-1]
        words.append(f"of {name!r}, {values[entry]:g}")
    return (
        f"the lower limit {words[0]}, is above the upper one {words[1]}; "
        f"{program.variable_names[place]} is the same in both, and no number is within both"
    )
