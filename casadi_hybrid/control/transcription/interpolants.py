"""States between the grid points of a trajectory, by the kind of transcription."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from scipy.interpolate import KroghInterpolator

from casadi_hybrid.control.model.signals import Array
from casadi_hybrid.control.model.steps import RungeKutta, nothing, plain_step, symbols_of

# A vector of whole numbers.
Whole = Any


class Interpolant:
    """Cubic polynomials from states and rates at both ends; algebraic states solve equations."""

    # `of` has X, Z, U, V, P, times, ocp, inside (solution/dense.py); s is a fraction of interval k.
    def __init__(self, of: Any) -> None:
        # The trajectory has its interpolant: a circle would keep its arrays until a collection.
        self.of, self.model = weakref.proxy(of), of.ocp.model

    def states(self, k: Whole, s: Array) -> Array:
        """Return the states, one column a point."""
        of = self.of
        # Hermite's cubic: x₀ + s Δ + s (1 − s) ((1 − s) (h ẋ₀ − Δ) − s (h ẋ₁ − Δ)).
        first, change = of.X[:, k], of.X[:, k + 1] - of.X[:, k]
        begins, ends = (
            np.diff(of.times)[k] * of.rates_at(j, u[:, k], k) - change
            for j, u in ((k, of.U), (k + 1, of.V))
        )
        return np.asarray(first + s * change + s * (1 - s) * ((1 - s) * begins - s * ends))

    def slopes(self, k: Whole, s: Array) -> Array:
        """Return dx/dt, one column a point, from the left at a kink; here the model's rates."""
        return np.asarray(self.of.rates(self.of.columns(k, s)))

    def algebraic(self, k: Whole, s: Array, x: Array, u: Array, p: Array, t: Array) -> Array:
        """Return the algebraic states, one column a point."""
        of, size = self.of, self.model.size("algebraic")
        if not (s.size and size):
            return np.zeros((size, s.size))
        # Newton's method starts at the linear interpolation of the grid points.
        near, root = of.Z[:, k] + s * np.diff(of.Z)[:, k], self.model.moves.algebraic
        p = p[: self.model.size("parameter")]
        return np.hstack(
            [np.asarray(root(near[:, j], x[:, j], u[:, j], p[:, j], t[j])) for j in range(s.size)]
        )


class Held(Interpolant):
    """States of a discrete model: those of the grid point before."""

    def states(self, k: Whole, s: Array) -> Array:
        """See :class:`Interpolant`."""
        return np.asarray(self.of.X[:, np.where(s >= 1.0, k + 1, k)])


class Polynomials(Interpolant):
    """Polynomials through the beginning and the points of each interval."""

    def __init__(self, of: Any, points: Array) -> None:
        super().__init__(of)
        self.nodes = np.append(0.0, points)

    def states(self, k: Whole, s: Array) -> Array:
        """See :class:`Interpolant`."""
        return self._at(self._values[0], lagrange, k, s)

    def slopes(self, k: Whole, s: Array) -> Array:
        """See :class:`Interpolant`."""
        # d/ds of the polynomial; divided by the interval's length it is d/dt.
        changes = self._at(self._values[0], lagrange_slopes, k, s)
        return np.asarray(changes / np.diff(self.of.times)[k])

    def algebraic(self, k: Whole, s: Array, *_: Array) -> Array:
        """See :class:`Interpolant`."""
        return self._at(self._values[1], lagrange, k, s)

    @cached_property
    def _values(self) -> tuple[Array, Array]:
        """The states and the algebraic states as (interval, row, node), the beginning first."""
        of, values = self.of, []
        # z has a node at the beginning only if it is an unknown there.
        for grid, inside in zip((of.X, of.Z), of.inside, strict=True):
            points = inside.T.reshape(of.N, inside.shape[1] // of.N, len(grid))
            parts = [grid[:, :-1].T[:, None], points, grid[:, 1:].T[:, None]]
            if points.shape[1] == self.nodes.size - 1:  # else the last of Radau's points is the end
                del parts[2]
            values.append(np.concatenate(parts, axis=1).transpose(0, 2, 1))
        return values[0], values[1]

    def _at(self, values: Array, polynomials: Any, k: Whole, s: Array) -> Array:
        return np.asarray(np.einsum("jrn,jn->rj", values[k], polynomials(self.nodes, s)))


class Flow(Interpolant):
    """States at the end of a step from the beginning of the interval; it meets both ends."""

    def __init__(self, of: Any, step: Any) -> None:
        super().__init__(of)
        self.step = step

    def states(self, k: Whole, s: Array) -> Array:
        """See :class:`Interpolant`."""
        return self._shot(self._flow, self.of.controls(k, s), k, s * np.diff(self.of.times)[k])

    def slopes(self, k: Whole, s: Array) -> Array:
        """See :class:`Interpolant`."""
        if not isinstance(self.step, RungeKutta):
            return super().slopes(k, s)
        return self._shot(self._slope, self.of.V[:, k], k, np.diff(self.of.times)[k], s)

    def ends(self) -> Array:
        """Return the ends of all intervals."""
        return self._shot(self._flow, self.of.V, np.arange(self.of.N), np.diff(self.of.times))

    @cached_property
    def _flow(self) -> ca.Function:
        return plain_step(self.step, self.model)

    @cached_property
    def _slope(self) -> ca.Function:
        """(x, z, u, v, p, t, dt, s) → dx/dt after the part s of an interval."""
        model, s = self.model, ca.SX.sym("s")
        x, z, u, v, p, t, dt = symbols = symbols_of(model, nothing(model))
        # The exact derivative of the end of a step of length s·dt: the slope of the numerical flow.
        end = self._flow(x, z, u, u + s * (v - u), p, t, s * dt)[0]
        return ca.Function("slope", [*symbols, s], [ca.jacobian(end, s) / dt])

    def _shot(self, function: ca.Function, v: Array, k: Whole, *rest: Array) -> Array:
        """The first output of a step, or of its slope, from the beginnings of intervals."""
        of = self.of
        if not k.size:
            return np.asarray(of.X[:, k])
        p = of.P[: self.model.size("parameter"), k]
        times = [of.times[k][None], *(part[None] for part in rest)]
        columns = [of.X[:, k], of.Z[:, k], of.U[:, k], v, p, *times]
        return np.asarray(function.map(k.size).call(columns)[0].full())


def lagrange(nodes: Array, s: Array) -> Array:
    """Return the Lagrange polynomials on the nodes at s, one row a point."""
    others = [np.delete(nodes, i) for i in range(nodes.size)]
    rows = [np.prod((s[:, None] - o) / (n - o), axis=1) for n, o in zip(nodes, others, strict=True)]
    return np.stack(rows, axis=1)


def lagrange_slopes(nodes: Array, s: Array) -> Array:
    """Return the derivatives of the Lagrange polynomials on the nodes at s, one row a point."""
    return np.asarray(KroghInterpolator(nodes, np.eye(nodes.size)).derivative(s))


def interpolated(nodes: Array, s: Array, values: Any) -> Any:
    """Return polynomials at s from their values at the nodes, both stacked in each column."""
    size = values.shape[0] // nodes.size
    # (L ⊗ I) v: blocks of `size` rows are nodes; a fraction at a node makes L's row sparse.
    return ca.kron(ca.sparsify(ca.DM(lagrange(nodes, s))), ca.DM.eye(size)) @ values
