"""Trajectories of a point of a program as functions of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.signals import Array, ByName, number, places
from casadi_hybrid.control.transcription.interpolants import Whole
from casadi_hybrid.control.transcription.statement import Statement
from casadi_hybrid.control.transcription.transcription import Transcription
from casadi_hybrid.utils.errors import InputError


class Columns(NamedTuple):
    """Columns of the arguments of a model's functions; p has all parameters and the duration."""

    x: Array
    z: Array
    u: Array
    p: Array
    t: Array


@dataclass(frozen=True)
class Samples(ByName):
    """Trajectories at chosen times, by name.

    Attributes:
        times: of the columns.
        rows: by name, a matrix with a column a time.
        single: True for one time, so that a value has no axis of time.
    """

    times: Array
    rows: Mapping[str, Array] = field(repr=False)
    single: bool = False

    def __getitem__(self, name: str) -> Any:
        """Return a vector for a quantity with one entry, else a matrix; a number at one time."""
        rows = super().__getitem__(name)
        return number(self.rows[name][:, 0]) if self.single else rows


def by_names(ocp: Statement, *rows: Array) -> dict[str, Array]:
    """Return by name the rows of states, algebraic states, controls, parameters and outputs."""
    of = ocp.model.places
    kinds = of("state"), of("algebraic"), of("control"), places(ocp.given), of("output")
    parts = zip(kinds, rows, strict=True)
    return {name: part[where] for kind, part in parts for name, where in kind.items()}


class Dense:
    """Trajectories of a point of a program as functions of time.

    The method's :class:`Interpolant` gives the states between the grid points. Controls are held or
    linear; a reference has the value of the grid point before.
    """

    def __init__(self, ocp: Statement, transcription: Transcription, x: Array, p: Array) -> None:
        parts: list[Array] = [part.full() for part in transcription.trajectories(x, p)]
        self.X, self.Z, self.U, self.V, self.P, T, self.costs, self.Y = parts
        self.times = T.ravel()
        self.N = self.times.size - 1
        # The points inside are evaluated on demand: only a collocation reads them.
        self.ocp, self._inside = ocp, (transcription.points, x, p)
        self.interpolant = ocp.method.interpolant(self)

    @property
    def inside(self) -> list[Array]:
        """States and algebraic states at the points that are unknowns, a column each."""
        points, *at = self._inside
        return [part.full() for part in points(*at)]

    def locate(self, times: Any) -> tuple[Whole, Array]:
        """Return the interval and the fraction of it for each time.

        Raises:
            InputError: for a time outside of the horizon.
        """
        times = np.asarray(times, dtype=float).ravel()
        first, last = self.times[0], self.times[-1]
        # Times computed by a user may miss the ends by rounding.
        slack = 1e-9 * (last - first)
        if not ((times >= first - slack) & (times <= last + slack)).all():
            raise InputError(f"times must be from {first:g} to {last:g}, the horizon")
        # A grid point belongs to the interval that begins there, the last one to the last interval.
        k = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, self.N - 1)
        s = (times - self.times[k]) / np.diff(self.times)[k]
        return k, np.clip(s, 0.0, 1.0)

    def each(self, fractions: Array, *, end: bool = False) -> tuple[Whole, Array]:
        """Return the interval and the fraction for fractions of every interval, and for the end."""
        k, s = np.repeat(np.arange(self.N), fractions.size), np.tile(fractions, self.N)
        return (np.append(k, self.N - 1), np.append(s, 1.0)) if end else (k, s)

    def columns(self, k: Whole, s: Array) -> Columns:
        """Return all arguments of the model's functions at fractions of intervals."""
        t = self.times[k] + s * np.diff(self.times)[k]
        u, x = self.controls(k, s), self.interpolant.states(k, s)
        # A reference holds after its grid point; the one at the end has a column of its own.
        p = self.P[:, np.where((k == self.N - 1) & (s >= 1.0), self.N, k)]
        return Columns(x, self.interpolant.algebraic(k, s, x, u, p, t), u, p, t)

    def rates_at(self, j: Whole, u: Array, k: Whole) -> Array:
        """Return dx/dt at the grid points j by the controls u and the parameters of intervals k."""
        return self.rates(Columns(self.X[:, j], self.Z[:, j], u, self.P[:, k], self.times[j]))

    def rates(self, at: Columns) -> Array:
        """Return the model's dx/dt, one column a point."""
        return self.evaluate(self.ocp.model.moves.rate, self._own(at))

    def samples(self, k: Whole, s: Array, *, single: bool = False) -> Samples:
        """Return every quantity by name at fractions of intervals."""
        at = self.columns(k, s)
        outputs = self.evaluate(self.ocp.model.moves.outputs, self._own(at))
        return Samples(at.t, by_names(self.ocp, *at[:4], outputs), single)

    def expression(self, expression: Any, at: Columns) -> Array:
        """Return a column of expressions of the problem's symbols, one column a point."""
        return self.evaluate(self.ocp.expression_function([ca.vec(expression)]), at)

    @staticmethod
    def evaluate(function: ca.Function, at: Columns) -> Array:
        """Return the first output of a function (x, z, u, p, t), one column a point."""
        count = at.t.size
        if not count or not function.numel_out(0):
            return np.zeros((function.numel_out(0), count))
        return np.asarray(function.map(count)(*at[:4], at.t[None, :]).full(), dtype=float)

    def _own(self, at: Columns) -> Columns:
        return at._replace(p=at.p[: self.ocp.model.size("parameter")])

    def controls(self, k: Whole, s: Array) -> Array:
        """Return the controls at fractions of intervals, one column a point."""
        # A held control has U = V.
        return np.asarray(self.U[:, k] + s * (self.V - self.U)[:, k])
