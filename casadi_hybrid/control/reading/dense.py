"""Trajectories between the grid points, as the method that made them says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from scipy.interpolate import KroghInterpolator

from casadi_hybrid.basics.errors import InputError
from casadi_hybrid.control.laying import Laid
from casadi_hybrid.control.methods import Collocation, points_of
from casadi_hybrid.control.signals import Array, ByName, lagrange, number, places
from casadi_hybrid.control.statement import Statement
from casadi_hybrid.control.steps import RungeKutta, nothing, plain_step, symbols_of

Whole = Any
"""A vector of whole numbers."""


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
        single: whether one time was asked for, so that a value has no axis of time.
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
    """The trajectories of a point of a program as functions of time.

    In interval k at the fraction s of it:

    - collocation: the polynomial through the beginning and the points of the interval; of an
      algebraic state that through the points (and the beginning, where it is an unknown there);
    - shooting: the scheme's steps, or the integrator, for so long; it meets the grid points at both
      ends; algebraic states solve the equations;
    - a discrete model: the value at the grid point before.

    Controls are held or linear; a reference has the value of the grid point before.

    Args:
        ocp, laid: the problem and its functions.
        x, p: the point and the parameters of its program.

    Attributes:
        N: number of intervals.
    """

    def __init__(self, ocp: Statement, laid: Laid, x: Array, p: Array) -> None:
        parts: list[Array] = [part.full() for part in laid.trajectories(x, p)]
        self.X, self.Z, self.U, self.V, self.P, T, self.costs, self.Y = parts
        self.times = T.ravel()
        self.N = self.times.size - 1
        self.ocp, self._inside = ocp, (laid.points, x, p)
        self._collocated = isinstance(ocp.method, Collocation)
        self._step: Any = None if ocp.model.discrete else getattr(ocp.method, "step", None)

    def locate(self, times: Any) -> tuple[Whole, Array]:
        """Return the interval and the fraction of it for each time.

        Raises:
            InputError: for a time outside of the horizon.
        """
        asked = np.asarray(times, dtype=float).ravel()
        first, last = self.times[0], self.times[-1]
        slack = 1e-9 * (last - first)
        if asked.size and not ((asked >= first - slack) & (asked <= last + slack)).all():
            raise InputError(f"times must be from {first:g} to {last:g}, the horizon")
        k = np.clip(np.searchsorted(self.times, asked, side="right") - 1, 0, self.N - 1)
        s = (asked - self.times[k]) / np.diff(self.times)[k]
        return k, np.clip(s, 0.0, 1.0)

    def each(self, fractions: Array, *, end: bool = False) -> tuple[Whole, Array]:
        """Return the interval and the fraction for fractions of every interval, and for the end."""
        k, s = np.repeat(np.arange(self.N), fractions.size), np.tile(fractions, self.N)
        return (np.append(k, self.N - 1), np.append(s, 1.0)) if end else (k, s)

    def columns(self, k: Whole, s: Array) -> Columns:
        """Return all arguments of the model's functions at fractions of intervals."""
        t = self.times[k] + s * np.diff(self.times)[k]
        u, x = self._controls(k, s), self._states(k, s)
        p = self.P[:, np.where((k == self.N - 1) & (s >= 1.0), self.N, k)]
        return Columns(x, self._algebraic(k, s, x, u, p, t), u, p, t)

    def halved(self) -> Array:
        """Return the ends of all intervals by twice as many Runge–Kutta steps.

        Of other methods the states that are there.
        """
        if not isinstance(self._step, RungeKutta):
            return self.X[:, 1:]
        twice = plain_step(RungeKutta(2 * self._step.steps), self.ocp.model)
        return self._shot(twice, self.V, np.arange(self.N), np.diff(self.times))

    def slopes(self, k: Whole, s: Array) -> Array:
        """Return dx/dt of the trajectory, one column a point; at a kink that from the left.

        Of an integrator's trajectory it is the model's rate.
        """
        if self._collocated:
            changes = self._interpolated(self._at_nodes[0], lagrange_slopes, k, s)
            return np.asarray(changes / np.diff(self.times)[k])
        if isinstance(self._step, RungeKutta):
            return self._shot(self._slope, self.V[:, k], k, np.diff(self.times)[k], s)
        return self.rates(self.columns(k, s))

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

    def _controls(self, k: Whole, s: Array) -> Array:
        return np.asarray(self.U[:, k] + s * (self.V - self.U)[:, k])

    def _states(self, k: Whole, s: Array) -> Array:
        if self._collocated:
            return self._interpolated(self._at_nodes[0], lagrange, k, s)
        if self.ocp.model.discrete:
            return np.asarray(self.X[:, np.where(s >= 1.0, k + 1, k)])
        return self._shot(self._flow, self._controls(k, s), k, s * np.diff(self.times)[k])

    def _algebraic(self, k: Whole, s: Array, x: Array, u: Array, p: Array, t: Array) -> Array:
        model = self.ocp.model
        if not (s.size and model.size("algebraic")):
            return np.zeros((model.size("algebraic"), s.size))
        if self._collocated:
            return self._interpolated(self._at_nodes[1], lagrange, k, s)
        near = self.Z[:, k] + s * np.diff(self.Z)[:, k]
        own, root = p[: model.size("parameter")], model.moves.algebraic
        return np.hstack([np.asarray(root(near[:, j], x[:, j], u[:, j], own[:, j], t[j]))
                          for j in range(s.size)])  # fmt: skip

    @cached_property
    def _at_nodes(self) -> tuple[Array, Array]:
        """The states and the algebraic states as (interval, row, node), the beginning first."""
        taus, N = points_of(self.ocp.method), self.N
        found = []
        points, *at = self._inside
        for grid, inside in zip((self.X, self.Z), points(*at), strict=True):
            own = inside.full().T.reshape(N, inside.shape[1] // N, len(grid))
            parts = [grid[:, :-1].T[:, None], own, grid[:, 1:].T[:, None]]
            if own.shape[1] == taus.size:  # else the last of Radau's points is the end
                del parts[2]
            found.append(np.concatenate(parts, axis=1).transpose(0, 2, 1))
        return found[0], found[1]

    def _interpolated(self, values: Array, polynomials: Any, k: Whole, s: Array) -> Array:
        weights = polynomials(np.append(0.0, points_of(self.ocp.method)), s)
        return np.asarray(np.einsum("jrn,jn->rj", values[k], weights))

    @cached_property
    def _flow(self) -> ca.Function:
        return plain_step(self._step, self.ocp.model)

    @cached_property
    def _slope(self) -> ca.Function:
        """(x, z, u, v, p, t, dt, s) → dx/dt after the part s of an interval."""
        model, s = self.ocp.model, ca.SX.sym("s")
        x, z, u, v, p, t, dt = symbols = symbols_of(model, nothing(model))
        end = self._flow(x, z, u, u + s * (v - u), p, t, s * dt)[0]
        return ca.Function("slope", [*symbols, s], [ca.jacobian(end, s) / dt])

    def _shot(self, function: ca.Function, v: Array, k: Whole, *rest: Array) -> Array:
        """The first output of a step, or of its slope, from the beginnings of intervals."""
        if not k.size:
            return self.X[:, k]
        own = self.P[: self.ocp.model.size("parameter"), k]
        times = [self.times[k][None], *(part[None] for part in rest)]
        columns = [self.X[:, k], self.Z[:, k], self.U[:, k], v, own, *times]
        return np.asarray(function.map(k.size).call(columns)[0].full())


def lagrange_slopes(nodes: Array, s: Array) -> Array:
    """Return the derivatives of the Lagrange polynomials on the nodes at s, one row a point."""
    return np.asarray(KroghInterpolator(nodes, np.eye(nodes.size)).derivative(s))
