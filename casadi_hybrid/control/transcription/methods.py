"""Transcriptions of a horizon: multiple shooting, single shooting, collocation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from casadi_hybrid.control.model.model import Model
from casadi_hybrid.control.model.signals import Array, between
from casadi_hybrid.control.model.steps import (
    Integrator,
    RungeKutta,
    check_step,
    plain_step,
    step_of,
)
from casadi_hybrid.control.transcription.assembly import Horizon, each
from casadi_hybrid.control.transcription.interpolants import (
    Flow,
    Held,
    Interpolant,
    Polynomials,
    interpolated,
)
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count, one_of


class Method(ABC):
    """Transcription of a horizon. A subclass defines :meth:`connect`."""

    step: Any = None  # from one grid point to the next; None for a method without
    inner: int = 0  # equally spaced points inside an interval where limits hold too
    order: int = 2  # power of an interval's length in its error
    nodes: Array = np.zeros(0)  # fractions of an interval at which x or z are unknowns too
    unrolled: ClassVar[float] = np.inf  # most intervals whose graph is unrolled by default
    all_states: ClassVar[bool] = True  # False if only the first state is an unknown
    # False: z is an unknown at grid points only if a cost or constraint needs it there.
    all_algebraic: ClassVar[bool] = True

    @abstractmethod
    def connect(self, horizon: Horizon) -> Any:
        """Add the rows of the dynamics; return the integrals of the integrand."""

    def graphs(self, model: Model) -> Any:
        """Return ``ca.SX``, or ``ca.MX`` if the method needs it."""
        return ca.SX

    @property
    def inner_points(self) -> Array:
        """Fractions of the equally spaced inner points."""
        return np.arange(1, self.inner + 1) / (self.inner + 1)

    def interpolant(self, of: Any) -> Interpolant:
        """Return the states between the grid points of a trajectory."""
        return Held(of) if of.ocp.model.discrete else Interpolant(of)

    def halved(self, of: Any) -> tuple[Array, str]:
        """Return the ends of all intervals by half the step, and the remedy if they differ."""
        return of.X[:, 1:], ""

    def finer(self) -> str:
        """Return the call of the method with more inner points; empty if it takes none."""
        return ""


@dataclass(frozen=True)
class _Shooting(Method):
    """Common part of multiple and single shooting."""

    step: RungeKutta | Integrator = field(default_factory=RungeKutta)
    inner: int = 0
    # The classical Runge-Kutta method has the local error O(h⁵).
    order = 5

    def __post_init__(self) -> None:
        check_step(self.step)
        count(self.inner, "inner")

    def graphs(self, model: Model) -> Any:
        """See :class:`Method`."""
        return step_of(model, self.step).graphs

    def interpolant(self, of: Any) -> Interpolant:
        """See :class:`Method`."""
        return Held(of) if of.ocp.model.discrete else Flow(of, self.step)

    def halved(self, of: Any) -> tuple[Array, str]:
        """See :class:`Method`."""
        if of.ocp.model.discrete or not isinstance(self.step, RungeKutta):
            return super().halved(of)
        steps = self.step.steps
        remedy = f"RungeKutta({4 * steps}), or Collocation() where the model is stiff"
        # Step doubling: the difference of the ends estimates the error of the coarser steps.
        return Flow(of, RungeKutta(2 * steps)).ends(), remedy

    def finer(self) -> str:
        """See :class:`Method`."""
        if not isinstance(self.step, RungeKutta | Integrator):  # in the window of an estimator
            return ""
        step = "" if self.step == RungeKutta() else f"step={self.step!r}, "
        return f"{type(self).__name__}({step}inner={2 * self.inner or 4})"

    def _hold_between(self, horizon: Horizon) -> None:
        """Let limits and constraints hold at the inner points, to which the step leads."""
        model = horizon.model
        if not self.inner:
            return
        if model.discrete:
            raise InputError(
                f"{model.name} is discrete; there are no inner points between its steps"
            )
        taus, function = self.inner_points, plain_step(self.step, model)
        z, u, v, _, t, dt = _columns(horizon)
        x, p = horizon.X[:, :-1], horizon.model_parameters[:, : horizon.N]
        # A step of length s·dt ends with the control between u and v; a held control has v = u.
        points = [
            each(function, horizon.assembly.kind, [x, z, u, u + s * (v - u), p, t, s * dt])
            for s in taus.tolist()
        ]
        X, _, Z = (ca.vertcat(*parts) for parts in zip(*points, strict=True))
        _hold(horizon, taus, X, Z)


@dataclass(frozen=True)
class MultipleShooting(_Shooting):
    """x_{k+1} = step(x_k, u_k), with the states of all grid points as unknowns.

    Attributes:
        step: :class:`RungeKutta` or :class:`Integrator`; a discrete model has its own.
        inner: number of points inside of an interval where limits hold too.

    Source: H. G. Bock, K. J. Plitt, "A multiple shooting algorithm for direct solution of optimal
    control problems", IFAC World Congress 1984.
    """

    def connect(self, horizon: Horizon) -> Any:
        """See :class:`Method`."""
        step = step_of(horizon.model, self.step).function(horizon.model, horizon.integrand)
        columns = [horizon.X[:, :-1], *_columns(horizon)]
        ends, integrals = each(step, horizon.assembly.kind, columns)[:2]
        # The gap is x_{k+1} − F(x_k, u_k): its sign fixes the sign of the multipliers.
        horizon.close("dynamics", horizon.X[:, 1:] - ends)
        self._hold_between(horizon)
        return ca.sum2(integrals)


@dataclass(frozen=True)
class SingleShooting(_Shooting):
    """Shooting with the first state alone as an unknown; limits of states become rows.

    All derivatives are dense, so a solve grows with the cube of the intervals; for more than some
    fifty :class:`MultipleShooting` is the better choice.

    Attributes:
        step, inner: see :class:`MultipleShooting`.
        unrolled: number of intervals up to which the graph is unrolled by default: the Hessian of
            steps within steps grows faster than that of the step as a function.
    """

    unrolled: ClassVar[float] = 30
    all_states: ClassVar[bool] = False

    def connect(self, horizon: Horizon) -> Any:
        """See :class:`Method`."""
        step = step_of(horizon.model, self.step).function(horizon.model, horizon.integrand)
        shoot = step.mapaccum(horizon.N, {"base": -1})  # all in one graph: derivatives are faster
        ends, integrals = shoot.call([horizon.X, *_columns(horizon)], True)[:2]
        horizon.X = ca.horzcat(horizon.X, ends)
        # Later states are no unknowns, so their limits cannot be bounds.
        horizon.limit("state", horizon.X[:, 1:], "", horizon.stages(points=True)[1:])
        self._hold_between(horizon)
        return ca.sum2(integrals)


@dataclass(frozen=True)
class Collocation(Method):
    """Polynomial of each interval that satisfies the model's equations at the points.

    With D the derivatives of the Lagrange polynomials on the points and the beginning,
    D x = dt f(x, z, u, p, t) at each of ``degree`` points. The end of the interval is the
    polynomial's value there.

    Attributes:
        degree: number of points an interval.
        points: ``"radau"``, of order 2·degree − 1, the last point being the end of the interval,
            or ``"legendre"``, of order 2·degree.
        inner: number of further points inside of an interval where limits hold too.

    Source: L. T. Biegler, "Nonlinear Programming", SIAM 2010, chapter 10.
    """

    degree: int = 3
    points: str = "radau"
    inner: int = 0
    all_algebraic: ClassVar[bool] = False
    order: int = field(init=False, repr=False)
    nodes: Array = field(init=False, repr=False, compare=False)
    coefficients: tuple[Array, Array, Array, Array] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.degree, int) or not 1 <= self.degree <= 9:
            raise InputError(f"degree must be an integer from 1 to 9, got {self.degree!r}")
        one_of(self.points, "points", ("radau", "legendre"))
        count(self.inner, "inner")
        object.__setattr__(self, "coefficients", _coefficients(self.degree, self.points))
        object.__setattr__(self, "nodes", self.coefficients[0])
        # Order between the points; at the end of an interval it is higher (superconvergence).
        object.__setattr__(self, "order", self.degree + 1)

    def interpolant(self, of: Any) -> Interpolant:
        """See :class:`Method`."""
        return Polynomials(of, self.nodes)

    def finer(self) -> str:
        """See :class:`Method`."""
        return repr(replace(self, inner=2 * self.inner or 4))

    def graphs(self, model: Model) -> Any:
        """See :class:`Method`."""
        if model.discrete:
            raise InputError(
                f"{model.name} is discrete; collocation is for rates. Take MultipleShooting()"
            )
        return ca.SX

    def connect(self, horizon: Horizon) -> Any:
        """See :class:`Method`."""
        model, N, degree = horizon.model, horizon.N, self.degree
        # Radau's last point is the end of the interval: x_{k+1} itself is the unknown there.
        inner = degree - 1 if self.points == "radau" else degree
        fractions = between(horizon.fractions, self.nodes)
        X = _points(horizon, "state", fractions.reshape(N, degree)[:, :inner].ravel(), inner)
        Z = _points(horizon, "algebraic", fractions, degree)
        nx, nz = model.size("state"), model.size("algebraic")
        inside, at_points = ca.reshape(X, nx * inner, N), ca.reshape(Z, nz * degree, N)
        interval = self._interval(model, horizon.integrand, inner)
        columns = [horizon.X[:, :-1], inside, at_points, horizon.X[:, 1:], *_columns(horizon)[1:]]
        defects, gaps, equations, integrals = each(interval, horizon.assembly.kind, columns)
        # Legendre's points leave the end out: a row equates x_{k+1} and the polynomial's end.
        if self.points == "legendre":
            horizon.close("continuity", gaps)
        horizon.close("dynamics", ca.reshape(defects, nx, N * degree), degree)
        if nz:
            stages = horizon.stages(repeat=degree)
            equations = ca.reshape(equations, nz, N * degree)
            layout = {"stride": degree, "entries": tuple(model.equation_names)}
            horizon.equate("equations", equations, stages, horizon.sizes, **layout)
        if inner or nz:
            horizon.inside = X, Z
        if inner + self.inner:
            self._hold_between(horizon, inside, at_points, inner)
        return ca.sum2(integrals)

    def _hold_between(self, horizon: Horizon, inside: Any, Z: Any, inner: int) -> None:
        """Let constraints hold at the points and the inner points, and limits at the latter too."""
        taus = self.nodes
        fractions = np.append(taus[:inner], self.inner_points)
        # Nodes of x: the beginning and the points, of which Radau's last is the end.
        ends = [horizon.X[:, 1:]] if inner < self.degree else []
        X = ca.vertcat(horizon.X[:, :-1], inside, *ends)
        # z jumps with a held control: it has a node at 0 only if it is an unknown there.
        nodes = np.append(0.0, taus)
        if horizon.Z.shape[0]:
            taus, Z = nodes, ca.vertcat(horizon.Z[:, :-1], Z)
        X, Z = interpolated(nodes, fractions, X), interpolated(taus, fractions, Z)
        _hold(horizon, fractions, X, Z, inner)

    def _interval(self, model: Model, integrand: ca.Function, inner: int) -> ca.Function:
        taus, slopes, weights, ends = self.coefficients
        nx, nz, nu = (model.size(kind) for kind in ("state", "algebraic", "control"))
        x, y = ca.SX.sym("x", nx), ca.SX.sym("y", nx)
        X, Z = ca.SX.sym("X", nx, inner), ca.SX.sym("Z", nz, self.degree)
        u, v, p = ca.SX.sym("u", nu), ca.SX.sym("v", nu), ca.SX.sym("p", integrand.numel_in(3))
        t, dt = ca.SX.sym("t"), ca.SX.sym("dt")
        model_p = p[: model.size("parameter")]
        points = ca.horzcat(x, X, y) if inner < self.degree else ca.horzcat(x, X)
        rates, equations, total = [], [], ca.SX.zeros(integrand.numel_out(0))
        # Column 0 of `points` is the beginning, where the equations are not imposed.
        for j, tau in enumerate(taus):
            point = points[:, j + 1], Z[:, j], u + tau * (v - u)
            time = t + tau * dt
            rates.append(dt * model.moves.rate(*point, model_p, time))
            equations.append(model.moves.equations(*point, model_p, time))
            total += weights[j] * dt * integrand(*point, p, time)
        # dp/ds at the points less dt times the rate; the end less the polynomial at s = 1.
        defects = ca.mtimes(points, ca.DM(slopes)) - ca.horzcat(*rates)
        gap = y - ca.mtimes(points, ca.DM(ends))
        arguments = [x, ca.vec(X), ca.vec(Z), y, u, v, p, t, dt]
        rows = [ca.vec(defects), gap, ca.vec(ca.horzcat(*equations)), total]
        return ca.Function("interval", arguments, rows)


def _columns(horizon: Horizon) -> list[Any]:
    N = horizon.N
    return [horizon.Z[:, :N], horizon.U, horizon.V, horizon.P[:, :N], horizon.T[:, :N], horizon.dt]


def _hold(horizon: Horizon, taus: Array, X: Any, Z: Any, unknowns: int = 0) -> None:
    """Let constraints hold at fractions of the intervals, and add rows of the limits there."""
    # X and Z stack all fractions, a column an interval; the first ones are bounded unknowns.
    several = taus.size - unknowns
    stages = horizon.stages(repeat=several)
    columns = []
    for kind, stacked in (("state", X), ("algebraic", Z)):
        size = horizon.model.size(kind)
        if several:
            rows = ca.reshape(stacked[unknowns * size :, :], size, len(stages))
            horizon.limit(kind, rows, "between", stages, several)
        columns.append(ca.reshape(stacked, size, horizon.N * taus.size))
    horizon.between = (taus, *columns)


def _points(horizon: Horizon, kind: str, fractions: Array, each_interval: int) -> Any:
    """Add the unknowns of a kind at fractions between the grid points; return them."""
    rows = [horizon.assembly.kind(0, horizon.N * each_interval)]
    signals = horizon.model.signals[kind] if each_interval else {}
    for name, signal in signals.items():
        guess = horizon.guess[name]
        start = np.stack([np.interp(fractions, horizon.fractions, row) for row in guess])
        stages = horizon.stages(repeat=each_interval)
        rows.append(horizon.unknown(signal, stages, start, each_interval, "inside"))
    return ca.vertcat(*rows)


def _coefficients(degree: int, points: str) -> tuple[Array, Array, Array, Array]:
    """Points in (0, 1], slopes of the polynomials there, weights of the integral, values at 1."""
    taus: Array = np.array(ca.collocation_points(degree, points))
    slopes, ends, _ = (np.array(ca.DM(part)) for part in ca.collocation_coeff(taus.tolist()))
    # Exact for powers below the degree. CasADi's own weights add up to 1/2 for the degree 1.
    weights = np.linalg.solve(np.vander(taus, increasing=True).T, 1.0 / np.arange(1, degree + 1))
    return taus, slopes, np.asarray(weights), ends
